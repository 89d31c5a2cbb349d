//! Deliberate mistakes of a start from a file, and of the state kept for one. The tests must notice each of them. Builds
//! other than tests make none: there, the check is a constant.

#[cfg(test)]
use std::cell::Cell;

/// A mistake.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Mistake {
    /// Of several copies of a unit the last one read counts, whatever its number.
    NewestIgnored,
    /// The map still points into blocks that were erased since the snapshot.
    ErasedIgnored,
    /// A snapshot counts, without the pages that were programmed since.
    SinceIgnored,
    /// Deallocated units reappear.
    TrimsIgnored,
    /// A deallocation removes data that was written after it.
    TrimsOverNewer,
    /// A slot of the write buffer counts, although the flash has newer data.
    SlotsOverNewer,
    /// Numbers begin again at each start.
    NumbersAgain,
    /// A deallocation is acknowledged before its entry is in the journal.
    TrimNotNoted,
    /// The journal of a new snapshot lacks the sectors that are lost.
    LostForgotten,
    /// The snapshot leaves out parts of the map that have changed.
    ChangeNotMarked,
    /// Sectors that were written again stay lost.
    FoundIgnored,
}

#[cfg(test)]
impl Mistake {
    /// All of them.
    pub(super) const ALL: [Mistake; 11] = [
        Mistake::NewestIgnored,
        Mistake::ErasedIgnored,
        Mistake::SinceIgnored,
        Mistake::TrimsIgnored,
        Mistake::TrimsOverNewer,
        Mistake::SlotsOverNewer,
        Mistake::NumbersAgain,
        Mistake::TrimNotNoted,
        Mistake::LostForgotten,
        Mistake::ChangeNotMarked,
        Mistake::FoundIgnored,
    ];
}

#[cfg(test)]
thread_local! {
    static MADE: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// Whether a mistake is made.
#[cfg(test)]
pub(super) fn is_made(mistake: Mistake) -> bool {
    MADE.with(Cell::get) == Some(mistake)
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
