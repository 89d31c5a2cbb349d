//! A key-value store of sorted runs in levels: an LSM-tree, after RocksDB's leveled compaction (OX 7.1), on one thread.
//!
//! A change is written to a log and into a memtable. A full memtable becomes a run of level 0; runs are merged into the
//! next level when a level is too large. After a crash the store has all changes up to some point, no older than the
//! last [commit](Lsm::commit): those of one call of [`Lsm::apply`] all or none.
//!
//! Runs and logs are stored in a [`Storage`], which has two forms. In [`BlockStorage`], on any
//! [`Drive`](nandscape_drive::Drive), the host knows their places, writes a manifest and deallocates dropped runs. In
//! [`RunStorage`] the drive does all of this (`ftl.kind = "lsm"`).
//!
//! | file | what |
//! |---|---|
//! | `storage` | the interface of a storage of runs |
//! | `block` | on any drive |
//! | `flash` | on a drive that knows runs |
//! | `any` | either form |
//! | `run` | sorted runs: their form, writing and reading them |
//! | `record` | keys and values as bytes |
//! | `bloom` | which keys are certainly not in a run |
//! | `log` | the log of changes |
//! | `levels` | the runs, and which are merged next |
//! | `store` | the store |
//! | `error` | the errors |
//!
//! Left out: snapshots, several column families, compression, a cache of blocks, tiered compaction, concurrent merges,
//! records larger than a block, and drives that keep no data.
#![forbid(unsafe_code)]

mod any;
mod block;
mod bloom;
mod error;
mod flash;
mod levels;
mod log;
mod record;
mod run;
mod storage;
mod store;

pub use any::AnyStorage;
pub use block::{BlockConfig, BlockStorage};
pub use error::{Error, OpenError};
pub use flash::RunStorage;
pub use levels::LevelConfig;
pub use nandscape_apps_store::{Costs, Host, StoreError};
pub use record::{MAX_KEY, MAX_RECORD};
pub use storage::{BLOCK, Edit, LOG, RunInfo, Storage, StorageStats};
pub use store::{Change, Config, Lsm, Stats};
