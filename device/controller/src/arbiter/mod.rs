//! Whose turn it is when several submission queues have entries (Base 3.4.4). An arbiter sees which queues have entries, how many, the
//! class, tenant, deadline and time of the first of each, and the clock.
//!
//! | file | next is |
//! |---|---|
//! | `round_robin` | every queue in turn |
//! | `weighted` | queues of priority classes, each class by its weight, as NVMe has it |
//! | `class` | the most urgent class of command |
//! | `class_weighted` | real time, best effort and idle commands, each by its weight |
//! | `oldest` | the command that was submitted first |
//! | `longest` | the queue with most entries |
//! | `deadline` | the command that is due first |
//! | `by_key` | what the last five share |

mod by_key;
mod class;
mod class_weighted;
mod deadline;
#[cfg(test)]
mod fairness;
mod longest;
mod oldest;
mod round_robin;
#[cfg(test)]
mod testing;
mod weighted;

use nandscape_drive::QueueId;
use nandscape_wire_nvme::vendor::arbiter;

pub use crate::engine::{Head, Queues, Waiting};
pub use class::ByClass;
pub use class_weighted::WeightedByClass;
pub use deadline::EarliestDeadline;
pub use longest::LongestFirst;
pub use oldest::OldestFirst;
pub use round_robin::RoundRobin;
pub use weighted::WeightedRoundRobin;

/// Chooses the queue from which the next entry is fetched.
pub trait Arbiter {
    /// The next queue among those that wait, at least one. `burst` is the maximum of entries fetched from one queue in a row;
    /// `None` is no limit.
    fn next(&mut self, queues: &Queues, burst: Option<u32>) -> QueueId;

    /// How urgent the most urgent command is, for an arbiter that compares commands. A drive's command slots go to the controllers
    /// that wait for one by it; without it, controllers take turns.
    fn claim(&self, _queues: &Queues) -> Option<Claim> {
        None
    }

    /// A submission queue was created with a priority (QPRIO), which an arbiter without priorities ignores.
    fn created(&mut self, _id: QueueId, _priority: Priority) {}

    /// The commands of a round of the high, medium and low priority class, for an arbiter that has such classes.
    fn set_weights(&mut self, _weights: [u32; 3]) {}
}

/// A command's place among those that wait: the least is first.
type Place = (u64, u64);

/// How urgent a command is to an arbiter. Claims to different arbiters do not compare.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    to: ArbiterKind,
    place: Place,
}

impl Claim {
    /// Whether its command comes before that of another claim.
    pub(crate) fn precedes(self, other: Claim) -> bool {
        self.compares_with(other) && self.place < other.place
    }

    /// Whether both are claims to the same kind of arbiter.
    pub(crate) fn compares_with(self, other: Claim) -> bool {
        self.to == other.to
    }
}

/// The arbiters that a drive or a host can choose by name. Weighted round robin is chosen by CC.AMS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ArbiterKind {
    /// [`RoundRobin`].
    RoundRobin,
    /// [`ByClass`].
    Class,
    /// [`WeightedByClass`].
    ClassWeighted,
    /// [`OldestFirst`].
    Oldest,
    /// [`LongestFirst`].
    Longest,
    /// [`EarliestDeadline`].
    Deadline,
}

impl ArbiterKind {
    /// All, by their names in profiles.
    pub const ALL: [(&str, ArbiterKind); 6] = [
        ("round_robin", ArbiterKind::RoundRobin),
        ("class", ArbiterKind::Class),
        ("class_weighted", ArbiterKind::ClassWeighted),
        ("oldest", ArbiterKind::Oldest),
        ("longest", ArbiterKind::Longest),
        ("deadline", ArbiterKind::Deadline),
    ];

    /// The one that a value of the feature [`ARBITER`](nandscape_wire_nvme::vendor::ARBITER) names.
    pub(crate) fn of_feature(value: u32) -> Option<ArbiterKind> {
        match value {
            arbiter::ROUND_ROBIN => Some(ArbiterKind::RoundRobin),
            arbiter::CLASS => Some(ArbiterKind::Class),
            arbiter::CLASS_WEIGHTED => Some(ArbiterKind::ClassWeighted),
            arbiter::OLDEST => Some(ArbiterKind::Oldest),
            arbiter::LONGEST => Some(ArbiterKind::Longest),
            arbiter::DEADLINE => Some(ArbiterKind::Deadline),
            _ => None,
        }
    }

    /// A new one.
    pub(crate) fn arbiter(self) -> Box<dyn Arbiter> {
        match self {
            ArbiterKind::RoundRobin => Box::new(RoundRobin::default()),
            ArbiterKind::Class => Box::new(ByClass::default()),
            ArbiterKind::ClassWeighted => Box::new(WeightedByClass::default()),
            ArbiterKind::Oldest => Box::new(OldestFirst::default()),
            ArbiterKind::Longest => Box::new(LongestFirst::default()),
            ArbiterKind::Deadline => Box::new(EarliestDeadline::default()),
        }
    }
}

/// The priority class of a submission queue (QPRIO, Base 5.2.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Priority {
    /// Before all others but the admin queue.
    Urgent,
    /// The class of the first weight.
    High,
    /// The class of the second weight.
    Medium,
    /// The class of the third weight.
    Low,
}

impl Priority {
    /// All, by the values of the field.
    pub(crate) const ALL: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Medium, Priority::Low];
}
