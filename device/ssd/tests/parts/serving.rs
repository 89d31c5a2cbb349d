//! Commands go to the FTL of their namespace, and every FTL passes the checks that every drive must.

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::conformance::{self, Deallocation, Host, Load, Subject};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Status, SubmissionEntry};

use crate::rig::{DIES, THREE, TWO, queue, read, resolved, run, ssd, write};

fn subject(sim: &Sim, profile: &Resolved, nsid: u32) -> Subject {
    let ssd = ssd(sim, profile);
    let drive = queue(sim, &ssd, nsid, 1);
    Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check: Box::new(move || ssd.check()) }
}

#[test]
fn each_namespace_passes_every_check() {
    for (parts, namespaces) in [(TWO, 1..=2), (THREE, 2..=3), (DIES, 1..=2)] {
        let profile = resolved(parts, &[]);
        for nsid in namespaces {
            conformance::all(&|sim| subject(sim, &profile, nsid), 1)
                .unwrap_or_else(|what| panic!("namespace {nsid} of {parts}: {what}"));
        }
    }
}

#[test]
fn each_namespace_keeps_its_data_under_collection_in_every_mode() {
    let load = Load { steps: 3_000, depth: 16, most_blocks: 96, span: u64::MAX, reads: 0.2, trims: 0.2 };
    for mode in ["buffer.mode=volatile", "buffer.mode=through"] {
        let profile = resolved(TWO, &[mode]);
        for nsid in 1..=2 {
            conformance::data(&|sim| subject(sim, &profile, nsid), &load, 1)
                .unwrap_or_else(|what| panic!("namespace {nsid} with {mode}: {what}"));
        }
    }
}

/// The same block numbers hold different data in each namespace, and each FTL programs only its own data.
#[test]
fn namespaces_are_apart() {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), resolved(THREE, &[]));
    let ssd = ssd(&sim, &profile);
    let names: Vec<(&str, &str)> = ssd.parts().iter().map(|part| (part.name(), part.kind())).collect();
    assert_eq!(names, [("page-0", "page"), ("ox_block-1", "ox_block"), ("page-3", "page")]);
    let hosts: Vec<Host> = (1..=3).map(|nsid| Host::new(&sim, queue(&sim, &ssd, nsid, nsid as u16))).collect();
    let done = executor.block_on(async {
        for (host, nsid) in hosts.iter().zip(1..) {
            for block in 0..4 {
                write(host, nsid, block * 8, nsid as u8 * 16 + block as u8).await.unwrap();
            }
        }
        for (host, nsid) in hosts.iter().zip(1..) {
            for block in 0..4 {
                assert_eq!(read(host, nsid, block * 8).await, Ok(nsid as u8 * 16 + block as u8));
            }
            let beyond = host.info().blocks;
            assert_eq!(read(host, nsid, beyond).await, Err(Status::LBA_OUT_OF_RANGE));
        }
        // Any queue pair reaches any namespace.
        assert_eq!(read(&hosts[0], 3, 8).await, Ok(3 * 16 + 1));
    });
    done.unwrap();
    for part in ssd.parts() {
        assert_eq!(part.stats().host_bytes, 4 * 4_096, "{}", part.name());
    }
    assert_eq!(ssd.ftl_stats().host_bytes, 12 * 4_096);
    ssd.check().unwrap();
}

#[test]
fn a_flush_of_all_namespaces_reaches_every_ftl() {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), resolved(TWO, &["buffer.mode=volatile"]));
    let ssd = ssd(&sim, &profile);
    let host = Host::new(&sim, queue(&sim, &ssd, 1, 1));
    let done = executor.block_on(async {
        write(&host, 1, 0, 1).await.unwrap();
        write(&host, 2, 0, 2).await.unwrap();
        run(&host, SubmissionEntry::io(IoOpcode::FLUSH, NSID_ALL), nandscape_drive::HostMem::none()).await.unwrap();
        for part in ssd.parts() {
            assert!(part.stats().host_units > 0, "{} has its data on flash", part.name());
            assert_eq!(part.tables().in_buffer, 0, "{}", part.name());
        }
    });
    done.unwrap();
}

#[test]
fn planted_parts_are_full_and_go_on() {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), resolved(TWO, &[]));
    let ssd = ssd(&sim, &profile);
    assert!(ssd.can_be_planted());
    ssd.plant(Plant::Steady, Seed::new(3), &mut |_| ());
    executor.block_on(ssd.in_service()).unwrap();
    for (part, bytes) in ssd.parts().iter().zip(profile.namespaces()) {
        assert_eq!(part.tables().on_flash, bytes / 4_096, "{}", part.name());
    }
    let host = Host::new(&sim, queue(&sim, &ssd, 2, 1));
    executor.block_on(write(&host, 2, 0, 2)).unwrap().unwrap();
    ssd.check().unwrap();
}

/// Memory has no array and no erase: its reads and writes take the time of link, firmware and channel.
#[test]
fn memory_is_as_fast_as_its_channel() {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), resolved(THREE, &["buffer.mode=through"]));
    let ssd = ssd(&sim, &profile);
    let host = Host::new(&sim, queue(&sim, &ssd, 1, 1));
    let times = executor.block_on(async {
        let mut times = Vec::new();
        for nsid in [1, 3] {
            let begun = sim.now();
            write(&host, nsid, 0, 7).await.unwrap();
            assert_eq!(read(&host, nsid, 0).await, Ok(7));
            times.push((sim.now() - begun).ns());
        }
        times
    });
    let times = times.unwrap();
    assert!(times[0] > 500_000 && times[1] < 30_000, "{times:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = Ssd::new(&sim, &resolved(TWO, &[]), StoreKind::None, Seed::new(4)).unwrap();
        let host = Host::new(&sim, queue(&sim, &ssd, 1, 1));
        let done = executor.block_on(async {
            for block in 0..300 {
                write(&host, 1 + block as u32 % 2, block * 8, 0).await.unwrap();
            }
        });
        done.unwrap();
        (sim.now(), ssd.ftl_stats(), ssd.op_counts())
    };
    assert_eq!(run(), run());
}
