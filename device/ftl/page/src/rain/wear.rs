//! Wear of planes under a static layout, and stripes that are moved to even it out (Li 6.3.1).
//!
//! A stripe is moved when it is written anyway: its other members are then written too. Only stripes that are written far
//! more often than others are worth that. Stripes share a few counters of writes, which are halved periodically.

use nandscape_device_media::PlaneId;

use super::super::state::State;
use super::layout::Place;
use super::{Rain, members_of};

/// Counters of writes.
const COUNTERS: usize = 1 << 12;
/// Writes after which the counters are halved.
const HALF_LIFE: u32 = 1 << 14;
/// How much more often than the average a stripe must be written to be moved.
const HOT: u32 = 8;

/// See the module.
pub(super) struct Wear {
    /// Blocks erased, by plane, since the drive was started.
    erases: Vec<u64>,
    counters: Vec<u16>,
    counted: u32,
    /// Stripes of a group beyond its share, or below it.
    surplus: Vec<i64>,
}

impl Wear {
    pub(super) fn new(planes: u32, groups: u32) -> Wear {
        Wear {
            erases: vec![0; planes as usize],
            counters: vec![0; COUNTERS],
            counted: 0,
            surplus: vec![0; groups as usize],
        }
    }

    /// A stripe is written. Returns whether it is written far more often than others.
    fn is_hot(&mut self, stripe: u32) -> bool {
        if self.counted >= HALF_LIFE {
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
            self.counted /= 2;
        }
        self.counted += 1;
        let counter = &mut self.counters[stripe as usize % COUNTERS];
        *counter = counter.saturating_add(1);
        u32::from(*counter) > HOT + HOT * self.counted / COUNTERS as u32
    }

    /// A stripe has gone from one group to another.
    pub(super) fn migrated(&mut self, from: u32, to: u32) {
        self.surplus[from as usize] -= 1;
        self.surplus[to as usize] += 1;
    }
}

impl State {
    /// A block of a plane was erased.
    pub(in super::super) fn plane_worn(&mut self, plane: PlaneId) {
        if let Some(rain) = self.rain.as_deref_mut() {
            rain.wear.erases[plane.0 as usize] += 1;
        }
    }

    /// The target place of a stripe whose `members`, a bit each, are written.
    pub(super) fn place_for(&mut self, stripe: u32, members: u32) -> Place {
        let rain = self.rain();
        let from = rain.layout.place(stripe);
        if rain.wear_policy.is_none() || !rain.wear.is_hot(stripe) {
            return from;
        }
        let rain = self.rain.as_deref().expect("a drive with stripes");
        let is_whole = |group: u32| rain.layout.planes(group).all(|plane| !self.collectors.is_out_of_use(plane));
        if !is_whole(from.group) {
            return from;
        }
        let to = self.migration(rain, from).or_else(|| self.shift(rain, from, members)).unwrap_or(from);
        if is_whole(to.group) { to } else { from }
    }

    /// The least worn group, for a stripe of a group that is much more worn.
    fn migration(&self, rain: &Rain, from: Place) -> Option<Place> {
        let wear = |group: u32| {
            let sum: f64 = rain.layout.planes(group).map(|plane| self.wear_of(rain, plane)).sum();
            sum / f64::from(rain.layout.width())
        };
        let least = (0..rain.layout.groups()).min_by(|one, other| wear(*one).total_cmp(&wear(*other)))?;
        let policy = rain.wear_policy.as_deref()?;
        let has_room = rain.wear.surplus[least as usize] < self.surplus_allowed(rain);
        let migrates = least != from.group && has_room && policy.migrates(wear(from.group), wear(least));
        migrates.then_some(Place { group: least, ..from })
    }

    /// The columns for a stripe of which a member is written to a plane that is much more worn than another of the group.
    fn shift(&self, rain: &Rain, from: Place, members: u32) -> Option<Place> {
        let layout = &rain.layout;
        let wear = |member: u32| self.wear_of(rain, layout.plane_at(from, member));
        let of = |members: u32| members_of(members).take_while(|member| *member < layout.width());
        let hot = of(members | 1 << layout.parity()).max_by(|one, other| wear(*one).total_cmp(&wear(*other)))?;
        let least = of(u32::MAX).min_by(|one, other| wear(*one).total_cmp(&wear(*other)))?;
        let shifts = rain.wear_policy.as_deref()?.shifts(wear(hot), wear(least));
        let column = layout.column(from, least);
        // The hot member is to lie in this column.
        let parity = (column + layout.width() - 1 - hot) % layout.width();
        (shifts && hot != least).then_some(Place { parity, ..from })
    }

    /// Erases of a block of a plane, on average.
    fn wear_of(&self, rain: &Rain, plane: PlaneId) -> f64 {
        rain.wear.erases[plane.0 as usize] as f64 / f64::from(self.geometry.blocks_per_plane())
    }

    /// How many stripes a group takes from others: a part of its over-provisioning.
    fn surplus_allowed(&self, rain: &Rain) -> i64 {
        let pages = i64::from(self.geometry.blocks_per_plane()) * i64::from(self.geometry.pages_per_block());
        let own = i64::from(rain.layout.stripes().div_ceil(rain.layout.groups()));
        (pages - own) / 4 - i64::from(self.geometry.pages_per_block()) * i64::from(self.pace.free_blocks)
    }
}
