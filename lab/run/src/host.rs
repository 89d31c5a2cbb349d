//! What a run costs the machine it runs on. The only place in the lab that looks at a clock.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// A moment on the machine's clocks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moment {
    wall: Instant,
    cpu_ns: i64,
}

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "measures the machine, not the model")]
    pub(crate) fn now() -> Moment {
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("every Unix has the clock");
        Moment { wall: Instant::now(), cpu_ns: cpu.tv_sec() * 1_000_000_000 + cpu.tv_nsec() }
    }

    /// Wall-clock seconds since `earlier`.
    pub(crate) fn wall_s_since(&self, earlier: Moment) -> f64 {
        (self.wall - earlier.wall).as_secs_f64()
    }

    /// CPU seconds of the whole process since `earlier`.
    pub(crate) fn cpu_s_since(&self, earlier: Moment) -> f64 {
        (self.cpu_ns - earlier.cpu_ns) as f64 / 1e9
    }
}

/// The largest resident set of the process so far, in bytes.
pub(crate) fn peak_rss_bytes() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the call has no failure for oneself");
    // Linux counts in KiB.
    usage.max_rss() as u64 * 1_024
}
