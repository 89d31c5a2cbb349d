//! When a command that comes now will go to the drive, which has a limited number of them at a time (`block.depth`): an account of the
//! places at the drive.
//!
//! Each place has a next free time, to which a command adds what it is expected to take. Errors are corrected as commands go and as they
//! end. Commands go in the order in which they were entered. What reads take is predicted; of others it is measured, and a mean. Reads that wait here
//! meet work that is not at the drive yet: by how much longer than said they take there is measured, too.
//!
//! Left out: what large and small writes take, each by itself.

use std::collections::BTreeSet;

use nandscape_sim::{Span, Time};

use crate::predictor::averaged;

/// A command's part of a place.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Turn {
    place: usize,
    begins: Time,
    takes: Span,
    /// The part of that which is for work that was not known.
    more: Span,
    /// Whether it waits here.
    waits: bool,
    /// The place's corrections when that was said, in nanoseconds.
    shift: i64,
    /// Its number among those that have gone.
    gone: u64,
}

#[derive(Copy, Clone, Default)]
struct Place {
    free: u64,
    shift: i64,
    /// Commands that have it or wait for it.
    held: u32,
    /// The number of the last one that has gone.
    gone: u64,
}

/// See the file.
pub(crate) struct Backlog {
    depth: u32,
    places: Vec<Place>,
    /// The places by when they are free.
    by_time: BTreeSet<(u64, usize)>,
    /// Commands that have gone.
    gone: u64,
    /// What commands other than reads take.
    others: Span,
    /// By how much longer than said reads take that have waited.
    more: Span,
}

impl Backlog {
    /// Of a drive that has `depth` commands at a time.
    pub(crate) fn new(depth: u32) -> Backlog {
        Backlog { depth, places: Vec::new(), by_time: BTreeSet::new(), gone: 0, others: Span::ZERO, more: Span::ZERO }
    }

    /// When a command goes that comes now.
    pub(crate) fn begins(&self, now: Time) -> Time {
        let has_more = self.places.len() < self.depth as usize;
        let first = self.by_time.first().filter(|(free, _)| !has_more || *free <= now.ns());
        first.map_or(now, |(free, _)| now.max(Time::from_ns(*free)))
    }

    /// By how much longer a read takes than what is at the drive now has it take, if it goes only then.
    pub(crate) fn more(&self, now: Time) -> Span {
        if self.begins(now) > now { self.more } else { Span::ZERO }
    }

    /// What a command other than a read takes, as far as is known.
    pub(crate) fn others(&self) -> Span {
        self.others
    }

    /// A command comes that will take so long once it has gone; of a read, with [`Backlog::more`].
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

    /// It goes now.
    pub(crate) fn goes(&mut self, turn: &mut Turn, now: Time) {
        self.correct(turn.place, self.off(turn, turn.begins, now));
        self.gone += 1;
        let place = &mut self.places[turn.place];
        place.gone = self.gone;
        (turn.begins, turn.shift, turn.gone) = (now, place.shift, self.gone);
    }

    /// It has ended. What those take is measured that are no reads.
    pub(crate) fn ended(&mut self, turn: &Turn, is_read: bool, now: Time) {
        // What was behind it may have gone already, when another ended.
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

    /// It does not go.
    pub(crate) fn dropped(&mut self, turn: &Turn, now: Time) {
        self.correct(turn.place, -(turn.takes.ns() as i64));
        self.leave(turn.place, now);
    }

    /// By how many nanoseconds something comes later than was said.
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
        // The first takes 40 us longer; the one behind it is told when it goes.
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
        // The third was behind the first, and goes when the second ends.
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
