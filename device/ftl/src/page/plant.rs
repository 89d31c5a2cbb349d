//! Reaching a state of use without running to it in drive time.
//!
//! `full` writes every unit once, in order, through the same allocation as a host would, in no time. `steady` plants the
//! image that uniform random overwrites leave behind, then runs such overwrites, in no time too, until write
//! amplification stands still.
//!
//! The image: under uniform overwrites every unit of a block is equally likely to be the next one replaced, so what
//! is left of a block falls exponentially with its age. A collector that takes the emptiest block takes the oldest,
//! give or take chance, so the ages of a plane's n blocks are evenly spread, and the i-th youngest of them holds a share
//! exp(-a i) of its units, where a is such that all shares sum to the logical space (the closed form of Desnoyers 2012
//! and others comes from the same argument).

use nandscape_device_media::{PlaneId, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_sim::permutation::Permutation;
use nandscape_sim::{Rng, Seed};
use smallvec::SmallVec;

use super::state::State;
use super::write::NO_LPN;
use super::{PageFtl, Plain};
use crate::address::{Location, Lpn};
use crate::component::{BlockMetadata, BlockState, Provisioning, Stream};
use crate::ftl::Stats;

/// A state of use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Plant {
    /// Every unit written once, in order.
    Full,
    /// The steady state under uniform random overwrites of single units.
    Steady,
}

/// What planting did.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct PlantReport {
    /// Units overwritten at random after the image was planted.
    pub overwritten: u64,
    /// Write amplification over the last of them.
    pub waf: f64,
}

/// Write amplification stands still when two successive rounds differ by less than this share.
const STILL: f64 = 0.005;
/// Rounds after which it is given up on.
const MAX_ROUNDS: u32 = 16;
/// Overwrites of a round: this share of the drive, and enough to average over on a small one.
const ROUND_SHARE: u32 = 64;
const MIN_ROUND: u64 = 1 << 16;

impl PageFtl {
    /// Brings an unused drive into a state of use. `progress` is told the share done, from 0 to 1.
    ///
    /// # Panics
    /// When the drive has been written to.
    pub fn plant(&self, plant: Plant, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        assert_eq!(self.state.borrow().counters, Stats::default(), "planting needs an unused drive");
        let report = match plant {
            Plant::Full => self.plant_full(progress),
            Plant::Steady => self.plant_steady(seed, progress),
        };
        self.state.borrow_mut().counters = Stats::default();
        report
    }

    fn plant_full(&self, progress: &mut dyn FnMut(f64)) -> PlantReport {
        let units = self.config.logical_units;
        let per_page = self.media.geometry().units_per_page();
        for first in (0..units).step_by(per_page as usize) {
            self.write_page((first..units.min(first + per_page)).map(Lpn));
            if first % (1 << 22) < per_page {
                progress(f64::from(first) / f64::from(units));
            }
        }
        PlantReport { overwritten: 0, waf: 1.0 }
    }

    fn plant_steady(&self, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        self.plant_image(&mut seed.child("image").rng(), &mut |share| progress(share * 0.6));
        let mut rng = seed.child("overwrites").rng();
        let round = (u64::from(self.config.logical_units) / u64::from(ROUND_SHARE)).max(MIN_ROUND);
        let (mut before, mut waf) = (f64::INFINITY, f64::MAX);
        let mut rounds = 0;
        // The first round fills the open blocks and is not compared.
        while rounds < 3 || ((waf - before).abs() > STILL * waf && rounds < MAX_ROUNDS) {
            before = waf;
            waf = self.overwrite(round, &mut rng);
            rounds += 1;
            progress(0.6 + 0.4 * f64::from(rounds.min(8)) / 8.0);
        }
        PlantReport { overwritten: u64::from(rounds) * round, waf }
    }

    /// Overwrites random units; returns the write amplification.
    fn overwrite(&self, units: u64, rng: &mut Rng) -> f64 {
        let before = self.state.borrow().counters;
        let per_page = self.media.geometry().units_per_page();
        for _ in 0..units / u64::from(per_page) {
            self.write_page((0..per_page).map(|_| Lpn(rng.below(u64::from(self.config.logical_units)) as u32)));
        }
        let after = self.state.borrow().counters;
        let programmed = after.programmed_units() - before.programmed_units();
        programmed as f64 / (after.host_units - before.host_units) as f64
    }

    /// Programs one page of the host's data, and cleans what that makes necessary.
    fn write_page(&self, lpns: impl Iterator<Item = Lpn>) {
        let state = &mut *self.state.borrow_mut();
        let page = state.next_host_page().expect("collectors keep up when they take no time");
        let units = (state.geometry.unit_at(page, 0).0..).map(UnitId);
        let mut tags = Tags::new();
        for (lpn, unit) in lpns.zip(units) {
            let old = state.remap(lpn, Location::Flash(unit));
            state.drop_copy(old);
            state.blocks.validate(unit);
            tags.push(lpn.0);
        }
        let (count, per_page) = (tags.len(), state.geometry.units_per_page() as usize);
        self.media.plant_program(page, tags.into_iter().chain(padding(per_page - count)));
        state.counters.host_units += count as u64;
        state.counters.padding_units += (per_page - count) as u64;
        state.host_page_programmed(page);
        while let Some(plane) = state.due.pop() {
            self.collect_at_once(state, plane);
        }
    }

    fn collect_at_once(&self, state: &mut State<Plain>, plane: PlaneId) {
        let mut fruitless = false;
        while !fruitless && state.is_low(plane) {
            let Some(victim) = state.victim(plane, &*self.config.gc.victim) else {
                fruitless = true;
                continue;
            };
            let mut cursor = state.begin(victim, self.config.gc.copyback);
            let moves = state.plan(&mut cursor, None);
            self.move_at_once(state, &moves);
            state.count_moves(&moves, cause::GC);
            state.count_block(cause::GC);
            self.media.plant_erase(victim);
            state.reclaim(victim);
        }
        state.collector_ended(plane, fruitless);
    }

    fn move_at_once(&self, state: &mut State<Plain>, moves: &super::collect::Moves) {
        let per_page = state.geometry.units_per_page();
        for &(from, to) in &moves.copybacks {
            let tags = (0..per_page).map(|unit| self.media.tag(state.geometry.unit_at(from, unit)));
            self.media.plant_program(to, tags.collect::<Tags>());
        }
        for (page, group) in moves.targets.iter().zip(moves.units.chunks(per_page as usize)) {
            let tags: Tags = group.iter().map(|unit| self.media.tag(*unit)).collect();
            self.media.plant_program(*page, tags.into_iter().chain(padding(per_page as usize - group.len())));
        }
        state.commit(moves, |unit| Lpn(self.media.tag(unit)));
    }

    /// Plants the image that random overwrites leave; see the module.
    fn plant_image(&self, rng: &mut Rng, progress: &mut dyn FnMut(f64)) {
        let state = &mut *self.state.borrow_mut();
        let (planes, units) = (state.geometry.planes(), state.geometry.units_per_block());
        let shares: Vec<Vec<u32>> = (0..planes).map(|plane| self.shares(state, PlaneId(plane))).collect();
        let order = Permutation::new(u64::from(self.config.logical_units), rng);
        let mut lpns = (0..u64::from(self.config.logical_units)).map(|index| Lpn(order.at(index) as u32));
        let oldest = shares.iter().map(Vec::len).max().unwrap_or(0);
        for age in (0..oldest).rev() {
            for (plane, shares) in (0..planes).map(PlaneId).zip(&shares) {
                let Some(&valid) = shares.get(age) else { continue };
                let mut rest = Rest { units, valid };
                for _ in 0..state.geometry.pages_per_block() {
                    self.plant_page(state, plane, &mut rest, &mut lpns, rng);
                }
            }
            progress(1.0 - age as f64 / oldest as f64);
        }
    }

    /// How many units each block of a plane is to hold, the youngest first.
    fn shares(&self, state: &State<Plain>, plane: PlaneId) -> Vec<u32> {
        let usable = state.geometry.blocks_of(plane).filter(|block| state.blocks.get(*block).state != BlockState::Bad);
        // What the collector keeps free, and an open block for each stream.
        let kept = self.config.gc.start as usize + Stream::ALL.len();
        let blocks = usable.count() - kept;
        let (planes, logical) = (u64::from(state.geometry.planes()), u64::from(self.config.logical_units));
        let (first, end) = (u64::from(plane.0) * logical / planes, (u64::from(plane.0) + 1) * logical / planes);
        exponential_shares((end - first) as u32, blocks, state.geometry.units_per_block())
    }

    fn plant_page(
        &self,
        state: &mut State<Plain>,
        plane: PlaneId,
        rest: &mut Rest,
        lpns: &mut impl Iterator<Item = Lpn>,
        rng: &mut Rng,
    ) {
        let page = state.provisioning.get(&mut state.blocks, plane, Stream::Host).expect("free blocks are kept");
        let per_page = state.geometry.units_per_page();
        let mut tags = Tags::new();
        for number in 0..per_page {
            if !rest.take(rng) {
                tags.push(NO_LPN);
                continue;
            }
            let lpn = lpns.next().expect("shares sum to the logical space");
            let unit = state.geometry.unit_at(page, number);
            state.remap(lpn, Location::Flash(unit));
            state.blocks.validate(unit);
            tags.push(lpn.0);
        }
        self.media.plant_program(page, tags);
        state.page_programmed(page);
    }
}

/// The out-of-band tags of a page.
type Tags = SmallVec<[u32; 16]>;

/// Tags of units that hold nothing.
fn padding(units: usize) -> impl Iterator<Item = u32> {
    std::iter::repeat_n(NO_LPN, units)
}

/// Chooses so many of so many, each choice of them equally likely (selection sampling).
struct Rest {
    units: u32,
    valid: u32,
}

impl Rest {
    fn take(&mut self, rng: &mut Rng) -> bool {
        // 32 random bits are scaled to the units left.
        let chosen = (u64::from(rng.bits() as u32) * u64::from(self.units)) >> 32 < u64::from(self.valid);
        self.units -= 1;
        self.valid -= u32::from(chosen);
        chosen
    }
}

/// Splits `total` units over `blocks` blocks of `units` each, the youngest first, falling exponentially.
fn exponential_shares(total: u32, blocks: usize, units: u32) -> Vec<u32> {
    let share = |rate: f64, index: usize| libm::exp(-rate * (index as f64 + 0.5) / blocks as f64);
    let sum = |rate: f64| (0..blocks).map(|index| share(rate, index)).sum::<f64>() * f64::from(units);
    let (mut low, mut high) = (0.0, 64.0);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if sum(middle) > f64::from(total) { low = middle } else { high = middle }
    }
    // Rounded so that every partial sum is right, and with it the total.
    let (mut exact, mut given) = (0.0, 0u32);
    let scale = f64::from(total) / sum(low);
    let mut shares: Vec<u32> = Vec::with_capacity(blocks);
    for index in 0..blocks {
        exact += share(low, index) * f64::from(units) * scale;
        let upto = (exact.round() as u32).min(total);
        shares.push((upto - given).min(units));
        given += shares[index];
    }
    // What rounding and full blocks have left over goes where there is room, the youngest first.
    let mut left = total - given;
    for share in &mut shares {
        let more = left.min(units - *share);
        *share += more;
        left -= more;
    }
    assert_eq!(left, 0, "{total} units do not fit {blocks} blocks of {units}");
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_fall_and_sum(blocks in 1usize..200, units in 1u32..500, fill in 0.01f64..1.0) {
            let total = (fill * blocks as f64 * f64::from(units)) as u32;
            let shares = exponential_shares(total, blocks, units);
            prop_assert_eq!(shares.iter().sum::<u32>(), total);
            prop_assert!(shares.iter().all(|&share| share <= units));
            prop_assert!(shares.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{:?}", shares);
        }
    }

    #[test]
    fn selection_takes_exactly_as_many() {
        let mut rng = Seed::new(3).rng();
        let mut rest = Rest { units: 100, valid: 37 };
        assert_eq!((0..100).filter(|_| rest.take(&mut rng)).count(), 37);
    }
}
