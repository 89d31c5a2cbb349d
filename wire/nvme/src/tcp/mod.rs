//! NVMe/TCP as bytes: protocol data units (PDUs). Sections are those of the NVMe/TCP Transport Specification 1.1.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the header of each PDU |
//! | `shape` | the checks of the header that every PDU begins with |
//!
//! Left out: digests, whose values the sides compute; TLS.

pub mod shape;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;
use crate::completion::CompletionEntry;

pub use shape::{Digests, Fatal, FatalStatus, Receiver, Shape};

/// Bytes of a digest.
pub const DIGEST: usize = 4;
/// The TCP port of discovery.
pub const DISCOVERY_PORT: u16 = 8_009;
/// Bytes of data that a capsule with an admin or Fabrics command may hold (3.3.2.2.1).
pub const ADMIN_IN_CAPSULE: u32 = 8_192;
/// The longest header of a PDU, which is that of initialisation.
pub const MAX_HEADER: usize = 128;
/// MAXH2CDATA is at least this (3.6.2.3).
pub const MIN_MAX_DATA: u32 = 4_096;

/// The type of a PDU (3.6.1, "PDU-Type").
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PduType(pub u8);

impl PduType {
    /// Initialize Connection Request.
    pub const IC_REQ: PduType = PduType(0x00);
    /// Initialize Connection Response.
    pub const IC_RESP: PduType = PduType(0x01);
    /// Host to Controller Terminate Connection Request.
    pub const H2C_TERM: PduType = PduType(0x02);
    /// Controller to Host Terminate Connection Request.
    pub const C2H_TERM: PduType = PduType(0x03);
    /// Command Capsule.
    pub const CAPSULE_CMD: PduType = PduType(0x04);
    /// Response Capsule.
    pub const CAPSULE_RESP: PduType = PduType(0x05);
    /// Host to Controller Data Transfer.
    pub const H2C_DATA: PduType = PduType(0x06);
    /// Controller to Host Data Transfer.
    pub const C2H_DATA: PduType = PduType(0x07);
    /// Ready to Transfer.
    pub const R2T: PduType = PduType(0x09);
}

/// Flags of a PDU, bit 0: a header digest follows the header.
pub const HEADER_DIGEST: u8 = 1 << 0;
/// Flags of a PDU, bit 1: a data digest follows the data.
pub const DATA_DIGEST: u8 = 1 << 1;
/// Flags of a data PDU, bit 2: the last one of the transfer.
pub const LAST: u8 = 1 << 2;
/// Flags of C2HData, bit 3: the command succeeded, and no response capsule follows.
pub const SUCCESS: u8 = 1 << 3;

/// The header that every PDU begins with (3.6.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Common {
    /// PDU-Type (0).
    pub kind: u8,
    /// Flags (1).
    pub flags: u8,
    /// Header Length (2).
    pub header: u8,
    /// PDU Data Offset (3).
    pub data_offset: u8,
    /// PDU Length (7:4).
    pub len: U32,
}

const _: () = assert!(size_of::<Common>() == 8);

/// ICReq and ICResp (3.6.2.2, 3.6.2.3), which have the same fields.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Initialize {
    /// (7:0).
    pub common: Common,
    /// PDU Format Version: 0 (9:8).
    pub version: U16,
    /// HPDA or CPDA: the alignment of data that the sender wants, in dwords counted from zero (10).
    pub alignment_z: u8,
    /// DGST: which digests; the host asks, the controller decides (11).
    pub digests: u8,
    /// The host's MAXR2T, counted from zero; the controller's MAXH2CDATA in bytes (15:12).
    pub limit: U32,
    /// (127:16).
    pub reserved_16: [u8; 112],
}

const _: () = assert!(size_of::<Initialize>() == 128);

/// DGST, bit 0: header digests.
pub const ENABLE_HEADER_DIGEST: u8 = 1 << 0;
/// DGST, bit 1: data digests.
pub const ENABLE_DATA_DIGEST: u8 = 1 << 1;
/// The largest value of HPDA and CPDA.
pub const MAX_ALIGNMENT_Z: u8 = 31;

/// H2CTermReq and C2HTermReq (3.6.2.4, 3.6.2.5). The header of the PDU in error follows.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Terminate {
    /// (7:0).
    pub common: Common,
    /// Fatal Error Status (9:8).
    pub status: U16,
    /// Fatal Error Information (13:10).
    pub information: U32,
    /// (23:14).
    pub reserved_14: [u8; 10],
}

const _: () = assert!(size_of::<Terminate>() == 24);

/// CapsuleCmd (3.6.2.6).
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CapsuleCommand {
    /// (7:0).
    pub common: Common,
    /// (71:8).
    pub entry: SubmissionEntry,
}

const _: () = assert!(size_of::<CapsuleCommand>() == 72);

/// CapsuleResp (3.6.2.7).
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CapsuleResponse {
    /// (7:0).
    pub common: Common,
    /// (23:8).
    pub entry: CompletionEntry,
}

const _: () = assert!(size_of::<CapsuleResponse>() == 24);

/// H2CData, C2HData and R2T (3.6.2.8 to 3.6.2.10), which have the same fields.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Data {
    /// (7:0).
    pub common: Common,
    /// Command Capsule CID: the command (9:8).
    pub cid: U16,
    /// Transfer Tag, of H2CData and R2T (11:10).
    pub tag: U16,
    /// Data Offset, or R2T Offset, within the command's data (15:12).
    pub offset: U32,
    /// Data Length, or R2T Length (19:16).
    pub len: U32,
    /// (23:20).
    pub reserved_20: [u8; 4],
}

const _: () = assert!(size_of::<Data>() == 24);

impl Initialize {
    /// An ICReq or ICResp with no alignment and no digests.
    pub fn new(kind: PduType, limit: u32) -> Initialize {
        let mut initialize = Initialize::new_zeroed();
        let len = size_of::<Initialize>();
        initialize.common = Common { kind: kind.0, header: len as u8, len: (len as u32).into(), ..Common::default() };
        initialize.limit = limit.into();
        initialize
    }

    /// The digests of DGST.
    pub fn wants(&self) -> Digests {
        Digests { header: self.digests & ENABLE_HEADER_DIGEST != 0, data: self.digests & ENABLE_DATA_DIGEST != 0 }
    }
}

impl Terminate {
    /// A request to terminate because of `fatal`, which is followed by `quoted` bytes of the PDU in error.
    pub fn new(kind: PduType, fatal: Fatal, quoted: usize) -> Terminate {
        let mut terminate = Terminate::new_zeroed();
        let header = size_of::<Terminate>();
        let len = ((header + quoted) as u32).into();
        terminate.common = Common { kind: kind.0, header: header as u8, len, ..Common::default() };
        (terminate.status, terminate.information) = (fatal.status.0.into(), fatal.information.into());
        terminate
    }
}

impl Digests {
    /// The bits in DGST.
    pub fn bits(self) -> u8 {
        let bit = |there: bool, bit: u8| if there { bit } else { 0 };
        bit(self.header, ENABLE_HEADER_DIGEST) | bit(self.data, ENABLE_DATA_DIGEST)
    }

    /// The common header of a PDU of `kind` with a header of `header` bytes, and `data` bytes of data that are aligned to
    /// `align` bytes. Flags beyond those of digests are `flags`.
    #[inline]
    pub fn common(self, kind: PduType, flags: u8, header: usize, data: usize, align: usize) -> Common {
        let digest = if self.header { DIGEST } else { 0 };
        let (mut flags, mut offset, mut len) = (flags, 0, header + digest);
        if self.header {
            flags |= HEADER_DIGEST;
        }
        if data > 0 {
            offset = len.next_multiple_of(align);
            len = offset + data;
            if self.data {
                flags |= DATA_DIGEST;
                len += DIGEST;
            }
        }
        Common { kind: kind.0, flags, header: header as u8, data_offset: offset as u8, len: (len as u32).into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_header_digest_padding_data_and_data_digest() {
        let both = Digests { header: true, data: true };
        let common = both.common(PduType::C2H_DATA, LAST, 24, 4_096, 64);
        assert_eq!((common.flags, common.data_offset, common.len.get()), (0b111, 64, 64 + 4_096 + 4));
        let common = Digests::default().common(PduType::CAPSULE_CMD, 0, 72, 0, 4);
        assert_eq!((common.flags, common.data_offset, common.len.get()), (0, 0, 72));
    }

    #[test]
    fn termination_quotes_the_header_in_error() {
        let fatal = Fatal { status: FatalStatus::INVALID_HEADER, information: 2 };
        let bytes = Terminate::new(PduType::C2H_TERM, fatal, 72);
        assert_eq!(bytes.as_bytes()[..14], [3, 0, 24, 0, 96, 0, 0, 0, 1, 0, 2, 0, 0, 0]);
    }
}
