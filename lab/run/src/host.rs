//! The cost of a run on this machine. The only place in the lab that reads a clock.
//!
//! CPU time and resident set are absent on systems where this program cannot query them.

use std::time::Instant;

use nandscape_sim::Span;

/// A moment on the machine's clocks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moment {
    wall: Instant,
    cpu_ns: Option<i64>,
}

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "measures the machine, not the model")]
    pub(crate) fn now() -> Moment {
        Moment { wall: Instant::now(), cpu_ns: cpu_ns() }
    }

    /// Wall-clock seconds since `earlier`.
    pub(crate) fn wall_s_since(&self, earlier: Moment) -> f64 {
        (self.wall - earlier.wall).as_secs_f64()
    }

    /// CPU seconds of the whole process since `earlier`.
    pub(crate) fn cpu_s_since(&self, earlier: Moment) -> Option<f64> {
        Some((self.cpu_ns? - earlier.cpu_ns?) as f64 / 1e9)
    }
}

/// CPU time of the process so far, all threads; zero where the system does not report it.
pub fn process_cpu() -> Span {
    Span::from_ns(cpu_ns().unwrap_or_default().max(0) as u64)
}

/// CPU time of the calling thread so far.
#[cfg(target_os = "linux")]
pub(crate) fn thread_cpu() -> Span {
    use nix::time::{ClockId, clock_gettime};
    let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    cpu.map_or(Span::ZERO, |cpu| Span::from_ns(cpu.tv_sec() as u64 * 1_000_000_000 + cpu.tv_nsec() as u64))
}

#[cfg(unix)]
fn cpu_ns() -> Option<i64> {
    use nix::time::{ClockId, clock_gettime};
    let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?;
    Some(cpu.tv_sec() * 1_000_000_000 + cpu.tv_nsec())
}

#[cfg(not(unix))]
fn cpu_ns() -> Option<i64> {
    None
}

/// The largest resident set of the process so far, in bytes.
#[cfg(unix)]
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    use nix::sys::resource::{UsageWho, getrusage};
    // Apple's systems count in bytes, Linux and the BSDs in KiB.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1_024 };
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(usage.max_rss() as u64 * unit)
}

#[cfg(not(unix))]
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    None
}
