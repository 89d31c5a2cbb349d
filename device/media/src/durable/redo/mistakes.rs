//! Deliberate mistakes, each of which the tests must notice. Builds other than tests make none: there, the check is a
//! constant.

#[cfg(test)]
use std::cell::Cell;

/// A mistake.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Mistake {
    /// Writes reach their places before their record is synced.
    PlacesFirst,
    /// Writes reach their places while their record may still be missing.
    RecordNotSynced,
    /// All records are written into one region.
    OneRegion,
    /// Only the newest record is repeated.
    NewestOnly,
    /// Records are treated as whole without a check of their checksums.
    NoChecksum,
    /// Repeated records stay in the log.
    NotReplaced,
}

#[cfg(test)]
impl Mistake {
    /// All of them.
    pub(super) const ALL: [Mistake; 6] = [
        Mistake::PlacesFirst,
        Mistake::RecordNotSynced,
        Mistake::OneRegion,
        Mistake::NewestOnly,
        Mistake::NoChecksum,
        Mistake::NotReplaced,
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
