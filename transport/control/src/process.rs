//! What this process costs the machine. The only place here that reads processor time.

use rustix::time::{ClockId, clock_gettime};

/// Processor time of the process so far, in seconds: of all its threads, those of drives, of connections and of clients in the same
/// process.
pub(crate) fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
