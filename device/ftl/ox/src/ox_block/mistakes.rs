//! Deliberate mistakes, each of which the tests must notice. Builds other than tests make none: there, the check is a
//! constant.

#[cfg(test)]
use std::cell::Cell;

/// A mistake.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Mistake {
    /// A checkpoint does not wait for the log.
    NoFence,
    /// Collected blocks are erased at once.
    NotHeld,
    /// Blocks that were collected since the head of the log was taken are erased after the checkpoint.
    HeldTooShort,
    /// The head of the log is taken when the tables have been written.
    LateHead,
    /// A checkpoint does not wait for fragments that are being written.
    WritesIgnored,
    /// Redo points to older fragments of the map.
    FragmentsBack,
    /// A flush does not wait for the log.
    FlushOfData,
    /// Redo takes records of transactions that were not committed.
    CommitIgnored,
    /// Transactions become current as they are programmed.
    CommitInAnyOrder,
    /// A transaction becomes current before older data of its units.
    OlderOvertaken,
    /// A unit that was moved becomes current whatever the host has written since.
    CollectorWins,
    /// Blocks are collected although programmed units are not current yet.
    PendingIgnored,
    /// Free blocks are not scanned after a power cut.
    FreeNotProbed,
    /// Open blocks are written on where the log ends.
    OpenNotProbed,
    /// Records that survive in memory are not replayed.
    KeptIgnored,
    /// Deallocations have no record.
    TrimNotLogged,
    /// All copies of a fixed place are erased before one is written.
    CopiesTogether,
    /// Checkpoints are not written.
    NoCheckpoint,
    /// A page of the log that is missing ends the log.
    HoleIgnored,
    /// A collected block is not listed to be erased.
    HoldForgotten,
    /// Write Uncorrectable does not wait for the slots whose sectors it has marked.
    SpoilNotAwaited,
}

#[cfg(test)]
impl Mistake {
    /// All of them.
    pub(super) const ALL: [Mistake; 19] = [
        Mistake::NoFence,
        Mistake::NotHeld,
        Mistake::HeldTooShort,
        Mistake::LateHead,
        Mistake::WritesIgnored,
        Mistake::FragmentsBack,
        Mistake::FlushOfData,
        Mistake::CommitIgnored,
        Mistake::CommitInAnyOrder,
        Mistake::CollectorWins,
        Mistake::PendingIgnored,
        Mistake::FreeNotProbed,
        Mistake::OpenNotProbed,
        Mistake::KeptIgnored,
        Mistake::TrimNotLogged,
        Mistake::CopiesTogether,
        Mistake::NoCheckpoint,
        Mistake::HoleIgnored,
        Mistake::HoldForgotten,
    ];
}

#[cfg(test)]
thread_local! {
    static MADE: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// Whether a mistake is made.
#[cfg(test)]
pub(super) fn is_made(mistake: Mistake) -> bool {
    made() == Some(mistake)
}

/// The mistake that is made, if any.
#[cfg(test)]
pub(super) fn made() -> Option<Mistake> {
    MADE.with(Cell::get)
}

/// Whether a mistake is made.
#[cfg(not(test))]
pub(super) const fn is_made(_: Mistake) -> bool {
    false
}

/// Makes a mistake, or none, in this thread from now on.
#[cfg(test)]
pub(super) fn make(mistake: Option<Mistake>) {
    MADE.with(|made| made.set(mistake));
}
