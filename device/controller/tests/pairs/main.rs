//! Every pair of concurrent actions of two hosts during reads and writes: administration of namespaces and media, resets,
//! queue deletions, hosts that leave, power cuts. All commands end, each with a permitted status. Data is erased only where a
//! command erases it. The drive works afterwards.
//!
//! `NANDSCAPE_TEST_SEED` sets the first seed, `NANDSCAPE_TEST_ROUNDS` how often each pair is tried; failures print pair and
//! seed.

mod action;
mod case;
#[path = "../suite/common/mod.rs"]
mod common;

use action::Action;
use case::Case;
use common::{config, drive};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_ftl_core::Ftl;
use nandscape_sim::{Executor, Seed, Span};

#[test]
fn every_pair_of_actions_at_once() {
    action::every_pair(4, run);
}

fn run(pair: [Action; 2], seed: u64) {
    let mut rng = Seed::new(seed).child(&format!("{pair:?}")).rng();
    let buffer = [BufferMode::Capacitor, BufferMode::Volatile][rng.below(2) as usize];
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drive(&sim, ControllerConfig { buffer, ..config() });
    let test = async {
        let cut = drive.clone();
        let cut = Box::new(move |off| cut.subsystem().ftl().media().cut_power(off));
        let mut case = Case::new(&sim, drive.subsystem().clone(), cut).await;
        // Both on one controller, or each on its own.
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
    drive.subsystem().ftl().check().unwrap();
}
