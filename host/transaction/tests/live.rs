//! Transactions over NVMe/TCP to a drive that runs in real time, with power cuts by its fault plan.
#![cfg(target_os = "linux")]

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_host_driver::nvme_tcp::NvmeTcp;
use nandscape_host_transaction::{CommitError, Transaction};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

#[path = "../../../host/driver/tests/shared/polled.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod polled;
#[path = "../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;

use server::{Server, SsdExport};

/// Blocks that all have the number of the last transaction, and their distance.
const PLACES: u64 = 24;
const APART: u64 = 500;
/// Power cuts, and operations of the flash between them.
const CUTS: u64 = 12;
const BETWEEN: u64 = 150;

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

async fn read(issuer: &Issuer, drive: &NvmeTcp, slba: u64) -> u8 {
    loop {
        let mem = HostMem::zeroed(512);
        let read = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1);
        match issuer.execute(drive, read, mem.clone()).await.status.meaning() {
            Status::SUCCESS => return mem.to_vec()[0],
            Status::ABORTED_POWER_LOSS => {}
            status => panic!("block {slba}: {status}"),
        }
    }
}

#[test]
fn a_transaction_over_the_network_is_there_as_a_whole_or_not_at_all() {
    let server = Server::of(None, 1 << 30, export);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (drive, issuer) = (polled::connected(&sim, &server.address, &server.nqn), Issuer::new(&sim));
    let cuts = executor
        .block_on(async {
            let (mut last, mut cuts) = (0, 0);
            for number in (1..=200u8).cycle().take(1_000) {
                let mut transaction = Transaction::new(&drive.info());
                for place in 0..PLACES {
                    transaction.write(place * APART, &[number; 512]).expect("it fits");
                }
                transaction.force();
                match transaction.commit(&issuer, &*drive).await {
                    Ok(()) => last = number,
                    Err(CommitError::PowerLost) => {
                        let mut found = Vec::new();
                        for place in 0..PLACES {
                            found.push(read(&issuer, &drive, place * APART).await);
                        }
                        assert!(found.iter().all(|each| *each == found[0]), "a torn transaction: {found:?}");
                        assert!([last, number].contains(&found[0]), "{} after {last} was acknowledged", found[0]);
                        (last, cuts) = (found[0], cuts + 1);
                    }
                    Err(error) => panic!("transaction {number}: {error}"),
                }
            }
            cuts
        })
        .expect("the drive goes on");
    assert!(cuts >= 5, "only {cuts} commits met a power cut");
}
