//! The order in which commands that wait in the layer are sent to the drive.
//!
//! | file | what |
//! |---|---|
//! | `noop` | in order of arrival |
//! | `ssd` | reads before writes, and reads of idle chips first |
//! | `cfq` | classes, and in each the processes in turn |
//! | `standing` | the class and the priority of a command |

mod cfq;
mod noop;
mod ssd;
mod standing;

use nandscape_sim::{Span, Time};

pub use cfq::Cfq;
pub use noop::Noop;
pub use ssd::SsdAware;
pub use standing::{Class, Standing};

use crate::request::Request;

/// A policy. It receives the key of each waiting command, and may return the key of a command that no longer
/// waits.
pub trait Scheduler {
    /// A command waits; `chip` is that of the first page of a read, if known.
    fn push(&mut self, key: u64, request: &Request, chip: Option<u32>);

    /// The next command; `None` if none waits. `is_busy` returns whether a chip is busy.
    fn pop(&mut self, now: Time, is_busy: &dyn Fn(u32) -> bool) -> Option<u64>;

    /// Whether reads precede all other waiting commands.
    fn puts_reads_first(&self) -> bool {
        false
    }

    /// The class of a command, which precedes all waiting commands of lower classes; `None` for a scheduler
    /// without classes.
    fn class(&self, _request: &Request) -> Option<Class> {
        None
    }
}

/// The policies that a user may name.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SchedulerKind {
    /// [`Noop`].
    #[default]
    Noop,
    /// [`SsdAware`].
    Ssd,
    /// [`Cfq`].
    Cfq,
}

impl SchedulerKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, SchedulerKind); 3] =
        [("noop", SchedulerKind::Noop), ("ssd", SchedulerKind::Ssd), ("cfq", SchedulerKind::Cfq)];

    /// The name.
    pub fn name(self) -> &'static str {
        SchedulerKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// A new scheduler; `slice` is the time of a turn, if it has turns.
    pub fn make(self, slice: Span) -> Box<dyn Scheduler> {
        match self {
            SchedulerKind::Noop => Box::<Noop>::default(),
            SchedulerKind::Ssd => Box::<SsdAware>::default(),
            SchedulerKind::Cfq => Box::new(Cfq::new(slice)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    pub(super) fn request(is_read: bool) -> Request {
        let arrived = Time::from_ns(0);
        Request { is_read, slba: 0, blocks: 8, class: 0, tenant: 0, deadline: None, arrived }
    }

    #[test]
    fn each_names_all_that_waits_once() {
        for (name, kind) in SchedulerKind::ALL {
            let mut scheduler = kind.make(Span::from_ms(100));
            (0..100).for_each(|key| scheduler.push(key, &request(key % 3 == 0), Some(key as u32 % 7)));
            let mut popped: Vec<u64> =
                std::iter::from_fn(|| scheduler.pop(Time::from_ns(0), &|chip| chip < 3)).collect();
            popped.sort_unstable();
            assert_eq!(popped, (0..100).collect::<Vec<_>>(), "{name}");
        }
    }
}
