//! How a client evades the tails of its gets.
//!
//! | file | what |
//! |---|---|
//! | `base` | one replica, however long it takes |
//! | `cloned` | two replicas at once, the first answer counts |
//! | `hedged` | a second replica when the first has not answered within the recent 95th percentile |
//! | `tied` | two replicas, one of which is cancelled when the other begins |
//! | `snitch` | the replica with the lowest recent latency, as in Cassandra |
//! | `c3` | the replica with the lowest score of C3 |
//! | `mitt` | a deadline for the drive: a drive that would exceed it rejects the read, and the next replica is asked |
//! | `hedged_mitt` | `hedged` and `mitt` |
//! | `deadline` | the choice of the deadline |

mod base;
mod c3;
mod cloned;
mod deadline;
mod hedged;
mod hedged_mitt;
mod mitt;
mod snitch;
mod tied;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use nandscape_sim::Span;

use crate::client::{Attempts, Ended};
pub use base::Base;
pub use c3::C3;
pub use cloned::Cloned;
pub use deadline::Deadline;
pub use hedged::Hedged;
pub use hedged_mitt::HedgedMitt;
pub use mitt::Mitt;
pub use snitch::Snitch;
pub use tied::Tied;

/// A get under way.
pub type Getting<'a> = Pin<Box<dyn Future<Output = Ended> + 'a>>;

/// How a get is tried.
pub trait Policy {
    /// Carries out a get.
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a>;

    /// A get took so long, all in all.
    fn ended(&self, _took: Span) {}

    /// The deadline that it gives drives now, in microseconds, if it gives one.
    fn deadline_us(&self) -> Option<u32> {
        None
    }
}

/// The parameters of policies.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Tuning {
    /// The deadline, and its tuning: the share of rejected tries that is wanted.
    pub deadline: Span,
    /// `None`: the deadline stays as it is.
    pub busy_share: Option<f64>,
    /// When Hedged sends its second try; `None`: after the 95th percentile of recent latencies.
    pub hedge: Option<Span>,
    /// Clients in all, for C3.
    pub clients: u32,
}

/// The names of all policies.
pub const NAMES: [&str; 9] = ["base", "cloned", "hedged", "tied", "snitch", "c3", "mitt", "mitt-wait", "hedged-mitt"];

/// The policy of a name; `None` for an unknown name.
pub fn named(name: &str, tuning: &Tuning) -> Option<Rc<dyn Policy>> {
    let deadline = || Deadline::new(tuning.deadline, tuning.busy_share);
    Some(match name {
        "base" => Rc::new(Base),
        "cloned" => Rc::new(Cloned),
        "hedged" => Rc::new(Hedged::new(tuning.hedge)),
        "tied" => Rc::new(Tied),
        "snitch" => Rc::new(Snitch::default()),
        "c3" => Rc::new(C3 { clients: tuning.clients }),
        "mitt" => Rc::new(Mitt { deadline: deadline(), waits: false }),
        "mitt-wait" => Rc::new(Mitt { deadline: deadline(), waits: true }),
        "hedged-mitt" => Rc::new(HedgedMitt { hedged: Hedged::new(tuning.hedge), deadline: deadline() }),
        _ => return None,
    })
}
