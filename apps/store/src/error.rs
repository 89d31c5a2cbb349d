//! Why a store does not serve.

use nandscape_wire_nvme::Status;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The drive failed.
    #[error("the drive answers {0}")]
    Drive(Status),
    /// The data on the drive differs from the data written.
    #[error("{0}")]
    Corrupt(String),
    /// The store is full, without room even for cleaning.
    #[error("the log is full")]
    Full,
}
