//! The errors.

use nandscape_apps_store::StoreError;

/// Why a store cannot be made or opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The drive models time only.
    #[error("the drive keeps no data, and a store needs its runs again: give the drive a store (--store ram)")]
    NoData,
    /// The drive does not know runs.
    #[error("the drive knows no sorted runs: one with ftl.kind=lsm does")]
    NoRuns,
    /// Sizes do not fit each other or the drive.
    #[error("{0}")]
    Size(String),
    /// The drive holds other data.
    #[error("there is neither a store of this kind nor nothing: {0}")]
    Foreign(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an operation failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The key is empty or too long, or key and value are too long together.
    #[error("a key of {key} and a value of {value} bytes; keys have 1 to {max_key}, and both together up to {most}")]
    Length {
        /// Bytes of the key.
        key: usize,
        /// Bytes of the value.
        value: usize,
        /// The longest key.
        max_key: usize,
        /// Bytes that both may have together.
        most: usize,
    },
    /// The changes do not fit into memory or into the log together.
    #[error("changes of {bytes} bytes at once; up to {most} are valid")]
    Batch {
        /// Their bytes.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// The store failed, now or earlier. Whether changes since the last commit are stored is
    /// unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
}
