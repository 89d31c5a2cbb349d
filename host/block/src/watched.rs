//! Reads that wait in the layer, by the time until which they may wait. An entry is removed when the wait ends,
//! however long the deadline is.
//!
//! Left out: timers, which the layer sets to the times returned here.

use std::cell::RefCell;
use std::collections::BTreeSet;

use nandscape_sim::{Span, Time};

/// The longest time between two looks: a look that is planned cannot be taken back, and is not to outlast its reads for long.
const LONGEST: Span = Span::from_ms(10);

/// See the module.
#[derive(Default)]
pub(crate) struct Watched {
    /// Times, each with the bits of the read's key.
    reads: RefCell<BTreeSet<(Time, u64)>>,
    /// When the layer looks.
    looks: RefCell<BTreeSet<Time>>,
}

impl Watched {
    /// A read waits until `last` at most. Returns a time at which the layer must also look.
    pub(crate) fn enter(&self, now: Time, last: Time, key: u64) -> Option<Time> {
        self.reads.borrow_mut().insert((last, key));
        self.plan(now)
    }

    /// It waits no more.
    pub(crate) fn leave(&self, last: Time, key: u64) {
        self.reads.borrow_mut().remove(&(last, key));
    }

    /// The layer looks: returns the first read that has waited for too long.
    pub(crate) fn due(&self, now: Time) -> Option<u64> {
        let mut reads = self.reads.borrow_mut();
        reads.first().filter(|(last, _)| *last <= now)?;
        reads.pop_first().map(|(_, key)| key)
    }

    /// It has looked. When it has to look in addition.
    pub(crate) fn looked(&self, now: Time) -> Option<Time> {
        self.looks.borrow_mut().remove(&now);
        self.plan(now)
    }

    fn plan(&self, now: Time) -> Option<Time> {
        let first = self.reads.borrow().first()?.0;
        let at = first.max(now).min(now + LONGEST);
        let mut looks = self.looks.borrow_mut();
        let is_planned = looks.first().is_some_and(|look| *look <= at);
        (!is_planned && looks.insert(at)).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_leave_leave_nothing_and_the_others_are_due_in_time() {
        let watched = Watched::default();
        let at = |us: u64| Time::from_ns(us * 1_000);
        for number in 0..10_000 {
            // Deadlines of an hour, each a little shorter than the last.
            let last = at(3_600_000_000 - number);
            let look = watched.enter(at(number), last, number);
            assert_eq!(look.is_some(), number == 0, "the first look is before all");
            watched.leave(last, number);
        }
        assert!(watched.reads.borrow().is_empty() && watched.looks.borrow().len() == 1);
        assert_eq!((watched.due(at(10_000)), watched.looked(at(10_000))), (None, None));
        assert!(watched.looks.borrow().is_empty());
        assert_eq!(watched.enter(at(20_000), at(20_500), 7), Some(at(20_500)));
        assert_eq!(watched.enter(at(20_000), at(20_300), 8), Some(at(20_300)));
        assert_eq!((watched.due(at(20_300)), watched.due(at(20_300))), (Some(8), None));
        assert_eq!(watched.looked(at(20_300)), None, "the next look is planned");
        assert_eq!((watched.due(at(20_500)), watched.looked(at(20_500))), (Some(7), None));
    }
}
