//! Small items, which share records: over crashes, lost drives and evictions, with sizes and limits that have items move between their bucket and
//! a record of their own.

use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, Placement};
use nandscape_apps_store::testing::Disk;
use nandscape_lab_crash::each;
use nandscape_sim::{Rng, Seed};

use crate::client::{NOW_S, SMALL};
use crate::crash::{History, live, live_as, live_until, live_without, open_only};

/// The limits of small items: values have up to 2,000 bytes, and some more.
const LIMITS: [u64; 4] = [0, 200, 400, 600];
const KEYS: u64 = 200;
const CONFIG: Config = Config { memory: 1 << 20, small: 600, ..SMALL };

fn small_disks(placement: Placement) -> Vec<Rc<Disk>> {
    let count = if placement == Placement::Parity { 3 } else { 2 };
    (0..count).map(|_| Disk::new(1_200 << 10)).collect()
}

fn placement(rng: &mut Rng) -> Placement {
    [Placement::Copies, Placement::Parity][rng.below(2) as usize]
}

/// A limit for a life of a store.
fn limited(config: Config, rng: &mut Rng) -> Config {
    Config { small: LIMITS[rng.below(LIMITS.len() as u64) as usize], ..config }
}

#[test]
fn what_was_flushed_is_there_after_a_crash_and_nothing_older() {
    let mut moved = 0;
    each(24, |seed| {
        let mut rng = seed.child("config").rng();
        let policy = ["mixed", "epochs", "rails"][rng.below(3) as usize];
        let placement = placement(&mut rng);
        let disks = small_disks(placement);
        let ack = [Ack::Cache, Ack::One, Ack::All][rng.below(3) as usize];
        let config = Config { start_s: NOW_S, ack, placement, ..CONFIG };
        let history = Rc::new(History::of(KEYS));
        for life in 0..5 {
            moved += live(&disks, &history, (policy, limited(config, &mut rng)), seed.nth(life)).0;
        }
    });
    assert!(moved > 0, "no segment with items was given up");
}

#[test]
fn a_crash_at_every_third_command_loses_nothing() {
    for placement in [Placement::Copies, Placement::Parity] {
        let (seed, mut rng) = (Seed::new(1), Seed::new(2).rng());
        for command in (1..=150).step_by(6) {
            let disks = small_disks(placement);
            let config = Config { start_s: NOW_S, ack: Ack::All, placement, ..CONFIG };
            let history = Rc::new(History::of(KEYS));
            live_until(command, &disks, &history, ("epochs", config), seed);
            live(&disks, &history, ("epochs", limited(config, &mut rng)), seed.nth(command));
            live_until(command, &disks, &history, ("mixed", limited(config, &mut rng)), seed);
            open_only(&disks, ("mixed", config), seed);
            live(&disks, &history, ("mixed", limited(config, &mut rng)), seed.nth(command));
        }
    }
}

#[test]
fn a_drive_that_was_missing_is_rebuilt_and_not_believed() {
    each(8, |seed| {
        let mut rng = seed.child("missing").rng();
        let placement = placement(&mut rng);
        let disks = small_disks(placement);
        let policy = ["mixed", "epochs", "rails"][rng.below(3) as usize];
        let config = Config { start_s: NOW_S, ack: Ack::All, placement, ..CONFIG };
        let history = Rc::new(History::of(KEYS));
        for life in 0..6 {
            let seed = seed.nth(life);
            let missing = (life % 2 == 1).then(|| rng.below(disks.len() as u64) as usize);
            if missing.is_none() && rng.chance(0.4) {
                live_as((None, false), &disks, &history, (policy, config), seed.child("cut"));
            }
            live_without(missing, &disks, &history, (policy, limited(config, &mut rng)), seed);
        }
    });
}

/// More items than room: whole buckets leave, and items of full buckets.
#[test]
fn what_was_evicted_does_not_return_older_or_after_a_delete() {
    let mut evicted = 0;
    each(10, |seed| {
        let mut rng = seed.child("config").rng();
        let placement = placement(&mut rng);
        let disks = small_disks(placement);
        let config = Config { start_s: NOW_S, memory: 384 << 10, placement, ..CONFIG };
        let history = Rc::new(History::evicting(1_200));
        for life in 0..6 {
            evicted += live(&disks, &history, ("epochs", limited(config, &mut rng)), seed.nth(life)).1;
        }
    });
    assert!(evicted > 0, "nothing was evicted");
}
