//! Brings a drive into a state of use without drive time.
//!
//! `full` writes every unit once, in order, with the allocation of a host's writes, in no drive time. `steady` plants
//! the image that uniform random overwrites leave behind, then runs such overwrites, also in no drive time, until write
//! amplification is stable. Drives whose ranges have separate blocks are overwritten from full on.

mod image;
mod ranges;

use std::collections::VecDeque;

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_ftl_core::component::{BlockMetadata, Mapping};
use nandscape_device_ftl_core::ftl::Stats;
use nandscape_device_ftl_core::{Plant, PlantReport};
use nandscape_device_media::{PlaneId, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Rng, Seed};
use smallvec::SmallVec;

use super::moves::{Cursor, Moves};
use super::state::State;
use super::write::NO_LPN;
use super::{PageFtl, streams};

/// Write amplification is stable when two successive rounds differ by less than this share.
const STILL: f64 = 0.01;
/// Rounds run at least. The first is never compared: it brings the image under the load.
const MIN_ROUNDS: u32 = 3;
/// Rounds after which planting always ends.
const MAX_ROUNDS: u32 = 16;
/// Units overwritten in a round on a small drive, enough for an average. A larger one takes a block of each plane.
const MIN_ROUND: u64 = 1 << 16;

impl PageFtl {
    /// Brings an unused drive into a state of use. `progress` gets the share done, from 0 to 1.
    ///
    /// # Panics
    /// When the drive has been written to.
    pub fn plant(&self, plant: Plant, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        assert_eq!(self.state.borrow().counters, Stats::default(), "planting needs an unused drive");
        let report = match plant {
            Plant::Full => self.plant_full(progress),
            Plant::Steady => self.plant_steady(seed, progress),
        };
        self.hand_over();
        self.forget_planted_writes();
        {
            let state = &mut *self.state.borrow_mut();
            state.counters = Stats::default();
            if let Some(placed) = &mut state.placed {
                placed.plant(self.config.logical_units);
            }
        }
        // Planted data has no numbers; the snapshot defines which copies count.
        let _ = self.save();
        report
    }

    fn plant_full(&self, progress: &mut dyn FnMut(f64)) -> PlantReport {
        if self.ranges() > 0 {
            self.plant_full_ranges(progress);
            return PlantReport { overwritten: 0, waf: 1.0 };
        }
        if self.config.rain.is_some() {
            self.plant_stripes(progress);
            return PlantReport { overwritten: 0, waf: 1.0 };
        }
        let units = self.config.logical_units;
        let per_page = self.media.geometry().units_per_page();
        for first in (0..units).step_by(per_page as usize) {
            self.write_page(0, (first..units.min(first + per_page)).map(Lpn));
            if first % (1 << 22) < per_page {
                progress(f64::from(first) / f64::from(units));
            }
        }
        PlantReport { overwritten: 0, waf: 1.0 }
    }

    fn plant_steady(&self, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        let (image, mut planted) = (&mut seed.child("image").rng(), |share: f64| progress(share * 0.6));
        match (&self.config.rain, self.ranges()) {
            (_, 1..) => self.plant_full_ranges(&mut planted),
            (Some(_), 0) => self.plant_stripes_image(image, &mut planted),
            (None, 0) => self.plant_image(image, &mut planted),
        }
        let mut rng = seed.child("overwrites").rng();
        let geometry = self.media.geometry();
        let of_blocks = (u64::from(geometry.planes()) * u64::from(geometry.units_per_block())).max(MIN_ROUND);
        // From full to steady takes a few times the capacity.
        let round = if self.ranges() > 0 { of_blocks.max(u64::from(self.config.logical_units)) } else { of_blocks };
        let (mut before, mut waf) = (f64::INFINITY, f64::INFINITY);
        let mut rounds = 0;
        while rounds < MIN_ROUNDS || ((waf - before).abs() > STILL * waf && rounds < MAX_ROUNDS) {
            (before, waf) = (waf, self.overwrite(round, &mut rng));
            rounds += 1;
            progress(0.6 + 0.4 * f64::from(rounds) / f64::from(MAX_ROUNDS));
        }
        PlantReport { overwritten: u64::from(rounds) * round, waf }
    }

    /// Overwrites random units; returns the write amplification.
    pub(super) fn overwrite(&self, units: u64, rng: &mut Rng) -> f64 {
        let before = self.state.borrow().counters;
        if self.config.rain.is_some() {
            self.overwrite_stripes(units, rng);
            return self.waf_since(&before);
        }
        if self.ranges() > 0 {
            self.overwrite_ranges(units, rng);
            return self.waf_since(&before);
        }
        let per_page = self.media.geometry().units_per_page();
        let logical = u64::from(self.config.logical_units);
        let mut lpns = Ahead::new((0..units).map(|_| Lpn(rng.below(logical) as u32)));
        for _ in 0..units / u64::from(per_page) {
            let page: SmallVec<[Lpn; 16]> = {
                let state = self.state.borrow();
                (0..per_page).map_while(|_| lpns.next(&state.tables.map)).collect()
            };
            self.write_page(0, page.into_iter());
        }
        self.waf_since(&before)
    }

    fn waf_since(&self, before: &Stats) -> f64 {
        let after = self.state.borrow().counters;
        let programmed = after.programmed_units() - before.programmed_units();
        programmed as f64 / (after.host_units - before.host_units) as f64
    }

    /// Programs one page of the host's data, of one range where there are ranges, and collects as far as that makes necessary.
    fn write_page(&self, handle: u8, lpns: impl Iterator<Item = Lpn>) {
        let state = &mut *self.state.borrow_mut();
        let plane = state.programs.next_to_plant(handle).expect("collectors keep up when they take no time");
        self.write_page_to(state, (plane, handle), lpns);
    }

    /// The same, in a plane that is ready.
    pub(super) fn write_page_to(
        &self,
        state: &mut State,
        (plane, handle): (PlaneId, u8),
        lpns: impl Iterator<Item = Lpn>,
    ) {
        let page = state.take_host_pages(plane, handle, 1).next().expect("one was asked for");
        state.host_program_begins(plane);
        let units = (state.geometry.unit_at(page, 0).0..).map(UnitId);
        let mut tags = Tags::new();
        for (lpn, unit) in lpns.zip(units) {
            let old = state.tables.remap(lpn, Location::Flash(unit));
            state.copy_moves(lpn);
            state.drop_copy(old);
            state.tables.blocks.validate(unit);
            tags.push(lpn.0);
        }
        let (count, per_page) = (tags.len(), state.geometry.units_per_page() as usize);
        self.media.plant_program(page, tags.into_iter().chain(padding(per_page - count)));
        state.counters.host_units += count as u64;
        state.counters.padding_units += (per_page - count) as u64;
        state.host_program_ended(&[page]);
        self.make_room(state, plane);
        // Planes whose collector had found no victim with a gain, and now has one.
        while let Some(plane) = state.collectors.take_due() {
            self.make_room(state, plane);
        }
    }

    /// The number of free blocks that a plane's collector maintains under a load.
    ///
    /// A collector that keeps in step with the host maintains the number at which it begins. One that cleans whole blocks at
    /// once gets ahead of the host and ends by itself.
    pub(super) fn free_under_load(&self) -> u32 {
        let gc = &self.config.gc;
        if gc.batch.is_some() { gc.free_blocks } else { gc.free_blocks + 1 }
    }

    /// Cleans blocks of a plane as far as its collector would have done.
    fn make_room(&self, state: &mut State, plane: PlaneId) {
        if !state.collectors.is_collecting(plane) {
            return;
        }
        state.collectors.begin_at_once(plane);
        let (mut left_off, mut fruitless) = (state.collectors.of_mut(plane).left_off.take(), false);
        let mut moves = Moves::default();
        while !fruitless && state.may_collect(plane) && (left_off.is_some() || state.is_low(plane)) {
            let cursor = left_off.take().or_else(|| {
                let victim = state.victim(plane)?;
                Some(state.begin(victim, self.config.gc.copyback, cause::GC))
            });
            match cursor {
                Some(cursor) => left_off = self.collect_at_once(state, plane, cursor, &mut moves),
                None => fruitless = true,
            }
        }
        match left_off {
            Some(cursor) => state.collectors.of_mut(plane).left_off = Some(cursor),
            None => state.collector_ended(plane, fruitless),
        }
    }

    /// Does a batch of moves, or, when none is left, erases the block. Returns the cursor if it is not erased.
    fn collect_at_once(
        &self,
        state: &mut State,
        plane: PlaneId,
        mut cursor: Cursor,
        moves: &mut Moves,
    ) -> Option<Cursor> {
        let planned = state.plan(&mut cursor, self.config.gc.batch, moves);
        assert!(planned, "no block has gone bad yet");
        if moves.is_empty() {
            self.media.plant_erase(cursor.victim);
            state.reclaim(cursor.victim, cause::GC);
            return None;
        }
        self.move_at_once(state, moves);
        state.moved(plane, moves);
        Some(cursor)
    }

    /// Makes collectors continue from the state in which planting has left them, once the drive is used.
    fn hand_over(&self) {
        let state = &mut *self.state.borrow_mut();
        let planes = (0..state.geometry.planes()).map(PlaneId);
        planes.for_each(|plane| self.fill_word_line(state, plane));
        state.stand_ready();
    }

    /// The rest of a word line is not programmed by itself: planting, which goes page by page, pads it.
    fn fill_word_line(&self, state: &mut State, plane: PlaneId) {
        let word_line = state.programs.together.word_line;
        let per_page = state.geometry.units_per_page() as usize;
        for handle in 0..self.ranges().max(1) {
            while !state.tables.next_number(plane, streams::of_handle(handle)).is_multiple_of(word_line) {
                let page = state.take_host_pages(plane, handle, 1).next().expect("one was asked for");
                state.host_program_begins(plane);
                self.media.plant_program(page, padding(per_page));
                state.host_program_ended(&[page]);
            }
        }
    }

    fn move_at_once(&self, state: &mut State, moves: &Moves) {
        let per_page = state.geometry.units_per_page();
        for &(from, to) in &moves.copybacks {
            let tags = (0..per_page).map(|unit| self.media.tag(state.geometry.unit_at(from, unit)));
            self.media.plant_program(to, tags.collect::<Tags>());
        }
        for (page, group) in moves.packed(per_page) {
            let tags: Tags = group.iter().map(|unit| self.media.tag(*unit)).collect();
            self.media.plant_program(page, tags.into_iter().chain(padding(per_page as usize - group.len())));
        }
        state.commit(moves, cause::GC, |unit| Lpn(self.media.tag(unit)));
    }
}

/// The out-of-band tags of a page.
type Tags = SmallVec<[u32; 16]>;

/// Tags of units that hold nothing.
fn padding(units: usize) -> impl Iterator<Item = u32> {
    std::iter::repeat_n(NO_LPN, units)
}

/// Prefetches the map entries of a stream of units: random access to them takes most of the time of planting.
struct Ahead<I> {
    lpns: I,
    next: VecDeque<Lpn>,
}

/// Entries that are prefetched at a time.
const AHEAD: usize = 64;

impl<I: Iterator<Item = Lpn>> Ahead<I> {
    fn new(lpns: I) -> Ahead<I> {
        Ahead { lpns, next: VecDeque::with_capacity(AHEAD) }
    }

    #[inline]
    fn next(&mut self, map: &impl Mapping) -> Option<Lpn> {
        while self.next.len() < AHEAD {
            let Some(lpn) = self.lpns.next() else { break };
            map.prefetch(lpn);
            self.next.push_back(lpn);
        }
        self.next.pop_front()
    }
}
