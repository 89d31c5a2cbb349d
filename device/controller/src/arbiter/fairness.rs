//! What every arbiter owes its queues, under entries that come at random: it chooses a queue that waits, and no queue waits
//! for longer than its priority class explains. `NANDSCAPE_TEST_SEED` sets the first seed; failures print theirs.

use nandscape_drive::QueueId;
use nandscape_sim::{Rng, Seed};

use super::{Arbiter, Priority, RoundRobin, Waiting, WeightedRoundRobin};

const SEEDS: u64 = 200;
const STEPS: u32 = 400;

/// Queues with entries that come at random, by number; number 0 is the admin queue.
struct Load {
    entries: Vec<u32>,
    /// How often others had a turn since each queue began to wait or had its own.
    passed_over: Vec<u32>,
}

impl Load {
    fn new(queues: usize) -> Load {
        Load { entries: vec![0; queues], passed_over: vec![0; queues] }
    }

    fn arrive(&mut self, rng: &mut Rng) {
        let at = rng.below(self.entries.len() as u64) as usize;
        self.entries[at] += rng.below(6) as u32;
    }

    fn waiting(&self) -> Vec<u16> {
        (0..).zip(&self.entries).filter(|(_, entries)| **entries > 0).map(|(id, _)| id).collect()
    }

    /// Has a turn taken; the queue whose it was. `None` when nothing waits.
    fn turn(&mut self, arbiter: &mut dyn Arbiter, burst: u32) -> Option<usize> {
        let waiting = self.waiting();
        if waiting.is_empty() {
            return None;
        }
        let id = usize::from(arbiter.next(&Waiting::of(&waiting), Some(burst)).0);
        assert!(self.entries[id] > 0, "queue {id} does not wait");
        self.entries[id] -= 1;
        waiting.iter().for_each(|other| self.passed_over[usize::from(*other)] += 1);
        self.passed_over[id] = 0;
        Some(id)
    }
}

fn each_seed(test: impl Fn(&mut Rng)) {
    let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("it is a number"));
    for seed in first..first + SEEDS {
        let test = std::panic::AssertUnwindSafe(|| test(&mut Seed::new(seed).rng()));
        assert!(std::panic::catch_unwind(test).is_ok(), "NANDSCAPE_TEST_SEED={seed} shows it at once");
    }
}

#[test]
fn round_robin_passes_no_queue_over_for_more_than_a_burst_of_each_other() {
    each_seed(|rng| {
        let (queues, burst) = (2 + rng.below(8) as usize, 1 + rng.below(5) as u32);
        let (mut load, mut arbiter) = (Load::new(queues), RoundRobin::default());
        for _ in 0..STEPS {
            load.arrive(rng);
            load.turn(&mut arbiter, burst);
            let most = (queues as u32 - 1) * burst;
            assert!(load.passed_over.iter().all(|passed| *passed <= most), "{:?}, burst {burst}", load.passed_over);
        }
    });
}

/// Admin before urgent, urgent before the others, and each of those within as many rounds as its class needs.
#[test]
fn weighted_round_robin_keeps_its_classes() {
    each_seed(|rng| {
        let (queues, burst) = (2 + rng.below(10) as usize, 1 + rng.below(5) as u32);
        let weights = [0; 3].map(|_| 1 + rng.below(6) as u32);
        let classes: Vec<usize> = (0..queues).map(|_| rng.below(4) as usize).collect();
        let (mut load, mut arbiter) = (Load::new(queues), WeightedRoundRobin::default());
        (1..queues).for_each(|id| arbiter.created(QueueId(id as u16), Priority::ALL[classes[id]]));
        arbiter.set_weights(weights);
        let of = |class: usize| (1..queues).filter(|id| classes[*id] == class).count() as u32;
        for _ in 0..STEPS {
            load.arrive(rng);
            let before = load.waiting();
            let waits = |class: usize| before.iter().any(|id| *id > 0 && classes[usize::from(*id)] == class);
            let Some(id) = load.turn(&mut arbiter, burst) else { continue };
            if before.contains(&0) || waits(0) {
                assert!(if before.contains(&0) { id == 0 } else { classes[id] == 0 }, "queue {id} came first");
                // Classes behind these wait for as long as they have entries.
                load.passed_over.fill(0);
                continue;
            }
            let round: u32 = weights.iter().sum();
            for (id, passed) in load.passed_over.iter().enumerate().skip(1) {
                let (class, others) = (classes[id], of(classes[id]).saturating_sub(1));
                let turns = others * burst + 1;
                let most = (turns.div_ceil(weights[class.max(1) - 1]) + 1) * round;
                assert!(class == 0 || *passed <= most, "queue {id} of class {class} waits for {passed} turns");
            }
        }
    });
}

#[test]
fn classes_that_always_wait_share_by_weight() {
    each_seed(|rng| {
        let weights = [0; 3].map(|_| 1 + rng.below(9) as u32);
        let mut arbiter = WeightedRoundRobin::default();
        let all = [Priority::High, Priority::Medium, Priority::Low];
        (1..).zip(all).for_each(|(id, class)| arbiter.created(QueueId(id), class));
        arbiter.set_weights(weights);
        let (rounds, mut turns) = (1 + rng.below(9) as u32, [0; 3]);
        for _ in 0..rounds * weights.iter().sum::<u32>() {
            turns[usize::from(arbiter.next(&Waiting::of(&[1, 2, 3]), Some(1 + rng.below(4) as u32)).0) - 1] += 1;
        }
        assert_eq!(turns, weights.map(|weight| weight * rounds));
    });
}
