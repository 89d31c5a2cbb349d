//! NBD as bytes. Source: the NBD protocol description (doc/proto.md of the NetworkBlockDevice project); its section
//! names are given at each item. Everything is big-endian and holds any bit pattern.
//!
//! Left out: metadata contexts and block status, extended headers, TLS, the oldstyle negotiation.
#![no_std]
#![forbid(unsafe_code)]

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of the server: `NBDMAGIC` ("Newstyle negotiation").
pub const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Then `IHAVEOPT`, which also begins every option ("Newstyle negotiation").
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Begins every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Begins every request ("Request message").
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Begins every simple reply ("Simple reply message").
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Begins every chunk of a structured reply ("Structured reply chunk message").
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag of server and client: fixed newstyle ("Flag fields").
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag of server and client: no 124 zero bytes after NBD_OPT_EXPORT_NAME.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;

/// Transmission flags ("Flag fields").
pub mod transmission {
    /// The other flags are valid.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// The export cannot be written.
    pub const READ_ONLY: u16 = 1 << 1;
    /// Flush is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// Forced unit access is supported.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Trim is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// Write zeroes is supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The client may request a read's reply in one piece; only with structured replies.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers completed writes of all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// Fast zeroes can be requested.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options ("Option types").
pub mod option {
    /// Choose an export and proceed to transmission. It cannot be refused by a reply.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    /// List the exports.
    pub const LIST: u32 = 3;
    /// Continue under TLS.
    pub const STARTTLS: u32 = 5;
    /// Request information about an export.
    pub const INFO: u32 = 6;
    /// Choose an export and proceed to transmission.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
}

/// Types of replies to options ("Option reply types").
pub mod reply {
    /// Success.
    pub const ACK: u32 = 1;
    /// An export's name.
    pub const SERVER: u32 = 2;
    /// Information about an export.
    pub const INFO: u32 = 3;
    /// The server does not know the option.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// The server understands the option and does not allow it now.
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    /// The option's data is malformed.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// The server is about to end.
    pub const ERR_SHUTDOWN: u32 = 1 << 31 | 7;
    /// The option's data is too large.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Kinds of information about an export ("Option reply types", NBD_REP_INFO).
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Its name as the server has it.
    pub const NAME: u16 = 1;
    /// A description for people.
    pub const DESCRIPTION: u16 = 2;
    /// Block size constraints.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Request types ("Request types").
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// Disconnect; there is no reply.
    pub const DISC: u16 = 2;
    /// Flush.
    pub const FLUSH: u16 = 3;
    /// Trim.
    pub const TRIM: u16 = 4;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 6;
}

/// Request flags ("Command flags").
pub mod flag {
    /// Forced unit access.
    pub const FUA: u16 = 1 << 0;
    /// Write zeroes: leave no hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Read: reply in one piece.
    pub const DF: u16 = 1 << 2;
    /// Write zeroes: fail rather than be as slow as writing.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Types and flags of structured reply chunks ("Structured reply flags", "Structured reply types").
pub mod chunk {
    /// Flag: the last chunk of its reply.
    pub const DONE: u16 = 1 << 0;
    /// No data: only ends the reply.
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// An error.
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Errors ("Error values").
pub mod error {
    /// Operation not permitted.
    pub const EPERM: u32 = 1;
    /// Input or output error.
    pub const EIO: u32 = 5;
    /// Out of memory.
    pub const ENOMEM: u32 = 12;
    /// Invalid argument.
    pub const EINVAL: u32 = 22;
    /// No space left on device: a write beyond the end.
    pub const ENOSPC: u32 = 28;
    /// Value too large.
    pub const EOVERFLOW: u32 = 75;
    /// Not supported.
    pub const ENOTSUP: u32 = 95;
    /// The server is shutting down.
    pub const ESHUTDOWN: u32 = 108;
}

/// The server's first message ("Newstyle negotiation").
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Greeting {
    /// [`NBD_MAGIC`].
    pub magic: U64,
    /// [`OPTION_MAGIC`].
    pub option_magic: U64,
    /// Handshake flags.
    pub flags: U16,
}

const _: () = assert!(size_of::<Greeting>() == 18);

/// The beginning of an option; `len` bytes of data follow.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OptionHeader {
    /// [`OPTION_MAGIC`].
    pub magic: U64,
    /// See [`option`].
    pub option: U32,
    /// Bytes that follow.
    pub len: U32,
}

const _: () = assert!(size_of::<OptionHeader>() == 16);

/// The beginning of a reply to an option; `len` bytes of data follow.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OptionReply {
    /// [`OPTION_REPLY_MAGIC`].
    pub magic: U64,
    /// The option replied to.
    pub option: U32,
    /// See [`reply`].
    pub reply: U32,
    /// Bytes that follow.
    pub len: U32,
}

const _: () = assert!(size_of::<OptionReply>() == 20);

/// [`info::EXPORT`], and, without `kind`, the reply to [`option::EXPORT_NAME`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ExportInfo {
    /// [`info::EXPORT`].
    pub kind: U16,
    /// Size in bytes.
    pub size: U64,
    /// Transmission flags.
    pub flags: U16,
}

const _: () = assert!(size_of::<ExportInfo>() == 12);

/// [`info::BLOCK_SIZE`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BlockSizeInfo {
    /// [`info::BLOCK_SIZE`].
    pub kind: U16,
    /// Requests are multiples of this many bytes.
    pub minimum: U32,
    /// The preferred multiple.
    pub preferred: U32,
    /// Requests with data are not longer than this.
    pub maximum: U32,
}

const _: () = assert!(size_of::<BlockSizeInfo>() == 14);

/// A request ("Request message"); the data of a write follows.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Request {
    /// [`REQUEST_MAGIC`].
    pub magic: U32,
    /// See [`flag`].
    pub flags: U16,
    /// See [`command`].
    pub kind: U16,
    /// An identifier of the client's choice, returned in the reply.
    pub cookie: U64,
    /// First byte.
    pub offset: U64,
    /// Number of bytes.
    pub len: U32,
}

const _: () = assert!(size_of::<Request>() == 28);

/// A simple reply; the data of a read follows.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SimpleReply {
    /// [`SIMPLE_REPLY_MAGIC`].
    pub magic: U32,
    /// Zero, or see [`error`].
    pub error: U32,
    /// The request's.
    pub cookie: U64,
}

const _: () = assert!(size_of::<SimpleReply>() == 16);

/// The beginning of a structured reply chunk; `len` bytes follow.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ChunkHeader {
    /// [`STRUCTURED_REPLY_MAGIC`].
    pub magic: U32,
    /// See [`chunk::DONE`].
    pub flags: U16,
    /// See [`chunk`].
    pub kind: U16,
    /// The request's.
    pub cookie: U64,
    /// Bytes that follow.
    pub len: U32,
}

const _: () = assert!(size_of::<ChunkHeader>() == 20);
