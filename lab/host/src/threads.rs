//! Threads that switch, wake each other, share a processor, and wake an idle one.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, scope};

use nix::sys::resource::{UsageWho, getrusage};

use crate::placed::{both, give_way, joined, on, place, receive, rest, send};
use crate::samples::{Clock, Samples};

/// Round trips, and turns of giving way, of a sample.
const TRIPS: u32 = 20;
const YIELDS: u64 = 10;
/// Time in which a processor becomes idle, in microseconds.
const SETTLE_US: i64 = 300;
/// A thread that did not run for this long had lost its processor.
const LOST_NS: u64 = 200_000;
/// The longest that slices are looked for.
const LONGEST_NS: u64 = 1_000_000_000;

/// Switches of the calling thread so far: when it waited, and when it lost its processor.
fn switches() -> io::Result<(u64, u64)> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    Ok((usage.voluntary_context_switches() as u64, usage.involuntary_context_switches() as u64))
}

/// Giving way to no other thread.
pub(crate) fn give_way_alone(cpu: usize, rounds: usize) -> io::Result<Samples> {
    on(cpu, || {
        let clock = Clock::start();
        Ok(Samples::take(rounds, || clock.each(YIELDS as u32, || (0..YIELDS).for_each(|_| std::thread::yield_now()))))
    })
}

/// A switch: two threads of one processor give way to each other all the time. Their time, less that of giving way, which is `alone`,
/// by the switches that the system counts. `None` if it counted none.
pub(crate) fn switch(cpu: usize, rounds: usize, alone: f64) -> io::Result<Option<Samples>> {
    let (clock, ended, others) = (Clock::start(), AtomicBool::new(false), AtomicU64::new(0));
    let sample = || -> io::Result<Option<f64>> {
        let (waited, lost) = switches()?;
        let (of_other, start) = (others.load(Ordering::Relaxed), clock.ns());
        (0..YIELDS).for_each(|_| std::thread::yield_now());
        let (took, yields) = (clock.ns() - start, YIELDS + others.load(Ordering::Relaxed) - of_other);
        let (waited_then, lost_then) = switches()?;
        let away = waited_then + lost_then - waited - lost;
        // Away and back.
        Ok((away > 0).then(|| (took as f64 - yields as f64 * alone) / (2 * away) as f64))
    };
    let one = || {
        let samples = (0..rounds.max(1)).map(|_| sample()).collect::<io::Result<Vec<Option<f64>>>>();
        ended.store(true, Ordering::Relaxed);
        let samples: Vec<f64> = samples?.into_iter().flatten().collect();
        Ok((!samples.is_empty()).then(|| Samples::new(samples)))
    };
    let other = || {
        while !ended.load(Ordering::Relaxed) {
            std::thread::yield_now();
            others.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    both((cpu, cpu), one, other).map(|(samples, ())| samples)
}

/// A wake-up: two threads of one processor wait for each other by pipes. The time of round trips, less `others`, which is that of a write,
/// a read and a switch, by the wake-ups. `None` if other threads ran each time.
///
/// A thread that takes the processor from its waker finds it awake when it answers: the waits of the asking thread count its wake-ups.
pub(crate) fn wake(cpu: usize, rounds: usize, others: f64) -> io::Result<Option<Samples>> {
    let (mut asked, mut ask) = io::pipe()?;
    let (mut answered, mut answer) = io::pipe()?;
    let clock = Clock::start();
    let mut sample = move || -> io::Result<Option<f64>> {
        let (waited, lost) = switches()?;
        let start = clock.ns();
        for number in 0..TRIPS {
            send(&mut ask, number.into())?;
            receive(&mut answered)?;
        }
        let took = clock.ns() - start;
        let (waited_then, lost_then) = switches()?;
        let (waits, losses) = (waited_then - waited, lost_then - lost);
        // It leaves the processor once in each trip.
        let is_alone = waits + losses == u64::from(TRIPS);
        let wakes = f64::from(TRIPS) + waits as f64;
        Ok(is_alone.then(|| (took as f64 - f64::from(2 * TRIPS) * others) / wakes))
    };
    let one = move || {
        let samples = (0..rounds.max(1)).map(|_| sample()).collect::<io::Result<Vec<Option<f64>>>>()?;
        let samples: Vec<f64> = samples.into_iter().flatten().collect();
        Ok((!samples.is_empty()).then(|| Samples::new(samples)))
    };
    let other = move || {
        while let Some(number) = receive(&mut asked)? {
            send(&mut answer, number)?;
        }
        Ok(())
    };
    both((cpu, cpu), one, other).map(|(samples, ())| samples)
}

/// From a write on one processor until the thread that waited for it runs on another: which is idle, or not.
pub(crate) fn across(cpus: (usize, usize), rounds: usize, is_idle: bool) -> io::Result<Samples> {
    let (mut woken, mut waker) = io::pipe()?;
    let (mut asked, mut ready) = io::pipe()?;
    let (clock, ended) = (Clock::start(), AtomicBool::new(false));
    scope(|scope| {
        let busy = (!is_idle).then(|| {
            Builder::new().spawn_scoped(scope, || {
                place(cpus.1)?;
                give_way()?;
                while !ended.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                Ok(())
            })
        });
        let one = move || {
            while receive(&mut asked)?.is_some() {
                rest(SETTLE_US);
                send(&mut waker, clock.ns())?;
            }
            Ok(())
        };
        let other = move || {
            Samples::try_take(rounds, || {
                send(&mut ready, 0)?;
                let at =
                    receive(&mut woken)?.ok_or_else(|| io::Error::other("a thread of the measurement has ended"))?;
                Ok(clock.ns().saturating_sub(at) as f64)
            })
        };
        let samples = both(cpus, one, other).map(|((), samples)| samples);
        ended.store(true, Ordering::Relaxed);
        busy.transpose()?.map_or(Ok(()), joined)?;
        samples
    })
}

/// How long a thread runs until another that never sleeps takes its processor; `None` if that did not happen in a second.
pub(crate) fn turn(cpu: usize, rounds: usize) -> io::Result<Option<Samples>> {
    let (clock, ended) = (Clock::start(), AtomicBool::new(false));
    let turns = || {
        let (start, mut turns) = (clock.ns(), Vec::new());
        let (mut since, mut last) = (None, start);
        while turns.len() < rounds && last - start < LONGEST_NS {
            let now = clock.ns();
            if now - last > LOST_NS {
                turns.extend(since.map(|since: u64| (last - since) as f64));
                since = Some(now);
            }
            last = now;
        }
        ended.store(true, Ordering::Relaxed);
        Ok((!turns.is_empty()).then(|| Samples::new(turns)))
    };
    let other = || {
        while !ended.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        Ok(())
    };
    both((cpu, cpu), turns, other).map(|(turns, ())| turns)
}
