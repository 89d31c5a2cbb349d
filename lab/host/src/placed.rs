//! Threads on given processors. Two that work together begin together, or not at all.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, ScopedJoinHandle, scope};

use rustix::event::{Timespec, poll};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Places the calling thread.
pub(crate) fn place(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Gives the thread the least share of its processor, so that it takes it from no other.
pub(crate) fn give_way() -> io::Result<()> {
    rustix::process::nice(19)?;
    Ok(())
}

/// Leaves the processor for a while.
pub(crate) fn rest(us: i64) {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: us * 1_000 }));
}

/// Runs a thread on a processor.
pub(crate) fn on<T: Send>(cpu: usize, body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, || {
            place(cpu)?;
            body()
        })?;
        joined(thread)
    })
}

/// Runs two threads, each on a processor.
pub(crate) fn both<A: Send, B: Send>(
    cpus: (usize, usize),
    one: impl FnOnce() -> io::Result<A> + Send,
    other: impl FnOnce() -> io::Result<B> + Send,
) -> io::Result<(A, B)> {
    let (barrier, failed) = (Barrier::new(2), AtomicBool::new(false));
    let begin = |cpu| {
        let placed = place(cpu);
        failed.fetch_or(placed.is_err(), Ordering::SeqCst);
        barrier.wait();
        placed?;
        match failed.load(Ordering::SeqCst) {
            true => Err(io::Error::other("the other thread of the measurement did not begin")),
            false => Ok(()),
        }
    };
    scope(|scope| {
        let first = Builder::new().spawn_scoped(scope, || begin(cpus.0).and_then(|()| one()))?;
        let second = Builder::new().spawn_scoped(scope, || begin(cpus.1).and_then(|()| other()));
        if second.is_err() {
            failed.store(true, Ordering::SeqCst);
            barrier.wait();
        }
        let first = joined(first);
        let second = joined(second?)?;
        Ok((first?, second))
    })
}

/// What a thread returns.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sends a number, which wakes a thread that waits for it.
pub(crate) fn send(pipe: &mut PipeWriter, number: u64) -> io::Result<()> {
    pipe.write_all(&number.to_ne_bytes())
}

/// Waits for a number; `None` when its sender has gone.
pub(crate) fn receive(pipe: &mut PipeReader) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    match pipe.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(u64::from_ne_bytes(bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_cannot_be_placed_ends_both() {
        let none = CpuSet::MAX_CPU - 1;
        let first = super::super::processors::Processors::look().unwrap().first();
        let error = both((first, none), || Ok(()), || Ok(())).unwrap_err();
        assert!(!error.to_string().is_empty());
        assert!(both((first, first), || Ok(1), || Ok(2)).unwrap() == (1, 2));
        assert!(on(none, || Ok(())).is_err());
    }

    #[test]
    fn a_number_that_was_sent_arrives_and_an_end_is_told() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        send(&mut writer, 7).unwrap();
        assert_eq!(receive(&mut reader).unwrap(), Some(7));
        drop(writer);
        assert_eq!(receive(&mut reader).unwrap(), None);
    }
}
