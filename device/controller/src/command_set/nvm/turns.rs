//! Turns of long work. A command of 64 bytes may change, read or compare gigabytes inside the drive, and a host may have many
//! of them outstanding. Their parts take turns: one begins at a time, and each gets a minimum simulated time, even on a drive
//! without delays. So the computer that runs the model keeps up with any number of such commands, and serves other drives
//! between two parts.
//!
//! A lone part begins at once, and so do a few short ones. The minimum times match the model's own work on one core.
//!
//! Left out: Read and Write, which link and write buffer throttle; drives with other command sets, whose commands are as
//! short as a transfer.

use std::cell::Cell;

use nandscape_device_ftl_core::Ftl;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Cause, Span, Time};
use nandscape_wire_nvme::Status;

use super::Nvm;
use crate::command_set::Command;

/// Mapping units that a command inside the drive writes at once, which is also the longest wait of other commands.
pub(super) const PART: u32 = 16;

/// Time of parts that may be granted at once, so that short commands do not wait for each other.
const SLACK: Span = Span::from_us(32);

/// The work of a part on each of its mapping units.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::command_set) enum Work {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Marks it unreadable.
    Mark,
    /// Unmaps it.
    Unmap,
}

impl Work {
    /// The minimum time for a unit.
    const fn time(self) -> Span {
        match self {
            Work::Read | Work::Write => Span::from_us(1),
            Work::Mark => Span::from_ns(100),
            Work::Unmap => Span::from_ns(10),
        }
    }

    const fn cause(self) -> Cause {
        match self {
            Work::Read => cause::HOST_READ,
            Work::Write | Work::Mark | Work::Unmap => cause::HOST_WRITE,
        }
    }
}

/// When the time granted to parts ends.
#[derive(Default)]
pub(super) struct Turns(Cell<Time>);

impl Turns {
    /// Grants `time` to a part at `now` or after earlier parts. Returns when it begins.
    fn next(&self, now: Time, time: Span) -> Time {
        let given = self.0.get().max(now);
        self.0.set(given + time);
        now + (given - now).saturating_sub(SLACK)
    }
}

impl<F: Ftl> Nvm<F> {
    /// Waits for the turn of a part of a command over `sectors` sectors.
    ///
    /// # Errors
    /// The status of a command that is to end early.
    pub(in crate::command_set) async fn take_turn(
        &self,
        command: &Command<'_>,
        (work, sectors): (Work, u64),
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        let (now, units) = (self.sim.now(), sectors.div_ceil(self.ftl.unit().sectors().into()));
        let begin = self.turns.next(now, work.time() * units);
        let mut turn = Ok(());
        if begin > now {
            turn = command.stop.or_stopped(self.sim.sleep_until(begin)).await;
            breakdown.waits(Stage::Queue).add(work.cause(), self.sim.now() - now);
        }
        // The FTL notes its own steps.
        if matches!(work, Work::Read | Work::Write) {
            self.sim.note_work(units);
        }
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_take_turns_and_one_alone_begins_at_once() {
        let (turns, us) = (Turns::default(), |us| Time::ZERO + Span::from_us(us));
        assert_eq!(turns.next(us(5), Span::from_us(20)), us(5));
        assert_eq!(turns.next(us(5), Span::from_us(20)), us(5), "short ones");
        assert_eq!(turns.next(us(5), Span::from_us(256)), us(13));
        assert_eq!(turns.next(us(13), Span::from_us(256)), us(269));
        assert_eq!(turns.next(us(270), Span::from_us(1)), us(525));
        assert_eq!(turns.next(us(558), Span::from_us(1)), us(558));
    }
}
