//! The order in which the commands of a die are sent to the drive: one trait, one policy a file. Without a policy
//! they are sent at once.

mod die_fifo;
mod one_write;

pub use die_fifo::DieFifo;
pub use one_write::OneWrite;

/// The effect of a command on a die.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DieUse {
    /// It reads.
    Read,
    /// Writes, copies to the die, and resets of its chunks.
    Write,
}

/// The commands of a die before a given one.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct DieLoad {
    /// Reads of the die that are in the drive.
    pub reads: u32,
    /// Writes of the die that are in the drive.
    pub writes: u32,
    /// Earlier commands of the die that wait in the host.
    pub waiting: u32,
    /// The writes among those.
    pub waiting_writes: u32,
}

/// Decides when a command of a die is sent to the drive. A die is a parallel unit of the drive.
pub trait DieOrder {
    /// Whether a command is sent now. It is called again whenever the load of the die changes. The first waiting
    /// command of an idle die must be sent.
    fn goes(&self, command: DieUse, load: &DieLoad) -> bool;
}
