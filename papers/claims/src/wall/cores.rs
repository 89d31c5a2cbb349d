//! Placement of threads: the client on one core, the drive on another, in every measurement. Without it the system
//! sometimes puts two spinning threads on one core, and both make no progress for milliseconds. With several of each, pairs
//! of a drive and its client follow each other around the cores. And the processor time of a thread.

/// The client's core.
pub(crate) const CLIENT: usize = 0;
/// The drive's core.
pub(crate) const DRIVE: usize = 1;

/// Runs some work on a core.
pub(crate) fn on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            stay_on(core);
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Pins this thread to a core. If that is not possible, the system decides.
#[cfg(target_os = "linux")]
pub(crate) fn stay_on(core: usize) {
    // Measurements have called `lacks` first; other callers continue without pinning.
    let _ = nandscape_transport_reactor::pin_to_core(core);
}

/// The system decides.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stay_on(_: usize) {}

/// Runs some work of this thread on a core; afterwards it is where it was allowed to be before.
#[cfg(target_os = "linux")]
pub(crate) fn here_on<T>(core: usize, work: impl FnOnce() -> T) -> T {
    let before = rustix::thread::sched_getaffinity(None);
    stay_on(core);
    let done = work();
    if let Ok(before) = before {
        // It was allowed a moment ago.
        let _ = rustix::thread::sched_setaffinity(None, &before);
    }
    done
}

/// The cores of the drive and of the client of a pair. Of a machine with two cores, each has one of each from the second
/// pair on.
#[cfg(target_os = "linux")]
pub(crate) fn of_pair(pair: usize) -> (usize, usize) {
    let cores = nandscape_lab_ledger::machine::cores();
    // The first pairs have two cores each; the next ones are turned, so that a core has drives and clients.
    let (round, place) = (2 * pair / cores, 2 * pair % cores);
    ((place + DRIVE + round) % cores, (place + CLIENT + round) % cores)
}

/// The processor time of a thread of this process.
#[cfg(target_os = "linux")]
pub(crate) struct ThreadTime(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl ThreadTime {
    /// That of the calling thread.
    pub(crate) fn of_this() -> ThreadTime {
        let thread = rustix::thread::gettid().as_raw_nonzero();
        ThreadTime(format!("/proc/self/task/{thread}/schedstat").into())
    }

    /// Its processor time so far, as the scheduler counts it.
    pub(crate) fn now(&self) -> anyhow::Result<nandscape_sim::Span> {
        let text = std::fs::read_to_string(&self.0)?;
        let ns = text.split_whitespace().next().and_then(|field| field.parse().ok());
        let ns = ns.ok_or_else(|| anyhow::anyhow!("{}: {text:?} does not begin with a number", self.0.display()))?;
        Ok(nandscape_sim::Span::from_ns(ns))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_two_cores_and_the_time_of_a_thread_goes_on() {
        for pair in 0..8 {
            let (drive, client) = of_pair(pair);
            let cores = nandscape_lab_ledger::machine::cores();
            assert!(drive < cores && client < cores && (cores == 1 || drive != client), "pair {pair}");
        }
        let allowed = || nandscape_lab_ledger::machine::cores();
        let before = allowed();
        assert_eq!((here_on(CLIENT, allowed), allowed()), (1, before));
        assert_eq!(of_pair(0), if nandscape_lab_ledger::machine::cores() == 1 { (0, 0) } else { (DRIVE, CLIENT) });
        let time = ThreadTime::of_this();
        let before = time.now().unwrap();
        let mut sum = 0u64;
        while time.now().unwrap() == before {
            (0..10_000u64).for_each(|number| sum = std::hint::black_box(sum ^ number));
        }
    }
}
