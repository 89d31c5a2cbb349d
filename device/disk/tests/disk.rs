//! Disks pass the checks of drives, and take the times of their data sheet.

use std::rc::Rc;

use nandscape_device_disk::{Disk, DiskSpec, Seek};
use nandscape_drive::conformance::{self, Subject};
use nandscape_drive::{Drive, HostMem, Issuer, Stage};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

/// A disk of 4 MiB.
fn small() -> DiskSpec {
    let us = Span::from_us;
    let seek = Seek { single: us(200), average: us(1_000), full: us(2_000) };
    DiskSpec { cylinders: 64, heads: 2, sectors: 64, read: seek, write: seek, ..DiskSpec::constellation_2() }
}

fn passes(spec: &DiskSpec) {
    let make = |sim: &Sim| Subject::new(Disk::new(sim, spec).expect("a possible disk"));
    conformance::all(&make, seed()).unwrap_or_else(|what| panic!("{spec:?}: {what}"));
}

#[test]
fn the_checks_of_drives() {
    // The first 16 cylinders of the large one: the checks have a model of each block.
    passes(&DiskSpec { cylinders: 16, ..DiskSpec::constellation_2() });
    passes(&small());
    passes(&DiskSpec { keeps_data: false, ..small() });
}

#[test]
fn random_reads_take_the_average_seek_and_half_a_revolution() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let spec = DiskSpec::constellation_2();
            let disk = Disk::new(&sim, &spec).expect("a possible disk");
            let (issuer, mut rng) = (Issuer::new(&sim), Seed::new(seed()).rng());
            for _ in 0..4_000 {
                let read = SubmissionEntry::blocks(IoOpcode::READ, 1, rng.below(spec.blocks() - 8), 8);
                let begun = sim.now();
                let ended = issuer.execute(&*disk, read, HostMem::none()).await;
                assert!(ended.status.is_success());
                assert_eq!(ended.breakdown.total(), sim.now() - begun);
            }
            let counters = disk.counters();
            assert_eq!(counters.accesses, 4_000);
            let mean = |span: Span| span.as_us() / 4_000.0;
            // Of 4,000 draws, with standard deviations of 3.9 ms and 2.4 ms.
            assert!((mean(counters.seek) - 7_500.0).abs() < 300.0, "seed {}: {}", seed(), mean(counters.seek));
            assert!((mean(counters.rotation) - 4_167.0).abs() < 200.0, "seed {}: {}", seed(), mean(counters.rotation));
        })
        .unwrap();
}

#[test]
fn one_command_at_a_time_and_only_those_that_wait_are_cancelled() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let disk: Rc<dyn Drive> = Disk::new(&sim, &small()).expect("a possible disk");
            let issuer = Issuer::new(&sim);
            let read = |slba| SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 8);
            let first = issuer.execute(&*disk, read(0), HostMem::zeroed(4_096));
            let second = issuer.execute(&*disk, read(4_000), HostMem::zeroed(4_096));
            let third = issuer.execute(&*disk, read(800), HostMem::zeroed(4_096));
            sim.sleep(Span::from_us(100)).await;
            assert!(!first.cancel(&*disk), "it has begun");
            assert!(second.cancel(&*disk) && !second.cancel(&*disk));
            assert_eq!(second.await.status.meaning(), Status::ABORT_REQUESTED);
            let begun = sim.now();
            assert!(first.await.status.is_success());
            let before = sim.now() - begun;
            let third = third.await;
            // All arrived at one time.
            assert_eq!(third.breakdown.stage(Stage::Queue), before + Span::from_us(100));
        })
        .unwrap();
}
