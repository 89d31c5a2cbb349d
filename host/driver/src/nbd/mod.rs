//! An NBD client as a drive: NVMe commands become NBD requests, one connection a drive.
//!
//! | file | what |
//! |---|---|
//! | `address` | a server and an export, as a URI |
//! | `handshake` | fixed newstyle negotiation |
//! | `requests` | commands as requests, errors as statuses |
//! | `drive` | the drive |
//!
//! Left out: structured replies, TLS, reconnecting, and Compare, Verify and Copy, for which NBD has no request.

mod address;
mod drive;
mod handshake;
mod requests;

pub use address::{NbdAddress, Place};
pub use drive::NbdDrive;
pub use handshake::ConnectError;
