//! Which blocks are cleaned, against a choice by hand over all blocks of the plane, by the counts that a reader of the
//! tables would make.

use std::rc::Rc;

use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Provisioning};
use nandscape_device_ftl_core::policy::{
    AdmissionPolicy, All, CostBenefit, GcScheme, Greedy, OwnerSource, StripeOrder, Striped, VictimPolicy,
};
use nandscape_device_ftl_core::{FirmwareTimes, Plant};
use nandscape_device_media::{BlockId, PlaneId, Priority};
use nandscape_device_rig::TestFlash;
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};

use super::{GcConfig, PageFtl, PageFtlConfig, Policies, WearConfig};

const PAGES: u32 = 32;
const UNITS_PER_PAGE: u32 = 2;
const BLOCKS: u32 = 40;

/// A drive of two planes in steady state, which collect as soon as they are low on space.
pub(super) fn drive(sim: &Sim, seed: u64, victim: Box<dyn VictimPolicy>) -> Rc<PageFtl> {
    drive_with(sim, seed, victim, Box::new(All))
}

/// The same, whose planes collect when `admission` admits them.
pub(super) fn drive_with(
    sim: &Sim,
    seed: u64,
    victim: Box<dyn VictimPolicy>,
    admission: Box<dyn AdmissionPolicy>,
) -> Rc<PageFtl> {
    let flash = TestFlash {
        planes: 2,
        blocks: BLOCKS,
        pages: PAGES,
        units_per_page: UNITS_PER_PAGE,
        read: vec![Span::from_us(40)],
        factory_bad: 2,
        seed: Seed::new(seed),
        ..TestFlash::default()
    };
    let media = flash.media(sim);
    let config = PageFtlConfig {
        logical_units: 2 * 28 * PAGES * UNITS_PER_PAGE,
        buffer_units: 16,
        priority: Priority::Fifo,
        gc: GcConfig {
            scheme: GcScheme::Plane,
            owner: OwnerSource::Table,
            copyback: false,
            copyback_ecc: false,
            batch: Some(1),
            free_blocks: 2,
            preempt_above: None,
            free_in_window: 4,
            free_in_long_window: 4,
        },
        wear: WearConfig { dynamic: true, static_threshold: 0 },
        firmware: FirmwareTimes::default(),
        placement: Default::default(),
        writes_end_in_buffer: false,
        rain: None,
    };
    let allocation = Box::new(Striped::new(media.geometry(), StripeOrder::ChannelDiePlane));
    let ftl = PageFtl::new(
        sim,
        media,
        config,
        Policies { allocation, victim, admission, buffer: None, read: None, patrol: None, stripes: Default::default() },
    )
    .unwrap();
    ftl.plant(Plant::Steady, Seed::new(seed), &mut |_| ());
    ftl
}

/// Full blocks of a plane that gain a page at least, as (block, current units, age), counted unit by unit.
fn candidates(ftl: &PageFtl, plane: PlaneId) -> Vec<(BlockId, u32, u64)> {
    let state = ftl.state.borrow();
    let mut found = Vec::new();
    for block in state.geometry.blocks_of(plane) {
        let info = state.tables.blocks.get(block);
        let first = block.0 * PAGES * UNITS_PER_PAGE;
        let units = (first..first + PAGES * UNITS_PER_PAGE).map(nandscape_device_media::UnitId);
        let valid = units.filter(|unit| state.tables.blocks.is_valid(*unit)).count() as u32;
        if info.state == BlockState::Full && valid <= (PAGES - 1) * UNITS_PER_PAGE {
            found.push((block, valid, state.tables.free.sequence() - info.sealed_at));
        }
    }
    found
}

/// Runs random overwrites, and compares each choice until then.
fn compare(victim: fn() -> Box<dyn VictimPolicy>, is_best: impl Fn((u32, u64), &[(u32, u64)]) -> bool) {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("a number"));
    let (ftl, policy) = (drive(&Executor::new().sim(), seed, victim()), victim());
    let mut rng: Rng = Seed::new(seed).child("victims").rng();
    for step in 0..200 {
        ftl.overwrite(1 + rng.below(200), &mut rng);
        for plane in [PlaneId(0), PlaneId(1)] {
            let all = candidates(&ftl, plane);
            let chosen = ftl.state.borrow().victim_by(plane, &*policy).expect("there is garbage");
            let (_, valid, age) = *all.iter().find(|(block, ..)| *block == chosen).expect("a candidate is chosen");
            let others: Vec<(u32, u64)> = all.iter().map(|(_, valid, age)| (*valid, *age)).collect();
            let what = format!("seed {seed}, step {step}, {plane:?}: ({valid}, {age}) of {others:?}");
            assert!(is_best((valid, age), &others), "{what}");
        }
    }
}

#[test]
fn greedy_takes_the_least_current_and_of_those_the_oldest() {
    compare(
        || Box::new(Greedy),
        |(valid, age), all| {
            let least = all.iter().map(|(valid, _)| *valid).min();
            let oldest = all.iter().filter(|(each, _)| *each == valid).map(|(_, age)| *age).max();
            (Some(valid), Some(age)) == (least, oldest)
        },
    );
}

/// Rosenblum and Ousterhout, "The design and implementation of a log-structured file system" (TOCS 1992), 3.5: the
/// segment with the highest `(1 - u) age / (1 + u)`, whose cost is reading the whole segment and writing back `u` of
/// it. For reads of current data only, as flash permits, the cost is `2 u`. Age is counted in blocks closed and erased,
/// from 1 on.
#[test]
fn cost_benefit_takes_the_highest_ratio() {
    let ratio = |(valid, age): (u32, u64)| {
        let u = f64::from(valid) / f64::from(PAGES * UNITS_PER_PAGE);
        (1.0 - u) * (age + 1) as f64 / (2.0 * u)
    };
    compare(
        || Box::new(CostBenefit),
        move |chosen, all| {
            let best = all.iter().map(|each| ratio(*each)).fold(0.0, f64::max);
            // The policy's fixed point has 20 binary places.
            ratio(chosen) >= best * (1.0 - 1e-5)
        },
    );
}

#[test]
fn the_policies_differ() {
    let ftl = drive(&Executor::new().sim(), 1, Box::new(Greedy));
    let mut rng = Seed::new(1).child("differ").rng();
    let mut differs = |_: &u32| {
        ftl.overwrite(100, &mut rng);
        let state = ftl.state.borrow();
        state.victim_by(PlaneId(0), &Greedy) != state.victim_by(PlaneId(0), &CostBenefit)
    };
    assert!((0..100).filter(|step| differs(step)).count() > 10);
}
