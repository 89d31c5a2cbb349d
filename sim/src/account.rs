//! Who uses a resource, and behind whom others wait for it.
//!
//! A resource keeps one running total of busy time for each [`Cause`]. A waiter notes the totals when it begins
//! to wait; when it is served, the differences tell how long it waited behind whom. The sum is exact, and the
//! cost does not depend on the length of the queue. What a cause or a class stands for, its users decide.

use std::ops::AddAssign;

use crate::time::{Span, Time};

/// How many causes can be told apart.
pub const CAUSES: usize = 6;
/// How many priorities there are.
pub const CLASSES: usize = 4;

/// On whose behalf a resource is used: an index below [`CAUSES`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cause(u8);

impl Cause {
    /// The cause with the given index.
    ///
    /// # Panics
    /// When `index` is not below [`CAUSES`].
    pub const fn new(index: u8) -> Cause {
        assert!((index as usize) < CAUSES);
        Cause(index)
    }

    /// The index given to [`Cause::new`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A priority: an index below [`CLASSES`], 0 the most urgent.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Class(u8);

impl Class {
    /// The class with the given index.
    ///
    /// # Panics
    /// When `index` is not below [`CLASSES`].
    pub const fn new(index: u8) -> Class {
        assert!((index as usize) < CLASSES);
        Class(index)
    }

    /// The index given to [`Class::new`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who asks for a resource.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(align(4))]
pub struct Who {
    /// On whose behalf.
    pub cause: Cause,
    /// How urgently: lower classes are served first, equal ones in the order of asking.
    pub class: Class,
}

impl Who {
    /// `cause` at priority `class`.
    pub const fn new(cause: Cause, class: Class) -> Who {
        Who { cause, class }
    }
}

/// How long somebody waited, told apart by the cause behind which.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Wait {
    by: [Span; CAUSES],
}

impl Wait {
    /// No wait at all.
    pub const ZERO: Wait = Wait { by: [Span::ZERO; CAUSES] };

    /// The cause behind which most of it was spent; the one with the lowest index if there was no wait.
    pub fn main_cause(&self) -> Cause {
        let longest = (0..CAUSES).max_by_key(|index| (self.by[*index], std::cmp::Reverse(*index)));
        Cause(longest.unwrap_or(0) as u8)
    }

    /// A wait behind a single cause.
    pub fn behind(cause: Cause, span: Span) -> Wait {
        let mut wait = Wait::ZERO;
        wait.by[cause.index()] = span;
        wait
    }

    /// The part that was spent behind `cause`.
    pub const fn by(&self, cause: Cause) -> Span {
        self.by[cause.index()]
    }

    /// The whole wait.
    pub fn total(&self) -> Span {
        self.by.iter().copied().sum()
    }

    /// Adds a wait behind `cause`.
    pub fn add(&mut self, cause: Cause, span: Span) {
        self.by[cause.index()] += span;
    }
}

impl AddAssign for Wait {
    fn add_assign(&mut self, other: Wait) {
        for (mine, theirs) in self.by.iter_mut().zip(other.by) {
            *mine += theirs;
        }
    }
}

/// Running totals of the time each cause has kept a resource busy.
#[derive(Clone, Debug)]
pub struct Blame {
    totals: [Span; CAUSES],
    current: Option<Cause>,
    since: Time,
}

impl Blame {
    /// All totals zero, nobody at it.
    pub const fn new() -> Blame {
        Blame { totals: [Span::ZERO; CAUSES], current: None, since: Time::ZERO }
    }

    /// From `now` on the resource is kept busy by `cause`, or idle.
    pub fn switch(&mut self, now: Time, cause: Option<Cause>) {
        if let Some(current) = self.current {
            self.totals[current.index()] += now - self.since;
        }
        self.current = cause;
        self.since = now;
    }

    /// Who keeps the resource busy.
    pub const fn current(&self) -> Option<Cause> {
        self.current
    }

    /// The totals up to `now`.
    pub fn totals(&self, now: Time) -> Totals {
        let mut totals = Totals(self.totals);
        if let Some(current) = self.current {
            totals.0[current.index()] += now - self.since;
        }
        totals
    }

    /// The wait that began at the time of `begun` and ends `now`.
    pub fn since(&self, begun: &Totals, now: Time) -> Wait {
        self.totals(now).since(begun)
    }
}

impl Default for Blame {
    fn default() -> Blame {
        Blame::new()
    }
}

/// A snapshot of a resource's busy time by cause.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Totals([Span; CAUSES]);

impl Totals {
    /// Busy time on behalf of `cause`.
    pub const fn by(&self, cause: Cause) -> Span {
        self.0[cause.index()]
    }

    /// Busy time in all.
    pub fn total(&self) -> Span {
        self.0.iter().copied().sum()
    }

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &Totals) -> Wait {
        let mut wait = Wait::ZERO;
        for ((by, now), then) in wait.by.iter_mut().zip(self.0).zip(earlier.0) {
            *by = now - then;
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_split_among_those_who_were_ahead() {
        let (read, gc) = (Cause::new(0), Cause::new(2));
        let at = Time::from_ns;
        let mut blame = Blame::new();
        blame.switch(at(10), Some(gc));
        let begun = blame.totals(at(15));
        blame.switch(at(40), Some(read));
        let wait = blame.since(&begun, at(47));
        assert_eq!((wait.by(gc), wait.by(read)), (Span::from_ns(25), Span::from_ns(7)));
        assert_eq!(wait.total(), Span::from_ns(32));
    }
}
