//! The control of policies on completions: how long a signal of another thread takes to wake this one, without any drive.

use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};

use nandscape_sim::{Span, Time};
use nandscape_transport_reactor::WallClock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::host::thread_cpu;

/// Wake-ups that are measured.
const WAKES: usize = 200;
/// Between two of them, so that the thread sleeps.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Control {
    /// From the signals until the thread ran, from the shortest.
    delays: Vec<Span>,
    /// Processor time of the thread, a wake-up.
    pub(super) cpu: Span,
}

impl Control {
    /// Of delays in any order, one at least.
    pub(super) fn of(mut delays: Vec<Span>, cpu: Span) -> Control {
        assert!(!delays.is_empty(), "a control has wake-ups");
        delays.sort();
        Control { delays, cpu }
    }

    /// Measures it on the calling thread.
    ///
    /// # Errors
    /// Why the system gives no thread or event descriptor.
    pub(super) fn measure() -> std::io::Result<Control> {
        let event = eventfd(0, EventfdFlags::CLOEXEC)?;
        let (clock, sent, taken) = (WallClock::start(), AtomicU64::new(0), AtomicU64::new(0));
        let wakes = 0..WAKES as u64;
        std::thread::scope(|scope| {
            let signals = || {
                for wake in wakes.clone() {
                    while taken.load(Ordering::Acquire) < wake {
                        let _ = poll(&mut [], Some(&PAUSE));
                    }
                    let _ = poll(&mut [], Some(&PAUSE));
                    sent.store(clock.now().since(Time::ZERO).ns(), Ordering::Release);
                    // The thread that waits ends with an error of its own if this fails: the descriptor is the same.
                    let _ = rustix::io::write(event.as_fd(), &1u64.to_ne_bytes());
                }
            };
            std::thread::Builder::new().spawn_scoped(scope, signals)?;
            let before = thread_cpu();
            let delays = wakes.clone().map(|wake| {
                let waited = wait(event.as_fd());
                let now = clock.now().since(Time::ZERO).ns();
                // The other thread goes on in any case.
                taken.store(wake + 1, Ordering::Release);
                waited.map(|()| Span::from_ns(now.saturating_sub(sent.load(Ordering::Acquire))))
            });
            let delays: Vec<std::io::Result<Span>> = delays.collect();
            let cpu = (thread_cpu() - before) / WAKES as u64;
            Ok(Control::of(delays.into_iter().collect::<std::io::Result<Vec<Span>>>()?, cpu))
        })
    }

    /// The delay below which a share of them is.
    pub(super) fn at(&self, share: f64) -> Span {
        self.delays[((self.delays.len() - 1) as f64 * share).round() as usize]
    }

    /// The median delay.
    pub(super) fn median(&self) -> Span {
        self.at(0.5)
    }

    /// Wake-ups.
    pub(super) fn count(&self) -> u64 {
        self.delays.len() as u64
    }
}

/// Waits for the signal as the loop does, and takes it back.
fn wait(event: std::os::fd::BorrowedFd<'_>) -> std::io::Result<()> {
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(event, PollFlags::IN)], None) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(rustix::io::read(event, &mut [0; 8]).map(drop)?),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wake_up_is_measured_once() {
        let control = Control::measure().unwrap();
        assert_eq!(control.count(), WAKES as u64);
        assert!(control.at(0.0) <= control.median() && control.median() <= control.at(1.0));
        let three = Control::of([3, 1, 2].map(Span::from_us).to_vec(), Span::ZERO);
        assert_eq!(
            (three.at(0.0), three.median(), three.at(1.0)),
            (Span::from_us(1), Span::from_us(2), Span::from_us(3))
        );
    }
}
