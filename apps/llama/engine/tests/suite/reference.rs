//! Random operations against a plain map, with memory for a part of the tree, and with closing and opening in
//! between.

use std::collections::BTreeMap;

use nandscape_apps_llama_engine::{Change, Error, TreeStats};
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Rng, Seed};

use crate::rig::{Form, Rig, Tree, VALUE, key, value};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys that are used.
const KEYS: u64 = 600;

async fn operate(tree: &Tree, map: &mut Map, rng: &mut Rng, version: u64) {
    let number = rng.below(KEYS);
    let (key, value) = (key(number), value(number, version, VALUE));
    match rng.below(100) {
        0..40 => {
            tree.put(&key, &value).await.unwrap();
            map.insert(key, value);
        }
        40..55 => assert_eq!(tree.delete(&key).await.unwrap(), map.remove(&key).is_some()),
        55..80 => assert_eq!(tree.get(&key).await.unwrap().as_ref(), map.get(&key)),
        80..88 => {
            let most = rng.below(60) as usize;
            let found = tree.scan(&key, most).await.unwrap();
            let right: Vec<_> = map.range(key..).take(most).map(|(key, value)| (key.clone(), value.clone())).collect();
            assert_eq!(found, right);
        }
        88..90 => batch(tree, map, rng, version).await,
        90..99 => {}
        _ => tree.commit().await.unwrap(),
    }
}

async fn batch(tree: &Tree, map: &mut Map, rng: &mut Rng, version: u64) {
    let number = rng.below(KEYS);
    let (put, gone) = (key(number), key(rng.below(KEYS)));
    let value = value(number, version, VALUE);
    let there = u64::from(map.contains_key(&put));
    map.insert(put.clone(), value.clone());
    let there = there + u64::from(map.remove(&gone).is_some());
    let both = [Change::Put(put, value), Change::Delete(gone)];
    match tree.apply(&both).await {
        Ok(found) => assert_eq!(found, there),
        // With little memory, two changes that both split pages may be too much.
        Err(Error::Batch { changes: 2, .. }) => {
            for change in both {
                tree.apply(&[change]).await.unwrap();
            }
        }
        Err(error) => panic!("{error}"),
    }
}

fn compare(form: Form, seed: Seed) -> TreeStats {
    let mut executor = Executor::with_spurious_polls();
    let sim = executor.sim();
    let rig = Rig::new(&sim, form);
    let (mut rng, mut map, mut stats) = (seed.child("operations").rng(), Map::new(), TreeStats::default());
    let ran = executor.block_on(async {
        for opening in 0..3 {
            let tree = rig.open().await.unwrap();
            for number in 0..1_200 {
                operate(&tree, &mut map, &mut rng, opening * 10_000 + number).await;
            }
            tree.commit().await.unwrap();
            let all = tree.scan(&[], usize::MAX).await.unwrap();
            assert!(all.into_iter().eq(map.clone()), "the tree is not the map");
            stats = tree.stats();
        }
    });
    ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
    stats
}

#[test]
fn a_tree_on_a_log_is_a_map() {
    let (mut splits, mut dropped) = (0, 0);
    each(30, |seed| {
        let stats = compare(Form::log(&mut seed.child("form").rng()), seed);
        splits += stats.splits;
        dropped += stats.dropped;
    });
    assert!(splits > 0 && dropped > 0, "{splits} splits, {dropped} pages dropped from memory");
}

#[test]
fn a_tree_on_pages_of_the_drive_is_a_map() {
    let mut loads = 0;
    each(30, |seed| loads += compare(Form::eleos(&mut seed.child("form").rng()), seed).loads);
    assert!(loads > 0);
}

#[test]
fn a_tree_on_chains_of_the_drive_is_a_map() {
    let mut loads = 0;
    each(30, |seed| loads += compare(Form::chains(&mut seed.child("form").rng()), seed).loads);
    assert!(loads > 0);
}
