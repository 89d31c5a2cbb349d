//! Round robin: every queue in turn, up to a burst of entries each. The admin queue takes its turn like the others.

use nandscape_drive::QueueId;

use super::Arbiter;

/// See the file.
#[derive(Default)]
pub struct RoundRobin {
    /// The queue whose turn it is, and how many entries it has had.
    current: Option<(QueueId, u32)>,
}

impl Arbiter for RoundRobin {
    fn next(&mut self, waiting: &[QueueId], burst: Option<u32>) -> QueueId {
        if let Some((id, taken)) = self.current
            && burst.is_none_or(|burst| taken < burst)
            && waiting.binary_search(&id).is_ok()
        {
            self.current = Some((id, taken + 1));
            return id;
        }
        let last = self.current.map(|(id, _)| id);
        let after = waiting.iter().find(|id| last.is_none_or(|last| **id > last));
        let id = *after.unwrap_or(&waiting[0]);
        self.current = Some((id, 1));
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(burst: Option<u32>, waiting: &[u16], count: usize) -> Vec<u16> {
        let mut arbiter = RoundRobin::default();
        let waiting: Vec<QueueId> = waiting.iter().copied().map(QueueId).collect();
        (0..count).map(|_| arbiter.next(&waiting, burst).0).collect()
    }

    #[test]
    fn every_queue_has_its_turn() {
        assert_eq!(turns(Some(1), &[1, 2, 5], 7), [1, 2, 5, 1, 2, 5, 1]);
        assert_eq!(turns(Some(2), &[1, 2, 5], 7), [1, 1, 2, 2, 5, 5, 1]);
        assert_eq!(turns(None, &[1, 2], 3), [1, 1, 1]);
    }

    #[test]
    fn a_queue_that_has_run_dry_loses_its_turn() {
        let mut arbiter = RoundRobin::default();
        let queues = [1, 2, 3].map(QueueId);
        assert_eq!(arbiter.next(&queues, Some(4)).0, 1);
        assert_eq!(arbiter.next(&queues[1..], Some(4)).0, 2);
        assert_eq!(arbiter.next(&queues, Some(4)).0, 2);
    }
}
