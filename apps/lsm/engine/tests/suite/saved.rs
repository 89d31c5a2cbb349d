//! The state of a drive with runs, moved from one drive to a new one: the store is present, and continues.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{SavedDrive, Ssd};
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Seed};

use crate::reference::{Map, operate};
use crate::rig::{Form, Rig};

/// Drives of a seed, and operations on each.
const DRIVES: u64 = 3;
const OPERATIONS: u64 = 1_500;

fn run(form: Form, seed: Seed) {
    let (mut rng, mut map, mut saved) = (seed.child("operations").rng(), Map::new(), None::<SavedDrive>);
    for drive in 0..DRIVES {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let rig = match saved.take() {
            None => Rig::new(&sim, form),
            Some(saved) => {
                let ssd = Ssd::restore(&sim, &Rig::profile(&form), StoreKind::Ram, Seed::new(9), saved);
                Rig::of(&sim, form, Rc::new(ssd.expect("a state of such a drive")))
            }
        };
        let ran = executor.block_on(async {
            rig.ssd.check().expect("a sound drive");
            let store = rig.open().await.unwrap();
            let all = store.scan(&[], usize::MAX).await.unwrap();
            assert!(all.into_iter().eq(map.clone()), "{form:?}: the store on drive {drive} is not the map");
            for number in 0..OPERATIONS {
                operate(&store, &mut map, &mut rng, drive * 10_000 + number).await;
            }
            store.commit().await.unwrap();
            store.settle().await.unwrap();
            rig.ssd.come_to_rest().await;
            rig.ssd.take_saved().unwrap_or_else(|problem| panic!("{form:?}: {problem}"))
        });
        saved = Some(ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}")));
    }
    // A drive with other places for runs cannot be in it.
    let other = Rig::profile(&Form {
        changes: &["ftl.kind=lsm", "lba_size=4KiB", "buffer.mode=capacitor", "ftl.lsm.runs=64"],
        ..form
    });
    let executor = Executor::new();
    let saved = saved.expect("the last one");
    assert!(Ssd::restore(&executor.sim(), &other, StoreKind::Ram, Seed::new(9), saved).is_err());
}

#[test]
fn a_store_on_runs_goes_on_from_the_state_of_another_drive() {
    each(16, |seed| run(Form::runs(&mut seed.child("form").rng()), seed));
}
