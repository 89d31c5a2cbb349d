//! Commands of real time, best effort and idle classes share a round: as many of each as the high, medium and low weight of
//! Arbitration. Queues whose next commands are of one of the three take turns. The others use the share of a class without
//! entries.
//!
//! Left out: priorities within real time and best effort.

use nandscape_drive::QueueId;

use super::by_key::ByKey;
use super::{Arbiter, Head, Queues};

/// See the file.
pub struct WeightedByClass {
    turn: ByKey,
    /// Commands of a round of each of the three.
    weights: [u32; 3],
    /// Commands left in this round.
    left: [u32; 3],
}

impl Default for WeightedByClass {
    fn default() -> WeightedByClass {
        WeightedByClass { turn: ByKey::default(), weights: [1; 3], left: [1; 3] }
    }
}

/// Real time, best effort, idle: 0 to 2.
fn share_of(head: Head) -> usize {
    match head.attributes.rank() {
        0..4 => 0,
        4..12 => 1,
        _ => 2,
    }
}

impl WeightedByClass {
    /// The share whose turn it is, among those with waiting commands.
    fn share(&mut self, waits: [bool; 3]) -> usize {
        let has_left = |left: &[u32; 3]| (0..3).find(|share| waits[*share] && left[*share] > 0);
        let share = has_left(&self.left).or_else(|| {
            self.left = self.weights;
            has_left(&self.left)
        });
        let share = share.expect("one of them waits, and weights are counted from one");
        self.left[share] -= 1;
        share
    }
}

impl Arbiter for WeightedByClass {
    fn next(&mut self, queues: &Queues, burst: Option<u32>) -> QueueId {
        let mut waits = [false; 3];
        let mut is_other = false;
        for id in queues.waiting().all_from(0) {
            match queues.head(id).filter(|_| id != QueueId::ADMIN) {
                Some(head) => waits[share_of(head)] = true,
                None => is_other = true,
            }
        }
        // The admin queue, and a queue whose head is not visible, belong to no share.
        let share = if is_other { 0 } else { self.share(waits) };
        self.turn.next(queues, burst, |_, head| share_of(head) != share)
    }

    fn set_weights(&mut self, weights: [u32; 3]) {
        assert!(weights.iter().all(|weight| *weight > 0), "weights are counted from one");
        (self.weights, self.left) = (weights, weights);
    }
}
