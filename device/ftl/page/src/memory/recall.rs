//! Rebuilding the map. It begins as in the snapshot, without entries in blocks that were erased since. The out-of-band
//! areas of all pages programmed since are read: of several copies of a unit the one with the highest number counts.
//! Then deallocations of the journal remove copies with lower numbers. Finally the kept slots of the write buffer count
//! where their numbers are higher.

use std::collections::BTreeMap;
use std::io;

use nandscape_device_ftl_core::address::{Location, Lpn, SlotId};
use nandscape_device_ftl_core::component::Mapping;
use nandscape_device_media::durable::{FoundSlot, PageRecord, PageStatus};
use nandscape_device_media::{Changed, PageId, UnitId};
use nandscape_sim::table::Table;

use super::super::mistakes::{self, Mistake};
use super::super::tables::{Map, sure};
use super::entry::Entry;
use super::pace::Pace;
use super::tables::{Kept, on_flash};
use super::trims::Trims;
use super::{Memory, sequence_of};

/// The rebuilt state.
pub(super) struct Recalled {
    /// With entries that point into the flash.
    pub(super) map: Map,
    /// Sectors that are lost, a bit each.
    pub(super) lost: BTreeMap<Lpn, u64>,
    /// The lost sectors whose next write did not reach flash. A later write of the same units must not count them as found
    /// again.
    pub(super) unsettled: Vec<(Lpn, u64)>,
    /// Slots of the write buffer, in the order of their numbers.
    pub(super) kept: Vec<Kept>,
    /// Units whose newest data was in a slot that is damaged.
    pub(super) damaged: Vec<(SlotId, Lpn)>,
    /// With the parts of the map that are not as in the snapshot.
    pub(super) pace: Pace,
    /// The highest number that was used.
    pub(super) sequence: u64,
    /// Whether nothing on flash has changed since the snapshot, and nothing was deallocated.
    pub(super) is_as_snapshot: bool,
}

/// The deallocated units: since the snapshot, and recently before it.
#[derive(Default)]
struct Deallocated {
    since: Trims,
    before: Trims,
}

impl Deallocated {
    fn all(&self) -> impl Iterator<Item = (std::ops::Range<u32>, u64)> {
        self.since.ranges().chain(self.before.ranges())
    }
}

struct Search<'a> {
    memory: &'a Memory,
    map: Map,
    /// Two halves for each logical unit: the number of the copy that counts, plus one, where that is known.
    numbers: Option<Table>,
    highest: u64,
    pace: Pace,
}

impl Memory {
    /// Finds the map.
    ///
    /// # Errors
    /// When the file cannot be read, or its snapshot is damaged.
    pub(super) fn recall(&self, logical_units: u32) -> io::Result<Recalled> {
        let highest = self.snapshot_numbers(logical_units)?.sequence;
        let (map, pace) = (self.snapshot_map(logical_units)?, Pace::new(logical_units));
        let mut search = Search { memory: self, map, numbers: None, highest, pace };
        let changed = self.media.changed_blocks();
        if !changed.is_empty() {
            search.numbers = Some(Table::new(logical_units as usize * 2)?);
            search.drop_erased(&changed);
            let looked_at = if mistakes::is_made(Mistake::SinceIgnored) { &[][..] } else { &changed };
            looked_at.iter().try_for_each(|block| search.look_at_block(block))?;
        }
        let entries = self.read_journal()?;
        search.highest = entries.iter().map(|entry| entry.sequence()).fold(search.highest, u64::max);
        let trims = search.trim(&entries);
        let (kept, damaged): (Vec<Kept>, Vec<Kept>) =
            search.keep_slots(&trims)?.into_iter().partition(|kept| kept.data.is_some());
        let lost = search.find_lost(&entries, &kept);
        let unsettled = unsettled(&entries, &lost);
        let is_as_snapshot = changed.is_empty() && trims.all().next().is_none();
        let damaged = damaged.iter().map(|kept| (kept.slot, kept.lpn)).collect();
        let Search { map, highest: sequence, pace, .. } = search;
        Ok(Recalled { map, lost, unsettled, kept, damaged, pace, sequence, is_as_snapshot })
    }

    fn read_journal(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        self.durable.entries(|entry| entries.extend(Entry::decode(entry)))?;
        Ok(entries)
    }
}

impl Search<'_> {
    fn location(&self, lpn: Lpn) -> Location {
        sure(self.map.lookup(lpn))
    }

    fn set(&mut self, lpn: Lpn, location: Location) {
        sure(self.map.upsert(lpn, location));
        self.pace.map_changes(lpn);
    }

    /// Drops entries that point into blocks that were erased since the snapshot or went bad: nothing in them is current.
    fn drop_erased(&mut self, changed: &[Changed]) {
        let geometry = *self.memory.media.geometry();
        let mut erased = vec![false; geometry.blocks() as usize];
        for Changed { block, was_erased, .. } in changed {
            erased[block.0 as usize] = *was_erased || self.memory.media.is_marked_bad(*block);
        }
        if !erased.contains(&true) || mistakes::is_made(Mistake::ErasedIgnored) {
            return;
        }
        for lpn in (0..self.map.units()).map(Lpn) {
            if let Location::Flash(unit) = self.location(lpn)
                && erased[geometry.block_of(geometry.page_of(unit)).0 as usize]
            {
                self.set(lpn, Location::Unmapped);
            }
        }
    }

    /// Reads the pages of a block that were programmed since the snapshot.
    fn look_at_block(&mut self, changed: &Changed) -> io::Result<()> {
        let media = &self.memory.media;
        if media.is_marked_bad(changed.block) {
            return Ok(());
        }
        let programmed = media.pages_programmed(changed.block);
        let mut pages: Vec<(PageId, PageRecord)> = Vec::new();
        media.page_records(changed.block, changed.first.min(programmed)..programmed, |page, record| {
            if record.status == PageStatus::Programmed {
                pages.push((page, record.clone()));
            }
        })?;
        let units = self.map.units();
        let known = |record: &PageRecord| record.units.iter().map(|unit| unit.tag).filter(|tag| *tag < units).collect();
        let tags: Vec<Vec<u32>> = pages.iter().map(|(_, record)| known(record)).collect();
        tags.iter().flatten().for_each(|tag| self.map.prefetch(Lpn(*tag)));
        for (page, record) in &pages {
            for (unit, number) in record.units.iter().zip(0..) {
                if unit.tag < units {
                    let place = self.memory.media.geometry().unit_at(*page, number);
                    self.consider(Lpn(unit.tag), place, sequence_of(&unit.oob));
                }
            }
        }
        Ok(())
    }

    /// Considers a copy of a unit. Of two with the same number, which are identical, the later one stays.
    fn consider(&mut self, lpn: Lpn, place: UnitId, sequence: u64) {
        self.highest = self.highest.max(sequence);
        let is_newest = self.number(lpn).is_none_or(|other| sequence >= other);
        if is_newest || mistakes::is_made(Mistake::NewestIgnored) {
            self.set(lpn, Location::Flash(place));
            self.set_number(lpn, sequence);
        }
    }

    /// The number of the copy on flash that counts so far.
    fn number(&self, lpn: Lpn) -> Option<u64> {
        if let Some(numbers) = &self.numbers {
            let half = |index| u64::from(numbers.get(lpn.0 * 2 + index));
            if let number @ 1.. = half(0) | half(1) << 32 {
                return Some(number - 1);
            }
        }
        let unit = on_flash(self.location(lpn))?;
        Some(sequence_of(&self.memory.media.oob(unit).bytes))
    }

    fn set_number(&mut self, lpn: Lpn, sequence: u64) {
        if let Some(numbers) = &mut self.numbers {
            let number = sequence + 1;
            numbers.set(lpn.0 * 2, number as u32);
            numbers.set(lpn.0 * 2 + 1, (number >> 32) as u32);
        }
    }

    /// Whether the copy that counts is older than the snapshot.
    fn is_of_snapshot(&self, lpn: Lpn) -> bool {
        let is_unknown = |numbers: &Table| numbers.get(lpn.0 * 2) == 0 && numbers.get(lpn.0 * 2 + 1) == 0;
        self.numbers.as_ref().is_none_or(is_unknown)
    }

    /// Removes deallocated copies: all copies from before the snapshot of units deallocated since, and copies with
    /// lower numbers.
    fn trim(&mut self, entries: &[Entry]) -> Deallocated {
        let mut trims = Deallocated::default();
        let units = self.map.units();
        let range = |lpn: u32, count: u32| lpn.min(units)..lpn.saturating_add(count).min(units);
        for entry in entries {
            match *entry {
                Entry::Trim { .. } if mistakes::is_made(Mistake::TrimsIgnored) => {}
                Entry::Trim { sequence, lpn, count } => trims.since.add(range(lpn, count), sequence),
                Entry::Void { sequence, lpn, count } => trims.before.add(range(lpn, count), sequence),
                Entry::Lost { .. } | Entry::Found { .. } => {}
            }
        }
        for (range, sequence) in trims.before.ranges() {
            range.map(Lpn).for_each(|lpn| self.void_below(lpn, sequence));
        }
        for (range, sequence) in trims.since.ranges() {
            for lpn in range.map(Lpn) {
                match self.is_of_snapshot(lpn) || mistakes::is_made(Mistake::TrimsOverNewer) {
                    true => self.forget(lpn),
                    false => self.void_below(lpn, sequence),
                }
            }
        }
        trims
    }

    fn void_below(&mut self, lpn: Lpn, sequence: u64) {
        if self.location(lpn) != Location::Unmapped && self.number(lpn) < Some(sequence) {
            self.forget(lpn);
        }
    }

    fn forget(&mut self, lpn: Lpn) {
        if self.location(lpn) != Location::Unmapped {
            self.set(lpn, Location::Unmapped);
            self.forget_number(lpn);
        }
    }

    fn forget_number(&mut self, lpn: Lpn) {
        if let Some(numbers) = &mut self.numbers {
            numbers.set(lpn.0 * 2, 0);
            numbers.set(lpn.0 * 2 + 1, 0);
        }
    }

    /// The slots with newer data than the flash, one per unit.
    fn keep_slots(&mut self, trims: &Deallocated) -> io::Result<Vec<Kept>> {
        let mut newest: BTreeMap<u32, Kept> = BTreeMap::new();
        if !self.memory.keeps_buffer {
            return Ok(Vec::new());
        }
        for FoundSlot { record, data } in self.memory.durable.slots()? {
            let sequence = record.sequence;
            self.highest = self.highest.max(sequence);
            let is_known = record.lpn < self.map.units();
            let is_newer = is_known
                && (mistakes::is_made(Mistake::SlotsOverNewer)
                    || self.number(Lpn(record.lpn)).is_none_or(|number| sequence > number));
            let is_newest = newest.get(&record.lpn).is_none_or(|other| sequence > other.sequence);
            let is_void =
                [trims.since.of(record.lpn), trims.before.of(record.lpn)].iter().any(|trim| Some(sequence) < *trim);
            if is_newer && is_newest && !is_void {
                let (slot, lpn) = (SlotId(record.slot), Lpn(record.lpn));
                let kept = Kept { slot, lpn, sequence, mask: record.mask, was_lost: record.was_lost, data };
                newest.insert(record.lpn, kept);
            }
        }
        let mut kept: Vec<Kept> = newest.into_values().collect();
        kept.sort_by_key(|kept| kept.sequence);
        Ok(kept)
    }

    /// Finds the lost sectors, entry by entry.
    fn find_lost(&self, entries: &[Entry], kept: &[Kept]) -> BTreeMap<Lpn, u64> {
        let in_buffer: BTreeMap<Lpn, u64> = kept.iter().map(|kept| (kept.lpn, kept.sequence)).collect();
        let mut lost: BTreeMap<Lpn, u64> = BTreeMap::new();
        for entry in entries {
            match *entry {
                Entry::Trim { lpn, count, .. } => {
                    let covered = lost.range(Lpn(lpn)..Lpn(lpn.saturating_add(count)));
                    let covered: Vec<Lpn> = covered.map(|(lpn, _)| *lpn).collect();
                    covered.iter().for_each(|lpn| _ = lost.remove(lpn));
                }
                Entry::Lost { lpn, sectors, .. } if lpn < self.map.units() => {
                    *lost.entry(Lpn(lpn)).or_default() |= sectors;
                }
                Entry::Found { sequence, lpn, sectors } if lpn < self.map.units() => {
                    let number = in_buffer.get(&Lpn(lpn)).copied().max(self.number(Lpn(lpn)));
                    if number >= Some(sequence) && !mistakes::is_made(Mistake::FoundIgnored) {
                        lost.entry(Lpn(lpn)).and_modify(|lost| *lost &= !sectors);
                    }
                }
                Entry::Lost { .. } | Entry::Found { .. } | Entry::Void { .. } => {}
            }
        }
        lost.retain(|_, sectors| *sectors != 0);
        lost
    }
}

fn unsettled(entries: &[Entry], lost: &BTreeMap<Lpn, u64>) -> Vec<(Lpn, u64)> {
    let mut unsettled: BTreeMap<Lpn, u64> = BTreeMap::new();
    for entry in entries {
        if let Entry::Found { lpn, sectors, .. } = *entry
            && let Some(left) = lost.get(&Lpn(lpn)).map(|lost| lost & sectors).filter(|left| *left != 0)
        {
            *unsettled.entry(Lpn(lpn)).or_default() |= left;
        }
    }
    unsettled.into_iter().collect()
}
