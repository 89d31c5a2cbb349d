//! Crashes of arrays drawn from a seed: any level, journal, write buffer and technique, with deallocated ranges among
//! the writes, a spare that takes over, members that die or reconnect stale, and a scrub during the load.
//!
//! `NANDSCAPE_TEST_SEEDS` sets the number of seeds, `NANDSCAPE_TEST_SEED` the first.

use nandscape_sim::{Rng, Seed};

use crate::crash::{Case, Crashes, Fate};
use crate::rig::{queue, seed, shape, ssd};

#[derive(Debug)]
struct Draw {
    word: &'static str,
    journal: &'static str,
    buffer: &'static str,
    technique: &'static str,
    spares: u64,
    fate: Fate,
    scrubs: bool,
    ranges: f64,
}

fn one<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

impl Draw {
    fn new(rng: &mut Rng) -> Draw {
        let journal = one(rng, &["intent", "data"]);
        let fates = [Fate::Well, Fate::DiesBefore, Fate::StaysAway, Fate::LostWithIt];
        // With marks alone, an array with parity that loses a member together with a crash is refused.
        let fates = if journal == "data" { &fates[..] } else { &fates[..3] };
        Draw {
            word: one(rng, &["raid1:2", "raid1:3", "raid5:3", "raid5:4", "raid6:4", "raid6:5", "raid10:4"]),
            journal,
            buffer: one(rng, &["capacitor", "volatile"]),
            technique: one(rng, &["base", "harmonia", "tea2", "teafa", "proactive", "speculative"]),
            spares: rng.below(2),
            fate: one(rng, fates),
            scrubs: rng.chance(0.3),
            ranges: one(rng, &[0.0, 0.1, 0.3]),
        }
    }
}

fn crashes(seed: u64) {
    let draw = Draw::new(&mut Seed::new(seed).child("hardships").rng());
    let (mut executor, mut case, mut load) =
        Case::new((draw.word, draw.journal, draw.buffer), seed, "hardships of the load");
    case.settings.push(format!("array.technique={}", draw.technique));
    let members = shape(draw.word).members;
    for number in 0..draw.spares {
        let spare = ssd(&case.sim, &[&format!("buffer.mode={}", draw.buffer)], seed * 100 + members as u64 + number);
        case.below.push(queue(&case.sim, &spare, 1));
        case.ssds.push(spare);
    }
    std::rc::Rc::get_mut(&mut load).expect("it has not begun").ranges = draw.ranges;
    let subject = Crashes { case, load, fate: draw.fate, scrubs: draw.scrubs, has_spares: true };
    let restarts = subject.run(&mut executor, 3).unwrap_or_else(|failure| panic!("seed {seed}, {draw:?}: {failure}"));
    assert_eq!(restarts, 3);
}

#[test]
fn nothing_acknowledged_is_lost_whatever_comes_together() {
    let count = std::env::var("NANDSCAPE_TEST_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let mut failed = Vec::new();
    for seed in seed()..seed() + count {
        if let Err(panic) = std::panic::catch_unwind(|| crashes(seed)) {
            let told = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            failed.push(format!("seed {seed}: {told}"));
        }
    }
    assert!(failed.is_empty(), "{} of {count} seeds fail:\n{}", failed.len(), failed.join("\n"));
}
