//! File descriptors: a client takes one, and the default limit of a process is low.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Clients at a time over all drives of a listener, where there are descriptors for them.
const CLIENTS: u64 = 1_024;
/// Descriptors for everything but clients: files, listening sockets, clients of the control socket and of metrics.
const OTHERS: u64 = 160;

/// Raises the limit to what the system allows; the number of clients that each of `listeners` can accept.
pub(crate) fn clients_each(listeners: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(u64::MAX, |hard| hard);
    // If the system refuses, the limit stays as it was.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).is_ok();
    let have = if raised { most } else { limit.current.unwrap_or(u64::MAX) };
    let each = have.saturating_sub(OTHERS) / listeners.max(1) as u64;
    each.clamp(1, CLIENTS) as usize
}
