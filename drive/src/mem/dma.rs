//! A host's memory by address, as a controller on a bus reaches it.
//!
//! Left out: what is at an address. `guest` has memory there; a recording notes what was read, and a replay reads it
//! from the recording.

use nandscape_wire_nvme::Status;

/// Which way a copy goes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Out of the host's memory.
    Read,
    /// Into the host's memory.
    Write,
}

/// What data is read for. It changes nothing about the access; a recording can tell data that has no effect on commands.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Purpose {
    /// To be stored, and for nothing else.
    Stored,
    /// Ranges to deallocate.
    Ranges,
    /// Anything else.
    #[default]
    Other,
}

/// An address that cannot be reached: nothing is mapped there, what is mapped may not be written, or is gone. Or only the host
/// itself can reach it, and has to be asked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DmaFault {
    /// Where the access began.
    pub address: u64,
    /// The host can be asked: see [`Dma::ask`].
    pub is_remote: bool,
}

impl DmaFault {
    /// An access that nobody can carry out.
    pub const fn at(address: u64) -> DmaFault {
        DmaFault { address, is_remote: false }
    }

    /// An access that the host can carry out.
    pub const fn remote(address: u64) -> DmaFault {
        DmaFault { address, is_remote: true }
    }
}

/// A transfer that a host is asked to carry out with its own memory.
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

/// Is called with the answer: the data read, nothing for a write, or `None` for a failure.
pub type Answered = Box<dyn FnOnce(Option<Vec<u8>>)>;

impl From<DmaFault> for Status {
    fn from(_: DmaFault) -> Status {
        Status::DATA_TRANSFER_ERROR
    }
}

/// A host's memory by address. All that a controller learns of its host's memory passes here, so that it can be
/// recorded.
///
/// The host may write the same memory meanwhile: a copy of several bytes may hold some of before and some of after.
pub trait Dma {
    /// Copies out of the host's memory. After a failure, `bytes` holds anything.
    ///
    /// # Errors
    /// [`DmaFault`] when some of it cannot be reached.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault>;

    /// As [`Dma::read`], for a purpose.
    ///
    /// # Errors
    /// As [`Dma::read`].
    fn read_for(&self, _purpose: Purpose, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        self.read(address, bytes)
    }

    /// Copies into the host's memory. After a failure, some of it may have changed.
    ///
    /// # Errors
    /// [`DmaFault`] when some of it cannot be reached.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault>;

    /// Writes a dword at once, after everything that was written before it: a host that sees the dword sees all of that.
    ///
    /// # Errors
    /// [`DmaFault`] when it cannot be reached, or `address` is no multiple of 4.
    fn store(&self, address: u64, value: u32) -> Result<(), DmaFault>;

    /// Checks that a range can be reached.
    ///
    /// # Errors
    /// [`DmaFault`] when some of it cannot be.
    fn check(&self, address: u64, len: usize, access: Access) -> Result<(), DmaFault>;

    /// Asks the host for a transfer whose access has failed as a remote one. Hosts carry out what they are asked for in order.
    /// `then` is called once, or dropped when the host has left.
    fn ask(&self, _ask: Ask, then: Answered) {
        then(None);
    }
}
