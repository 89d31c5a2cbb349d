//! The image that uniform random overwrites leave behind, planted.
//!
//! Under uniform overwrites every unit of a block is equally likely to be replaced next, so the valid share of a block falls
//! exponentially with its age. A collector that takes the emptiest block takes nearly the oldest, so the ages of a plane's n
//! full blocks are evenly spread. The i-th youngest of them holds a share exp(-a i) of its units, where a is such that
//! all shares sum to the logical space (the closed form of Desnoyers 2012 and others comes from the same argument).
//!
//! First every block is written, in the order of age, and the units that still hold data are chosen. Then the logical
//! units are assigned to them at random. This visits the map a cache line at a time, and many blocks in turn. To visit
//! a random entry of the map for each unit would take three times as long.

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Mapping, Provisioning, Stream};
use nandscape_device_ftl_core::parts::COLLECTOR_RESERVE;
use nandscape_device_media::{BlockId, PlaneId, UnitId};
use nandscape_sim::Rng;
use nandscape_sim::permutation::Permutation;

use super::super::PageFtl;
use super::super::state::State;
use super::super::streams::HOST;
use super::super::tables::Tables;

/// Logical units that are assigned together: the entries of a cache line of the map.
const LINE: u64 = 16;
/// Lines of the map that are prefetched.
const LINES_AHEAD: u64 = 8;
/// Blocks that receive units at a time: the processor's cache holds a line of each.
const HANDS: usize = 2_048;

/// The image of a plane.
struct PlanePlan {
    /// Units that each full block holds, the youngest first.
    shares: Vec<u32>,
    /// Pages of the open block of each stream.
    open_pages: Vec<(Stream, u32)>,
}

impl PageFtl {
    pub(super) fn plant_image(&self, rng: &mut Rng, progress: &mut dyn FnMut(f64)) {
        let state = &mut *self.state.borrow_mut();
        let mut blocks = self.write_blocks(state, rng);
        // Neighbours in the logical space must differ in age.
        rng.shuffle(&mut blocks);
        self.deal(state, &blocks, rng, progress);
        state.all_copies_move();
    }

    /// Writes all blocks in the order of age, and marks the units that still hold data. Returns the blocks.
    fn write_blocks(&self, state: &mut State, rng: &mut Rng) -> Vec<BlockId> {
        let planes = (0..state.geometry.planes()).map(PlaneId);
        let (pages, per_page) = (state.geometry.pages_per_block(), state.geometry.units_per_page());
        let plans: Vec<(PlaneId, PlanePlan)> =
            planes.map(|plane| (plane, self.plan_plane(state, plane, rng))).collect();
        let oldest = plans.iter().map(|(_, plan)| plan.shares.len()).max().unwrap_or(0);
        let (mut blocks, mut choice) = (Vec::new(), Choice::default());
        for age in (0..oldest).rev() {
            for (plane, plan) in &plans {
                let Some(valid) = plan.shares.get(age) else { continue };
                choice.choose(pages * per_page, *valid, rng);
                blocks.extend(self.write_block(state, *plane, HOST, pages, &choice));
            }
        }
        for (plane, plan) in &plans {
            for &(stream, pages) in &plan.open_pages {
                choice.choose(pages * per_page, pages * per_page, rng);
                blocks.extend(self.write_block(state, *plane, stream, pages, &choice));
            }
            state.update_ready(*plane);
        }
        blocks
    }

    /// How many units each full block of a plane is to hold, and how far the open ones are written.
    fn plan_plane(&self, state: &State, plane: PlaneId, rng: &mut Rng) -> PlanePlan {
        let usable =
            state.geometry.blocks_of(plane).filter(|block| state.tables.blocks.get(*block).state != BlockState::Bad);
        let (planes, logical) = (u64::from(state.geometry.planes()), u64::from(self.config.logical_units));
        let (first, end) = (u64::from(plane.0) * logical / planes, (u64::from(plane.0) + 1) * logical / planes);
        let total = (end - first) as u32;
        let (pages, per_page) = (state.geometry.pages_per_block(), state.geometry.units_per_page());
        // Each stream has an open block. A collector that gains almost nothing leaves fewer free blocks.
        let streams = self.config.streams();
        let filled = usable.count() - streams.len();
        let spare = filled.saturating_sub(total.div_ceil(pages * per_page) as usize);
        let full = filled - spare.clamp(COLLECTOR_RESERVE as usize, self.free_under_load() as usize);
        // At a random point between two blocks, differently on each plane, and no fuller than the data allows.
        let most = pages.min(total / per_page / streams.len() as u32 + 1);
        let whole = |pages: u32| pages - pages % state.programs.together.word_line;
        let open_pages: Vec<_> =
            (0..streams.len() as u8).map(|stream| (Stream(stream), whole(rng.below(u64::from(most)) as u32))).collect();
        let open_units: u32 = open_pages.iter().map(|(_, pages)| pages * per_page).sum();
        PlanePlan { shares: exponential_shares(total - open_units, full, pages * per_page), open_pages }
    }

    /// Writes the first pages of a stream's next block; the units chosen hold data. `None` when there is no page.
    fn write_block(
        &self,
        state: &mut State,
        plane: PlaneId,
        stream: Stream,
        pages: u32,
        choice: &Choice,
    ) -> Option<BlockId> {
        let mut block = None;
        for number in 0..pages {
            let page = state.tables.free.get(&mut state.tables.blocks, plane, stream).expect("free blocks are kept");
            let first = state.geometry.unit_at(page, 0).0;
            let per_page = state.geometry.units_per_page();
            for unit in (0..per_page).filter(|unit| choice.contains(number * per_page + unit)) {
                state.tables.blocks.validate(UnitId(first + unit));
            }
            self.media.plant_program(page, []);
            state.page_programmed(page);
            state.opened(page, stream);
            block = Some(state.geometry.block_of(page));
        }
        block
    }

    /// Assigns the logical units to the units that are to hold data.
    fn deal(&self, state: &mut State, blocks: &[BlockId], rng: &mut Rng, progress: &mut dyn FnMut(f64)) {
        let logical = u64::from(self.config.logical_units);
        let lines = logical.div_ceil(LINE);
        let order = Permutation::new(lines, rng);
        let State { tables: Tables { map, blocks: metadata, .. }, geometry, .. } = state;
        let per_block = geometry.units_per_block();
        let whole = |block: &BlockId| Hand { next: block.0 * per_block, end: (block.0 + 1) * per_block };
        let mut waiting = blocks.iter().map(whole);
        let mut hands: Vec<Hand> = waiting.by_ref().take(HANDS).collect();
        for line in 0..lines {
            if line + LINES_AHEAD < lines {
                map.prefetch(Lpn((order.at(line + LINES_AHEAD) * LINE) as u32));
            }
            let first = order.at(line) * LINE;
            for lpn in first..logical.min(first + LINE) {
                let unit = draw(&mut hands, &mut waiting, metadata, rng);
                super::super::tables::sure(map.upsert(Lpn(lpn as u32), Location::Flash(unit)));
                self.media.plant_tag(unit, lpn as u32);
            }
            if line % (1 << 18) == 0 {
                progress(line as f64 / lines as f64);
            }
        }
    }
}

/// A block that receives units: those from `next` on have not been visited.
struct Hand {
    next: u32,
    end: u32,
}

/// The next unit of a random block; blocks that are done are replaced.
#[inline]
fn draw(
    hands: &mut Vec<Hand>,
    waiting: &mut impl Iterator<Item = Hand>,
    blocks: &impl BlockMetadata,
    rng: &mut Rng,
) -> UnitId {
    loop {
        assert!(!hands.is_empty(), "shares sum to the logical space");
        let index = rng.below(hands.len() as u64) as usize;
        let hand = &mut hands[index];
        if hand.next < hand.end
            && let Some(unit) = blocks.next_valid(UnitId(hand.next), UnitId(hand.end))
        {
            hand.next = unit.0 + 1;
            return unit;
        }
        match waiting.next() {
            Some(block) => hands[index] = block,
            None => drop(hands.swap_remove(index)),
        }
    }
}

/// A uniformly random choice of some units of a block.
#[derive(Default)]
struct Choice {
    chosen: Vec<bool>,
}

impl Choice {
    /// Chooses `count` of `units`: by drawing those that are in, or those that are out, whichever are fewer.
    fn choose(&mut self, units: u32, count: u32, rng: &mut Rng) {
        let few_are_in = count <= units / 2;
        let mut draws = if few_are_in { count } else { units - count };
        self.chosen.clear();
        self.chosen.resize(units as usize, !few_are_in);
        while draws > 0 {
            let drawn = &mut self.chosen[rng.below(u64::from(units)) as usize];
            draws -= u32::from(*drawn != few_are_in);
            *drawn = few_are_in;
        }
    }

    #[inline]
    fn contains(&self, unit: u32) -> bool {
        self.chosen[unit as usize]
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
    // The remainder from rounding and full blocks goes to blocks with room, the youngest first.
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
    use nandscape_sim::Seed;
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
    fn a_choice_has_exactly_as_many_and_favours_none() {
        let mut rng = Seed::new(3).rng();
        let mut choice = Choice::default();
        for count in [0, 37, 63, 100] {
            let mut hits = [0u32; 100];
            for _ in 0..2_000 {
                choice.choose(100, count, &mut rng);
                let chosen: Vec<u32> = (0..100).filter(|unit| choice.contains(*unit)).collect();
                assert_eq!(chosen.len(), count as usize);
                chosen.iter().for_each(|unit| hits[*unit as usize] += 1);
            }
            let (least, most) = (20 * count - 20 * count.min(8), 20 * count + 160);
            assert!(hits.iter().all(|hits| (least..=most).contains(hits)), "{count}: {hits:?}");
        }
    }
}
