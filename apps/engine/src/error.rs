//! Why an engine does not open, or does not serve.

use nandscape_host_store::StoreError;
use nandscape_sim::Span;

/// Why an engine does not serve any more.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// A drive failed.
    #[error("drive {drive}: {error}")]
    Drive {
        /// Its number.
        drive: usize,
        /// What happened.
        error: StoreError,
    },
    /// A drive does not collect as it is ordered.
    #[error("drive {drive}: {error}")]
    Control {
        /// Its number.
        drive: usize,
        /// What happened.
        error: nandscape_host_control::Error,
    },
    /// A drive does not end its internal work.
    #[error("drive {drive}: not ready for reads, and no block freed for {} s; a drive that is in service is valid", .waited.ns() / 1_000_000_000)]
    Busy {
        /// Its number.
        drive: usize,
        /// How long the engine has waited for it.
        waited: Span,
    },
}

/// Why an engine does not open.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The number of drives.
    #[error("{0} drives: the engine has pairs of an even and an odd drive; 2, 4, 6 and so on are valid")]
    Count(usize),
    /// A drive is too small.
    #[error("drive {drive} has {bytes} bytes; {least} or more are valid")]
    Small {
        /// Its number.
        drive: usize,
        /// Its bytes.
        bytes: u64,
        /// The least.
        least: u64,
    },
    /// A drive keeps no data.
    #[error("drive {0} keeps no data; a drive with a store is valid")]
    KeepsNothing(usize),
    /// A drive has something else.
    #[error("drive {0} has data, and no part of this store; an empty drive, or the store's own in its order, is valid")]
    Foreign(usize),
    /// The store was made otherwise.
    #[error("drive {drive}: the store has {what}")]
    Other {
        /// The drive.
        drive: usize,
        /// What it has.
        what: String,
    },
    /// It failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
