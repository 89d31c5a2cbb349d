//! A system call, and a lock that is free.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::placed::{on, receive, send};
use crate::samples::{Clock, Samples};

/// Calls of a sample.
const CALLS: u32 = 100;
/// Turns of a lock of a sample.
const TURNS: u32 = 1_000;

/// A `read()` of one byte of zeros.
pub(crate) fn system_call(cpu: usize, rounds: usize) -> io::Result<Samples> {
    on(cpu, || {
        let (clock, mut zeros) = (Clock::start(), File::open("/dev/zero")?);
        let mut byte = [0];
        zeros.read_exact(&mut byte)?;
        Ok(Samples::take(rounds, || {
            clock.each(CALLS, || (0..CALLS).for_each(|_| _ = black_box(zeros.read(&mut byte))))
        }))
    })
}

/// Writing to a pipe and reading from it, for which no thread waits.
pub(crate) fn write_and_read(cpu: usize, rounds: usize) -> io::Result<Samples> {
    on(cpu, || {
        let (clock, (mut reader, mut writer)) = (Clock::start(), io::pipe()?);
        Samples::try_take(rounds, || {
            let start = clock.ns();
            for number in 0..CALLS {
                send(&mut writer, number.into())?;
                receive(&mut reader)?;
            }
            Ok((clock.ns() - start) as f64 / f64::from(CALLS))
        })
    })
}

/// Taking and leaving a lock whose cache line is here.
pub(crate) fn lock(cpu: usize, rounds: usize) -> io::Result<Samples> {
    on(cpu, || {
        let (clock, lock) = (Clock::start(), AtomicBool::new(false));
        let turn = || {
            while black_box(&lock).swap(true, Ordering::Acquire) {}
            lock.store(false, Ordering::Release);
        };
        Ok(Samples::take(rounds, || clock.each(TURNS, || (0..TURNS).for_each(|_| turn()))))
    })
}
