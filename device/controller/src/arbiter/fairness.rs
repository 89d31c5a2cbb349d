//! Fairness of every arbiter under random entries: it chooses a queue that waits, and no queue waits longer than its class,
//! weight, age or length explains. `NANDSCAPE_TEST_SEED` sets the first seed; failures print their seed.

use nandscape_drive::QueueId;
use nandscape_sim::{Rng, Seed, Span, Time};
use nandscape_wire_nvme::vendor::Attributes;

use super::longest::PATIENCE;
use super::testing::Filled;
use super::{Arbiter, ArbiterKind, Priority, RoundRobin, WeightedByClass, WeightedRoundRobin};

const SEEDS: u64 = 60;
const STEPS: u32 = 400;

/// Queues with entries that come at random, by number; number 0 is the admin queue.
struct Load {
    filled: Filled,
    /// The class of each queue's commands.
    classes: Vec<u8>,
    arrivals: u64,
    /// How often others had a turn since each queue began to wait or had its own.
    passed_over: Vec<u32>,
}

impl Load {
    fn new(queues: usize) -> Load {
        let filled = Filled::new(queues as u16);
        Load { filled, classes: vec![0; queues], arrivals: 0, passed_over: vec![0; queues] }
    }

    fn of_classes(queues: usize, rng: &mut Rng) -> Load {
        Load { classes: (0..queues).map(|_| rng.below(16) as u8).collect(), ..Load::new(queues) }
    }

    fn arrive(&mut self, rng: &mut Rng) {
        let at = rng.below(self.classes.len() as u64) as usize;
        for _ in 0..rng.below(6) {
            self.arrivals += rng.below(3);
            let _ = self.filled.put(at as u16, self.classes[at], Time::from_ns(self.arrivals));
        }
    }

    fn waiting(&self) -> Vec<u16> {
        self.filled.queues.waiting().all_from(0).map(|id| id.0).collect()
    }

    fn rank(&self, id: u16) -> u8 {
        Attributes::of(self.classes[usize::from(id)], 0).rank()
    }

    /// Takes a turn and returns its queue. `None` when nothing waits.
    fn turn(&mut self, arbiter: &mut dyn Arbiter, burst: u32) -> Option<usize> {
        let waiting = self.waiting();
        if waiting.is_empty() {
            return None;
        }
        let id = arbiter.next(&self.filled.queues, Some(burst));
        assert!(waiting.contains(&id.0), "queue {id:?} does not wait");
        let _ = self.filled.fetch(id);
        waiting.iter().for_each(|other| self.passed_over[usize::from(*other)] += 1);
        self.passed_over[usize::from(id.0)] = 0;
        Some(id.0.into())
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

/// Admin before urgent, urgent before the others, and each other queue within the rounds that its class needs.
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
                // Lower classes wait while these have entries.
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
        let queues = super::testing::waiting(&[1, 2, 3]);
        let (rounds, mut turns) = (1 + rng.below(9) as u32, [0; 3]);
        for _ in 0..rounds * weights.iter().sum::<u32>() {
            turns[usize::from(arbiter.next(&queues, Some(1 + rng.below(4) as u32)).0) - 1] += 1;
        }
        assert_eq!(turns, weights.map(|weight| weight * rounds));
    });
}

/// No command is fetched while a more urgent one is the next of its queue.
#[test]
fn by_class_the_most_urgent_comes_first() {
    each_seed(|rng| {
        let (queues, burst) = (2 + rng.below(8) as usize, 1 + rng.below(5) as u32);
        let (mut load, mut arbiter) = (Load::of_classes(queues, rng), ArbiterKind::Class.arbiter());
        for _ in 0..STEPS {
            load.arrive(rng);
            let before = load.waiting();
            let Some(id) = load.turn(&mut *arbiter, burst) else { continue };
            if before.contains(&0) {
                assert_eq!(id, 0, "the admin queue comes first");
                continue;
            }
            let least = before.iter().map(|id| load.rank(*id)).min().expect("some queue waits");
            assert_eq!(load.rank(id as u16), least, "queue {id} of {before:?}");
        }
    });
}

#[test]
fn queues_of_one_class_pass_none_over_for_more_than_a_burst_of_each_other() {
    each_seed(|rng| {
        let (queues, burst) = (2 + rng.below(8) as usize, 1 + rng.below(5) as u32);
        let mut arbiter = ArbiterKind::Class.arbiter();
        let mut filled = Filled::new(queues as u16);
        let mut passed_over = vec![0; queues];
        (1..queues).for_each(|id| assert!(filled.put(id as u16, 3, Time::ZERO)));
        for _ in 0..STEPS {
            let id = arbiter.next(&filled.queues, Some(burst));
            let _ = filled.fetch(id);
            assert!(filled.put(id.0, 3, Time::ZERO));
            passed_over.iter_mut().for_each(|passed| *passed += 1);
            passed_over[usize::from(id.0)] = 0;
            let most = (queues as u32 - 2) * burst;
            assert!(passed_over[1..].iter().all(|passed| *passed <= most.max(1)), "{passed_over:?}, burst {burst}");
        }
    });
}

/// Over whole rounds, real time, best effort and idle commands that always wait have exactly their weights, however many queues each has.
#[test]
fn weighted_classes_that_always_wait_share_by_weight() {
    each_seed(|rng| {
        let weights = [0; 3].map(|_| 1 + rng.below(9) as u32);
        let mut arbiter = WeightedByClass::default();
        arbiter.set_weights(weights);
        let share = |id: usize| (id - 1) % 3;
        let classes = [[1, 4], [0, 12], [15, 15]];
        let (count, mut turns) = (4 + rng.below(7) as usize, [0; 3]);
        let mut filled = Filled::new(count as u16);
        let class_of = |id: usize| classes[share(id)][id % 2];
        (1..count).for_each(|id| assert!(filled.put(id as u16, class_of(id), Time::ZERO)));
        let rounds = 1 + rng.below(9) as u32;
        for _ in 0..rounds * weights.iter().sum::<u32>() {
            let id = arbiter.next(&filled.queues, Some(1 + rng.below(4) as u32));
            let _ = filled.fetch(id);
            assert!(filled.put(id.0, class_of(id.0.into()), Time::ZERO));
            turns[share(id.0.into())] += 1;
        }
        assert_eq!(turns, weights.map(|weight| weight * rounds));
    });
}

/// A queue waits for at most the rounds that the turns of its share take.
#[test]
fn weighted_classes_starve_nobody() {
    each_seed(|rng| {
        let (queues, burst) = (2 + rng.below(8) as usize, 1 + rng.below(5) as u32);
        let weights = [0; 3].map(|_| 1 + rng.below(6) as u32);
        let (mut load, mut arbiter) = (Load::of_classes(queues, rng), WeightedByClass::default());
        arbiter.set_weights(weights);
        let round: u32 = weights.iter().sum();
        for _ in 0..STEPS {
            load.arrive(rng);
            if load.turn(&mut arbiter, burst) == Some(0) {
                load.passed_over.fill(0);
            }
            // A turn of another share ends a burst, so that each queue of a share has at least a burst between two turns of another.
            let most = (queues as u32 * burst + 2) * round;
            assert!(load.passed_over.iter().all(|passed| *passed <= most), "{:?} of {weights:?}", load.passed_over);
        }
    });
}

#[test]
fn the_oldest_command_comes_first() {
    each_seed(|rng| {
        let (mut load, mut arbiter) = (Load::of_classes(2 + rng.below(8) as usize, rng), ArbiterKind::Oldest.arbiter());
        for _ in 0..STEPS {
            load.arrive(rng);
            if load.waiting().is_empty() {
                continue;
            }
            let heads: Vec<Time> =
                load.waiting().iter().map(|id| load.filled.queues.head(QueueId(*id)).unwrap().submitted).collect();
            let is_admin = load.waiting()[0] == 0;
            let id = arbiter.next(&load.filled.queues, Some(1 + rng.below(5) as u32));
            let (_, submitted) = load.filled.fetch(id);
            assert!(if is_admin { id.0 == 0 } else { Some(submitted) == heads.iter().copied().min() });
        }
    });
}

#[test]
fn the_command_that_is_due_first_comes_first() {
    let due = |filled: &Filled, id: u16| {
        let head = filled.queues.head(QueueId(id)).expect("it waits");
        head.submitted + head.deadline.unwrap_or(PATIENCE)
    };
    each_seed(|rng| {
        let count = 2 + rng.below(8);
        let (mut filled, mut arbiter) = (Filled::new(count as u16), ArbiterKind::Deadline.arbiter());
        let mut now = 0;
        for _ in 0..STEPS {
            let id = rng.below(count) as u16;
            for _ in 0..rng.below(6) {
                now += rng.below(3_000);
                let deadline = if rng.chance(0.3) { 0 } else { 1 + rng.below(20_000) as u32 };
                let _ = filled.put_due(id, (rng.below(16) as u8, deadline), Time::from_ns(now));
            }
            let waiting: Vec<u16> = filled.queues.waiting().all_from(0).map(|id| id.0).collect();
            let Some(first) = waiting.iter().map(|id| due(&filled, *id)).min() else { continue };
            let id = arbiter.next(&filled.queues, Some(1 + rng.below(5) as u32));
            assert!(if waiting[0] == 0 { id.0 == 0 } else { due(&filled, id.0) == first }, "{id:?} of {waiting:?}");
            let _ = filled.fetch(id);
        }
    });
}

/// Next to commands that are due soon and never end, a command without a deadline waits for its patience and no longer.
#[test]
fn a_command_without_a_deadline_does_not_starve() {
    let (mut filled, mut arbiter) = (Filled::new(3), ArbiterKind::Deadline.arbiter());
    let step = Span::from_us(100);
    assert!(filled.put(1, 0, Time::ZERO));
    let (mut fetched, mut waited) = (0, None);
    while waited.is_none() {
        let now = filled.sim.now();
        while filled.put_due(2, (0, 500), now) {}
        let id = arbiter.next(&filled.queues, Some(8));
        let (_, submitted) = filled.fetch(id);
        waited = (id.0 == 1).then(|| now - submitted);
        fetched += 1;
        assert!(fetched < 1_000, "its turn comes");
        let sim = filled.sim.clone();
        filled.executor.block_on(async move { sim.sleep(step).await }).expect("time passes");
    }
    // The queue of the others holds commands of the last 6.3 ms, which were due 500 us after they came.
    let waited = waited.expect("its turn has come");
    assert!(waited > PATIENCE - Span::from_us(500) && waited <= PATIENCE + step * 64, "{waited}");
}

/// A queue of one command, next to a queue that is always refilled, waits for its patience and no longer.
#[test]
fn the_longest_queue_comes_first_and_nobody_waits_for_longer_than_the_patience() {
    let (mut filled, mut arbiter) = (Filled::new(3), ArbiterKind::Longest.arbiter());
    let step = Span::from_us(100);
    let mut fetched = Vec::new();
    assert!(filled.put(1, 0, Time::ZERO));
    for _ in 0..200 {
        let now = filled.sim.now();
        while filled.put(2, 0, now) {}
        let id = arbiter.next(&filled.queues, Some(8));
        let (_, submitted) = filled.fetch(id);
        fetched.push((id.0, now - submitted));
        let sim = filled.sim.clone();
        filled.executor.block_on(async move { sim.sleep(step).await }).expect("time passes");
    }
    let at = fetched.iter().position(|(id, _)| *id == 1).expect("its turn comes");
    assert!(fetched[..at].iter().all(|(id, _)| *id == 2));
    assert!(fetched[at].1 > PATIENCE && fetched[at].1 <= PATIENCE + step * 64, "{}", fetched[at].1);
}
