//! Which thread of a processor's run queue is next, for threads that share by weight.
//!
//! | file | what |
//! |---|---|
//! | `cfs` | the one with the least virtual runtime (Linux before 6.6) |
//! | `eevdf` | the eligible one with the earliest virtual deadline (Linux from 6.6) |
//! | `realtime` | threads that go before all of these: by priority, first come, first served |
//! | `share` | what a policy knows of a thread: weight, virtual time |

mod cfs;
mod eevdf;
mod realtime;
mod share;

use nandscape_sim::Span;
use nandscape_sim::slots::Key;

pub use cfs::Cfs;
pub use eevdf::Eevdf;
pub(crate) use realtime::{Realtime, Ticket};
pub use share::{Nice, Share};

use crate::config::Config;

/// A run queue. The thread that has the processor is not among those that wait in it, but counts.
pub trait Scheduler {
    /// A thread begins to wait: it is new, was woken, or comes from another processor. The queue sets its virtual time.
    fn join(&mut self, thread: Key, share: &mut Share);

    /// A thread that waits leaves.
    fn leave(&mut self, share: &mut Share);

    /// A thread that left this queue will join another one.
    fn moves(&self, share: &mut Share);

    /// Takes the next one, which has the processor from now on.
    fn next(&mut self) -> Option<Key>;

    /// The thread that was taken begins to run.
    fn start(&mut self, share: &mut Share);

    /// The thread that has the processor has run for so long since the last call.
    fn ran(&mut self, share: &mut Share, span: Span);

    /// The thread that has the processor leaves the queue.
    fn stop(&mut self, share: &mut Share);

    /// The thread that has the processor waits again.
    fn put_back(&mut self, thread: Key, share: &mut Share);

    /// The thread that has the processor gives its turn away. Returns the next one, which may be the same.
    fn yields(&mut self, thread: Key, share: &mut Share) -> Key;

    /// How long the thread that has the processor may run until another one has its turn; `None` if none waits.
    fn slice_left(&self, share: &Share) -> Option<Span>;

    /// Whether a thread that has just joined takes the processor from the one that has it.
    fn preempts(&self, woken: &Share, current: &Share) -> bool;

    /// How many wait.
    fn waiting(&self) -> usize;

    /// The one that would have to wait for longest, of those that may run on a processor.
    fn last(&self, may_run: &dyn Fn(Key) -> bool) -> Option<Key>;
}

/// The policies.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SchedulerKind {
    /// [`Cfs`].
    Cfs,
    /// [`Eevdf`].
    #[default]
    Eevdf,
}

impl SchedulerKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, SchedulerKind); 2] = [("cfs", SchedulerKind::Cfs), ("eevdf", SchedulerKind::Eevdf)];

    /// An empty run queue.
    pub(crate) fn make(self, config: &Config) -> Box<dyn Scheduler> {
        match self {
            SchedulerKind::Cfs => Box::new(Cfs::new(config.slice, config.latency, config.wakeup)),
            SchedulerKind::Eevdf => Box::new(Eevdf::new(config.slice)),
        }
    }
}
