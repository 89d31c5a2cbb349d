//! The thread sleeps for a part of the time that such commands take, then polls: Linux' hybrid polling (4.10, `io_poll_delay` of 0),
//! with half of the mean.
//!
//! As in Linux, commands are grouped by direction and by size, in powers of two from 512 bytes to 64 KiB; the first command of a
//! kind polls at once. Linux takes means of windows of 100 ms; here the mean moves by a sixteenth of the difference at each
//! completion, so that short runs have one.

use nandscape_sim::Span;

use super::means::Means;
use super::{CompletionPolicy, Ended, Notice, Submitted};

/// See the file.
pub struct Hybrid {
    /// The part of the mean that a thread sleeps, in thousandths.
    sleep: u64,
    means: Means,
}

impl Hybrid {
    /// Sleeps for `part` of the mean, from 0 to 1.
    pub fn new(part: f64) -> Hybrid {
        Hybrid { sleep: (part * 1e3).round() as u64, means: Means::default() }
    }
}

impl CompletionPolicy for Hybrid {
    fn notice(&self, command: &Submitted) -> Notice {
        let mean = self.means.of(command).unwrap_or(Span::ZERO);
        Notice::Poll(Span::from_ns(mean.ns() * self.sleep / 1_000))
    }

    fn completed(&self, command: &Submitted, ended: &Ended) {
        self.means.add(command, ended.took);
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Time;

    use super::*;

    #[test]
    fn it_sleeps_half_of_the_mean_of_such_commands() {
        let hybrid = Hybrid::new(0.5);
        let command = |opcode, bytes| Submitted::of(Time::ZERO, opcode, bytes);
        let (small, large, write) = (command(2, 4_096), command(2, 131_072), command(1, 4_096));
        assert_eq!(hybrid.notice(&small), Notice::Poll(Span::ZERO));
        hybrid.completed(&small, &Ended::polled(Span::from_us(80)));
        hybrid.completed(&large, &Ended::polled(Span::from_us(200)));
        let slept = |command: &Submitted| hybrid.notice(command);
        assert_eq!(slept(&small), Notice::Poll(Span::from_us(40)));
        assert_eq!(slept(&command(2, 1 << 20)), Notice::Poll(Span::from_us(100)), "the largest kind has no end");
        assert_eq!(slept(&write), Notice::Poll(Span::ZERO));
        (0..200).for_each(|_| hybrid.completed(&small, &Ended::polled(Span::from_us(20))));
        let Notice::Poll(span) = slept(&small) else { panic!("hybrid polls") };
        assert!((9_990..=10_010).contains(&span.ns()), "{span}");
    }
}
