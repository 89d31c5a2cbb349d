//! The state of a drive with zones, saved and restored to a new drive: the new drive has the same zones and data, except that
//! open zones are closed as after a loss of power, and continues like the model. On many seeds.

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{SavedDrive, Ssd};
use nandscape_drive::QueueId;
use nandscape_sim::{Executor, Seed, Sim};

use crate::campaign::{compare, step};
use crate::model::Model;
use crate::rig::{Queue, Rig, profile};

/// Commands between two drives, and drives of a seed.
const COMMANDS: u32 = 40;
const DRIVES: u32 = 4;
const SEEDS: u64 = 12;
const MOST_EVENTS: u64 = 20_000_000;

fn drive(sim: &Sim, changes: &[&str], saved: Option<SavedDrive>) -> Rig {
    let Some(saved) = saved else { return Rig::new(sim, changes) };
    let ssd =
        Ssd::restore(sim, &profile(changes), StoreKind::Ram, Seed::new(3), saved).expect("a state of such a drive");
    let host = Queue::new(sim, &ssd, QueueId(1), 64);
    Rig { sim: sim.clone(), ssd, host }
}

fn run(seed: u64, changes: &[&str]) {
    let mut rng = Seed::new(seed).child("zones").rng();
    let (mut model, mut stamp, mut saved) = (Model::new(), 1, None);
    for number in 0..DRIVES {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let rig = drive(&sim, changes, saved.take());
        let work = async {
            rig.ssd.check().unwrap_or_else(|problem| panic!("seed {seed}, drive {number} at its start: {problem}"));
            compare(&rig, &model).await;
            for _ in 0..COMMANDS {
                step(&rig, &mut model, &mut rng, &mut stamp).await;
            }
            rig.ssd.come_to_rest().await;
            rig.ssd.take_saved().unwrap_or_else(|problem| panic!("seed {seed}, drive {number}: {problem}"))
        };
        let state = executor.block_on_within(work, MOST_EVENTS);
        saved = Some(state.unwrap_or_else(|_| panic!("seed {seed}, drive {number} does not end")));
        model.close_open();
    }
}

#[test]
fn a_drive_goes_on_from_the_state_of_another() {
    let each = |changes: &[&str]| (1..=SEEDS).for_each(|seed| run(seed, changes));
    each(&["ftl.zone.mapping=superblock"]);
    each(&["ftl.zone.mapping=plane_group", "ftl.zone.depth=2"]);
    each(&["ftl.zone.mapping=dies", "ftl.zone.depth=4"]);
    each(&["ftl.zone.finish_pads=false"]);
}

#[test]
fn a_drive_with_failing_flash_goes_on_too() {
    let faults = "faults=[\"fail program probability=0.003\", \"fail erase probability=0.01\"]";
    (1..=SEEDS).for_each(|seed| run(seed, &["ftl.over_provisioning=400%", faults]));
}
