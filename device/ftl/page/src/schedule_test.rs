//! Collectors of a whole FTL: whose planes go out of use, and that wait for the admission policy.

use std::num::NonZeroU32;
use std::rc::Rc;

use nandscape_device_ftl_core::RandomWrites;
use nandscape_device_ftl_core::address::{Extent, Lpn};
use nandscape_device_ftl_core::ftl::{Ftl, Inside, Reader, Unreadable};
use nandscape_device_ftl_core::policy::{Greedy, OnePerGroup};
use nandscape_device_media::{MediaError, PlaneId};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::{Executor, Rng, Seed, Span, Wait};

use super::schedule::Phase;
use super::{PageFtl, victim_test};

fn phase(ftl: &PageFtl, plane: u32) -> Phase {
    ftl.state.borrow().collectors.phase(PlaneId(plane))
}

/// An executor, and a drive on it whose collectors wait for the host.
fn ahead() -> (Executor, Rc<PageFtl>) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ftl = victim_test::drive(&sim, 1, Box::new(Greedy));
    ftl.start_collectors();
    executor.block_on(sim.sleep(Span::from_ms(100))).unwrap();
    assert_eq!(phase(&ftl, 0), Phase::Ahead, "planting leaves collectors in the midst of a block");
    (executor, ftl)
}

/// A plane that goes out of use while its collector waits for the host: the collector leaves its block and ends.
#[test]
fn the_collector_of_a_plane_that_goes_out_of_use_ends() {
    let (mut executor, ftl) = ahead();
    ftl.state.borrow_mut().take_out(PlaneId(0));
    assert_eq!(phase(&ftl, 0), Phase::Leaving);
    ftl.pump();
    executor.block_on(executor.sim().sleep(Span::from_us(1))).unwrap();
    assert_eq!(phase(&ftl, 0), Phase::OutOfUse);
    ftl.state.borrow().check(&ftl.media).unwrap();
}

/// The same, when a read finds the plane dead and nothing is ever written again.
#[test]
fn the_collector_of_a_plane_that_a_read_finds_dead_ends() {
    let (mut executor, ftl) = ahead();
    let sim = executor.sim();
    let geometry = ftl.media.geometry();
    let on_plane = |lpn: &u32| {
        let page = ftl.flash_unit(Lpn(*lpn)).map(|unit| geometry.page_of(unit));
        page.is_some_and(|page| geometry.plane_of(geometry.block_of(page)) == PlaneId(0))
    };
    let lpn = (0..).find(on_plane).unwrap();
    ftl.media.faults().add("dead channel=0 die=0 plane=0 timeout=1ms".parse().unwrap());
    let read = async {
        let sectors = ftl.unit().sectors();
        let extent = Extent { start: u64::from(lpn) * u64::from(sectors), sectors };
        let read = ftl.reader().read::<()>(extent, &Inside(HostMem::none()), &mut Breakdown::new()).await;
        assert_eq!(read.unwrap_err().why, Unreadable::Media(MediaError::NoAnswer));
        sim.sleep(Span::from_us(1)).await;
        assert_eq!(phase(&ftl, 0), Phase::OutOfUse);
    };
    executor.block_on(read).unwrap();
}

/// Both planes of a drive that is overwritten have to collect all the time, and do so one after the other.
#[test]
fn collectors_take_turns_where_the_policy_says_so() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("a number"));
    let mut executor = Executor::new();
    let admission = Box::new(OnePerGroup::new(NonZeroU32::new(2).unwrap()));
    let ftl = victim_test::drive_with(&executor.sim(), seed, Box::new(Greedy), admission);
    let mut rng: Rng = Seed::new(seed).child("overwrites").rng();
    let (mut turns, mut last, mut held_back) = (0, None, 0);
    let overwrite = async {
        for _ in 0..4_000 {
            let unit = rng.below(u64::from(ftl.config.logical_units));
            let sectors = ftl.unit().sectors();
            let extent = Extent { start: unit * u64::from(sectors), sectors };
            let reservation = ftl.reserve(extent, &mut Wait::default()).await;
            ftl.accept(extent, None, reservation, None);
            let phases = [0, 1].map(|plane| phase(&ftl, plane));
            let running: Vec<usize> = (0..2).filter(|plane| phases[*plane] == Phase::Running).collect();
            assert!(running.len() < 2, "seed {seed}: both collect");
            turns += u32::from(running.first().is_some_and(|plane| last.replace(*plane) != Some(*plane)));
            held_back += u32::from(phases.contains(&Phase::DueAgain) || phases.contains(&Phase::Due));
        }
    };
    executor.block_on(overwrite).unwrap();
    assert!(turns > 40 && held_back > 400, "seed {seed}: {turns} turns, held back {held_back} times");
    ftl.state.borrow().check(&ftl.media).unwrap();
}

/// Estimates of background work are kept where they are expected, and change nothing else.
#[test]
fn estimates_of_background_work_change_nothing_else() {
    let run = |expected: bool| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ftl = victim_test::drive(&sim, 1, Box::new(Greedy));
        ftl.background.expect(expected);
        let (mut rng, mut delayed): (Rng, u32) = (Seed::new(1).child("overwrites").rng(), 0);
        let overwrite = async {
            for _ in 0..2_000 {
                let unit = rng.below(u64::from(ftl.config.logical_units));
                let sectors = ftl.unit().sectors();
                let extent = Extent { start: unit * u64::from(sectors), sectors };
                let reservation = ftl.reserve(extent, &mut Wait::default()).await;
                ftl.accept(extent, None, reservation, None);
                delayed += u32::from((0..2).any(|plane| !ftl.background.remaining(PlaneId(plane)).is_zero()));
            }
        };
        executor.block_on(overwrite).unwrap();
        ftl.background.expect(!expected);
        executor.block_on(sim.sleep(Span::from_ms(100))).unwrap();
        (delayed, sim.now(), ftl.stats())
    };
    let ((delayed, at, stats), without) = (run(true), run(false));
    assert!(delayed > 100, "{delayed}");
    assert_eq!((0, at, stats), without);
}
