//! When an arriving command will be sent to a drive with a limit on outstanding commands (`block.depth`): an account
//! of the drive's slots (`Place`).
//!
//! Each slot has a next free time, to which a command adds its expected service time. Errors are corrected when
//! commands are sent and when they end. Commands are sent in the order in which they were entered. The service time
//! of reads is predicted; of other commands, it is a measured mean. Reads that wait here meet work that has not
//! reached the drive yet, so the excess of their service time over the prediction is measured as well.
//!
//! Left out: separate service times for large and small writes.

use std::collections::BTreeSet;

use nandscape_sim::{Span, Time};

use crate::predictor::averaged;

/// A command's share of a slot.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Turn {
    place: usize,
    begins: Time,
    takes: Span,
    /// The part of `takes` for work that was not known.
    more: Span,
    /// Whether the command waits here.
    waits: bool,
    /// The slot's corrections at the prediction, in nanoseconds.
    shift: i64,
    /// Its sequence number among sent commands.
    gone: u64,
}

#[derive(Copy, Clone, Default)]
struct Place {
    free: u64,
    shift: i64,
    /// Commands that have it or wait for it.
    held: u32,
    /// The number of the last command sent.
    gone: u64,
}

/// See the file.
pub(crate) struct Backlog {
    depth: u32,
    places: Vec<Place>,
    /// The slots in order of their free times.
    by_time: BTreeSet<(u64, usize)>,
    /// Commands sent.
    gone: u64,
    /// Mean service time of commands other than reads.
    others: Span,
    /// Mean excess over the prediction of reads that waited.
    more: Span,
}

impl Backlog {
    /// Of a drive that has `depth` commands at a time.
    pub(crate) fn new(depth: u32) -> Backlog {
        Backlog { depth, places: Vec::new(), by_time: BTreeSet::new(), gone: 0, others: Span::ZERO, more: Span::ZERO }
    }

    /// When a command that arrives now is sent.
    pub(crate) fn begins(&self, now: Time) -> Time {
        let has_more = self.places.len() < self.depth as usize;
        let first = self.by_time.first().filter(|(free, _)| !has_more || *free <= now.ns());
        first.map_or(now, |(free, _)| now.max(Time::from_ns(*free)))
    }

    /// The expected excess of a read's service time over a prediction from the drive's present work, if the read has
    /// to wait.
    pub(crate) fn more(&self, now: Time) -> Span {
        if self.begins(now) > now { self.more } else { Span::ZERO }
    }

    /// The expected service time of a command other than a read.
    pub(crate) fn others(&self) -> Span {
        self.others
    }

    /// A command arrives that takes `takes` once it is sent; for a read, this includes [`Backlog::more`].
    pub(crate) fn enter(&mut self, now: Time, takes: Span) -> Turn {
        let (begins, more) = (self.begins(now), self.more(now));
        let first = self.by_time.first().filter(|(free, _)| *free <= begins.ns());
        let place = first.map(|(_, place)| *place).unwrap_or_else(|| {
            self.by_time.insert((0, self.places.len()));
            self.places.push(Place::default());
            self.places.len() - 1
        });
        self.places[place].held += 1;
        self.set_free(place, (begins + takes).ns());
        Turn { place, begins, takes, more, waits: begins > now, shift: self.places[place].shift, gone: 0 }
    }

    /// The command is sent now.
    pub(crate) fn goes(&mut self, turn: &mut Turn, now: Time) {
        self.correct(turn.place, self.off(turn, turn.begins, now));
        self.gone += 1;
        let place = &mut self.places[turn.place];
        place.gone = self.gone;
        (turn.begins, turn.shift, turn.gone) = (now, place.shift, self.gone);
    }

    /// The command has ended. Commands other than reads update the mean of their service times.
    pub(crate) fn ended(&mut self, turn: &Turn, is_read: bool, now: Time) {
        // When another command ended, its successor may have been sent already.
        if self.places[turn.place].gone == turn.gone {
            self.correct(turn.place, self.off(turn, turn.begins + turn.takes, now));
        }
        self.leave(turn.place, now);
        let took = now.since(turn.begins).ns() as i64;
        if !is_read {
            self.others = averaged(self.others, took - self.others.ns() as i64);
        } else if turn.waits {
            let said = turn.takes.saturating_sub(turn.more).ns() as i64;
            self.more = averaged(self.more, took - said - self.more.ns() as i64);
        }
    }

    /// The command is dropped unsent.
    pub(crate) fn dropped(&mut self, turn: &Turn, now: Time) {
        self.correct(turn.place, -(turn.takes.ns() as i64));
        self.leave(turn.place, now);
    }

    /// By how many nanoseconds something is later than predicted.
    fn off(&self, turn: &Turn, said: Time, now: Time) -> i64 {
        let moved = self.places[turn.place].shift - turn.shift;
        now.ns() as i64 - (said.ns() as i64).saturating_add(moved)
    }

    fn leave(&mut self, place: usize, now: Time) {
        let held = &mut self.places[place].held;
        *held = held.saturating_sub(1);
        if *held == 0 {
            self.set_free(place, now.ns());
        }
    }

    fn correct(&mut self, place: usize, off: i64) {
        self.places[place].shift += off;
        self.set_free(place, self.places[place].free.saturating_add_signed(off));
    }

    fn set_free(&mut self, place: usize, free: u64) {
        self.by_time.remove(&(self.places[place].free, place));
        self.places[place].free = free;
        self.by_time.insert((free, place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Span = Span::from_us;
    const AT: fn(u64) -> Time = |us| Time::from_ns(us * 1_000);

    #[test]
    fn a_command_goes_when_the_first_place_is_free() {
        let mut backlog = Backlog::new(2);
        assert_eq!(backlog.begins(AT(5)), AT(5));
        let mut turns: Vec<Turn> = [100, 300, 50, 10].map(|us| backlog.enter(AT(0), US(us))).to_vec();
        assert_eq!(backlog.begins(AT(0)), AT(160), "the first place has three of them");
        backlog.goes(&mut turns[0], AT(0));
        backlog.goes(&mut turns[1], AT(0));
        // The first takes 40 us longer; the one behind it is corrected when it is sent.
        backlog.ended(&turns[0], true, AT(140));
        backlog.goes(&mut turns[2], AT(140));
        assert_eq!(backlog.begins(AT(140)), AT(200));
        backlog.dropped(&turns[3], AT(150));
        assert_eq!(backlog.begins(AT(150)), AT(190));
        backlog.ended(&turns[2], true, AT(180));
        assert_eq!((backlog.begins(AT(180)), backlog.begins(AT(400))), (AT(180), AT(400)));
    }

    #[test]
    fn one_that_takes_another_place_corrects_its_own() {
        let mut backlog = Backlog::new(2);
        let mut turns = [100, 100, 100].map(|us| backlog.enter(AT(0), US(us)));
        backlog.goes(&mut turns[0], AT(0));
        backlog.goes(&mut turns[1], AT(0));
        // The third was behind the first, and is sent when the second ends.
        backlog.ended(&turns[1], true, AT(30));
        backlog.goes(&mut turns[2], AT(30));
        backlog.enter(AT(30), US(100));
        assert_eq!(backlog.begins(AT(30)), AT(130), "both places have one");
        backlog.ended(&turns[0], true, AT(100));
        assert_eq!(backlog.begins(AT(100)), AT(130), "that was known");
    }

    #[test]
    fn others_are_measured() {
        let mut backlog = Backlog::new(1);
        for number in 0..2_000 {
            let at = number * 1_000;
            let mut turn = backlog.enter(AT(at), backlog.others());
            backlog.goes(&mut turn, AT(at));
            backlog.ended(&turn, false, AT(at + 400));
        }
        assert!(backlog.others().ns().abs_diff(400_000) < 1_000, "{}", backlog.others());
    }

    #[test]
    fn what_reads_meet_that_have_waited_is_measured() {
        let mut backlog = Backlog::new(1);
        for number in 0..2_000 {
            let at = number * 1_000;
            assert!(backlog.more(AT(at)).is_zero(), "the first does not wait");
            let mut first = backlog.enter(AT(at), US(100));
            backlog.goes(&mut first, AT(at));
            let takes = US(100) + backlog.more(AT(at));
            let mut second = backlog.enter(AT(at), takes);
            backlog.ended(&first, true, AT(at + 100));
            backlog.goes(&mut second, AT(at + 100));
            backlog.ended(&second, true, AT(at + 250));
        }
        let mut first = backlog.enter(AT(5_000_000), US(100));
        backlog.goes(&mut first, AT(5_000_000));
        assert!(backlog.more(AT(5_000_000)).ns().abs_diff(50_000) < 1_000, "{}", backlog.more(AT(5_000_000)));
    }
}
