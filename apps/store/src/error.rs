//! Why a store does not serve.

use nandscape_wire_nvme::Status;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The drive failed.
    #[error("the drive answers {0}")]
    Drive(Status),
    /// What lies there is not what was written.
    #[error("{0}")]
    Corrupt(String),
    /// There is no room left, not even for cleaning.
    #[error("the log is full")]
    Full,
}
