//! The host's side of OX-ELEOS (OX 7.2.2): pages of a log-structured store on a drive that knows them.
//!
//! A store gathers pages in a [`Buffer`], which one command flushes as a transaction: all of its pages are there after a power cut,
//! or none. [`read`] fetches pages anywhere by as few commands as their number allows. The drive has the map from logical pages to
//! flash, makes it durable and cleans the log: file offsets, checkpoints and garbage collection are no work of the host.
//!
//! It goes through any [`Drive`](nandscape_drive::Drive): one of this process, or one behind NVMe/TCP or vfio-user.
//!
//! | file | what |
//! |---|---|
//! | `limits` | what a drive takes in one command |
//! | `buffer` | pages that are flushed together |
//! | `batch` | pages that are read together |
//! | `pieces` | pages of any length, as chains of pieces |
//! | `error` | why the drive did not |
//!
//! Left out: a drive whose pages another host changes: what this one reads is of an instant, and nothing tells it that it is out of
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
