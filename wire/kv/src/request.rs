//! Messages of clients.

use alloc::vec::Vec;

use crate::frame::{self, Frame};
use crate::{MAX_KEY, MAX_VALUE, Malformed};

/// Kind: get a value.
pub const GET: u8 = 1;
/// Kind: put a value.
pub const PUT: u8 = 2;
/// Kind: a request is not wanted any more.
pub const CANCEL: u8 = 3;

/// Flag of [`GET`]: the server reports when it begins ([`crate::reply::BEGUN`]).
pub const TELL_BEGUN: u16 = 1 << 0;

/// A request. Its number is that of its frame.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Get the value of a key. Body: deadline (3:0), key.
    Get {
        /// Microseconds that the drive has for its read, from when the server submits it; 0 is no deadline.
        deadline_us: u32,
        /// Whether the server reports when it begins.
        tell_begun: bool,
        /// The key.
        key: &'a [u8],
    },
    /// Put a value. Body: version (7:0), bytes of the key (9:8), key, value.
    Put {
        /// Orders the puts of a key: the highest one counts, whatever the order of arrival.
        version: u64,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// The request with this number, of the same connection, is not wanted any more. It is still answered: with
    /// [`crate::reply::CANCELLED`], or as it would have been. No body.
    Cancel,
}

fn key(key: &[u8]) -> Result<&[u8], Malformed> {
    if (1..=MAX_KEY).contains(&key.len()) { Ok(key) } else { Err(Malformed::Key(key.len())) }
}

impl<'a> Request<'a> {
    /// The request of a frame.
    ///
    /// # Errors
    /// Why there is none in it.
    pub fn parse(frame: &Frame<'a>) -> Result<Request<'a>, Malformed> {
        let mut fields = frame.fields();
        match frame.kind {
            GET => {
                frame.only_flags(TELL_BEGUN)?;
                let (deadline_us, tell_begun) = (fields.u32()?, frame.flags & TELL_BEGUN != 0);
                Ok(Request::Get { deadline_us, tell_begun, key: key(fields.rest())? })
            }
            PUT => {
                frame.only_flags(0)?;
                let (version, len) = (fields.u64()?, usize::from(fields.u16()?));
                if !(1..=MAX_KEY).contains(&len) {
                    return Err(Malformed::Key(len));
                }
                let (key, value) = (fields.bytes(len)?, fields.rest());
                if value.len() > MAX_VALUE {
                    return Err(Malformed::Value(value.len()));
                }
                Ok(Request::Put { version, key, value })
            }
            CANCEL => {
                frame.only_flags(0)?;
                fields.end()?;
                Ok(Request::Cancel)
            }
            other => Err(Malformed::Kind(other)),
        }
    }

    /// The frame of the request with this number.
    ///
    /// # Errors
    /// When key or value have an invalid length.
    pub fn to_frame(&self, id: u64) -> Result<Vec<u8>, Malformed> {
        let bytes = match *self {
            Request::Get { deadline_us, tell_begun, key: name } => {
                let name = key(name)?;
                let flags = if tell_begun { TELL_BEGUN } else { 0 };
                let mut bytes = frame::begin(GET, flags, id, 4 + name.len());
                bytes.extend_from_slice(&deadline_us.to_le_bytes());
                bytes.extend_from_slice(name);
                bytes
            }
            Request::Put { version, key: name, value } => {
                let name = key(name)?;
                if value.len() > MAX_VALUE {
                    return Err(Malformed::Value(value.len()));
                }
                let mut bytes = frame::begin(PUT, 0, id, 10 + name.len() + value.len());
                bytes.extend_from_slice(&version.to_le_bytes());
                bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
                bytes.extend_from_slice(name);
                bytes.extend_from_slice(value);
                bytes
            }
            Request::Cancel => frame::begin(CANCEL, 0, id, 0),
        };
        Ok(frame::finish(bytes))
    }
}
