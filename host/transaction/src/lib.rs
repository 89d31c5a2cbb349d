//! Transactions of a host: writes to several ranges of a drive, all of which are there after a power cut, or none.
//!
//! A [`Transaction`] is put together in the host's memory, and committed by one vendor command,
//! [`ATOMIC_WRITE`](nandscape_wire_nvme::vendor::ATOMIC_WRITE). Nothing of it is in the drive before; to abort it is to drop it.
//! It goes through any [`Drive`](nandscape_drive::Drive): one of this process, or one behind NVMe/TCP.
//!
//! | drive | when a commit ends |
//! |---|---|
//! | without a volatile write cache | the transaction is durable |
//! | with one | it is in the cache, unless it is [forced](Transaction::force); a Flush makes it durable |
//!
//! | file | what |
//! |---|---|
//! | `transaction` | ranges, data and the commit |
//! | `limits` | what a drive takes in one command |
//!
//! Left out: reads within a transaction, and transactions of more than one command: [`Limits`] says what a command holds.

mod limits;
mod transaction;

pub use limits::Limits;
pub use transaction::{CommitError, Misfit, Transaction};
