//! What the stores of a host share, whatever they keep on their drive: the Bw-tree of `host/llama`, the runs of `host/lsm`.
//!
//! | file | what |
//! |---|---|
//! | `disk` | commands that survive power cuts |
//! | `host` | the processor time that a store costs |
//! | `bytes` | numbers and checksums in bytes |
//! | `error` | why a store does not serve |
//!
//! Left out: what is stored, and where.
#![forbid(unsafe_code)]

pub mod bytes;
mod disk;
mod error;
mod host;

pub use disk::{AGAIN, Disk, PATIENCE, Range};
pub use error::StoreError;
pub use host::{Costs, Host};
