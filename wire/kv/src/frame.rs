//! A frame of a stream.

use alloc::vec::Vec;

use crate::fields::Fields;
use crate::{MAX_FRAME, MIN_FRAME, Malformed, VERSION};

/// Bytes of a frame before its body.
pub const HEADER: usize = 16;

/// A frame whose kind is not checked yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// The kind.
    pub kind: u8,
    /// Flags of the kind.
    pub flags: u16,
    /// Number of the request.
    pub id: u64,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// A frame in exactly these bytes.
    ///
    /// # Errors
    /// Why they are none.
    pub fn parse(bytes: &'a [u8]) -> Result<Frame<'a>, Malformed> {
        match split(bytes)? {
            Some(len) if len == bytes.len() => {}
            _ => return Err(Malformed::Length(bytes.len() as u64)),
        }
        let mut id = [0; 8];
        id.copy_from_slice(&bytes[8..HEADER]);
        let flags = u16::from_le_bytes([bytes[6], bytes[7]]);
        Ok(Frame { kind: bytes[5], flags, id: u64::from_le_bytes(id), body: &bytes[HEADER..] })
    }

    /// Checks that there are no other flags than these.
    pub(crate) fn only_flags(&self, valid: u16) -> Result<(), Malformed> {
        match self.flags & !valid {
            0 => Ok(()),
            _ => Err(Malformed::Flags { kind: self.kind, flags: self.flags }),
        }
    }

    /// The body, to be read field by field.
    pub(crate) fn fields(&self) -> Fields<'a> {
        Fields::new(self.kind, self.body)
    }
}

/// The bytes of the frame at the beginning of a stream's rest; `None` if the frame is incomplete. Length and version
/// are checked as soon as they have arrived.
///
/// # Errors
/// Why no frame of this protocol begins there.
pub fn split(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(len) = bytes.first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_le_bytes(*len) as usize;
    if !(MIN_FRAME..=MAX_FRAME).contains(&len) {
        return Err(Malformed::Length(len as u64));
    }
    match bytes.get(4) {
        None => Ok(None),
        Some(&VERSION) => Ok((bytes.len() >= len + 4).then_some(len + 4)),
        Some(&other) => Err(Malformed::Version(other)),
    }
}

/// The beginning of a frame, to which the body is appended; `finish` then sets its length.
pub(crate) fn begin(kind: u8, flags: u16, id: u64, room: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + room);
    bytes.extend_from_slice(&[0, 0, 0, 0, VERSION, kind]);
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes
}

/// Sets the length of a frame.
pub(crate) fn finish(mut bytes: Vec<u8>) -> Vec<u8> {
    let len = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes
}
