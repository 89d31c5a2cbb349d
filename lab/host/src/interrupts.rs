//! Interrupts, as a thread sees them that reads the clock all the time: the longest time between two readings.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::placed::{both, on};
use crate::samples::{Clock, Samples};

/// When the timer is due, and how long the clock is read.
const DUE_NS: u64 = 30_000;
const WINDOW_NS: u64 = 60_000;
/// How long nothing is sent, for comparison.
const QUIET_NS: u64 = 5_000;

/// The longest time between two readings of the clock, while `goes_on`.
fn longest_gap(clock: Clock, mut goes_on: impl FnMut(u64) -> bool) -> u64 {
    let (mut last, mut longest) = (clock.ns(), 0);
    while goes_on(last) {
        let now = clock.ns();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

fn window(clock: Clock) -> f64 {
    let end = clock.ns() + WINDOW_NS;
    longest_gap(clock, |now| now < end) as f64
}

/// A timer that ends, for which no thread waits.
pub(crate) fn timer(cpu: usize, rounds: usize) -> io::Result<Samples> {
    on(cpu, || {
        let clock = Clock::start();
        let without = Samples::take(rounds, || window(clock));
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let due = Itimerspec { it_interval: zero, it_value: Timespec { tv_sec: 0, tv_nsec: DUE_NS as i64 } };
        let with = Samples::try_take(rounds, || {
            timerfd_settime(&timer, TimerfdTimerFlags::empty(), &due)?;
            Ok::<f64, io::Error>(window(clock))
        })?;
        Ok(with.adjusted(1.0, without.median()))
    })
}

/// An interrupt from another processor, which asks for a memory barrier; `None` where the kernel does not offer that.
pub(crate) fn from_other(cpus: (usize, usize), rounds: usize) -> io::Result<Option<Samples>> {
    if !membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED) {
        return Ok(None);
    }
    membarrier(MembarrierCommand::RegisterPrivateExpedited)?;
    let without = gaps(cpus, rounds, &|clock| {
        let end = clock.ns() + QUIET_NS;
        while clock.ns() < end {}
        Ok(())
    })?;
    let with = gaps(cpus, rounds, &|_| Ok(membarrier(MembarrierCommand::PrivateExpedited)?))?;
    Ok(Some(with.adjusted(1.0, without.median())))
}

/// The longest gaps on the second processor while the first does something.
fn gaps(cpus: (usize, usize), rounds: usize, does: &(dyn Fn(Clock) -> io::Result<()> + Sync)) -> io::Result<Samples> {
    // Each round has two numbers: odd while the first does it, even when it is done. The second answers with the same.
    let (asked, answered, clock) = (AtomicU64::new(0), AtomicU64::new(0), Clock::start());
    let rounds = rounds.max(1) as u64;
    let tell = |number| {
        asked.store(number, Ordering::Release);
        while answered.load(Ordering::Acquire) < number {
            std::hint::spin_loop();
        }
    };
    let one = || {
        let mut done = Ok(());
        for round in 0..rounds {
            tell(2 * round + 1);
            // The other thread ends in any case.
            done = done.and_then(|()| does(clock));
            tell(2 * round + 2);
        }
        done
    };
    let other = || {
        Ok(Samples::new(
            (0..rounds)
                .map(|round| {
                    while asked.load(Ordering::Acquire) < 2 * round + 1 {
                        std::hint::spin_loop();
                    }
                    answered.store(2 * round + 1, Ordering::Release);
                    let gap = longest_gap(clock, |_| asked.load(Ordering::Acquire) < 2 * round + 2);
                    answered.store(2 * round + 2, Ordering::Release);
                    gap as f64
                })
                .collect(),
        ))
    };
    both(cpus, one, other).map(|((), samples)| samples)
}
