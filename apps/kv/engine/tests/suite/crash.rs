//! Servers are killed and restarted, one at a time, while clients put and get. Acknowledged values survive.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_kv_engine::Client;
use nandscape_apps_kv_engine::client::ClientConfig;
use nandscape_apps_kv_engine::policy::NAMES;
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Rng, Span};

use crate::cluster::{Cluster, key, policy, value};

/// By key: the number of the last acknowledged put, and of the last that was begun.
type Model = RefCell<BTreeMap<u64, (u64, u64)>>;

async fn lane(client: Rc<Client>, model: Rc<Model>, mut rng: Rng, lane: u64, puts: Rc<Cell<u64>>) {
    for version in 1.. {
        let number = lane * 1_000 + rng.below(15);
        if rng.chance(0.5) {
            model.borrow_mut().entry(number).or_default().1 = version;
            if client.put(&key(number), &value(number, version)).await.is_ok() {
                model.borrow_mut().entry(number).or_default().0 = version;
                puts.set(puts.get() + 1);
            }
        } else if let Ok(Some(found)) = client.get(&key(number)).await {
            // Perhaps an older one, but whole.
            let last = model.borrow().get(&number).map_or(0, |known| known.1);
            assert!((1..=last).any(|version| found.value == value(number, version)), "key {number}");
        }
    }
}

#[test]
fn what_a_majority_has_outlasts_the_death_of_any_one_server() {
    let total = Rc::new(Cell::new(0));
    each(4, |seed| {
        let mut executor = Executor::new();
        let (sim, mut rng) = (executor.sim(), seed.rng());
        let run = async {
            let cluster = Cluster::new(&sim, 4).await;
            let model: Rc<Model> = Rc::default();
            let client = |number: u16, name: &str| {
                Rc::new(cluster.client(policy(name), ClientConfig { number, ..ClientConfig::default() }))
            };
            for number in 0..4 {
                let name = NAMES[rng.below(NAMES.len() as u64) as usize];
                let seed = seed.nth(number).rng();
                sim.spawn(lane(client(number as u16, name), model.clone(), seed, number, total.clone()));
            }
            for _ in 0..5 {
                sim.sleep(Span::from_us(rng.below(150_000))).await;
                let victim = rng.below(4) as usize;
                cluster.kill(victim, &mut rng);
                sim.sleep(Span::from_us(rng.below(300_000))).await;
                cluster.start(victim).await;
                // Replicas that were offline are repaired before the next one dies.
                let reader = client(99, "base");
                let keys: Vec<u64> = model.borrow().keys().copied().collect();
                for number in keys {
                    let acknowledged = model.borrow()[&number].0;
                    let found = reader.get_latest(&key(number)).await.unwrap();
                    let begun = model.borrow()[&number].1;
                    let is_known = (acknowledged..=begun).any(|version| match &found {
                        Some(found) => version > 0 && found.value == value(number, version),
                        None => version == 0,
                    });
                    assert!(is_known, "key {number}: not one of the puts {acknowledged} to {begun}");
                }
            }
        };
        executor.block_on(run).unwrap();
    });
    assert!(total.get() > 200, "{} puts", total.get());
}
