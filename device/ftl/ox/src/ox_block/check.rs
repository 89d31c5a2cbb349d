//! The invariants: no unit mapped twice, every unit that counts as current is, no block lost. Slow; for tests and `--check`.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, CachedMapping, Entry, LineProvisioning, Mapping, Miss, StoredBlocks,
};
use nandscape_device_media::{BlockId, Media, PageId, PlaneId, UnitId};

use super::pages::{self, Kind, NO_LPN};
use super::state::State;
use super::streams::LOG;
use crate::parts::{FIXED, MapPart, numbers_of_bytes};

impl State {
    /// Checks the tables against each other and against the flash.
    pub(super) fn check(&self, media: &Media) -> Result<(), String> {
        let mut referred = vec![false; self.geometry.units() as usize];
        for lpn in (0..self.map.units()).map(Lpn) {
            if let Some(unit) = entry(&self.map, media, lpn)?.unit() {
                self.refer(&mut referred, unit, &format!("{lpn:?}"))?;
                let tag = media.tag(unit);
                if tag != lpn.0 {
                    let tag = if tag == NO_LPN { "nothing".to_owned() } else { format!("{:?}", Lpn(tag)) };
                    return Err(format!("{lpn:?} is mapped to {unit:?}, which holds {tag}"));
                }
            }
        }
        let tables = [
            (Kind::MapLarge, self.map.small().len()),
            (Kind::MapSmall, self.map.tiny().len()),
            (Kind::Chunks, self.chunk_small.len()),
        ];
        for (kind, len) in tables {
            for index in 0..len {
                if let Some(page) = self.fragment(kind, index) {
                    self.check_fragment(&mut referred, media, kind, index, page)?;
                }
            }
        }
        for unit in (0..self.geometry.units()).map(UnitId) {
            let (valid, referred) = (self.chunks.is_valid(unit), referred[unit.0 as usize]);
            if valid != referred {
                let block = self.block_of(unit);
                let (info, stream) = (self.chunks.get(block), self.chunks.stream(block));
                let what = format!("{unit:?} of {block:?}, {info:?} of {stream:?}, tag {}", media.tag(unit) as i32);
                return Err(format!("{what}, is {}valid, but {}referred to", not(valid), not(referred)));
            }
        }
        self.check_collected()?;
        self.cache.check()?;
        self.check_ready()?;
        self.check_lost()?;
        (0..self.geometry.planes()).try_for_each(|plane| self.check_plane(PlaneId(plane)))
    }

    fn refer(&self, referred: &mut [bool], unit: UnitId, by: &str) -> Result<(), String> {
        match std::mem::replace(&mut referred[unit.0 as usize], true) {
            true => Err(format!("{unit:?} is referred to twice, the second time by {by}")),
            false => Ok(()),
        }
    }

    fn check_fragment(
        &self,
        referred: &mut [bool],
        media: &Media,
        kind: Kind,
        index: u32,
        page: PageId,
    ) -> Result<(), String> {
        for unit in 0..self.geometry.units_per_page() {
            self.refer(referred, self.geometry.unit_at(page, unit), &format!("{kind:?} {index}"))?;
        }
        match pages::contents(media, page) {
            Some((found, number, _)) if (found, number) == (kind, index) => Ok(()),
            found => Err(format!("{kind:?} {index} is not at {page:?}: {:?}", found.map(|found| (found.0, found.1)))),
        }
    }

    /// Every block of a plane is in one place.
    fn check_plane(&self, plane: PlaneId) -> Result<(), String> {
        let mut free = 0;
        for block in self.geometry.blocks_of(plane) {
            let info = self.chunks.get(block);
            let stream = self.chunks.stream(block);
            let is_listed = stream != FIXED && self.provisioning.open(plane, stream) == Some(block);
            let is_right = match info.state {
                BlockState::Free => {
                    free += 1;
                    info.valid == 0 && info.allocated == 0
                }
                BlockState::Bad => self.bad.is_bad(block) && info.valid == 0,
                BlockState::Open(_) => {
                    // All pages of a block that is not in the list have been handed out, and programs are under way; or its plane
                    // has died.
                    let is_dead = self.dead[plane.0 as usize];
                    stream == FIXED || is_listed || is_dead || info.allocated >= self.data_pages
                }
                BlockState::Full => !is_listed || stream == LOG,
                BlockState::Collecting | BlockState::Retiring => !is_listed,
            };
            let units = self.geometry.units_per_block();
            let of_block = (block.0 * units..(block.0 + 1) * units).map(UnitId);
            let valid = of_block.filter(|unit| self.chunks.is_valid(*unit)).count() as u32;
            if !is_right || valid != info.valid {
                return Err(format!(
                    "{block:?} is {info:?} of {stream:?}, in the list: {is_listed}, {valid} units valid"
                ));
            }
        }
        let listed = self.provisioning.free_blocks(plane);
        match listed == free {
            true => Ok(()),
            false => Err(format!("{plane:?} has {free} free blocks, and {listed} are listed")),
        }
    }

    /// Every collected block returns: it is being emptied, waits for a checkpoint, or is being erased.
    fn check_collected(&self) -> Result<(), String> {
        let is_collected = |block: &BlockId| self.chunks.get(*block).state == BlockState::Collecting;
        let collected = (0..self.geometry.blocks()).map(BlockId).filter(is_collected).count();
        let (held, others) = (self.held.len(), (self.emptying + self.releasing) as usize);
        match self.held.iter().all(is_collected) && collected == held + others {
            true => Ok(()),
            false => Err(format!(
                "{collected} blocks are collected; {held} wait for a checkpoint, and {others} are being emptied or erased"
            )),
        }
    }
}

/// The entry of a unit, from flash if its fragment is not in memory.
pub(super) fn entry(map: &MapPart, media: &Media, lpn: Lpn) -> Result<Entry, String> {
    match map.lookup(lpn) {
        Ok(entry) => Ok(entry),
        Err(miss) => {
            let contents = pages::contents(media, miss.page());
            let (_, _, bytes) = contents.ok_or_else(|| format!("map fragment {} cannot be read", miss.index))?;
            let number = lpn.0 as usize % (bytes.len() / Entry::SIZE);
            Ok(Entry::from_raw(numbers_of_bytes(&bytes).nth(number).expect("it is in the fragment")))
        }
    }
}

fn not(truth: bool) -> &'static str {
    if truth { "" } else { "not " }
}
