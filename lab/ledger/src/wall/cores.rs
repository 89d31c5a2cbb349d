//! Which threads run where: the client on one core, the drive on another, in every measurement alike. Left to itself the
//! system now and then puts two threads that spin on one core, and then neither gets anything done for milliseconds.

/// The client's core.
pub(crate) const CLIENT: usize = 0;
/// The drive's core.
pub(crate) const DRIVE: usize = 1;

/// Does some work on a core.
pub(crate) fn on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            stay_on(core);
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Keeps this thread on a core. Where there is none of that number, or no way to ask for it, the system decides.
#[cfg(target_os = "linux")]
pub(crate) fn stay_on(core: usize) {
    // Who measures has asked `lacks` first; others are served as well as can be.
    let _ = nandscape_transport_reactor::pin_to_core(core);
}

/// The system decides.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stay_on(_: usize) {}
