//! The choice of the machine for the next turn.
//!
//! | file | what |
//! |---|---|
//! | `round_robin` | machines with work, in turn |
//! | `credit` | machines within their share first; machines that wake within it preempt (Xen's credit scheduler) |
//! | `turns` | a queue of turns that sums the turns before a machine in one step |

mod credit;
mod round_robin;
mod turns;

pub use credit::Credit;
pub use round_robin::RoundRobin;

use nandscape_sim::{Span, Time};

/// A policy. Machines are numbered from zero. `turn` is how long a machine's next turn is expected to be.
pub trait Scheduler {
    /// A machine that had no work has some. Whether it takes the core from the one that has it.
    fn wakes(&mut self, vm: usize, turn: Span, now: Time) -> bool;

    /// A machine's turn is over, and it has work left.
    fn waits(&mut self, vm: usize, turn: Span, now: Time);

    /// The machine with the next turn.
    fn next(&mut self, now: Time) -> Option<usize>;

    /// A machine has had the core for so long.
    fn ran(&mut self, vm: usize, span: Span, now: Time);

    /// The turns before that of a machine that waits or would wake now, without the current turn; `None` if it
    /// preempts the current turn. The work does not depend on the number of machines.
    fn ahead(&self, vm: usize, now: Time) -> Option<Span>;

    /// All turns that wait, of machines other than this one.
    fn others(&self, vm: usize) -> Span;
}

/// The policies.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SchedulerKind {
    /// [`RoundRobin`].
    RoundRobin,
    /// [`Credit`].
    Credit,
}

impl SchedulerKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, SchedulerKind); 2] =
        [("round-robin", SchedulerKind::RoundRobin), ("credit", SchedulerKind::Credit)];

    /// A scheduler of a number of machines.
    pub fn make(self, machines: usize) -> Box<dyn Scheduler> {
        match self {
            SchedulerKind::RoundRobin => Box::new(RoundRobin::new(machines)),
            SchedulerKind::Credit => Box::new(Credit::new(machines)),
        }
    }
}
