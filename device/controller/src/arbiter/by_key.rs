//! The queue whose next command has the least key. Queues with equal keys take turns, up to a burst each.
//!
//! The admin queue comes first. So does a queue whose next command is not visible yet: the fetch reads it, or requests it
//! from the host.

use nandscape_drive::QueueId;

use super::{ArbiterKind, Claim, Head, Place, Queues};

/// Chooses by least key; see the module.
#[derive(Default)]
pub(super) struct ByKey {
    /// The queue whose turn it was, and how many entries it has had.
    current: Option<(QueueId, u32)>,
}

impl ByKey {
    pub(super) fn next<K: Ord>(
        &mut self,
        queues: &Queues,
        burst: Option<u32>,
        key: impl Fn(QueueId, Head) -> K,
    ) -> QueueId {
        // The last queue continues its burst. After its burst, it has waited least.
        let going = self.current.filter(|(_, taken)| burst.is_none_or(|burst| *taken < burst));
        let from = going.map(|(id, _)| id.0).or(self.current.map(|(id, _)| id.0 + 1)).unwrap_or(0);
        let key_of = |id: &QueueId| seen(queues, *id).map(|head| key(*id, head));
        let next = queues.waiting().all_from(from).min_by_key(key_of).expect("some queue waits");
        let taken = going.filter(|(id, _)| *id == next).map_or(0, |(_, taken)| taken);
        self.current = Some((next, taken + 1));
        next
    }
}

/// The next command of a queue; `None` of the admin queue, and while it is not visible.
fn seen(queues: &Queues, id: QueueId) -> Option<Head> {
    if id == QueueId::ADMIN { None } else { queues.head(id) }
}

/// The claim of the first of the next commands; `None` if none waits. An admin command, and one that is not visible yet, is before all
/// others.
pub(super) fn claim(queues: &Queues, to: ArbiterKind, of: impl Fn(QueueId, Head) -> Place) -> Option<Claim> {
    let places = queues.waiting().all_from(0).map(|id| seen(queues, id).map_or((0, 0), |head| of(id, head)));
    places.min().map(|place| Claim { to, place })
}
