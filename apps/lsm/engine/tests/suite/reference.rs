//! Random operations against a plain map, with levels that fill, and with closing and opening in
//! between.

use std::collections::BTreeMap;

use nandscape_apps_lsm_engine::{Change, Stats};
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Rng, Seed};

use crate::rig::{Form, Rig, Store, key, value};

pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys that are used, and the longest value.
const KEYS: u64 = 3_000;
const VALUE: u64 = 600;

/// An operation on a store and on a map, which give the same.
pub(crate) async fn operate(store: &Store, map: &mut Map, rng: &mut Rng, version: u64) {
    let number = rng.below(KEYS);
    let (key, value) = (key(number), value(number, version, VALUE));
    match rng.below(100) {
        0..45 => {
            store.put(&key, &value).await.unwrap();
            map.insert(key, value);
        }
        45..58 => {
            store.delete(&key).await.unwrap();
            map.remove(&key);
        }
        58..80 => assert_eq!(store.get(&key).await.unwrap().as_ref(), map.get(&key)),
        80..84 => {
            let most = rng.below(400) as usize;
            let found = store.scan(&key, most).await.unwrap();
            let right: Vec<_> = map.range(key..).take(most).map(|(key, value)| (key.clone(), value.clone())).collect();
            assert_eq!(found, right);
        }
        84..90 => {
            let other = crate::rig::key(rng.below(KEYS));
            store.apply(&[Change::Put(key.clone(), value.clone()), Change::Delete(other.clone())]).await.unwrap();
            map.insert(key, value);
            map.remove(&other);
        }
        90..97 => {}
        97..99 => store.commit().await.unwrap(),
        _ => store.settle().await.unwrap(),
    }
}

fn compare(form: Form, seed: Seed) -> Stats {
    let mut executor = Executor::with_spurious_polls();
    let sim = executor.sim();
    let rig = Rig::new(&sim, form);
    let (mut rng, mut map, mut stats) = (seed.child("operations").rng(), Map::new(), Stats::default());
    let ran = executor.block_on(async {
        for opening in 0..3 {
            let store = rig.open().await.unwrap();
            for number in 0..3_000 {
                operate(&store, &mut map, &mut rng, opening * 10_000 + number).await;
            }
            store.commit().await.unwrap();
            let all = store.scan(&[], usize::MAX).await.unwrap();
            assert!(all.into_iter().eq(map.clone()), "the store is not the map");
            store.check().expect("sound levels");
            stats = store.stats();
            rig.ssd.check().expect("a sound drive");
            store.settle().await.unwrap();
        }
    });
    ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
    stats
}

/// The deepest level that has runs.
fn depth(stats: &Stats) -> usize {
    stats.runs.iter().rposition(|runs| *runs > 0).unwrap_or(0)
}

#[test]
fn a_store_on_a_drive_is_a_map() {
    let (mut depths, mut merges) = (0, 0);
    each(24, |seed| {
        let stats = compare(Form::block(&mut seed.child("form").rng()), seed);
        depths = depths.max(depth(&stats));
        merges += stats.merges;
    });
    assert!(depths >= 2 && merges > 0, "level {depths} was reached, with {merges} merges");
}

#[test]
fn a_store_on_runs_of_the_drive_is_a_map() {
    let (mut depths, mut merges) = (0, 0);
    each(24, |seed| {
        let stats = compare(Form::runs(&mut seed.child("form").rng()), seed);
        depths = depths.max(depth(&stats));
        merges += stats.merges;
    });
    assert!(depths >= 2 && merges > 0, "level {depths} was reached, with {merges} merges");
}
