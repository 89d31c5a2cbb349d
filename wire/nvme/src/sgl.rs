//! Descriptors of scatter gather lists (Base 4.3.2).

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;

/// 16 bytes that name a piece of data, or more descriptors.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SglDescriptor {
    /// Address of the data or of the next segment (bytes 7:0).
    pub address: U64,
    /// Length of the data or of the next segment in bytes (bytes 11:8).
    pub len: U32,
    /// Reserved (bytes 14:12).
    pub reserved: [u8; 3],
    /// SGL Identifier: type (bits 7:4) and sub type (bits 3:0) (byte 15).
    pub identifier: u8,
}

const _: () = assert!(size_of::<SglDescriptor>() == 16);

/// SGL Descriptor Type (Base 4.3.2, "SGL Descriptor Type").
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SglType(pub u8);

impl SglType {
    /// A piece of data.
    pub const DATA_BLOCK: SglType = SglType(0x0);
    /// Bytes that are not transferred.
    pub const BIT_BUCKET: SglType = SglType(0x1);
    /// More descriptors, the last of which may name a segment again.
    pub const SEGMENT: SglType = SglType(0x2);
    /// More descriptors, all of data.
    pub const LAST_SEGMENT: SglType = SglType(0x3);
    /// Data that the transport moves (Base 4.3.2, "Transport SGL Data Block").
    pub const TRANSPORT_DATA_BLOCK: SglType = SglType(0x5);
}

/// Sub type of a data block whose address is an offset in the capsule.
pub const SUB_TYPE_OFFSET: u8 = 0x1;
/// Sub type of a transport data block.
pub const SUB_TYPE_TRANSPORT: u8 = 0xa;

impl SglDescriptor {
    /// A descriptor of the given type, with a memory address.
    pub fn new(kind: SglType, address: u64, len: u32) -> SglDescriptor {
        SglDescriptor { address: address.into(), len: len.into(), reserved: [0; 3], identifier: kind.0 << 4 }
    }

    /// Data of `len` bytes that the transport moves in data transfers.
    pub fn transport(len: u32) -> SglDescriptor {
        let identifier = SglType::TRANSPORT_DATA_BLOCK.0 << 4 | SUB_TYPE_TRANSPORT;
        SglDescriptor { len: len.into(), identifier, ..SglDescriptor::default() }
    }

    /// Data of `len` bytes that is in the capsule.
    pub fn in_capsule(len: u32) -> SglDescriptor {
        let identifier = SglType::DATA_BLOCK.0 << 4 | SUB_TYPE_OFFSET;
        SglDescriptor { len: len.into(), identifier, ..SglDescriptor::default() }
    }

    /// Its type.
    pub fn kind(&self) -> SglType {
        SglType(self.identifier >> 4)
    }

    /// SGL Descriptor Sub Type: 0 for an address in memory.
    pub fn sub_type(&self) -> u8 {
        self.identifier & 0xf
    }
}

impl SubmissionEntry {
    /// SGL Entry 1, which takes the place of both PRP entries (Base 4.1, Data Pointer).
    pub fn sgl1(&self) -> SglDescriptor {
        let mut descriptor = SglDescriptor { address: self.prp1, ..SglDescriptor::default() };
        descriptor.as_mut_bytes()[8..].copy_from_slice(self.prp2.as_bytes());
        descriptor
    }

    /// The same command with its data described by `descriptor` (PSDT 01b).
    pub fn with_sgl(mut self, descriptor: SglDescriptor) -> SubmissionEntry {
        self.flags = self.flags & !crate::command::FLAGS_PSDT | 1 << 6;
        self.prp1 = descriptor.address;
        self.prp2.as_mut_bytes().copy_from_slice(&descriptor.as_bytes()[8..]);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_stands_in_the_data_pointer() {
        let descriptor = SglDescriptor::new(SglType::LAST_SEGMENT, 0x1122_3344_5566_7788, 0x30);
        let entry = SubmissionEntry::default().with_sgl(descriptor);
        assert_eq!(
            entry.as_bytes()[24..40],
            [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x30, 0, 0, 0, 0, 0, 0, 0x30]
        );
        assert_eq!((entry.sgl1(), entry.flags, descriptor.sub_type()), (descriptor, 0x40, 0));
    }
}
