//! Pages of pieces on a file-backed drive whose program is killed again and again.

use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_media::durable::{MemoryFile, StoreFile};
use nandscape_device_ssd::Ssd;
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_host_eleos::{Limits, PieceLimits, format_for_pieces};
use nandscape_sim::{Executor, Seed};

use crate::chains::{ChainWay, KnownChains};
use crate::drive::{Rig, number, profile};

/// Runs a program several times and kills it each time.
fn lives(mode: &str, seed: u64) {
    let (resolved, backing) = (profile(&[mode]), Arc::new(MemoryFile::new()));
    drop(StoreFile::create_on(backing.clone(), resolved.store_spec(true, Seed::new(5)), false).expect("a new file"));
    let mut known = KnownChains::new(format!("seed {seed}, {mode}"), 500, 3_000);
    let mut rng = Seed::new(seed).child("file").rng();
    for life in 0..5 {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let file = StoreFile::open_on(backing.clone(), false).expect("the file");
        let ssd = Rc::new(Ssd::open(&sim, &resolved, file).expect("the drive in it"));
        let rig = Rig::of(&sim, ssd);
        let ran = executor.block_on(async {
            let (info, admin) = (rig.drive.info(), QueueDrive::new(&sim, rig.ssd.controller(), QueueId::ADMIN, 32));
            let admin = admin.expect("an admin queue");
            if life == 0 {
                format_for_pieces(&rig.issuer, &*admin, &info, true).await.expect("it can be formatted");
            }
            let limits = PieceLimits::ask(&rig.issuer, &*admin, &info).await.expect("it answers");
            assert!(Limits::ask(&rig.issuer, &*admin, &info).await.expect("it answers").is_some());
            let limits = limits.expect("the namespace has kept its form");
            let way = ChainWay { issuer: &rig.issuer, drive: &*rig.drive, limits };
            known.check_all(&way).await;
            for _ in 0..1 + rng.below(60) {
                known.flush(&way, &mut rng, 40).await;
            }
        });
        ran.unwrap_or_else(|stalled| panic!("{stalled}"));
    }
}

#[test]
fn pages_of_pieces_and_their_form_outlast_a_kill() {
    let first = number("NANDSCAPE_TEST_SEED");
    for seed in first..first + number("NANDSCAPE_TEST_SEEDS") {
        for mode in ["buffer.mode=volatile", "buffer.mode=through", "buffer.mode=capacitor"] {
            lives(mode, seed);
        }
    }
}
