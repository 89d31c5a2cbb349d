//! The checks of a PDU's common header, before anything of it is believed: type, flags, lengths. A violation is a
//! [`Fatal`] error, which names the byte (NVMe/TCP 3.5).
//!
//! Left out: fields that depend on earlier PDUs, such as transfer tags.

use core::fmt;

use super::{Common, DATA_DIGEST, DIGEST, HEADER_DIGEST, MAX_HEADER, PduType};

/// The digests that both sides have agreed on.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Digests {
    /// After headers.
    pub header: bool,
    /// After data.
    pub data: bool,
}

/// The side that receives a PDU.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Receiver {
    /// The controller, from the host.
    Controller,
    /// The host, from the controller.
    Host,
}

/// Fatal Error Status (3.6.2.4, "FES").
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FatalStatus(pub u16);

impl FatalStatus {
    /// Invalid PDU Header Field; the information is its byte offset.
    pub const INVALID_HEADER: FatalStatus = FatalStatus(0x01);
    /// PDU Sequence Error.
    pub const SEQUENCE: FatalStatus = FatalStatus(0x02);
    /// Header Digest Error; the information is the received digest.
    pub const HEADER_DIGEST: FatalStatus = FatalStatus(0x03);
    /// Data Transfer Out of Range.
    pub const OUT_OF_RANGE: FatalStatus = FatalStatus(0x04);
    /// Data Transfer Limit Exceeded.
    pub const LIMIT_EXCEEDED: FatalStatus = FatalStatus(0x05);
    /// Unsupported Parameter; the information is its byte offset.
    pub const UNSUPPORTED: FatalStatus = FatalStatus(0x06);

    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0x01 => "Invalid PDU Header Field",
            0x02 => "PDU Sequence Error",
            0x03 => "Header Digest Error",
            0x04 => "Data Transfer Out of Range",
            0x05 => "Data Transfer Limit Exceeded",
            0x06 => "Unsupported Parameter",
            _ => "unknown fatal error",
        }
    }
}

/// An error after which a connection cannot continue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Fatal {
    /// The fault.
    pub status: FatalStatus,
    /// Where; its meaning depends on the status.
    pub information: u32,
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            FatalStatus::INVALID_HEADER | FatalStatus::UNSUPPORTED => {
                write!(f, "{} at byte {}", self.status.name(), self.information)
            }
            status => f.write_str(status.name()),
        }
    }
}

impl Fatal {
    /// A header field that is not valid, by its byte offset.
    pub const fn field(offset: u32) -> Fatal {
        Fatal { status: FatalStatus::INVALID_HEADER, information: offset }
    }

    /// A status without further information.
    pub const fn of(status: FatalStatus) -> Fatal {
        Fatal { status, information: 0 }
    }
}

/// The parts of a PDU, in order.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Its type.
    pub kind: PduType,
    /// Bytes of the header, without its digest.
    pub header: usize,
    /// Whether a digest of 4 bytes follows the header.
    pub header_digest: bool,
    /// Bytes between that and the data.
    pub padding: usize,
    /// Bytes of data.
    pub data: usize,
    /// Whether a digest of 4 bytes follows the data.
    pub data_digest: bool,
}

/// Byte offsets of the fields of the common header.
const KIND: u32 = 0;
const FLAGS: u32 = 1;
const HEADER: u32 = 2;
const DATA_OFFSET: u32 = 3;
const LEN: u32 = 4;

impl Shape {
    /// The parts of a PDU whose common header has arrived. `max_data` limits its data in bytes.
    ///
    /// # Errors
    /// The first field that is not valid. Reserved flags are ignored.
    #[inline]
    pub fn of(common: &Common, receiver: Receiver, agreed: Digests, max_data: u32) -> Result<Shape, Fatal> {
        let kind = PduType(common.kind);
        let (by_host, header, may_have_data) = match kind {
            PduType::CAPSULE_CMD => (true, 72, true),
            PduType::H2C_DATA => (true, 24, true),
            PduType::CAPSULE_RESP => (false, 24, false),
            PduType::C2H_DATA => (false, 24, true),
            PduType::R2T => (false, 24, false),
            PduType::IC_REQ => (true, 128, false),
            PduType::IC_RESP => (false, 128, false),
            PduType::H2C_TERM => (true, 24, true),
            PduType::C2H_TERM => (false, 24, true),
            _ => return Err(Fatal::field(KIND)),
        };
        if by_host != (receiver == Receiver::Controller) {
            return Err(Fatal::field(KIND));
        }
        if usize::from(common.header) != header {
            return Err(Fatal::field(HEADER));
        }
        match kind {
            PduType::H2C_TERM | PduType::C2H_TERM => Shape::of_termination(common, kind),
            PduType::IC_REQ | PduType::IC_RESP => Shape::without_data(common, kind, header, Digests::default()),
            _ if !may_have_data => Shape::without_data(common, kind, header, agreed),
            _ => Shape::with_data(common, kind, agreed, max_data),
        }
    }

    fn without_data(common: &Common, kind: PduType, header: usize, agreed: Digests) -> Result<Shape, Fatal> {
        let header_digest = Shape::header_digest(common, agreed)?;
        match common.len.get() as usize == header + digest_len(header_digest) {
            true => Ok(Shape { kind, header, header_digest, padding: 0, data: 0, data_digest: false }),
            false => Err(Fatal::field(LEN)),
        }
    }

    /// A termination quotes a header and has no digests.
    fn of_termination(common: &Common, kind: PduType) -> Result<Shape, Fatal> {
        let header = usize::from(common.header);
        let quoted = (common.len.get() as usize).checked_sub(header).filter(|quoted| *quoted <= MAX_HEADER);
        let data = quoted.ok_or(Fatal::field(LEN))?;
        Ok(Shape { kind, header, header_digest: false, padding: 0, data, data_digest: false })
    }

    #[inline]
    fn with_data(common: &Common, kind: PduType, agreed: Digests, max_data: u32) -> Result<Shape, Fatal> {
        let (header, header_digest) = (usize::from(common.header), Shape::header_digest(common, agreed)?);
        let (begin, len) = (header + digest_len(header_digest), common.len.get() as usize);
        if len == begin && kind == PduType::CAPSULE_CMD {
            return Ok(Shape { kind, header, header_digest, padding: 0, data: 0, data_digest: false });
        }
        let offset = usize::from(common.data_offset);
        if offset < begin || !offset.is_multiple_of(4) {
            return Err(Fatal::field(DATA_OFFSET));
        }
        let data_digest = common.flags & DATA_DIGEST != 0;
        if data_digest != agreed.data {
            return Err(Fatal::field(FLAGS));
        }
        let data = len.checked_sub(offset + digest_len(data_digest)).filter(|data| *data > 0);
        let data = data.ok_or(Fatal::field(LEN))?;
        if data > max_data as usize {
            return match kind {
                PduType::H2C_DATA => Err(Fatal::of(FatalStatus::LIMIT_EXCEEDED)),
                _ => Err(Fatal::field(LEN)),
            };
        }
        Ok(Shape { kind, header, header_digest, padding: offset - begin, data, data_digest })
    }

    #[inline]
    fn header_digest(common: &Common, agreed: Digests) -> Result<bool, Fatal> {
        let there = common.flags & HEADER_DIGEST != 0;
        if there == agreed.header { Ok(there) } else { Err(Fatal::field(FLAGS)) }
    }

    /// Bytes up to the data: header, its digest and padding.
    pub fn lead(&self) -> usize {
        self.header + digest_len(self.header_digest) + self.padding
    }

    /// Bytes of the whole PDU.
    pub fn len(&self) -> usize {
        self.lead() + self.data + digest_len(self.data_digest)
    }

    /// Whether it has no bytes, which no PDU is.
    pub fn is_empty(&self) -> bool {
        false
    }
}

const fn digest_len(there: bool) -> usize {
    if there { DIGEST } else { 0 }
}
