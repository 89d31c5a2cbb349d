//! Messages of servers.

use alloc::vec::Vec;

use crate::frame::{self, Frame};
use crate::{MAX_TEXT, MAX_VALUE, Malformed};

/// Kind: the value of a key.
pub const VALUE: u8 = 129;
/// Kind: the server has no value of the key.
pub const MISSING: u8 = 130;
/// Kind: the put is durable.
pub const STORED: u8 = 131;
/// Kind: the drive rejected the read, as it cannot meet the deadline.
pub const BUSY: u8 = 132;
/// Kind: the request has left the server's queue. The answer follows.
pub const BEGUN: u8 = 133;
/// Kind: the request was cancelled, and had no effect.
pub const CANCELLED: u8 = 134;
/// Kind: the request failed.
pub const REFUSED: u8 = 135;

/// The load of a server, returned with each answer (the feedback of C3).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Load {
    /// Requests in the server when it answered, this one not counted.
    pub queue: u32,
    /// The recent average time of a request in it without its wait in the queue, in microseconds.
    pub service_us: u32,
}

/// Why a request failed.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refusal {
    /// The store is full.
    Full,
    /// The value's record does not agree with its checksum.
    Corrupt,
    /// The drive failed.
    Drive,
    /// The server has as many requests as it takes.
    Overloaded,
    /// Any other reason.
    Other,
}

impl Refusal {
    const ALL: [Refusal; 5] = [Refusal::Full, Refusal::Corrupt, Refusal::Drive, Refusal::Overloaded, Refusal::Other];

    fn of(code: u16) -> Refusal {
        Refusal::ALL.get(usize::from(code)).copied().unwrap_or(Refusal::Other)
    }
}

/// A reply. Its frame has the number of the request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reply<'a> {
    /// Body: load (7:0), version (15:8), value.
    Value {
        /// The server's load.
        load: Load,
        /// The version of the put.
        version: u64,
        /// The value.
        value: &'a [u8],
    },
    /// Body: load (7:0).
    Missing {
        /// The server's load.
        load: Load,
    },
    /// Body: load (7:0).
    Stored {
        /// The server's load.
        load: Load,
    },
    /// Body: load (7:0), time to wait (11:8).
    Busy {
        /// The server's load.
        load: Load,
        /// Microseconds that the read would wait, as the drive predicts.
        wait_us: u32,
    },
    /// No body. The answer follows in another frame.
    Begun,
    /// No body.
    Cancelled,
    /// Body: code (1:0), text.
    Refused {
        /// The kind of reason.
        why: Refusal,
        /// The reason in words.
        text: &'a str,
    },
}

impl<'a> Reply<'a> {
    /// The reply of a frame.
    ///
    /// # Errors
    /// Why there is none in it.
    pub fn parse(frame: &Frame<'a>) -> Result<Reply<'a>, Malformed> {
        frame.only_flags(0)?;
        let mut fields = frame.fields();
        let mut load = || Ok(Load { queue: fields.u32()?, service_us: fields.u32()? });
        let reply = match frame.kind {
            VALUE => {
                let (load, version, value) = (load()?, fields.u64()?, fields.rest());
                if value.len() > MAX_VALUE {
                    return Err(Malformed::Value(value.len()));
                }
                Reply::Value { load, version, value }
            }
            MISSING => Reply::Missing { load: load()? },
            STORED => Reply::Stored { load: load()? },
            BUSY => Reply::Busy { load: load()?, wait_us: fields.u32()? },
            BEGUN => Reply::Begun,
            CANCELLED => Reply::Cancelled,
            REFUSED => {
                let (why, text) = (Refusal::of(fields.u16()?), fields.rest());
                let text = core::str::from_utf8(text).ok().filter(|text| text.len() <= MAX_TEXT);
                Reply::Refused { why, text: text.ok_or(Malformed::Text)? }
            }
            other => return Err(Malformed::Kind(other)),
        };
        fields.end()?;
        Ok(reply)
    }

    /// The frame of the reply to the request with this number. A text that is too long is cut, and so is a value.
    pub fn to_frame(&self, id: u64) -> Vec<u8> {
        let begin = |kind, room| frame::begin(kind, 0, id, room);
        let with_load = |kind, load: Load, room| {
            let mut bytes = begin(kind, 8 + room);
            bytes.extend_from_slice(&load.queue.to_le_bytes());
            bytes.extend_from_slice(&load.service_us.to_le_bytes());
            bytes
        };
        frame::finish(match *self {
            Reply::Value { load, version, value } => {
                let value = &value[..value.len().min(MAX_VALUE)];
                let mut bytes = with_load(VALUE, load, 8 + value.len());
                bytes.extend_from_slice(&version.to_le_bytes());
                bytes.extend_from_slice(value);
                bytes
            }
            Reply::Missing { load } => with_load(MISSING, load, 0),
            Reply::Stored { load } => with_load(STORED, load, 0),
            Reply::Busy { load, wait_us } => {
                let mut bytes = with_load(BUSY, load, 4);
                bytes.extend_from_slice(&wait_us.to_le_bytes());
                bytes
            }
            Reply::Begun => begin(BEGUN, 0),
            Reply::Cancelled => begin(CANCELLED, 0),
            Reply::Refused { why, text } => {
                let text = &text[..text.floor_char_boundary(MAX_TEXT)];
                let mut bytes = begin(REFUSED, 2 + text.len());
                bytes.extend_from_slice(&(why as u16).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
                bytes
            }
        })
    }
}
