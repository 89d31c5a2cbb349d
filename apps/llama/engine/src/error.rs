//! The errors.

use nandscape_apps_store::StoreError;
use nandscape_wire_nvme::Status;

/// Why a tree or a store cannot be made or opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The drive models time only.
    #[error("the drive keeps no data, and a store needs its pages again: give the drive a store (--store ram)")]
    NoData,
    /// The drive does not know pages.
    #[error("the drive knows no pages of a log-structured store: one with ftl.kind=ox_block does")]
    NoPages,
    /// The namespace has no pages of pieces.
    #[error("the namespace has no pages of any length: it is to be formatted for them")]
    NoPieces,
    /// The namespace has pages of pieces, and neither blocks nor pages of 4 KiB.
    #[error(
        "the namespace has pages of any length, which are for chains (--form chains); a format gives it blocks again, and drops all data"
    )]
    HasPieces,
    /// The drive's commands are too small for pages of any length.
    #[error("{0}")]
    TooSmall(nandscape_host_eleos::Error),
    /// The drive is too small for the requested sizes.
    #[error("{0}")]
    Size(String),
    /// The drive holds other data.
    #[error("there is neither a store of this kind nor nothing: {0}")]
    Foreign(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OpenError {
    /// Why blocks cannot be read or cleared.
    pub fn of_blocks(error: StoreError) -> OpenError {
        match error {
            // A namespace that does not exist has no size, and was not opened.
            StoreError::Drive(status) if status.meaning() == Status::INVALID_NAMESPACE => OpenError::HasPieces,
            other => OpenError::Store(other),
        }
    }
}

/// Why an operation on a tree failed.
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
    /// There are too many changes to be applied as one.
    #[error("{changes} changes at once may need more pages than a flush has; {most} always fit")]
    Batch {
        /// The changes.
        changes: usize,
        /// How many changes may always be applied together, to any pages. It falls as the tree grows in
        /// height.
        most: usize,
    },
    /// There is no room for the change, which was not made.
    #[error("the store is full")]
    Full,
    /// The store failed, now or earlier. Whether changes since the last commit are stored is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
}
