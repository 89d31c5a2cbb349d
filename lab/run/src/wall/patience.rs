//! How long a load waits for a silent drive.
//!
//! Left out: unreachable drives, which report that themselves.

use std::rc::Rc;

use nandscape_host_driver::{Lost, Pending};
use nandscape_sim::{Span, Time};

use super::pacer::Source;

/// Checks within a patience. A drive has to be silent at each of them: one late check, after the process
/// was stopped, is no evidence of a silent drive.
const LOOKS: u32 = 16;

/// See the module.
pub(super) struct Patience {
    endpoint: String,
    longest: Span,
    next_look: Time,
    drives: Vec<Silence>,
}

/// What was seen of a drive at the last look, and at how many looks since it has not answered.
#[derive(Copy, Clone, Default)]
struct Silence {
    seen: Pending,
    looks: u32,
}

impl Patience {
    /// With drives at `endpoint`, each of which may answer nothing for `longest`.
    pub(super) fn new(endpoint: String, longest: Span) -> Patience {
        Patience { endpoint, longest, next_look: Time::ZERO, drives: Vec::new() }
    }

    /// The time of the next check.
    pub(super) fn due(&self) -> Time {
        self.next_look
    }

    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.next_look <= now
    }

    /// Looks at the drives.
    ///
    /// # Errors
    /// When one of them has had commands for as long as the patience, and has answered nothing.
    pub(super) fn check(&mut self, now: Time, sources: &[Rc<dyn Source>]) -> Result<(), Lost> {
        self.next_look = now + self.longest / u64::from(LOOKS);
        self.drives.resize(sources.len(), Silence::default());
        for (silence, source) in self.drives.iter_mut().zip(sources) {
            let pending = source.pending();
            // The first check only finds that there are commands.
            let waits = pending.commands > 0 && silence.seen.commands > 0 && pending.answers == silence.seen.answers;
            *silence = Silence { seen: pending, looks: if waits { silence.looks + 1 } else { 0 } };
            if silence.looks >= LOOKS {
                let (seconds, commands) = (self.longest.as_s(), pending.commands);
                let reason = format!("no answer for {seconds} s, with {commands} commands outstanding");
                return Err(Lost { endpoint: self.endpoint.clone(), reason });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::fd::BorrowedFd;

    use rustix::event::PollFlags;

    use super::*;

    #[derive(Default)]
    struct Drive(Cell<Pending>);

    impl Source for Drive {
        fn poll(&self) -> Result<bool, Lost> {
            Ok(false)
        }

        fn pending(&self) -> Pending {
            self.0.get()
        }

        fn sockets(&self) -> Option<Vec<(BorrowedFd<'_>, PollFlags)>> {
            None
        }
    }

    /// Looks at two drives every second; `second` sets what the second one owes. When that ends with an error, and with which.
    fn looks(count: u64, second: impl Fn(u64) -> Pending) -> Option<(u64, String)> {
        let mut patience = Patience::new("the drive".to_owned(), Span::from_s(16));
        let drive = Rc::new(Drive::default());
        let sources: [Rc<dyn Source>; 2] = [Rc::new(Drive::default()), drive.clone()];
        (0..count).find_map(|look| {
            drive.0.set(second(look));
            let now = Time::ZERO + Span::from_s(look);
            assert!(patience.is_due(now));
            patience.check(now, &sources).err().map(|lost| (look, lost.to_string()))
        })
    }

    #[test]
    fn a_drive_that_answers_nothing_is_lost_after_the_patience() {
        let (at, error) = looks(100, |_| Pending { commands: 3, answers: 7 }).unwrap();
        assert_eq!(at, 16);
        assert_eq!(error, "the connection to the drive is lost: no answer for 16 s, with 3 commands outstanding");
        // From its second answer on it is silent.
        let (at, _) = looks(100, |look| Pending { commands: 3, answers: look.min(10) }).unwrap();
        assert_eq!(at, 26);
    }

    #[test]
    fn drives_without_commands_and_slow_ones_are_waited_for() {
        assert_eq!(looks(100, |_| Pending { commands: 0, answers: 7 }), None);
        assert_eq!(looks(100, |look| Pending { commands: 3, answers: look / 15 }), None);
        assert_eq!(looks(100, |look| Pending { commands: usize::from(look % 16 != 0), answers: 0 }), None);
    }

    /// A process that was stopped looks late, once.
    #[test]
    fn time_in_which_nothing_was_looked_at_does_not_count() {
        let mut patience = Patience::new("the drive".to_owned(), Span::from_s(16));
        let sources: [Rc<dyn Source>; 1] = [Rc::new(Drive(Cell::new(Pending { commands: 1, answers: 0 })))];
        for now in [0, 1, 10_000] {
            assert_eq!(patience.check(Time::ZERO + Span::from_s(now), &sources), Ok(()));
        }
    }
}
