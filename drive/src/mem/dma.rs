//! A host's memory by address, as a controller on a bus reaches it.
//!
//! Left out: the bytes at an address. `guest` has memory there; a recording notes the bytes read, and a replay reads
//! them from the recording.

use nandscape_wire_nvme::Status;

/// The direction of a copy.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Out of the host's memory.
    Read,
    /// Into the host's memory.
    Write,
}

/// The purpose of a read. It does not affect the access; with it, a recording recognizes data without effect on
/// commands.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Purpose {
    /// Only to be stored.
    Stored,
    /// Ranges to deallocate.
    Ranges,
    /// Anything else.
    #[default]
    Other,
}

/// An address that cannot be reached: it is unmapped, read-only for a write, or gone. Or only the host itself can
/// reach it, on request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DmaFault {
    /// The beginning of the access.
    pub address: u64,
    /// The host can be asked: see [`Dma::ask`].
    pub is_remote: bool,
}

impl DmaFault {
    /// An access that neither side can carry out.
    pub const fn at(address: u64) -> DmaFault {
        DmaFault { address, is_remote: false }
    }

    /// An access that the host can carry out.
    pub const fn remote(address: u64) -> DmaFault {
        DmaFault { address, is_remote: true }
    }
}

/// A transfer that a host carries out with its own memory, on request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Read bytes.
    Read {
        /// From here on.
        address: u64,
        /// Their number, [`LONGEST_ASK`](super::LONGEST_ASK) at most.
        len: usize,
    },
    /// Write bytes.
    Write {
        /// From here on.
        address: u64,
        /// Them, [`LONGEST_ASK`](super::LONGEST_ASK) at most.
        bytes: Vec<u8>,
    },
}

/// Called with the answer: the data read, no bytes for a write, or `None` for a failure.
pub type Answered = Box<dyn FnOnce(Option<Vec<u8>>)>;

impl From<DmaFault> for Status {
    fn from(_: DmaFault) -> Status {
        Status::DATA_TRANSFER_ERROR
    }
}

/// A host's memory by address. A controller reads its host's memory only through this trait, so all reads can be
/// recorded.
///
/// The host may write the same memory meanwhile: a copy of several bytes may mix old and new bytes.
pub trait Dma {
    /// Copies out of the host's memory. After a failure, the contents of `bytes` are undefined.
    ///
    /// # Errors
    /// [`DmaFault`] when part of it cannot be reached.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault>;

    /// As [`Dma::read`], for a purpose.
    ///
    /// # Errors
    /// As [`Dma::read`].
    fn read_for(&self, _purpose: Purpose, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        self.read(address, bytes)
    }

    /// Copies into the host's memory. After a failure, part of it may have changed.
    ///
    /// # Errors
    /// [`DmaFault`] when part of it cannot be reached.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault>;

    /// Writes a dword at once, after everything that was written before it: a host that sees the dword sees all of that.
    ///
    /// # Errors
    /// [`DmaFault`] when it cannot be reached, or `address` is no multiple of 4.
    fn store(&self, address: u64, value: u32) -> Result<(), DmaFault>;

    /// Checks that a range can be reached.
    ///
    /// # Errors
    /// [`DmaFault`] when part of it cannot.
    fn check(&self, address: u64, len: usize, access: Access) -> Result<(), DmaFault>;

    /// Requests from the host a transfer whose access failed as remote. Hosts carry requests out in order. `then` is
    /// called once, or dropped when the host has left.
    fn ask(&self, _ask: Ask, then: Answered) {
        then(None);
    }
}
