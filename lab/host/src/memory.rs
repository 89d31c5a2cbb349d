//! Memory: a first-level cache that other data has filled, and a cache line of another core.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use nandscape_sim::Seed;

use crate::placed::{both, on};
use crate::samples::{Clock, Samples};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Numbers in one.
const NUMBERS: usize = LINE / size_of::<u32>();
/// Data that fills the cache is as many times as large.
pub(crate) const OTHERS: usize = 8;
/// Round trips of a line of a sample.
const TRIPS: u64 = 200;

/// A walk in random order through as much data as half of the first-level cache holds, after one through other data, less a walk that
/// finds it there; twice that. Data for the whole cache would not all stay: the rest of the program needs some lines.
pub(crate) fn cold_cache(cpu: usize, bytes: usize, rounds: usize) -> io::Result<Samples> {
    on(cpu, || {
        let (own, others, clock) = (circle(bytes / 2 / LINE, 1), circle(OTHERS * bytes / LINE, 2), Clock::start());
        Ok(Samples::take(rounds, || {
            walk(&own);
            walk(&others);
            let cold = clock.each(1, || walk(&own));
            2.0 * (cold - clock.each(1, || walk(&own)))
        }))
    })
}

/// Lines that each name the next one, in one circle through all in random order (Sattolo).
fn circle(lines: usize, seed: u64) -> Vec<u32> {
    let mut rng = Seed::new(seed).rng();
    let mut next: Vec<u32> = (0..lines as u32).collect();
    for last in (1..lines).rev() {
        next.swap(last, rng.below(last as u64) as usize);
    }
    let mut memory = vec![0; lines * NUMBERS];
    next.iter().enumerate().for_each(|(line, to)| memory[line * NUMBERS] = *to);
    memory
}

/// Goes round once.
fn walk(circle: &[u32]) {
    let mut line = 0;
    for _ in 0..circle.len() / NUMBERS {
        line = circle[line as usize * NUMBERS];
    }
    black_box(line);
}

/// A line that two processors write in turn: half of a round trip.
pub(crate) fn line_transfer(cpus: (usize, usize), rounds: usize) -> io::Result<Samples> {
    let (line, clock) = (AtomicU64::new(0), Clock::start());
    let (line, rounds) = (&line, rounds.max(1) as u64);
    let take_turns = |own: u64| {
        move || {
            let turn = |number: u64| {
                while line.load(Ordering::Acquire) != 2 * number + own {
                    std::hint::spin_loop();
                }
                line.store(2 * number + own + 1, Ordering::Release);
            };
            let sample = |round: u64| {
                let start = clock.ns();
                (round * TRIPS..(round + 1) * TRIPS).for_each(turn);
                (clock.ns() - start) as f64 / (2 * TRIPS) as f64
            };
            Ok(Samples::new((0..rounds).map(sample).collect()))
        }
    };
    both(cpus, take_turns(0), take_turns(1)).map(|(samples, _)| samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_passes_each_line_once() {
        let circle = circle(97, 5);
        let (mut line, mut seen) = (0, [false; 97]);
        for _ in 0..97 {
            line = circle[line * NUMBERS] as usize;
            assert!(!std::mem::replace(&mut seen[line], true), "{line} twice");
        }
        assert_eq!(line, 0);
    }
}
