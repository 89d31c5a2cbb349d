//! The host's side of OX-ELEOS (OX 7.2.2): pages of a log-structured store on a drive that knows them.
//!
//! A store gathers pages in a [`Buffer`], which one command flushes as a transaction: after a power cut, all of its
//! pages are stored or none. [`read`] fetches pages anywhere by as few commands as their number allows. The drive
//! keeps the map from logical pages to flash, makes it durable and cleans the log, so the host needs no file offsets,
//! checkpoints or garbage collection.
//!
//! It works with any [`Drive`](nandscape_drive::Drive): in this process, or behind NVMe/TCP or vfio-user.
//!
//! | file | what |
//! |---|---|
//! | `limits` | a drive's limits for one command |
//! | `buffer` | pages that are flushed together |
//! | `batch` | pages that are read together |
//! | `pieces` | pages of any length, as chains of pieces |
//! | `error` | errors of the drive |
//!
//! Left out: changes by another host. A read returns the state of one instant, and nothing shows when it is out of
//! date.

mod batch;
mod buffer;
mod error;
mod limits;
mod pieces;

pub use batch::read;
pub use buffer::{Buffer, Misfit};
pub use error::Error;
pub use limits::Limits;
pub use pieces::{PieceBuffer, PieceLimits, PieceMisfit, format_for_pieces, read_pieces};

/// A logical page.
pub type Page = [u8; nandscape_wire_nvme::lss::PAGE];
