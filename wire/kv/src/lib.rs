//! The messages between clients and servers of the replicated key-value store, as bytes. It is a protocol of this project.
//!
//! A connection is a stream of frames in both directions. Everything is little-endian. A frame:
//!
//! | bytes | what |
//! |---|---|
//! | 3:0 | number of bytes that follow, [`MIN_FRAME`] to [`MAX_FRAME`] |
//! | 4 | [`VERSION`] |
//! | 5 | kind: [`request`] 1 to 3, [`reply`] 129 to 135 |
//! | 7:6 | flags of the kind; others are zero |
//! | 15:8 | number of the request, chosen by the client and returned in its replies |
//! | 16.. | the body of the kind |
//!
//! | file | what |
//! |---|---|
//! | `frame` | a frame of a stream |
//! | `request` | from clients: get, put, cancel |
//! | `reply` | from servers: value, missing, stored, busy, begun, cancelled, refused |
//! | `fields` | reading fields of a body |
//!
//! Left out: deletion, scans, authentication. There is no negotiation: a frame of another version is an error.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod fields;
mod frame;
pub mod reply;
pub mod request;

pub use frame::{Frame, HEADER, split};
pub use reply::{Load, Refusal, Reply};
pub use request::Request;

/// The version of the protocol.
pub const VERSION: u8 = 1;
/// The most bytes of a key. A key has at least one.
pub const MAX_KEY: usize = 1_024;
/// The most bytes of a value.
pub const MAX_VALUE: usize = 256 << 10;
/// The most bytes of the text of a refusal.
pub const MAX_TEXT: usize = 512;
/// The fewest bytes of a frame after its length.
pub const MIN_FRAME: usize = HEADER - 4;
/// The most bytes of a frame after its length: a put of the longest key and value.
pub const MAX_FRAME: usize = MIN_FRAME + 10 + MAX_KEY + MAX_VALUE;

/// Why bytes are no message of this protocol. The connection is of no use after one.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// A frame is too short or too long.
    #[error("a frame of {0} bytes; {MIN_FRAME} to {MAX_FRAME} are valid")]
    Length(u64),
    /// Another version.
    #[error("version {0} of the protocol; {VERSION} is valid")]
    Version(u8),
    /// A kind that this side does not take.
    #[error("a message of kind {0}, which is not one of those that come in this direction")]
    Kind(u8),
    /// Flags that the kind does not have.
    #[error("flags {flags:#06x} of a message of kind {kind}")]
    Flags {
        /// The message's kind.
        kind: u8,
        /// Its flags.
        flags: u16,
    },
    /// The body ends too early.
    #[error("the body of a message of kind {0} is too short")]
    Short(u8),
    /// Bytes are left after the body.
    #[error("{left} bytes are left after the body of a message of kind {kind}")]
    Long {
        /// The message's kind.
        kind: u8,
        /// Bytes left.
        left: usize,
    },
    /// A key of an invalid length.
    #[error("a key of {0} bytes; 1 to {MAX_KEY} are valid")]
    Key(usize),
    /// A value that is too long.
    #[error("a value of {0} bytes; up to {MAX_VALUE} are valid")]
    Value(usize),
    /// A text that is too long, or is not UTF-8.
    #[error("a text that is not UTF-8, or is longer than {MAX_TEXT} bytes")]
    Text,
}
