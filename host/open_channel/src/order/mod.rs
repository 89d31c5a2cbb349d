//! In which order the commands of a die go to the drive: one trait, one policy a file. Without a policy they go at once.

mod die_fifo;
mod one_write;

pub use die_fifo::DieFifo;
pub use one_write::OneWrite;

/// What a command does to a die.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DieUse {
    /// It reads.
    Read,
    /// It writes, copies to it, or resets a chunk of it.
    Write,
}

/// What a command of a die has before it.
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

/// Decides when a command of a die goes to the drive. A die is a parallel unit of the drive.
pub trait DieOrder {
    /// Whether a command goes now. It is asked again whenever the load of its die has changed. A command of an idle die, before
    /// which none waits, must go.
    fn goes(&self, command: DieUse, load: &DieLoad) -> bool;
}
