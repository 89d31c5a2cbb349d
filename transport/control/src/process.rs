//! The processor time of this process. The only place here that reads it.

use rustix::time::{ClockId, clock_gettime};

/// Processor time of the process so far, in seconds, of all its threads: of drives, connections, and clients in the
/// same process.
pub(crate) fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
