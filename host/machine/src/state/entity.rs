//! What the machine knows of a context.

use nandscape_sim::executor::TaskId;
use nandscape_sim::{Span, Time};

use super::units::Units;
use crate::affinity::Affinity;
use crate::context::Counts;
use crate::scheduler::{Share, Ticket};
use crate::times::{Kind, Role, Times, Waits};

/// Who goes before whom.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// A hard interrupt.
    Hard,
    /// A softirq.
    Soft,
    /// A thread before all others, by priority.
    Realtime(u8),
    /// A thread that shares.
    Fair,
}

impl Class {
    pub(crate) fn is_thread(self) -> bool {
        matches!(self, Class::Realtime(_) | Class::Fair)
    }
}

/// Where a context is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Not on a processor and not waiting for one.
    Away,
    /// A thread in the run queue of a processor.
    Queued(usize),
    /// A real-time thread that waits for any processor.
    Ticket(Ticket),
    /// A thread that has a processor; an interrupt may have taken it for now.
    On(usize),
    /// An interrupt or a softirq of a processor: under way, or in line.
    Raised(usize),
}

/// See the file.
pub(crate) struct Entity {
    /// The task that is woken when something has changed.
    pub(crate) task: TaskId,
    /// Counts contexts, for the timeline.
    pub(crate) number: u64,
    pub(crate) class: Class,
    pub(crate) role: Role,
    /// Whether it is a softirq with which its processor's thread goes on.
    pub(crate) is_deferred: bool,
    pub(crate) place: Place,
    /// Whether a future waits for its work, or for the processor.
    pub(crate) asks: bool,
    /// The kind of its work, if it is a thread.
    pub(crate) kind: Kind,
    /// The cost of entering it, if it is an interrupt or a softirq.
    pub(crate) enters: Units,
    /// What is left: of the switch to it or of entering the interrupt, of loading caches, and of its work.
    pub(crate) entry: Units,
    pub(crate) cold: Units,
    pub(crate) work: Units,
    pub(crate) affinity: Affinity,
    /// The processor where it was last, and is to be next if possible.
    pub(crate) cpu: usize,
    /// Thread time of that processor's core when it left; `None` before it has run.
    pub(crate) left_core_at: Option<Span>,
    /// A core where data of its work is warm.
    pub(crate) home: Option<usize>,
    /// The processor whose run queue it was in.
    pub(crate) queue: usize,
    pub(crate) share: Share,
    /// Reasons not to give the processor to another thread.
    pub(crate) held: u32,
    /// Reasons not to let interrupts in.
    pub(crate) masked: u32,
    /// Since when it waits for a processor.
    pub(crate) ready: Time,
    pub(crate) times: Times,
    /// How long it has waited for its processor before it got its place, by who had that.
    pub(crate) waits: Waits,
    /// The sums of its processor by holder at that time.
    pub(crate) held_before: Waits,
    pub(crate) counts: Counts,
}

impl Entity {
    /// The kinds of its three phases.
    pub(crate) fn kinds(&self) -> [Kind; 3] {
        match self.class {
            Class::Hard => [Kind::Interrupt, Kind::Cold, Kind::Interrupt],
            Class::Soft => [Kind::Softirq, Kind::Cold, Kind::Softirq],
            _ if self.is_deferred => [Kind::Switch, Kind::Cold, Kind::Softirq],
            Class::Realtime(_) | Class::Fair => [Kind::Switch, Kind::Cold, self.kind],
        }
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.entry.is_zero() && self.cold.is_zero() && self.work.is_zero()
    }
}
