//! The actions of the controller's tests/pairs on drives with OX-Block, with the page FTL and with both, in memory: two hosts administer
//! namespaces and media, reset, delete queues, leave and cut power, two of these at once.
//!
//! `NANDSCAPE_TEST_SEED` sets the first seed, `NANDSCAPE_TEST_ROUNDS` how often each pair is tried; failures print pair and
//! seed.

#[path = "../../controller/tests/pairs/action.rs"]
mod action;
#[path = "../../controller/tests/pairs/case.rs"]
mod case;

use std::rc::Rc;

use action::Action;
use case::Case;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_sim::{Executor, Seed, Span};

const SMALL: [&str; 9] = [
    "capacity=8MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=2",
    "controller.max_transfer=128KiB",
    "ftl.over_provisioning=42.86%",
];

/// Two FTLs, of which the first has room for one namespace: the second namespace is of the other FTL.
const BOTH: &str = r#"ftl.parts=[{channels="0",capacity="1MiB"},{channels="1",ftl={kind="ox_block"}}]"#;

#[test]
fn every_pair_of_actions_at_once_on_both_kinds_of_ftl() {
    action::every_pair(1, run);
}

fn run(pair: [Action; 2], seed: u64) {
    let mut rng = Seed::new(seed).child(&format!("{pair:?}")).rng();
    let mut profile = Profile::load("default").unwrap();
    let kind = ["ftl.kind=ox_block", BOTH, "ftl.kind=page"][rng.below(3) as usize];
    let buffer = ["buffer.mode=capacitor", "buffer.mode=volatile", "buffer.mode=through"][rng.below(3) as usize];
    SMALL.iter().chain(&[kind, buffer]).for_each(|change| profile.set(change).unwrap());
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Rc::new(Ssd::new(&sim, &profile.resolve().unwrap(), StoreKind::Ram, Seed::new(9)).unwrap());
    let test = async {
        let cut = ssd.clone();
        let mut case = Case::new(&sim, ssd.subsystem(), Box::new(move |off| cut.media().cut_power(off))).await;
        let hosts = [0, rng.below(2) as usize];
        for (action, host) in pair.into_iter().zip(hosts) {
            case.load(&mut rng);
            let most = [5, 100, 3_000][rng.below(3) as usize];
            sim.sleep(Span::from_us(rng.below(most))).await;
            case.begin(action, host);
        }
        case.load(&mut rng);
        case.end().await;
    };
    executor.block_on(test).unwrap();
    ssd.check().unwrap();
}
