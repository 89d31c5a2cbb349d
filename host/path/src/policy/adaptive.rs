//! Interrupts or polling, by what is measured: a thread polls if nothing else wants its processor and if that saves enough.
//!
//! Parallelism: other I/Os that were submitted on the processor and have not ended, and threads that wait for it, now and on average over
//! the last commands there. With any, the thread waits for the interrupt: polling would keep the processor from them. Rate: the mean time that such commands take in the drive, against
//! the time from a completion to its thread by way of an interrupt. Polling saves that time; where it is less than `host.poll_gain` of
//! the whole, interrupts are as good and leave the processor free.
//!
//! Both are measured all the time: the first commands, and one of [`SAMPLE`] after them, take the interrupt.

use std::cell::{Cell, RefCell};

use nandscape_sim::Span;

use super::means::{Mean, Means};
use super::{CompletionPolicy, Ended, Notice, Submitted, Way};

/// Interrupts that are measured before the first command is polled.
const FIRST: u64 = 16;
/// One of as many commands takes the interrupt, so that its time stays known.
const SAMPLE: u64 = 256;

/// Commands over which the number of others moves.
const WEIGHT: usize = 16;
/// Others of a processor on average, in thousandths, from which on it is wanted by several.
const CROWDED: usize = 125;

/// See the file.
pub struct Adaptive {
    /// The least part of a latency that polling has to save, in thousandths.
    gain: u64,
    /// From a completion to its thread by an interrupt, where nothing else wanted the processor.
    delay: Mean,
    measured: Cell<u64>,
    commands: Cell<u64>,
    times: Means,
    /// Others on average by processor, in thousandths.
    others: RefCell<Vec<usize>>,
}

impl Adaptive {
    /// Polls if that saves more than `gain` of the latency, from 0 to 1.
    pub fn new(gain: f64) -> Adaptive {
        let gain = (gain * 1e3).round() as u64;
        Adaptive {
            gain,
            delay: Mean::default(),
            measured: Cell::new(0),
            commands: Cell::new(0),
            times: Means::default(),
            others: RefCell::default(),
        }
    }

    /// Whether others want the processor of a command, or wanted it lately.
    fn is_crowded(&self, command: &Submitted) -> bool {
        let mut all = self.others.borrow_mut();
        if all.len() <= command.cpu {
            all.resize(command.cpu + 1, 0);
        }
        let others = &mut all[command.cpu];
        *others = *others - *others / WEIGHT + 1_000 * command.others.min(WEIGHT) / WEIGHT;
        command.others > 0 || *others >= CROWDED
    }

    /// Whether polling saves enough of a command's latency; `None` before that is known.
    fn saves_enough(&self, command: &Submitted) -> Option<bool> {
        let (took, delay) = (self.times.of(command)?, self.delay.get()?);
        Some(delay.ns() * 1_000 > (took + delay).ns() * self.gain)
    }
}

impl CompletionPolicy for Adaptive {
    fn notice(&self, command: &Submitted) -> Notice {
        let number = self.commands.replace(self.commands.get() + 1);
        let is_sample = self.measured.get() < FIRST || number.is_multiple_of(SAMPLE);
        match !self.is_crowded(command) && !is_sample && self.saves_enough(command) == Some(true) {
            true => Notice::Poll(Span::ZERO),
            false => Notice::Interrupt,
        }
    }

    fn completed(&self, command: &Submitted, ended: &Ended) {
        self.times.add(command, ended.took);
        if ended.way == Way::Interrupt && command.others == 0 {
            self.delay.add(ended.delay);
            self.measured.set(self.measured.get() + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Time;

    use super::*;

    fn learnt(took_us: u64, delay_us: u64) -> Adaptive {
        let adaptive = Adaptive::new(0.05);
        let command = Submitted::of(Time::ZERO, 2, 4_096);
        for _ in 0..FIRST {
            assert_eq!(adaptive.notice(&command), Notice::Interrupt, "nothing is known");
            let took = Span::from_us(took_us);
            adaptive.completed(&command, &Ended { delay: Span::from_us(delay_us), ..Ended::by(Way::Interrupt, took) });
        }
        adaptive
    }

    #[test]
    fn it_polls_where_that_saves_enough_and_nothing_else_wants_the_processor() {
        let command = Submitted::of(Time::ZERO, 2, 4_096);
        let poll = Notice::Poll(Span::ZERO);
        assert_eq!(learnt(10, 2).notice(&command), poll, "2 of 12");
        assert_eq!(learnt(100, 2).notice(&command), Notice::Interrupt, "2 of 102");
        let fast = learnt(10, 2);
        assert_eq!(fast.notice(&Submitted { others: 1, ..command }), Notice::Interrupt);
        assert_eq!(fast.notice(&command), poll, "once is no crowd");
        (0..8).for_each(|_| _ = fast.notice(&Submitted { others: 1, ..command }));
        assert_eq!(fast.notice(&command), Notice::Interrupt, "others wanted the processor lately");
        assert_eq!(fast.notice(&Submitted { cpu: 1, ..command }), poll, "not that one");
        (0..30).for_each(|_| _ = fast.notice(&command));
        assert_eq!(fast.notice(&command), poll, "they no longer do");
        let interrupts = (0..1_000).filter(|_| fast.notice(&command) != poll).count();
        assert!((3..=4).contains(&interrupts), "one of 256 is a sample: {interrupts}");
        // The drive becomes slow, and the decision follows.
        (0..100).for_each(|_| fast.completed(&command, &Ended::polled(Span::from_us(200))));
        assert_eq!(fast.notice(&command), Notice::Interrupt);
    }

    #[test]
    fn waits_behind_others_are_no_part_of_the_interrupt() {
        let adaptive = learnt(100, 2);
        let command = Submitted { others: 3, ..Submitted::of(Time::ZERO, 2, 4_096) };
        let ended = Ended { delay: Span::from_ms(1), ..Ended::by(Way::Interrupt, Span::from_us(100)) };
        (0..100).for_each(|_| adaptive.completed(&command, &ended));
        assert_eq!(adaptive.notice(&Submitted { others: 0, ..command }), Notice::Interrupt);
    }
}
