//! The order in which planes are written, against nested loops; and that all get their share.

use std::collections::BTreeSet;

use nandscape_device_ftl_core::policy::{AllocationPolicy, GcScheme, Stripe, StripeOrder, Striped};
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{Geometry, PageId, PlaneId};
use nandscape_sim::Seed;

use super::rig::{Rig, Setup};

const CHANNELS: u32 = 3;
const DIES: u32 = 2;
const PLANES: u32 = 4;

/// Places as channel, die, plane, in the order of a name: its first word varies fastest.
fn in_order(name: &str) -> Vec<(u32, u32, u32)> {
    let dimensions: Vec<(&str, u32)> = name
        .split('_')
        .map(|word| match word {
            "channel" => (word, CHANNELS),
            "die" => (word, DIES),
            "plane" => (word, PLANES),
            other => panic!("{other} is no dimension"),
        })
        .collect();
    let mut places = Vec::new();
    for slowest in 0..dimensions[2].1 {
        for middle in 0..dimensions[1].1 {
            for fastest in 0..dimensions[0].1 {
                let at = [(dimensions[0].0, fastest), (dimensions[1].0, middle), (dimensions[2].0, slowest)];
                let number = |word: &str| at.iter().find(|(name, _)| *name == word).map_or(0, |(_, number)| *number);
                places.push((number("channel"), number("die"), number("plane")));
            }
        }
    }
    places
}

#[test]
fn each_order_is_what_its_name_says() {
    let geometry = Geometry::new(Counts {
        channels: CHANNELS,
        dies_per_channel: DIES,
        planes_per_die: PLANES,
        blocks_per_plane: 4,
        pages_per_block: 4,
        page_size: 4_096,
        unit_size: 4_096,
    })
    .unwrap();
    for (name, order) in StripeOrder::ALL {
        let mut striped = Striped::new(&geometry, order);
        (0..geometry.planes()).for_each(|plane| striped.set_ready(PlaneId(plane), true));
        let expected = in_order(name);
        for round in 0..3 {
            let turn: Vec<_> = expected.iter().map(|_| geometry.place(striped.next()[0])).collect();
            assert_eq!(turn, expected, "{name}, round {round}");
        }
    }
}

#[test]
fn a_fill_in_order_goes_round_the_planes() {
    for (name, allocation) in StripeOrder::ALL {
        // Room for all planes' pages at a time: none is passed over for being busy.
        let planes = CHANNELS * DIES * PLANES;
        let setup = Setup {
            allocation,
            logical_units: planes * 16,
            buffer_units: planes,
            ..Setup::new((CHANNELS, DIES, PLANES), 8, 8)
        };
        let mut rig = Rig::new(&setup);
        let expected = in_order(name);
        for round in 0..16 {
            rig.write_units(round * planes..(round + 1) * planes);
            rig.settle();
        }
        let geometry = *rig.media.geometry();
        let place = |unit| geometry.place(geometry.plane_of(geometry.block_of(geometry.page_of(unit))));
        let places: Vec<_> = rig.places().into_iter().map(|unit| place(unit.expect("written"))).collect();
        for round in places.chunks(planes as usize) {
            assert_eq!(round, expected, "{name}");
        }
        rig.check();
    }
}

/// Under random overwrites, with collectors at work, planes get their share of the data within 5%.
#[test]
fn data_is_spread_evenly_under_collection() {
    for (name, allocation) in StripeOrder::ALL {
        let setup = Setup { allocation, scheme: GcScheme::Plane, ..Setup::new((2, 2, 2), 24, 32) }.filled(0.8);
        let mut rig = Rig::new(&setup);
        let mut rng = Seed::new(setup.seed).child("spread").rng();
        rig.fill();
        rig.overwrite(3 * u64::from(setup.logical_units), &mut rng);
        rig.settle();
        let counts = rig.valid_counts();
        let planes: Vec<u32> = counts.chunks(setup.blocks_per_plane as usize).map(|plane| plane.iter().sum()).collect();
        let share = f64::from(setup.logical_units) / f64::from(setup.plane_count());
        let off = |units: &u32| (f64::from(*units) / share - 1.0).abs();
        assert!(planes.iter().all(|units| off(units) <= 0.05), "{name}, seed {}: {planes:?}", setup.seed);
        rig.check();
    }
}

/// All dies at a time, once all of them are ready.
struct WholeRows {
    planes: u32,
    ready: BTreeSet<PlaneId>,
}

impl AllocationPolicy for WholeRows {
    fn set_ready(&mut self, plane: PlaneId, ready: bool) {
        match ready {
            true => self.ready.insert(plane),
            false => self.ready.remove(&plane),
        };
    }

    fn is_any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    fn width(&self) -> u32 {
        self.planes
    }

    fn next(&mut self) -> Stripe {
        let is_whole = self.ready.len() == self.planes as usize;
        self.ready.iter().copied().filter(|_| is_whole).collect()
    }
}

/// A policy that chooses stripes of planes: pages of a stripe have the same number in their blocks, and hold the data
/// written in turn.
#[test]
fn a_policy_may_choose_stripes_of_planes() {
    let planes = CHANNELS * DIES;
    let setup =
        Setup { logical_units: planes * 64, buffer_units: 3 * planes, ..Setup::new((CHANNELS, DIES, 1), 12, 8) };
    let mut rig = Rig::with_allocation(&setup, Box::new(WholeRows { planes, ready: BTreeSet::new() }));
    rig.fill();
    rig.settle();
    let geometry = *rig.media.geometry();
    let pages: Vec<_> = rig.places().into_iter().map(|unit| geometry.page_of(unit.expect("written"))).collect();
    for stripe in pages.chunks(planes as usize) {
        let on: Vec<_> = stripe.iter().map(|page| geometry.plane_of(geometry.block_of(*page)).0).collect();
        assert_eq!(on, (0..planes).collect::<Vec<_>>());
        let number = |page: &PageId| geometry.page_in_block(*page);
        assert!(stripe.iter().all(|page| number(page) == number(&stripe[0])), "{stripe:?}");
    }
    // Part of a stripe, because a command waits for it.
    rig.write_units(0..1);
    rig.settle();
    rig.check();
}
