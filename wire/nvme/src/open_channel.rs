//! Open-channel drives: data structures and opcodes of the Open-Channel Solid State Drives Specification 2.0 ("OC").
//!
//! An address is a logical block address of four fields, the lowest first: sector, chunk, parallel unit, group (OC 2.1).
//!
//! Left out: the raw commands and the bad block table of version 1.2; its addresses are in the host's library.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;
use crate::opcode::{AdminOpcode, IoOpcode};

/// Geometry, an admin command (OC 3.1).
pub const GEOMETRY: AdminOpcode = AdminOpcode(0xe2);
/// Vector Chunk Reset (OC 4.5).
pub const VECTOR_RESET: IoOpcode = IoOpcode(0x90);
/// Vector Chunk Write (OC 4.4).
pub const VECTOR_WRITE: IoOpcode = IoOpcode(0x91);
/// Vector Chunk Read (OC 4.3).
pub const VECTOR_READ: IoOpcode = IoOpcode(0x92);
/// Vector Chunk Copy (OC 4.6).
pub const VECTOR_COPY: IoOpcode = IoOpcode(0x93);

/// Log page Chunk Information (OC 3.2.1).
pub const CHUNK_LOG: u8 = 0xca;
/// Log page Chunk Notification (OC 3.2.2).
pub const NOTIFICATION_LOG: u8 = 0xd0;

/// Addresses that one vector command may name.
pub const MAX_VECTOR: u32 = 64;

/// MCCAP bit 0: Vector Chunk Copy.
pub const MCCAP_COPY: u32 = 1 << 0;
/// MCCAP bit 1: a free chunk may be reset.
pub const MCCAP_MULTIPLE_RESETS: u32 = 1 << 1;
/// MCCAP bit 2: an open chunk may be reset. Not of the specification; QEMU's open-channel drive has the bit.
pub const MCCAP_EARLY_RESETS: u32 = 1 << 2;

/// The data of Geometry (OC 3.1).
#[derive(Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Geometry {
    /// Major version number (0).
    pub mjr: u8,
    /// Minor version number (1).
    pub mnr: u8,
    /// (7:2).
    pub reserved_2: [u8; 6],
    /// LBA Format: bits of the fields of an address (15:8).
    pub lbaf: AddressBits,
    /// Media and Controller Capabilities (19:16).
    pub mccap: U32,
    /// (31:20).
    pub reserved_20: [u8; 12],
    /// Wear-level Index Delta Threshold (32).
    pub wit: u8,
    /// (63:33).
    pub reserved_33: [u8; 31],
    /// Groups (65:64).
    pub num_grp: U16,
    /// Parallel units of a group (67:66).
    pub num_pu: U16,
    /// Chunks of a parallel unit (71:68).
    pub num_chk: U32,
    /// Logical blocks of a chunk (75:72).
    pub clba: U32,
    /// (127:76).
    pub reserved_76: [u8; 52],
    /// Minimum write size, in logical blocks (131:128).
    pub ws_min: U32,
    /// Optimal write size, in logical blocks (135:132).
    pub ws_opt: U32,
    /// Cache minimum write size units: logical blocks that must follow one before it can be read (139:136).
    pub mw_cunits: U32,
    /// Maximum open chunks; 0 is no limit (143:140).
    pub maxoc: U32,
    /// Maximum open chunks of a parallel unit; 0 is no limit (147:144).
    pub maxocpu: U32,
    /// (191:148).
    pub reserved_148: [u8; 44],
    /// Typical and maximum times of a read, a write and a chunk reset, in ns (215:192).
    pub times: [U32; 6],
    /// (4095:216).
    pub reserved_216: [u8; 3_880],
}

/// Bits of the fields of an address.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct AddressBits {
    /// Of the group (0).
    pub group: u8,
    /// Of the parallel unit (1).
    pub pu: u8,
    /// Of the chunk (2).
    pub chunk: u8,
    /// Of the logical block in the chunk (3).
    pub sector: u8,
    /// (7:4).
    pub reserved: [u8; 4],
}

/// A chunk, as the log page reports it (OC 3.2.1).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ChunkDescriptor {
    /// Chunk State (0).
    pub cs: u8,
    /// Chunk Type (1).
    pub ct: u8,
    /// Wear-level Index, from 0 (new) to 255 (2).
    pub wli: u8,
    /// (7:3).
    pub reserved: [u8; 5],
    /// First address (15:8).
    pub slba: U64,
    /// Logical blocks (23:16).
    pub cnlb: U64,
    /// Write Pointer: logical blocks that are written (31:24).
    pub wp: U64,
}

/// Chunk State: nothing is written.
pub const CHUNK_FREE: u8 = 1 << 0;
/// Chunk State: nothing more can be written.
pub const CHUNK_CLOSED: u8 = 1 << 1;
/// Chunk State: partly written.
pub const CHUNK_OPEN: u8 = 1 << 2;
/// Chunk State: out of use.
pub const CHUNK_OFFLINE: u8 = 1 << 3;
/// Chunk Type: written in order.
pub const CHUNK_SEQUENTIAL: u8 = 1 << 0;

/// A notification about a chunk (OC 3.2.2).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ChunkNotification {
    /// Notification Count, from 1 (7:0).
    pub nc: U64,
    /// The address that it is about (15:8).
    pub lba: U64,
    /// Namespace (19:16).
    pub nsid: U32,
    /// The event (21:20).
    pub state: U16,
    /// The scope of the address (22).
    pub mask: u8,
    /// (31:23).
    pub reserved_23: [u8; 9],
    /// Logical blocks, if the address is one of blocks (33:32).
    pub nlb: U16,
    /// (63:34).
    pub reserved_34: [u8; 30],
}

/// Notification: data could not be read.
pub const NOTICE_UNRECOVERABLE: u16 = 1 << 3;
/// Notification: the wear-level index has left the average by more than the threshold.
pub const NOTICE_WEAR: u16 = 1 << 8;
/// Mask: the address is one of logical blocks.
pub const MASK_BLOCKS: u8 = 1 << 0;
/// Mask: the address is one of a chunk.
pub const MASK_CHUNK: u8 = 1 << 1;

const _: () = assert!(size_of::<Geometry>() == 4_096 && size_of::<AddressBits>() == 8);
const _: () = assert!(size_of::<ChunkDescriptor>() == 32 && size_of::<ChunkNotification>() == 64);

impl Geometry {
    /// All fields zero.
    pub fn zeroed() -> Geometry {
        Geometry::new_zeroed()
    }
}

impl AddressBits {
    /// The address of a place: group, parallel unit, chunk, logical block.
    pub const fn address(&self, [group, pu, chunk, sector]: [u64; 4]) -> u64 {
        let chunk = chunk << self.sector;
        let pu = pu << (self.sector + self.chunk);
        group << (self.sector + self.chunk + self.pu) | pu | chunk | sector
    }

    /// The place of an address, whose group may not exist.
    pub fn place(&self, address: u64) -> [u64; 4] {
        let field = |from: u8, bits: u8| address >> from & ((1 << bits) - 1);
        let (chunk, pu) = (self.sector, self.sector + self.chunk);
        [address >> (pu + self.pu), field(pu, self.pu), field(chunk, self.chunk), field(0, self.sector)]
    }
}

impl SubmissionEntry {
    /// A vector command on `count` addresses (1 to 64): the one in `list`, or those in the list that `list` points to.
    ///
    /// # Panics
    /// When `count` is out of range.
    pub fn vector(opcode: IoOpcode, nsid: u32, list: u64, count: u32) -> SubmissionEntry {
        assert!((1..=MAX_VECTOR).contains(&count), "{count} addresses do not fit one command");
        SubmissionEntry::blocks(opcode, nsid, list, count)
    }

    /// The addresses of a vector command, counted from zero (CDW12 bits 5:0).
    pub fn vector_z(&self) -> u32 {
        self.cdw12.get() & (MAX_VECTOR - 1)
    }

    /// The destination, or the pointer to the destinations, of Vector Chunk Copy (CDW14 and CDW15).
    pub fn vector_destination(&self) -> u64 {
        u64::from(self.cdw14.get()) | u64::from(self.cdw15.get()) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_sector_lowest_and_the_group_highest() {
        let bits = AddressBits { group: 3, pu: 2, chunk: 5, sector: 8, reserved: [0; 4] };
        let address = bits.address([6, 3, 17, 200]);
        assert_eq!(address, 6 << 15 | 3 << 13 | 17 << 8 | 200);
        assert_eq!(bits.place(address), [6, 3, 17, 200]);
        // A field of no bits.
        let bits = AddressBits { group: 0, pu: 0, chunk: 1, sector: 4, reserved: [0; 4] };
        assert_eq!(bits.place(bits.address([0, 0, 1, 9])), [0, 0, 1, 9]);
    }

    #[test]
    fn the_fields_of_a_geometry_stand_where_the_specification_puts_them() {
        let mut geometry = Geometry::zeroed();
        (geometry.mjr, geometry.wit) = (2, 7);
        geometry.lbaf = AddressBits { group: 1, pu: 2, chunk: 3, sector: 4, reserved: [0; 4] };
        (geometry.num_grp, geometry.clba, geometry.ws_min) = (16.into(), 4_096.into(), 24.into());
        geometry.times[5] = 9.into();
        let bytes = geometry.as_bytes();
        assert_eq!((bytes[0], &bytes[8..12], bytes[32], bytes[64]), (2, &[1, 2, 3, 4][..], 7, 16));
        assert_eq!((bytes[73], bytes[128], bytes[212]), (16, 24, 9));
    }
}
