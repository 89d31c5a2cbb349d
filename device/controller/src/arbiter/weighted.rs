//! Weighted round robin with an urgent class (Base 3.4.4.3): the admin queue first, then queues of urgent priority, then the
//! classes high, medium and low, each for as many commands a round as its weight. Within a class, round robin.

use nandscape_drive::QueueId;

use super::{Arbiter, Priority, Queues, RoundRobin, Waiting};
use crate::engine::QueueSet;

/// See the file.
pub struct WeightedRoundRobin {
    /// The classes urgent, high, medium and low.
    classes: [Class; 4],
    /// Commands of a round of the classes high, medium and low.
    weights: [u32; 3],
    /// Commands left in this round.
    left: [u32; 3],
}

/// The queues of a class, and whose turn it is.
#[derive(Default)]
struct Class {
    queues: QueueSet,
    turn: RoundRobin,
}

impl Class {
    /// The next of its queues that wait, if one does.
    fn next(&mut self, waiting: &Waiting, burst: Option<u32>) -> Option<QueueId> {
        waiting.has_of(&self.queues).then(|| self.turn.next_of(&self.queues, waiting, burst))
    }
}

impl Default for WeightedRoundRobin {
    fn default() -> WeightedRoundRobin {
        WeightedRoundRobin { classes: Default::default(), weights: [1; 3], left: [1; 3] }
    }
}

impl Arbiter for WeightedRoundRobin {
    fn next(&mut self, queues: &Queues, burst: Option<u32>) -> QueueId {
        let waiting = queues.waiting();
        if waiting.contains(QueueId::ADMIN) {
            return QueueId::ADMIN;
        }
        let [urgent, weighted @ ..] = &mut self.classes;
        if let Some(id) = urgent.next(waiting, burst) {
            return id;
        }
        loop {
            for (class, left) in weighted.iter_mut().zip(&mut self.left) {
                if *left > 0
                    && let Some(id) = class.next(waiting, burst)
                {
                    *left -= 1;
                    return id;
                }
            }
            if !weighted.iter().any(|class| waiting.has_of(&class.queues)) {
                // A queue that was created without a priority: zero is urgent.
                let id = waiting.first_from(0).expect("some queue waits");
                self.created(id, Priority::Urgent);
                return id;
            }
            self.left = self.weights;
        }
    }

    fn created(&mut self, id: QueueId, priority: Priority) {
        self.classes.iter_mut().for_each(|class| class.queues.remove(id));
        self.classes[priority as usize].queues.insert(id);
    }

    fn set_weights(&mut self, weights: [u32; 3]) {
        assert!(weights.iter().all(|weight| *weight > 0), "weights are counted from one");
        (self.weights, self.left) = (weights, weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbiter::testing::waiting;

    /// Queues 1 and 2 are urgent, 3 high, 4 and 5 medium, 6 low.
    fn arbiter() -> WeightedRoundRobin {
        let mut arbiter = WeightedRoundRobin::default();
        let classes = [Priority::Urgent, Priority::Urgent, Priority::High, Priority::Medium, Priority::Medium];
        for (id, priority) in (1..).zip(classes.into_iter().chain([Priority::Low])) {
            arbiter.created(QueueId(id), priority);
        }
        arbiter.set_weights([3, 2, 1]);
        arbiter
    }

    fn turns(arbiter: &mut WeightedRoundRobin, burst: u32, queues: &[u16], count: usize) -> Vec<u16> {
        (0..count).map(|_| arbiter.next(&waiting(queues), Some(burst)).0).collect()
    }

    #[test]
    fn admin_comes_before_urgent_and_urgent_before_all() {
        assert_eq!(turns(&mut arbiter(), 1, &[0, 1, 3], 2), [0, 0]);
        assert_eq!(turns(&mut arbiter(), 1, &[1, 2, 3], 3), [1, 2, 1]);
    }

    #[test]
    fn classes_share_a_round_by_weight() {
        assert_eq!(turns(&mut arbiter(), 1, &[3, 4, 5, 6], 12), [3, 3, 3, 4, 5, 6, 3, 3, 3, 4, 5, 6]);
        // A class without entries loses its turn, and a burst holds within a class.
        assert_eq!(turns(&mut arbiter(), 2, &[4, 5, 6], 6), [4, 4, 6, 5, 5, 6]);
    }

    #[test]
    fn a_queue_without_a_priority_is_urgent() {
        let mut arbiter = arbiter();
        assert_eq!(turns(&mut arbiter, 1, &[7], 1), [7]);
        assert_eq!(turns(&mut arbiter, 1, &[3, 7], 2), [7, 7]);
    }

    #[test]
    fn a_queue_that_is_created_again_changes_its_class() {
        let mut arbiter = arbiter();
        arbiter.created(QueueId(6), Priority::Urgent);
        assert_eq!(turns(&mut arbiter, 1, &[3, 6], 3), [6, 6, 6]);
    }
}
