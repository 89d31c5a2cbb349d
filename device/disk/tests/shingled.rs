//! Shingled disks pass the checks of drives, clean when idle and when they must, and report it.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_disk::{DiskSpec, Seek, Shingled, ShingledSpec};
use nandscape_drive::breakdown::cause;
use nandscape_drive::conformance::{self, Subject};
use nandscape_drive::shingle::{CleaningStep, CleaningWatch, ShingleMap};
use nandscape_drive::{HostMem, Issuer, Stage};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

/// Bands of 64 KiB, 240 of them, and a cache of 4 MiB.
fn small() -> ShingledSpec {
    let us = Span::from_us;
    let seek = Seek { single: us(200), average: us(1_000), full: us(2_000) };
    let disk =
        DiskSpec { cylinders: 304, heads: 2, sectors: 64, read: seek, write: seek, ..DiskSpec::constellation_2() };
    ShingledSpec { disk, band: 2, cache: 128, idle: Span::from_ms(20) }
}

#[test]
fn the_checks_of_drives() {
    let no_idle = ShingledSpec { idle: Span::ZERO, ..small() };
    let no_data = ShingledSpec { disk: DiskSpec { keeps_data: false, ..small().disk }, ..small() };
    for spec in [small(), no_idle, no_data] {
        let make = |sim: &Sim| Subject::new(Shingled::new(sim, &spec).expect("a possible disk"));
        conformance::all(&make, seed()).unwrap_or_else(|what| panic!("{spec:?}: {what}"));
    }
}

/// Notes the reported cleanings.
#[derive(Default)]
struct Notes(RefCell<(Vec<Vec<CleaningStep>>, usize)>);

impl CleaningWatch for Notes {
    fn began(&self, steps: &[CleaningStep]) {
        self.0.borrow_mut().0.push(steps.to_vec());
    }

    fn step_ended(&self) {
        self.0.borrow_mut().1 += 1;
    }
}

#[test]
fn an_idle_disk_cleans_and_a_read_that_comes_then_waits_for_the_band() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let disk = Shingled::new(&sim, &small()).expect("a possible disk");
            let notes = Rc::new(Notes::default());
            disk.watch(notes.clone());
            let issuer = Issuer::new(&sim);
            let write = |slba| SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 8);
            for slba in [1_280, 1_300, 9_000] {
                let mem = HostMem::from_bytes(&[slba as u8 | 1; 4_096]);
                assert!(issuer.execute(&*disk, write(slba), mem).await.status.is_success());
            }
            let mut pieces = Vec::new();
            let cache = small().cache_sectors();
            disk.pieces(1_276, 40, &mut |place, sectors| pieces.push((place, sectors)));
            assert_eq!(pieces, [(cache + 1_276, 4), (0, 8), (cache + 1_288, 12), (8, 8), (cache + 1_308, 8)]);
            assert_eq!(disk.next_write(), 24);
            sim.sleep(Span::from_ms(19)).await;
            assert_eq!(disk.cleanings().bands, 0);
            sim.sleep(Span::from_ms(2)).await;
            // The band of the first two is being cleaned: the band is read, then both pieces, and the band is written.
            let place = cache + 1_280;
            let step = |is_write, place, sectors| CleaningStep { is_write, place, sectors };
            let steps = vec![step(false, place, 128), step(false, 0, 8), step(false, 8, 8), step(true, place, 128)];
            assert_eq!(notes.0.borrow().0, [steps]);
            let (begun, read) = (sim.now(), SubmissionEntry::blocks(IoOpcode::READ, 1, 9_000, 8));
            let mem = HostMem::zeroed(4_096);
            let ended = issuer.execute(&*disk, read, mem.clone()).await;
            let took = sim.now() - begun;
            assert!(ended.status.is_success() && took > Span::from_ms(20), "{took}");
            // It waited for the cleaning alone.
            let waited = ended.breakdown.stage(Stage::Queue);
            assert!(ended.breakdown.total() == took && waited > Span::from_ms(15), "{waited} of {took}");
            assert_eq!(ended.breakdown.waited(Stage::Queue, cause::GC), waited);
            assert_eq!((disk.cleanings().bands, disk.cleanings().forced), (1, 0));
            assert_eq!(mem.to_vec(), [9_000_u64 as u8 | 1; 4_096]);
            sim.sleep(Span::from_s(1)).await;
            assert_eq!((disk.cleanings().bands, notes.0.borrow().1), (2, 4 + 3));
            sim.sleep(Span::from_s(1)).await;
            assert_eq!(disk.cleanings().bands, 2, "nothing is left");
        })
        .unwrap();
}

#[test]
fn a_full_cache_has_writes_wait_for_bands() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let disk = Shingled::new(&sim, &small()).expect("a possible disk");
            let issuer = Issuer::new(&sim);
            // A piece in each band, more than the cache holds.
            let count = small().cache_sectors() / 64 + 20;
            for number in 0..count {
                let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, number * 128, 64);
                let begun = sim.now();
                let ended = issuer.execute(&*disk, write, HostMem::zeroed(64 * 512)).await;
                assert_eq!(ended.breakdown.total(), sim.now() - begun);
                assert!(ended.status.is_success());
            }
            let cleanings = disk.cleanings();
            assert!(cleanings.forced >= 20 && cleanings.forced == cleanings.bands, "{cleanings:?}");
        })
        .unwrap();
}
