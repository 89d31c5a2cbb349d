//! Why a drive did not serve a flush or a batch.

use nandscape_wire_nvme::Status;

/// Why a drive did not serve a flush or a batch.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The drive knows no buffers and batches.
    #[error("the drive knows no buffers of a log-structured store: Identify Controller says which drives do")]
    Unsupported,
    /// It is larger than the drive takes.
    #[error("the command is larger than the drive takes: Identify Controller says how large it may be")]
    TooLarge,
    /// The drive takes too little at once for the longest page of pieces.
    #[error(
        "the drive takes {bytes} bytes in one command, and pages of any length need {least} at the least: controller.max_transfer and buffer.size \
         bound it"
    )]
    TooSmall {
        /// Bytes that it takes.
        bytes: u64,
        /// Bytes that are needed.
        least: u64,
    },
    /// The namespace has pages of the other form.
    #[error("the namespace has pages of another form: a format gives it pages of 4 KiB, or of pieces")]
    OtherPages,
    /// The namespace has no room for more.
    #[error("the namespace has no room for more bytes of pages")]
    Full,
    /// The drive's answer contradicts itself.
    #[error("the drive has returned pages that contradict themselves")]
    Malformed,
    /// A page is beyond the drive.
    #[error("a page lies beyond the end of the drive")]
    Beyond,
    /// A power cut during the command. Either all of a flush is stored or nothing: a read shows
    /// which.
    #[error("power was lost meanwhile: all of the buffer is there, or nothing")]
    PowerLost,
    /// Any other status. After a host path status, a flush may be stored in full or not at all.
    #[error("the drive answers {0}")]
    Failed(Status),
}

impl Error {
    /// Converts a status.
    ///
    /// # Errors
    /// Any status but success.
    pub(crate) fn of(status: Status) -> Result<(), Error> {
        match status.meaning() {
            Status::SUCCESS => Ok(()),
            Status::INVALID_OPCODE => Err(Error::Unsupported),
            Status::COMMAND_SIZE_LIMIT_EXCEEDED => Err(Error::TooLarge),
            Status::LBA_OUT_OF_RANGE => Err(Error::Beyond),
            Status::INVALID_NAMESPACE => Err(Error::OtherPages),
            Status::CAPACITY_EXCEEDED => Err(Error::Full),
            Status::ABORTED_POWER_LOSS => Err(Error::PowerLost),
            status => Err(Error::Failed(status)),
        }
    }
}
