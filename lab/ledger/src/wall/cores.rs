//! Placement of threads: the client on one core, the drive on another, in every measurement. Without it the system
//! sometimes puts two spinning threads on one core, and both make no progress for milliseconds.

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
