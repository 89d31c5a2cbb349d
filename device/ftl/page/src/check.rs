//! The invariants: no unit mapped twice, every valid count right, no block lost. Slow; for tests and `--check`.

use nandscape_device_ftl_core::address::{Location, Lpn, SlotId};
use nandscape_device_ftl_core::component::{BadBlocks, BlockMetadata, BlockState, Mapping, Provisioning};
use nandscape_device_media::{BlockId, Media, PlaneId, UnitId};

use super::buffer::SlotState;
use super::state::State;
use super::write::NO_LPN;

impl State {
    /// Checks the tables against each other and against the tags in the flash.
    pub(super) fn check(&self, media: &Media) -> Result<(), String> {
        let mut referred = vec![false; self.geometry.units() as usize];
        for lpn in (0..self.tables.map.units()).map(Lpn) {
            match self.tables.location(lpn) {
                Location::Unmapped => {}
                Location::Flash(unit) => self.refer(&mut referred, media, lpn, unit)?,
                Location::Buffered(slot) => self.check_slot(&mut referred, media, lpn, slot)?,
            }
        }
        for unit in (0..self.geometry.units()).map(UnitId) {
            let (valid, referred) = (self.tables.blocks.is_valid(unit), referred[unit.0 as usize]);
            if valid != referred {
                return Err(format!("{unit:?} is {}valid, but {}referred to", not(valid), not(referred)));
            }
        }
        self.buffer.check()?;
        self.check_stripes(media)?;
        (0..self.geometry.blocks()).try_for_each(|block| self.check_block(BlockId(block)))?;
        (0..self.geometry.planes()).try_for_each(|plane| self.check_plane(PlaneId(plane)))
    }

    fn refer(&self, referred: &mut [bool], media: &Media, lpn: Lpn, unit: UnitId) -> Result<(), String> {
        if std::mem::replace(&mut referred[unit.0 as usize], true) {
            return Err(format!("{unit:?} is referred to twice, the second time by {lpn:?}"));
        }
        let tag = media.tag(unit);
        if tag != lpn.0 {
            let tag = if tag == NO_LPN { "nothing".to_owned() } else { format!("{:?}", Lpn(tag)) };
            return Err(format!("{lpn:?} is mapped to {unit:?}, which holds {tag}"));
        }
        Ok(())
    }

    fn check_slot(&self, referred: &mut [bool], media: &Media, lpn: Lpn, id: SlotId) -> Result<(), String> {
        let slot = self.buffer.slot(id);
        if slot.lpn != lpn || slot.state == SlotState::Free {
            return Err(format!("{lpn:?} is mapped to {id:?}, which holds {:?} and is {:?}", slot.lpn, slot.state));
        }
        let previous = match slot.previous {
            Location::Buffered(before) => self.buffer.slot(before).previous,
            copy => copy,
        };
        match previous {
            Location::Flash(unit) => self.refer(referred, media, lpn, unit),
            _ => Ok(()),
        }
    }

    fn check_block(&self, block: BlockId) -> Result<(), String> {
        let info = self.tables.blocks.get(block);
        let valid = self.tables.blocks.valid_units(block, UnitId(0)).count() as u32;
        let pages = self.geometry.pages_per_block();
        let sound = match info.state {
            BlockState::Bad | BlockState::Free => (info.valid, info.allocated, info.programmed) == (0, 0, 0),
            BlockState::Open(_) => info.programmed <= info.allocated && info.programmed < pages,
            BlockState::Full => info.programmed == pages,
            BlockState::Collecting => true,
            BlockState::Retiring => info.programmed <= info.allocated,
        };
        let bad = self.tables.bad.is_bad(block) == (info.state == BlockState::Bad);
        match sound && bad && valid == info.valid {
            true => Ok(()),
            false => Err(format!("{block:?} has {valid} valid units, and is recorded as {info:?}")),
        }
    }

    fn check_plane(&self, plane: PlaneId) -> Result<(), String> {
        let free =
            self.geometry.blocks_of(plane).filter(|block| self.tables.blocks.get(*block).state == BlockState::Free);
        let (counted, listed) = (free.count() as u32, self.tables.free.free_blocks(plane));
        match counted == listed {
            true => Ok(()),
            false => Err(format!("{plane:?} has {counted} free blocks, and lists {listed}")),
        }
    }
}

fn not(truth: bool) -> &'static str {
    if truth { "" } else { "not " }
}
