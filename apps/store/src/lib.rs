//! The common parts of the engines of applications: the Bw-tree of `apps/llama`, the runs of `apps/lsm`, the logs of
//! `apps/kv` and `apps/memcached`.
//!
//! | file | what |
//! |---|---|
//! | `disk` | commands that survive power cuts |
//! | `host` | the processor time that a store costs |
//! | `cpu` | the processors of a host in simulated time |
//! | `bytes` | numbers and checksums in bytes |
//! | `error` | why a store does not serve |
//! | `testing` | a drive for tests |
//!
//! Left out: the stored data, and its location.
#![forbid(unsafe_code)]

pub mod bytes;
mod cpu;
mod disk;
mod error;
mod host;
pub mod testing;

pub use cpu::Cpu;
pub use disk::{AGAIN, Disk, PATIENCE, Range};
pub use error::StoreError;
pub use host::{Costs, Host};
