//! Round robin: every queue in turn, up to a burst of entries each. The admin queue takes its turn like the others.

use nandscape_drive::QueueId;

use super::{Arbiter, Queues, Waiting};
use crate::engine::QueueSet;

/// See the file.
#[derive(Default)]
pub struct RoundRobin {
    /// The queue whose turn it is, and how many entries it has had.
    current: Option<(QueueId, u32)>,
}

impl RoundRobin {
    /// The next waiting queue of a class, which has at least one.
    pub(super) fn next_of(&mut self, class: &QueueSet, waiting: &Waiting, burst: Option<u32>) -> QueueId {
        self.turn(burst, |id| class.contains(id) && waiting.contains(id), |from| waiting.first_of(class, from))
    }

    #[inline]
    fn turn(
        &mut self,
        burst: Option<u32>,
        waits: impl Fn(QueueId) -> bool,
        first_from: impl Fn(u16) -> Option<QueueId>,
    ) -> QueueId {
        if let Some((id, taken)) = self.current
            && burst.is_none_or(|burst| taken < burst)
            && waits(id)
        {
            self.current = Some((id, taken + 1));
            return id;
        }
        let after = self.current.map_or(0, |(id, _)| id.0 + 1);
        let id = first_from(after).or_else(|| first_from(0)).expect("some queue waits");
        self.current = Some((id, 1));
        id
    }
}

impl Arbiter for RoundRobin {
    #[inline]
    fn next(&mut self, queues: &Queues, burst: Option<u32>) -> QueueId {
        let waiting = queues.waiting();
        self.turn(burst, |id| waiting.contains(id), |from| waiting.first_from(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbiter::testing::waiting;

    fn turns(burst: Option<u32>, queues: &[u16], count: usize) -> Vec<u16> {
        let mut arbiter = RoundRobin::default();
        let waiting = waiting(queues);
        (0..count).map(|_| arbiter.next(&waiting, burst).0).collect()
    }

    #[test]
    fn every_queue_has_its_turn() {
        assert_eq!(turns(Some(1), &[1, 2, 5], 7), [1, 2, 5, 1, 2, 5, 1]);
        assert_eq!(turns(Some(2), &[1, 2, 5], 7), [1, 1, 2, 2, 5, 5, 1]);
        assert_eq!(turns(Some(1), &[3, 64, 130], 4), [3, 64, 130, 3]);
        assert_eq!(turns(None, &[1, 2], 3), [1, 1, 1]);
    }

    #[test]
    fn a_queue_that_has_run_dry_loses_its_turn() {
        let mut arbiter = RoundRobin::default();
        assert_eq!(arbiter.next(&waiting(&[1, 2, 3]), Some(4)).0, 1);
        assert_eq!(arbiter.next(&waiting(&[2, 3]), Some(4)).0, 2);
        assert_eq!(arbiter.next(&waiting(&[1, 2, 3]), Some(4)).0, 2);
    }
}
