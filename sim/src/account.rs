//! The causes for which a resource is used, and those behind which others wait for it.
//!
//! A resource keeps one running total of busy time for each [`Cause`]. A waiter notes the totals when it begins to wait.
//! When it is served, the differences are its wait behind each cause. The sum is exact, and the cost does not depend on
//! the length of the queue. The users of this crate decide what a cause or a class means.

use std::cell::Cell;
use std::ops::AddAssign;

use crate::time::{Span, Time};

/// How many causes can be distinguished.
pub const CAUSES: usize = 9;
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

/// The cause and the priority of a request for a resource.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
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

/// The length of a wait, by the cause behind which it was. Most waits are zero; adding those costs one comparison.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Wait {
    by: [Span; CAUSES],
    /// Their sum.
    total: Span,
}

impl Wait {
    /// No wait at all.
    pub const ZERO: Wait = Wait { by: [Span::ZERO; CAUSES], total: Span::ZERO };

    /// The cause behind which most of it was spent; the one with the lowest index if there was no wait.
    pub fn main_cause(&self) -> Cause {
        let longest = (0..CAUSES).max_by_key(|index| (self.by[*index], std::cmp::Reverse(*index)));
        Cause(longest.unwrap_or(0) as u8)
    }

    /// A wait behind a single cause.
    pub fn behind(cause: Cause, span: Span) -> Wait {
        let mut wait = Wait::ZERO;
        wait.add(cause, span);
        wait
    }

    /// Whether there was no wait.
    #[inline]
    pub const fn is_zero(&self) -> bool {
        self.total.is_zero()
    }

    /// Makes it [`Wait::ZERO`].
    #[inline]
    pub fn clear(&mut self) {
        if !self.is_zero() {
            *self = Wait::ZERO;
        }
    }

    /// The part that was spent behind `cause`.
    pub const fn by(&self, cause: Cause) -> Span {
        self.by[cause.index()]
    }

    /// The whole wait.
    #[inline]
    pub const fn total(&self) -> Span {
        self.total
    }

    /// Adds a wait behind `cause`.
    #[inline]
    pub fn add(&mut self, cause: Cause, span: Span) {
        if !span.is_zero() {
            self.by[cause.index()] += span;
            self.total += span;
        }
    }
}

impl AddAssign<&Wait> for Wait {
    #[inline]
    fn add_assign(&mut self, other: &Wait) {
        if !other.is_zero() {
            self.by.iter_mut().zip(&other.by).for_each(|(mine, theirs)| *mine += *theirs);
            self.total += other.total;
        }
    }
}

impl AddAssign for Wait {
    #[inline]
    fn add_assign(&mut self, other: Wait) {
        *self += &other;
    }
}

/// Running totals of the time each cause has kept a resource busy.
#[derive(Clone, Debug)]
pub struct Blame {
    totals: [Cell<Span>; CAUSES],
    /// The index of the cause that keeps it busy, or [`IDLE`].
    current: Cell<u8>,
    since: Cell<Time>,
}

const IDLE: u8 = CAUSES as u8;

impl Blame {
    /// An idle resource, with all totals zero.
    pub const fn new() -> Blame {
        let totals = [const { Cell::new(Span::ZERO) }; CAUSES];
        Blame { totals, current: Cell::new(IDLE), since: Cell::new(Time::ZERO) }
    }

    /// From `now` on the resource is kept busy by `cause`, or idle.
    #[inline]
    pub fn switch(&self, now: Time, cause: Option<Cause>) {
        self.end(now);
        if let Some(cause) = cause {
            self.begin(now, cause);
        }
    }

    /// As [`Blame::switch`], for calls that mostly keep the cause. The interval of a cause that stays is not begun anew.
    #[inline(always)]
    pub fn keep(&self, now: Time, cause: Option<Cause>) {
        let next = cause.map_or(IDLE, |cause| cause.0);
        if next != self.current.get() {
            self.turn(now, next);
        }
    }

    fn turn(&self, now: Time, next: u8) {
        self.end(now);
        self.current.set(next);
        self.since.set(now);
    }

    /// From `now` on the resource, which was idle, is kept busy by `cause`.
    #[inline]
    pub fn begin(&self, now: Time, cause: Cause) {
        self.current.set(cause.0);
        self.since.set(now);
    }

    /// From `now` on the resource is idle.
    #[inline]
    pub fn end(&self, now: Time) {
        if let Some(total) = self.totals.get(usize::from(self.current.replace(IDLE))) {
            // Never more than the time that has passed.
            total.set(Span::from_ns(total.get().ns() + (now - self.since.get()).ns()));
        }
    }

    /// The cause that keeps the resource busy.
    #[inline]
    pub fn current(&self) -> Option<Cause> {
        let current = self.current.get();
        (current != IDLE).then_some(Cause(current))
    }

    /// The totals up to `now`.
    pub fn totals(&self, now: Time) -> Totals {
        let mut totals = Totals(std::array::from_fn(|index| self.totals[index].get()));
        if let Some(current) = self.current() {
            totals.0[current.index()] += now - self.since.get();
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

    /// Adds busy time on behalf of `cause`.
    pub fn add(&mut self, cause: Cause, span: Span) {
        self.0[cause.index()] += span;
    }

    /// The busy time since `earlier`.
    pub fn since(&self, earlier: &Totals) -> Wait {
        let mut wait = Wait::ZERO;
        for ((by, now), then) in wait.by.iter_mut().zip(self.0).zip(earlier.0) {
            // Totals only grow.
            *by = Span::from_ns(now.ns().wrapping_sub(then.ns()));
            wait.total += *by;
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
        let blame = Blame::new();
        blame.switch(at(10), Some(gc));
        let begun = blame.totals(at(15));
        blame.switch(at(40), Some(read));
        let wait = blame.since(&begun, at(47));
        assert_eq!((wait.by(gc), wait.by(read)), (Span::from_ns(25), Span::from_ns(7)));
        assert_eq!(wait.total(), Span::from_ns(32));
    }
}
