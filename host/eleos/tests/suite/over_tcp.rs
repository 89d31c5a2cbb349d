//! Over NVMe/TCP to a drive that runs in real time, with power cuts by its fault plan.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, Issuer};
use nandscape_host_driver::nvme_tcp::AdminQueue;
use nandscape_host_eleos::{Limits, PieceLimits, format_for_pieces};
use nandscape_sim::{Executor, Seed, Sim};

use crate::chains::{ChainWay, KnownChains};
use crate::common::{Known, Way};
use crate::polled;

#[path = "../../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;

use server::{Server, SsdExport};

/// Power cuts, and operations of the flash between them.
const CUTS: u64 = 30;
const BETWEEN: u64 = 400;
/// Pages that are used.
const PAGES: u64 = 4_096;

fn export(sim: &Sim) -> Rc<SsdExport> {
    let mut profile = Profile::load("default").expect("a built-in profile");
    for change in [
        "ftl.kind=ox_block",
        "capacity=64MiB",
        "buffer.mode=volatile",
        "controller.queue_pairs=8",
        "controller.queue_entries=256",
    ] {
        profile.set(change).expect("a valid change");
    }
    let resolved = profile.resolve().expect("valid").without_delay();
    let ssd = Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(1)).expect("memory");
    for cut in 1..=CUTS {
        let rule = format!("power_cut nth={} off=1ms", cut * BETWEEN);
        ssd.media().faults().add(rule.parse().expect("a rule"));
    }
    SsdExport::of(sim, ssd)
}

#[test]
fn buffers_and_batches_go_over_the_network() {
    let server = Server::of(None, 1 << 30, export);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (drive, issuer) = (polled::connected(&sim, &server.address, &server.nqn), Issuer::new(&sim));
    let cuts = executor
        .block_on(async {
            let limits = Limits::ask(&issuer, &AdminQueue::of(&drive), &drive.info()).await.expect("it answers");
            let limits = limits.expect("it knows buffers");
            assert_eq!(limits, Limits { buffered: 508, batched: 511 });
            let way = Way { issuer: &issuer, drive: &*drive, limits };
            let (mut known, mut rng) = (Known::new("seed 1".to_owned()), Seed::new(1).child("pages").rng());
            for _ in 0..300 {
                known.flush(&way, &mut rng, PAGES).await;
                let some: Vec<u64> = (0..1 + rng.below(600)).map(|_| rng.below(PAGES)).collect();
                known.check(&way, &some).await;
            }
            known.cuts
        })
        .expect("the drive goes on");
    assert!(cuts >= 2, "only {cuts} flushes met a power cut");
}

#[test]
fn pages_of_pieces_go_over_the_network() {
    let server = Server::of(None, 1 << 30, export);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (drive, issuer) = (polled::connected(&sim, &server.address, &server.nqn), Issuer::new(&sim));
    let cuts = executor
        .block_on(async {
            let (admin, info) = (AdminQueue::of(&drive), drive.info());
            format_for_pieces(&issuer, &admin, &info, true).await.expect("it can be formatted");
            let limits = PieceLimits::ask(&issuer, &admin, &info).await.expect("it answers").expect("it has pieces");
            let way = ChainWay { issuer: &issuer, drive: &*drive, limits };
            let mut known = KnownChains::new("seed 1".to_owned(), PAGES, 6_000);
            let mut rng = Seed::new(1).child("pieces").rng();
            for _ in 0..300 {
                known.flush(&way, &mut rng, 400).await;
                known.check_some(&way, &mut rng, 300).await;
            }
            known.check_all(&way).await;
            known.cuts
        })
        .expect("the drive goes on");
    assert!(cuts >= 2, "only {cuts} flushes met a power cut");
}
