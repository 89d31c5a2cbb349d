//! Transactions of a host: writes to several ranges of a drive. After a power cut, all of them are stored or none.
//!
//! A [`Transaction`] is assembled in the host's memory, and committed by one vendor command,
//! [`ATOMIC_WRITE`](nandscape_wire_nvme::vendor::ATOMIC_WRITE). The drive has none of it before; dropping it aborts
//! it. It works with any [`Drive`](nandscape_drive::Drive): in this process, or behind NVMe/TCP.
//!
//! | drive | when a commit ends |
//! |---|---|
//! | without a volatile write cache | the transaction is durable |
//! | with one | it is in the cache, unless it is [forced](Transaction::force); a Flush makes it durable |
//!
//! | file | what |
//! |---|---|
//! | `transaction` | ranges, data and the commit |
//! | `limits` | the limits of a transaction |
//!
//! Left out: reads within a transaction, and transactions of more than one command: [`Limits`] has the capacity of a
//! command.

mod limits;
mod transaction;

pub use limits::Limits;
pub use transaction::{CommitError, Misfit, Transaction};
