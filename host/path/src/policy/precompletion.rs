//! The host of a drive that announces completions (Shin 4.3.2, Figure 4.2). By what a command is, its thread
//!
//! | command | does |
//! |---|---|
//! | a small write that will find room in the write buffer | polls |
//! | a small read | gives its processor away, is woken by the drive's notice, and polls for the completion |
//! | any other | gives its processor away until an interrupt |
//!
//! Small is below 8 KiB. Polling ends `host.patience` after the expected end: then the thread waits for the interrupt as any other. A write
//! that was expected to find room and did not proves the count of the buffer wrong; writes take the interrupt until one of them is
//! as fast as a write with room.
//!
//! The window of the notices is that of the drive, a given one, or follows the scheduling delay, from a notice to its thread: each
//! notice that takes longer than the window widens it by an eighth, and each that does not narrows it by a 64th, so that one of nine is
//! late. The drive is given a new window when it differs by more than an eighth.

use std::cell::Cell;

use nandscape_sim::Span;
use nandscape_wire_nvme::IoOpcode;

use super::means::Mean;
use super::{CompletionPolicy, Ended, Notice, Submitted, Way};
use crate::buffer::BufferAccount;
use crate::config::Window;

/// Commands of as many bytes, and of more, are neither predicted nor polled (Shin 4.3.1).
const TOO_LARGE: u64 = 8 << 10;
/// A window that adapts begins here.
const FIRST: Span = Span::from_us(16);
/// It stays between these.
const LEAST: Span = Span::from_us(1);
const MOST: Span = Span::from_ms(1);

/// See the file.
pub struct Precompletion {
    patience: Span,
    buffer: BufferAccount,
    /// How long writes with room take.
    hit: Mean,
    /// The count of the buffer was right lately.
    is_trusted: Cell<bool>,
    window: Window,
    /// The window that the delays ask for, and the one that the drive was given.
    wanted: Cell<Span>,
    given: Cell<Option<Span>>,
}

impl Precompletion {
    /// Polls for `patience` at most beyond the expected end.
    pub fn new(window: Window, patience: Span) -> Precompletion {
        Precompletion {
            patience,
            buffer: BufferAccount::default(),
            hit: Mean::default(),
            is_trusted: Cell::new(true),
            window,
            wanted: Cell::new(FIRST),
            given: Cell::new(None),
        }
    }

    /// How long a write with room takes at most.
    fn longest_hit(&self) -> Span {
        self.hit.get().unwrap_or(Span::ZERO) + self.patience
    }

    fn follow(&self, delay: Span) {
        let window = self.wanted.get();
        let next = match delay > window {
            true => window + Span::from_ns(window.ns() / 8),
            false => window - Span::from_ns(window.ns() / 64),
        };
        self.wanted.set(next.clamp(LEAST, MOST));
    }
}

impl CompletionPolicy for Precompletion {
    fn notice(&self, command: &Submitted) -> Notice {
        let is_small = command.bytes < TOO_LARGE;
        match IoOpcode(command.opcode) {
            IoOpcode::READ if is_small => Notice::Announced(self.patience),
            IoOpcode::WRITE => {
                let fits = self.buffer.submitted(command.units) == Some(true);
                match fits && is_small && self.is_trusted.get() {
                    true => Notice::PollFor(self.longest_hit()),
                    false => Notice::Interrupt,
                }
            }
            _ => Notice::Interrupt,
        }
    }

    fn asks(&self) -> bool {
        true
    }

    fn completed(&self, command: &Submitted, ended: &Ended) {
        let is_write = IoOpcode(command.opcode) == IoOpcode::WRITE;
        self.buffer.completed(if is_write { command.units } else { 0 }, ended.buffer_free);
        if is_write && command.bytes < TOO_LARGE {
            let is_fast = ended.took <= self.longest_hit();
            self.is_trusted.set(ended.way != Way::GaveUp && (self.is_trusted.get() || is_fast));
            if ended.way == Way::Poll {
                self.hit.add(ended.took);
            }
        }
        if let Some(delay) = ended.noticed {
            self.follow(delay);
        }
    }

    fn dropped(&self, command: &Submitted) {
        if IoOpcode(command.opcode) == IoOpcode::WRITE {
            self.buffer.completed(command.units, None);
        }
    }

    fn new_window(&self) -> Option<Span> {
        let window = match self.window {
            Window::Drive => return None,
            Window::Fixed(window) => window,
            Window::Adaptive => self.wanted.get(),
        };
        let is_near = |given: Span| window.ns().abs_diff(given.ns()) * 8 <= given.ns();
        if self.given.get().is_some_and(is_near) {
            return None;
        }
        self.given.set(Some(window));
        Some(window)
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::{Seed, Time};

    use super::*;

    const PATIENCE: Span = Span::from_us(20);

    fn write(units: u32) -> Submitted {
        Submitted { units, ..Submitted::of(Time::ZERO, 1, 4_096) }
    }

    fn ended(way: Way, took_us: u64, free: u32) -> Ended {
        Ended { buffer_free: Some(free), ..Ended::by(way, Span::from_us(took_us)) }
    }

    #[test]
    fn commands_are_told_apart_as_in_figure_4_2() {
        let policy = Precompletion::new(Window::Drive, PATIENCE);
        let notice = |opcode, bytes| policy.notice(&Submitted::of(Time::ZERO, opcode, bytes));
        assert_eq!(notice(2, 4_096), Notice::Announced(PATIENCE));
        assert_eq!((notice(2, 8_192), notice(0, 0)), (Notice::Interrupt, Notice::Interrupt));
        assert_eq!(policy.notice(&write(1)), Notice::Interrupt, "nothing is known of the buffer");
        policy.completed(&write(1), &ended(Way::Interrupt, 10, 2));
        assert_eq!(policy.notice(&write(1)), Notice::PollFor(PATIENCE));
        assert_eq!(policy.notice(&write(2)), Notice::Interrupt, "one of two is on its way");
        policy.dropped(&write(2));
        policy.completed(&write(1), &ended(Way::Poll, 10, 2));
        assert_eq!(policy.notice(&write(2)), Notice::PollFor(Span::from_us(30)), "ten microseconds are known");
        policy.dropped(&write(2));
        assert_eq!(policy.notice(&Submitted { bytes: 8_192, ..write(2) }), Notice::Interrupt, "it is large");
    }

    #[test]
    fn a_write_that_waits_takes_the_others_back_to_interrupts_until_one_is_fast() {
        let policy = Precompletion::new(Window::Drive, PATIENCE);
        let next = |way, took_us| {
            policy.notice(&write(1));
            policy.completed(&write(1), &ended(way, took_us, 100));
            let notice = policy.notice(&write(1));
            policy.dropped(&write(1));
            notice
        };
        assert_eq!(next(Way::Interrupt, 10), Notice::PollFor(PATIENCE));
        assert_eq!(next(Way::GaveUp, 300), Notice::Interrupt);
        assert_eq!(next(Way::Interrupt, 200), Notice::Interrupt);
        assert_eq!(next(Way::Interrupt, 15), Notice::PollFor(PATIENCE));
    }

    #[test]
    fn a_window_follows_the_delays_and_is_given_to_the_drive_in_steps() {
        let fixed = Precompletion::new(Window::Fixed(Span::from_us(8)), PATIENCE);
        assert_eq!((fixed.new_window(), fixed.new_window()), (Some(Span::from_us(8)), None));
        assert_eq!(Precompletion::new(Window::Drive, PATIENCE).new_window(), None);
        let policy = Precompletion::new(Window::Adaptive, PATIENCE);
        let mut rng = Seed::new(3).rng();
        let read = Submitted::of(Time::ZERO, 2, 4_096);
        for (least, most) in [(2, 4), (40, 60), (5, 6)] {
            let (mut late, mut given) = (0, 0);
            for number in 0..4_000 {
                let delay = Span::from_ns(1_000 * least + rng.below(1_000 * (most - least)));
                late += u32::from(number >= 2_000 && delay > policy.wanted.get());
                policy.completed(&read, &Ended { noticed: Some(delay), ..ended(Way::Ready, 90, 0) });
                given += u32::from(policy.new_window().is_some());
            }
            let window = policy.given.get().unwrap().as_us();
            assert!((least as f64..=1.3 * most as f64).contains(&window), "{least} to {most}: {window}");
            assert!((100..=400).contains(&late), "one of nine is late: {late} of 2,000");
            assert!(given < 400, "{given} of 4,000");
        }
    }
}
