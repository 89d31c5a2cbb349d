//! Operations that fail: blocks are retired and their data is moved, planes that do not answer go out of use, unreadable data
//! is lost, and a drive without spare blocks becomes read-only.
//!
//! A failed program is repeated elsewhere, as a whole: its data is still in the write buffer, or in the block that it is
//! moved from. The block is no longer written; its collector moves the current data out, and then the block is bad. A block
//! whose erase failed is bad at once. A plane that has lost a block keeps one more block from the host, for the next loss. A
//! plane that does not answer, or has no page left for its collector, is no longer written or cleaned; its data stays mapped.
//!
//! Where ranges of the logical blocks have separate planes, each range needs blocks of its own planes: the drive
//! becomes read-only when one range lacks blocks, whatever the others have.
//!
//! Data that cannot be read when its block is cleaned, or when a write covers only a part of its unit, is lost: reads of
//! it fail until it is written again.
//!
//! Where data has parity ([`rain`](super::rain)), it is reconstructed from the parity instead, and a plane may be out
//! of use without loss.
//!
//! Left out: reading a page again later.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::address::{Extent, Location, Lpn, Piece, SlotId};
use nandscape_device_ftl_core::component::{BadBlocks, BlockInfo, BlockMetadata, BlockState, Provisioning};
use nandscape_device_ftl_core::ftl::{ReadOnly, Unwritable};
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_device_media::{BlockId, Broken, Geometry, Media, MediaError, PageId, PlaneId, UnitId};

use super::PageFtl;
use super::state::State;

/// The failures of a drive so far.
pub(super) struct Damage {
    /// Planes in which a block has gone bad.
    has_lost_blocks: Vec<bool>,
    /// Sectors whose data was lost, a bit each, of the units that have any.
    lost: BTreeMap<Lpn, u64>,
    /// Good blocks in planes that are in use, and the count of blocks that further writes need.
    usable: u64,
    needed: u64,
    /// Usable blocks by range, where ranges have separate planes.
    of_ranges: Vec<u64>,
    /// Blocks that each range needs.
    needed_of_range: u64,
    /// Usable beyond the needed ones when the drive was new.
    spare: u64,
    /// Why the drive is read-only.
    pub(super) read_only: Option<ReadOnly>,
}

impl Damage {
    pub(super) fn new(geometry: &Geometry) -> Damage {
        let has_lost_blocks = vec![false; geometry.planes() as usize];
        Damage {
            has_lost_blocks,
            lost: BTreeMap::new(),
            usable: 0,
            needed: 0,
            of_ranges: Vec::new(),
            needed_of_range: 0,
            spare: 0,
            read_only: None,
        }
    }

    /// Whether fewer good blocks are left than are needed, in the drive or in the planes of a range.
    fn lacks_blocks(&self) -> Option<ReadOnly> {
        let is_short = self.usable < self.needed || self.of_ranges.iter().any(|usable| *usable < self.needed_of_range);
        is_short.then_some(ReadOnly::FewBlocks)
    }

    /// Whether no sector of a unit is lost.
    pub(super) fn is_whole(&self, lpn: Lpn) -> bool {
        !self.lost.contains_key(&lpn)
    }

    /// The sectors that are lost, by unit.
    pub(super) fn lost(&self) -> impl Iterator<Item = (Lpn, u64)> {
        self.lost.iter().map(|(lpn, sectors)| (*lpn, *sectors))
    }

    pub(super) fn set_lost(&mut self, lost: BTreeMap<Lpn, u64>) {
        self.lost = lost;
    }

    /// As bytes: planes that have lost blocks, lost sectors, and usable blocks.
    pub(super) fn save(&self, to: &mut Writer) {
        self.has_lost_blocks.iter().for_each(|has_lost| to.byte(u8::from(*has_lost)));
        to.count(self.lost.len());
        for (lpn, sectors) in self.lost() {
            to.word(lpn.0);
            to.long(sectors);
        }
        to.long(self.usable);
    }

    /// Takes over what was saved. The needs of the drive are those of its present configuration.
    pub(super) fn restore(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        for has_lost in &mut self.has_lost_blocks {
            *has_lost = from.byte()? != 0;
        }
        for _ in 0..from.count(12)? {
            let lpn = Lpn(from.word()?);
            self.lost.insert(lpn, from.long()?);
        }
        self.usable = from.long()?;
        Ok(())
    }

    /// Whether a block of a plane has gone bad.
    #[inline]
    pub(super) fn has_lost_blocks(&self, plane: PlaneId) -> bool {
        self.has_lost_blocks[plane.0 as usize]
    }
}

impl State {
    /// Counts the spare blocks of a drive that begins, and of the same drive when it was new: `media` knows the blocks
    /// that have gone bad since. The drive needs the blocks for its data, the reserve of its collectors, and further
    /// blocks so that some block always holds a page of garbage, or a word line: then collectors always gain something.
    pub(super) fn count_spare(&mut self, logical_units: u32, media: &Media) {
        let (planes, units) = (u64::from(self.geometry.planes()), u64::from(self.geometry.units_per_block()));
        let garbage = u64::from(self.programs.together.word_line * self.geometry.units_per_page() - 1);
        // For a part of the data on a part of the planes.
        let needed = |parts: u64| {
            let data = u64::from(logical_units).div_ceil(parts).div_ceil(units);
            let least = data + planes / parts * u64::from(self.pace.free_blocks + self.pace.open_blocks);
            least + (least * garbage).div_ceil(units)
        };
        let ranges = u64::from(self.programs.allocation.ranges());
        (self.damage.needed, self.damage.needed_of_range) = (needed(1), needed(ranges.max(1)));
        self.damage.usable = (0..self.geometry.planes()).map(|plane| self.tables.good_blocks(PlaneId(plane))).sum();
        self.count_by_range();
        let new = self.damage.usable + media.grown_bad_blocks();
        self.damage.spare = new.saturating_sub(self.damage.needed);
        if media.grown_bad_blocks() > 0 {
            for plane in (0..self.geometry.planes()).map(PlaneId) {
                let has_lost = self.geometry.blocks_of(plane).any(|block| media.is_grown_bad(block));
                self.damage.has_lost_blocks[plane.0 as usize] = has_lost;
            }
            self.judge_blocks();
        }
    }

    /// Recounts the usable blocks of each range, if ranges have separate planes, and checks whether the drive lacks some.
    pub(super) fn count_by_range(&mut self) {
        let mut of_ranges = vec![0; usize::from(self.programs.allocation.ranges())];
        for plane in (0..self.geometry.planes()).map(PlaneId).filter(|plane| !self.collectors.is_out_of_use(*plane)) {
            if let Some(range) = self.programs.allocation.range_of(plane) {
                of_ranges[usize::from(range)] += self.tables.good_blocks(plane);
            }
        }
        self.damage.of_ranges = of_ranges;
    }

    /// Determines whether the drive is now read-only.
    pub(super) fn judge_blocks(&mut self) {
        self.damage.read_only = self.damage.lacks_blocks();
    }

    /// Blocks went bad before the drive was started.
    pub(super) fn recount_spare(&mut self) {
        for plane in (0..self.geometry.planes()).map(PlaneId) {
            let grown = self.geometry.blocks_of(plane).filter(|block| self.is_remembered_bad(*block)).count();
            self.damage.has_lost_blocks[plane.0 as usize] = grown > 0;
            self.lose_usable(plane, grown as u64);
        }
        self.judge_blocks();
    }

    /// Spare blocks now, and when the drive was new.
    pub(super) fn spare(&self) -> (u64, u64) {
        (self.damage.usable.saturating_sub(self.damage.needed), self.damage.spare)
    }

    /// Whether each plane has its share of the needed blocks, and one more to continue with.
    pub(super) fn has_room_on_all_planes(&self) -> bool {
        let planes = self.geometry.planes();
        let share = self.damage.needed.div_ceil(planes.into());
        (0..planes).all(|plane| self.tables.good_blocks(PlaneId(plane)) > share)
    }

    fn lose_usable(&mut self, plane: PlaneId, blocks: u64) {
        self.damage.usable -= blocks;
        if let Some(range) = self.programs.allocation.range_of(plane) {
            self.damage.of_ranges[usize::from(range)] -= blocks;
        }
    }

    /// `blocks` blocks of a plane are not usable any more.
    fn use_less(&mut self, plane: PlaneId, blocks: u64) {
        self.lose_usable(plane, blocks);
        self.damage.read_only = self.damage.read_only.or(self.damage.lacks_blocks());
    }

    // ------------------------------------------------------------ blocks and planes

    /// An operation on a page has failed. Returns whether its plane stays in use.
    pub(super) fn take_note(&mut self, broken: Broken) -> bool {
        let block = self.geometry.block_of(broken.page);
        match broken.error {
            MediaError::Failed => self.stop_writing(block),
            MediaError::NoAnswer => self.take_out(self.geometry.plane_of(block)),
            MediaError::Uncorrectable | MediaError::PowerLost => {}
            // Nothing can be written any more, although no block is at fault.
            MediaError::Store => self.damage.read_only = Some(ReadOnly::Store),
            MediaError::Misuse(misuse) => panic!("a bug of the page FTL: {:?}: {misuse}", broken.page),
        }
        matches!(broken.error, MediaError::Failed | MediaError::Uncorrectable)
    }

    /// No more pages of a block are written; it is retired once those under way have ended.
    fn stop_writing(&mut self, block: BlockId) {
        self.tables.free.close(block);
        let info = self.tables.blocks.get_mut(block);
        if !matches!(info.state, BlockState::Bad | BlockState::Retiring) {
            info.state = BlockState::Retiring;
            self.remember_retiring(block);
            self.check_retiring(block);
            // The plane has less space now.
            self.wake_collector(self.geometry.plane_of(block));
        }
    }

    /// Empties a block to be retired, if nothing of it is under way any more.
    #[inline]
    pub(super) fn check_retiring(&mut self, block: BlockId) {
        let info = self.tables.blocks.get(block);
        if info.state == BlockState::Retiring && info.programmed == info.allocated {
            self.empty(block);
        }
    }

    /// A block has gone bad, and must be emptied.
    #[cold]
    fn empty(&mut self, block: BlockId) {
        let plane = self.geometry.plane_of(block);
        let retiring = &mut self.collectors.of_mut(plane).retiring;
        if !retiring.contains(&block) {
            retiring.push(block);
            self.check_collector(plane);
        }
    }

    /// A block is bad from now on. Nothing in it is current.
    pub(super) fn retire(&mut self, block: BlockId) {
        let plane = self.geometry.plane_of(block);
        self.tables.bad.retire(block);
        self.remember_bad(block);
        let info = self.tables.blocks.get_mut(block);
        *info = BlockInfo { state: BlockState::Bad, valid: 0, allocated: 0, programmed: 0, ..*info };
        self.counters.retired_blocks += 1;
        self.damage.has_lost_blocks[plane.0 as usize] = true;
        self.collectors.of_mut(plane).without_victim();
        if !self.collectors.is_out_of_use(plane) {
            self.use_less(plane, 1);
        }
        self.update_ready(plane);
        self.wake_collector(plane);
    }

    /// A plane is neither written nor cleaned any more.
    pub(super) fn take_out(&mut self, plane: PlaneId) {
        if self.collectors.take_out(plane) {
            self.use_less(plane, self.tables.good_blocks(plane));
            self.collectors.of_mut(plane).without_victim();
            self.update_ready(plane);
            self.check_group(plane);
        }
    }

    /// A collector leaves a block unchanged.
    pub(super) fn leave(&mut self, block: BlockId, retiring: bool) {
        let plane = self.geometry.plane_of(block);
        self.collectors.of_mut(plane).without_victim();
        self.tables.blocks.get_mut(block).state = if retiring { BlockState::Retiring } else { BlockState::Full };
        if retiring {
            self.empty(block);
        }
    }

    // ------------------------------------------------------------ data

    /// A page that has to be moved cannot be read: its current data is lost. `owner` returns the logical unit of the
    /// data at a unit.
    pub(super) fn lose_page(&mut self, page: PageId, owner: impl Fn(UnitId) -> Lpn) {
        for number in 0..self.geometry.units_per_page() {
            let unit = self.geometry.unit_at(page, number);
            if self.tables.blocks.is_valid(unit) {
                self.lose_unit(self.owner_of(unit, owner(unit)), unit);
            }
        }
    }

    /// Single units of pages that were read are lost.
    pub(super) fn lose_units(&mut self, units: &[UnitId], owner: impl Fn(UnitId) -> Lpn) {
        for unit in units {
            if self.tables.blocks.is_valid(*unit) {
                self.lose_unit(self.owner_of(*unit, owner(*unit)), *unit);
            }
        }
    }

    pub(super) fn lose_unit(&mut self, lpn: Lpn, unit: UnitId) {
        self.copy_moves(lpn);
        match self.tables.location(lpn) {
            Location::Buffered(slot) => {
                let holder = self.holder(slot);
                // If power drops the slot, the sectors that it holds are lost too.
                self.remember_lost_copy(lpn, Some(holder));
                let slot = self.buffer.slot_mut(holder);
                (slot.previous, slot.was_lost) = (Location::Unmapped, slot.was_lost | slot.mask);
                self.lose_rest(holder);
            }
            _ => {
                self.remember_lost_copy(lpn, None);
                self.tables.remap(lpn, Location::Unmapped);
                self.lose(lpn, self.unit.mask());
            }
        }
        self.drop_copy(Location::Flash(unit));
    }

    /// The sectors that a slot lacks cannot be read: they are lost, and the slot counts as whole.
    pub(super) fn lose_rest(&mut self, id: SlotId) {
        let slot = self.buffer.slot(id);
        let (lpn, missing) = (slot.lpn, self.unit.mask() & !slot.mask);
        if missing != 0 {
            self.lose(lpn, missing);
            self.buffer.fill(id, None);
        }
    }

    pub(super) fn lose(&mut self, lpn: Lpn, sectors: u64) {
        if sectors != 0 {
            self.remember_lost(lpn, sectors);
            self.counters.lost_units += u64::from(!self.damage.lost.contains_key(&lpn));
            *self.damage.lost.entry(lpn).or_default() |= sectors;
        }
    }

    /// The host declares sectors unreadable. They do not count as lost.
    pub(super) fn spoil(&mut self, piece: &Piece) {
        self.remember_lost(piece.lpn, piece.mask());
        *self.damage.lost.entry(piece.lpn).or_default() |= piece.mask();
    }

    /// Sectors are written again. Returns those that had been lost.
    pub(super) fn find_again(&mut self, piece: &Piece) -> u64 {
        let Some(lost) = self.damage.lost.get_mut(&piece.lpn) else { return 0 };
        let found = *lost & piece.mask();
        *lost &= !found;
        if *lost == 0 {
            self.damage.lost.remove(&piece.lpn);
        }
        if found != 0 {
            self.remember_found(piece.lpn, found);
        }
        found
    }

    pub(super) fn first_lost(&self, extent: Extent) -> Option<u64> {
        if self.damage.lost.is_empty() {
            return None;
        }
        extent.pieces(self.unit).find_map(|piece| {
            let lost = self.damage.lost.get(&piece.lpn)? & piece.mask();
            let first = u64::from(piece.lpn.0) * u64::from(self.unit.sectors());
            (lost != 0).then(|| first + u64::from(lost.trailing_zeros()))
        })
    }
}

impl PageFtl {
    /// If the drive has become read-only, notifies all waiters for writes.
    #[inline]
    pub(super) fn check_read_only(&self) {
        if self.media.store_has_failed() || self.state.borrow().damage.read_only.is_some() {
            self.tell_of_read_only();
        }
    }

    #[inline(never)]
    fn tell_of_read_only(&self) {
        let mut state = self.state.borrow_mut();
        if self.media.store_has_failed() {
            state.damage.read_only.get_or_insert(ReadOnly::Store);
        }
        if state.damage.read_only.is_none() || self.read_only.replace(state.damage.read_only).is_some() {
            return;
        }
        let watchers = state.buffer.give_up_watchers();
        drop(state);
        watchers.iter().for_each(|(settling, slots)| settling.give_up(*slots, Unwritable::ReadOnly));
        // No room will become free, so no command may wait for it.
        self.free_slots.give_up();
        // Nor may a command wait for a stripe, which may not find a page.
        self.stripe_ended.notify();
    }
}
