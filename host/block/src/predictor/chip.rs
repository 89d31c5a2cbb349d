//! The account of a chip: until when it is busy with what goes before a new read.
//!
//! A chip serves in order of arrival, or reads of hosts before anything else ([`Order`]). With the second, what waits behind reads is a
//! queue whose first operation begins when the last read has ended.

use std::collections::VecDeque;

use nandscape_sim::{Span, Time};

/// The order in which chips serve, which the host's FTL has decided.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Of arrival.
    Fifo,
    /// Reads of hosts first.
    ReadsFirst,
}

/// An operation at a chip.
#[derive(Copy, Clone, Debug)]
pub(super) struct Place {
    /// When it was expected to end.
    end: Time,
    /// The chip's corrections by then, in nanoseconds.
    shift: i64,
    takes: Span,
    is_in_order: bool,
}

/// See the file.
pub(super) struct Chip {
    /// When it is done with all that goes before a new read.
    free: u64,
    /// Operations served in order that it has not ended, and the time that they take at the chip.
    before: u32,
    owed: Span,
    /// Those of the others that it has begun with, the first of which is in work. It takes the next one in when it has a second register.
    inside: VecDeque<Span>,
    most_inside: usize,
    /// What waits behind reads.
    behind: VecDeque<Span>,
    /// Corrections of `free` so far.
    shift: i64,
}

impl Chip {
    /// A chip that may have a second page to program in a register while it programs the first.
    pub(super) fn new(has_second_register: bool) -> Chip {
        Chip {
            free: 0,
            before: 0,
            owed: Span::ZERO,
            inside: VecDeque::new(),
            most_inside: if has_second_register { 2 } else { 1 },
            behind: VecDeque::new(),
            shift: 0,
        }
    }

    /// When it could begin with a new read that reaches it at `at`.
    pub(super) fn begins(&self, at: Time) -> Time {
        Time::from_ns(self.free.max(at.ns()))
    }

    /// Whether it has nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        self.before == 0 && self.inside.is_empty() && self.behind.is_empty()
    }

    /// An operation that is served in order, and is to end `tail` after the chip is done with it.
    pub(super) fn add(&mut self, at: Time, takes: Span, tail: Span) -> Place {
        let done = self.begins(at) + takes;
        self.free = done.ns();
        self.before += 1;
        self.owed += takes;
        Place { end: done + tail, shift: self.shift, takes, is_in_order: true }
    }

    /// An operation that waits behind reads.
    pub(super) fn add_behind(&mut self, now: Time, takes: Span) -> Place {
        self.behind.push_back(takes);
        self.settle(now);
        Place { end: now, shift: self.shift, takes, is_in_order: false }
    }

    /// An operation has ended: what was wrong with its time holds for all that come after it.
    pub(super) fn end(&mut self, place: &Place, now: Time) {
        if place.is_in_order {
            self.leave(place);
            let moved = self.shift - place.shift;
            self.correct(now.ns() as i64 - (place.end.ns() as i64).saturating_add(moved));
        } else {
            self.inside.pop_front();
            // What has waited for it begins now.
            let left: Span = self.inside.iter().copied().sum();
            self.correct((now + left + self.owed).ns() as i64 - self.free as i64);
        }
        self.settle(now);
    }

    /// The same of one whose end was not seen.
    pub(super) fn end_as_predicted(&mut self, place: &Place, now: Time) {
        let end = place.end.ns().saturating_add_signed(self.shift - place.shift);
        self.end(place, Time::from_ns(end.min(now.ns())));
    }

    /// One that was let in does not come.
    pub(super) fn drop_one(&mut self, place: &Place, now: Time) {
        self.leave(place);
        self.correct(-(place.takes.ns() as i64));
        self.settle(now);
    }

    fn leave(&mut self, place: &Place) {
        self.before = self.before.saturating_sub(1);
        self.owed = self.owed.saturating_sub(place.takes);
    }

    fn correct(&mut self, off: i64) {
        self.shift += off;
        self.free = self.free.saturating_add_signed(off);
    }

    /// Begins with what may begin.
    fn settle(&mut self, now: Time) {
        if self.before == 0 && self.inside.is_empty() {
            (self.free, self.owed) = (now.ns(), Span::ZERO);
        }
        self.free = self.free.max(now.ns());
        while self.before == 0 && self.inside.len() < self.most_inside {
            let Some(next) = self.behind.pop_front() else { return };
            self.inside.push_back(next);
            self.free = self.free.saturating_add(next.ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Span = Span::from_us;
    const AT: fn(u64) -> Time = |us| Time::from_ns(us * 1_000);

    #[test]
    fn operations_in_order_add_up_and_an_error_is_corrected_once() {
        let mut chip = Chip::new(false);
        let first = chip.add(AT(0), US(100), US(10));
        let second = chip.add(AT(0), US(100), US(10));
        assert_eq!(chip.begins(AT(0)), AT(200));
        // The first takes 30 us longer, and the second as long as was said.
        chip.end(&first, AT(140));
        assert_eq!(chip.begins(AT(140)), AT(230));
        chip.end(&second, AT(240));
        assert_eq!((chip.begins(AT(240)), chip.is_idle()), (AT(240), true));
    }

    #[test]
    fn what_waits_behind_reads_begins_when_they_have_ended() {
        let mut chip = Chip::new(false);
        let program = chip.add_behind(AT(0), US(500));
        let erase = chip.add_behind(AT(0), US(3_000));
        assert_eq!(chip.begins(AT(100)), AT(500));
        let read = chip.add(AT(100), US(50), US(0));
        assert_eq!(chip.begins(AT(100)), AT(550), "the erase comes after the read");
        chip.end(&program, AT(500));
        assert_eq!(chip.begins(AT(500)), AT(550));
        chip.end(&read, AT(550));
        assert_eq!(chip.begins(AT(550)), AT(3_550));
        chip.end(&erase, AT(3_000));
        assert_eq!(chip.begins(AT(3_000)), AT(3_000), "it was quicker than was said");
    }

    #[test]
    fn a_second_register_takes_the_next_one_in_before_a_read() {
        let mut chip = Chip::new(true);
        let programs: Vec<Place> = (0..3).map(|_| chip.add_behind(AT(0), US(500))).collect();
        assert_eq!(chip.begins(AT(0)), AT(1_000), "the third is outside");
        let read = chip.add(AT(100), US(50), US(0));
        chip.end(&programs[0], AT(510));
        assert_eq!(chip.begins(AT(510)), AT(1_060), "the read goes before the third");
        chip.end(&programs[1], AT(1_010));
        chip.end(&read, AT(1_060));
        assert_eq!(chip.begins(AT(1_060)), AT(1_560));
    }
}
