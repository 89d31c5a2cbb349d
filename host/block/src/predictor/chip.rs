//! The account of a chip: until when it is busy with work that precedes a new read.
//!
//! A chip serves in order of arrival, or serves host reads before anything else ([`Order`]). With the second order,
//! work behind reads is a queue whose first operation begins when the last read has ended. A second register takes in
//! a page early, but only while another page is programmed or a block is erased: during sensing, the register holds
//! the page that leaves.
//!
//! The host learns of the end of a read after the chip has continued. A read that arrives in between finds the chip
//! at the work that waited behind the previous read.

use std::collections::VecDeque;

use nandscape_drive::flash::FlashKind;
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
    /// The chip's corrections at the prediction, in nanoseconds.
    shift: i64,
    takes: Span,
    is_in_order: bool,
    /// The number of one that waits behind reads.
    number: u64,
}

/// An operation that waits behind reads.
#[derive(Copy, Clone, Debug)]
pub(super) struct Behind {
    pub(super) kind: FlashKind,
    /// Its time in the array.
    pub(super) array: Span,
    /// Its time on the channel, not counted if the transfer overlaps the previous operation.
    pub(super) moving: Span,
}

impl Behind {
    /// Whether a page to program may be taken in meanwhile.
    fn lets_in(&self) -> bool {
        lets_in(self.kind)
    }
}

fn lets_in(kind: FlashKind) -> bool {
    matches!(kind, FlashKind::Program | FlashKind::Erase)
}

/// An operation that the chip has begun.
#[derive(Copy, Clone)]
struct Inside {
    number: u64,
    operation: Behind,
    /// How long it occupies the chip.
    takes: Span,
}

/// See the file.
pub(super) struct Chip {
    /// When the chip has finished all work that precedes a new read.
    free: u64,
    /// Outstanding operations served in order, and their time at the chip.
    before: u32,
    owed: Span,
    /// Other operations that the chip has begun, the first of which is in progress, with the time that they occupy
    /// the chip.
    inside: VecDeque<Inside>,
    has_second_register: bool,
    /// Operations that wait behind reads.
    behind: VecDeque<(u64, Behind)>,
    /// The number of the next one.
    next: u64,
    /// When the last operation served in order has left the chip.
    left: u64,
    /// Whether a page to program may be taken in while the chip is at that operation.
    last_lets_in: bool,
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
            has_second_register,
            behind: VecDeque::new(),
            next: 0,
            left: 0,
            last_lets_in: false,
            shift: 0,
        }
    }

    /// When it could begin with a new read that reaches it at `at`.
    pub(super) fn begins(&self, at: Time) -> Time {
        let begun = self.goes_on(at).map_or(0, |takes| self.left.saturating_add(takes.ns()));
        Time::from_ns(self.free.max(at.ns()).max(begun))
    }

    /// Whether the chip has begun the next operation behind reads before `at`, although the host has not seen the end
    /// of the last read; returns that operation's time.
    fn goes_on(&self, at: Time) -> Option<Span> {
        let has_left = self.before > 0 && self.left <= at.ns() && self.inside.is_empty();
        if has_left { self.next_takes() } else { None }
    }

    /// Whether the chip is idle.
    pub(super) fn is_idle(&self) -> bool {
        self.before == 0 && self.inside.is_empty() && self.behind.is_empty()
    }

    /// An operation that is served in order. Its data has left `out` after the chip is done with it, and it is to end `tail` after that.
    pub(super) fn add(&mut self, at: Time, takes: Span, out: Span, tail: Span) -> Place {
        if let Some(takes) = self.goes_on(at)
            && let Some((number, operation)) = self.behind.pop_front()
        {
            self.inside.push_back(Inside { number, operation, takes });
            self.free = self.free.max(self.left.saturating_add(takes.ns()));
        }
        let done = self.begins(at) + takes;
        self.free = done.ns();
        self.before += 1;
        self.owed += takes;
        self.left = (done + out).ns();
        self.last_lets_in = false;
        Place { end: done + out + tail, shift: self.shift, takes, is_in_order: true, number: 0 }
    }

    /// An operation that is served in order and is not a read of a host.
    pub(super) fn add_in_order(&mut self, now: Time, kind: FlashKind, takes: Span) -> Place {
        let place = self.add(now, takes, Span::ZERO, Span::ZERO);
        self.last_lets_in = lets_in(kind);
        place
    }

    /// Whether a page to program is taken in early if it arrives now, during the last operation that is served in
    /// order.
    pub(super) fn takes_in_early(&self) -> bool {
        self.has_second_register && self.before > 0 && self.last_lets_in
    }

    /// When a page to program that is not taken in early could enter: a page that was sensed has to have left.
    pub(super) fn is_empty_at(&self, now: Time) -> Time {
        let begins = self.begins(now);
        if self.before > 0 { begins.max(Time::from_ns(self.left)) } else { begins }
    }

    /// An operation that waits behind reads.
    pub(super) fn add_behind(&mut self, now: Time, operation: Behind) -> Place {
        let number = self.next;
        self.next += 1;
        self.behind.push_back((number, operation));
        self.settle(now);
        Place { end: now, shift: self.shift, takes: operation.array, is_in_order: false, number }
    }

    /// An operation has ended. The error of its predicted time applies to all later ones. Returns by how many
    /// nanoseconds an operation served in order took longer than predicted.
    pub(super) fn end(&mut self, place: &Place, now: Time) -> Option<i64> {
        let off = place.is_in_order.then(|| {
            let moved = self.shift - place.shift;
            now.ns() as i64 - (place.end.ns() as i64).saturating_add(moved)
        });
        if let Some(off) = off {
            self.leave(place);
            self.correct(off);
        } else {
            self.behind.retain(|(number, _)| *number != place.number);
            let before = self.inside.len();
            self.inside.retain(|inside| inside.number != place.number);
            if self.inside.len() < before {
                // Operations that waited for it begin now.
                let left: Span = self.inside.iter().map(|inside| inside.takes).sum();
                self.correct((now + left + self.owed).ns() as i64 - self.free as i64);
            }
        }
        self.settle(now);
        off
    }

    /// The same for an operation whose end was not observed.
    pub(super) fn end_as_predicted(&mut self, place: &Place, now: Time) {
        let end = place.end.ns().saturating_add_signed(self.shift - place.shift);
        self.end(place, Time::from_ns(end.min(now.ns())));
    }

    /// An admitted operation is cancelled.
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
        self.left = self.left.saturating_add_signed(off);
    }

    /// Begins operations that may begin.
    fn settle(&mut self, now: Time) {
        if self.before == 0 && self.inside.is_empty() {
            (self.free, self.owed) = (now.ns(), Span::ZERO);
        }
        self.free = self.free.max(now.ns());
        while self.before == 0
            && let Some(takes) = self.next_takes()
            && let Some((number, operation)) = self.behind.pop_front()
        {
            self.inside.push_back(Inside { number, operation, takes });
            self.free = self.free.saturating_add(takes.ns());
        }
    }

    /// How long the next operation keeps the chip, if it may enter now.
    fn next_takes(&self) -> Option<Span> {
        let (_, next) = self.behind.front()?;
        match self.inside.len() {
            0 => Some(next.array + next.moving),
            1 if self.has_second_register && next.kind == FlashKind::Program && self.inside[0].operation.lets_in() => {
                Some(next.array)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Span = Span::from_us;
    const AT: fn(u64) -> Time = |us| Time::from_ns(us * 1_000);

    fn behind(kind: FlashKind, us: u64) -> Behind {
        Behind { kind, array: US(us), moving: Span::ZERO }
    }

    #[test]
    fn operations_in_order_add_up_and_an_error_is_corrected_once() {
        let mut chip = Chip::new(false);
        let first = chip.add(AT(0), US(100), US(0), US(10));
        let second = chip.add(AT(0), US(100), US(0), US(10));
        assert_eq!(chip.begins(AT(0)), AT(200));
        // The first takes 30 us longer than predicted, the second as long as predicted.
        chip.end(&first, AT(140));
        assert_eq!(chip.begins(AT(140)), AT(230));
        chip.end(&second, AT(240));
        assert_eq!((chip.begins(AT(240)), chip.is_idle()), (AT(240), true));
    }

    #[test]
    fn in_order_a_page_to_program_is_taken_in_early_behind_programs_and_erases_alone() {
        for (kind, is_early) in [(FlashKind::Program, true), (FlashKind::Erase, true), (FlashKind::Hold, false)] {
            let mut chip = Chip::new(true);
            assert!(!chip.takes_in_early(), "nothing is before it");
            let first = chip.add_in_order(AT(0), kind, US(500));
            assert_eq!((chip.takes_in_early(), chip.is_empty_at(AT(0))), (is_early, AT(500)));
            let read = chip.add(AT(0), US(50), US(10), US(5));
            assert!(!chip.takes_in_early(), "a sensed page leaves through the register");
            assert_eq!((chip.begins(AT(0)), chip.is_empty_at(AT(0))), (AT(550), AT(560)));
            chip.end(&first, AT(500));
            chip.end(&read, AT(565));
            assert_eq!(chip.is_empty_at(AT(565)), AT(565));
            assert!(!Chip::new(false).takes_in_early());
        }
    }

    #[test]
    fn what_waits_behind_reads_begins_when_they_have_ended() {
        let mut chip = Chip::new(false);
        let program = chip.add_behind(AT(0), behind(FlashKind::Program, 500));
        let erase = chip.add_behind(AT(0), behind(FlashKind::Erase, 3_000));
        assert_eq!(chip.begins(AT(100)), AT(500));
        let read = chip.add(AT(100), US(50), US(0), US(0));
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
        let programs: Vec<Place> = (0..3).map(|_| chip.add_behind(AT(0), behind(FlashKind::Program, 500))).collect();
        assert_eq!(chip.begins(AT(0)), AT(1_000), "the third is outside");
        let read = chip.add(AT(100), US(50), US(0), US(0));
        chip.end(&programs[0], AT(510));
        assert_eq!(chip.begins(AT(510)), AT(1_060), "the read goes before the third");
        chip.end(&programs[1], AT(1_010));
        chip.end(&read, AT(1_060));
        assert_eq!(chip.begins(AT(1_060)), AT(1_560));
    }
    #[test]
    fn a_page_to_program_is_not_taken_in_while_another_is_sensed() {
        let mut chip = Chip::new(true);
        let sensed = chip.add_behind(AT(0), behind(FlashKind::Read, 50));
        let program = Behind { moving: US(20), ..behind(FlashKind::Program, 500) };
        let program = chip.add_behind(AT(0), program);
        assert_eq!(chip.begins(AT(10)), AT(50), "a read goes before the program");
        let read = chip.add(AT(10), US(60), US(0), US(0));
        chip.end(&sensed, AT(50));
        chip.end(&read, AT(110));
        assert_eq!(chip.begins(AT(110)), AT(630), "its page is moved while nothing else is in work");
        let erase = chip.add_behind(AT(120), behind(FlashKind::Erase, 3_000));
        assert_eq!(chip.begins(AT(120)), AT(630), "an erase is not taken in early");
        chip.end(&program, AT(630));
        let _ = chip.add_behind(AT(640), behind(FlashKind::Program, 500));
        assert_eq!(chip.begins(AT(640)), AT(4_130), "beside an erase a page is");
        chip.end(&erase, AT(3_630));
        assert_eq!(chip.begins(AT(3_630)), AT(4_130));
    }
    #[test]
    fn a_read_that_comes_before_the_host_has_heard_of_the_last_one_waits_for_what_has_begun() {
        let mut chip = Chip::new(true);
        let first = chip.add(AT(0), US(50), US(10), US(15));
        let erase = chip.add_behind(AT(5), behind(FlashKind::Erase, 3_000));
        assert_eq!(chip.begins(AT(40)), AT(50), "the chip still has the first");
        // The host hears of its end at 75.
        assert_eq!(chip.begins(AT(65)), AT(3_060));
        let second = chip.add(AT(65), US(50), US(10), US(15));
        chip.end(&first, AT(75));
        assert_eq!(chip.begins(AT(75)), AT(3_110));
        chip.end(&erase, AT(3_060));
        chip.end(&second, AT(3_135));
        assert_eq!(chip.begins(AT(3_135)), AT(3_135));
    }
}
