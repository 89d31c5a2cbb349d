//! The handles of an FTL with placement: the owner of each block's data, and the counters by handle.
//!
//! A reclaim unit is a superblock, one block on each plane. Planes open and fill their blocks independently, so the rest of a
//! unit is counted as data is programmed, instead of looked up.
//!
//! Units planted before the drive was used were written by no host. When collections move such a unit, the move counts
//! for no handle until a host writes the unit.
//!
//! Saved states include the owners of blocks, and the units that no host has written.
//!
//! Left out: the owners of a full block's data from before the drive was started from a file: the first handle is
//! assumed. There persistent isolation holds for later writes.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Mapping, Stream};
use nandscape_device_ftl_core::placement::{
    HandleReport, Interface, Isolation, PlacementConfig, PlacementEvent, PlacementReport,
};
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_device_media::{BlockId, Geometry, PageId, PlaneId, UnitId};

use super::moves::Moves;
use super::state::State;
use super::streams;

/// Data of several handles.
const MIXED: u8 = u8::MAX;

/// See the module.
pub(super) struct Placed {
    pub(super) config: PlacementConfig,
    /// The handle whose data a block holds, by block.
    owners: Vec<u8>,
    handles: Vec<HandleReport>,
    /// A bit for each logical unit that was planted, and that no host has written since; empty where nothing was planted.
    planted: Vec<u64>,
    mixed_moved: u64,
    planted_moved: u64,
    unit_bytes: u64,
    /// Called with the drive's own changes.
    pub(super) told: Box<dyn Fn(PlacementEvent)>,
}

impl Placed {
    /// `None` without handles.
    pub(super) fn new(geometry: &Geometry, config: PlacementConfig) -> Option<Placed> {
        let unit_bytes =
            u64::from(geometry.planes()) * u64::from(geometry.units_per_block()) * u64::from(geometry.unit_size());
        let fresh = HandleReport { left: unit_bytes, ..HandleReport::default() };
        (config.handles > 0).then(|| Placed {
            config,
            owners: vec![0; geometry.blocks() as usize],
            handles: vec![fresh; usize::from(config.handles)],
            planted: Vec::new(),
            mixed_moved: 0,
            planted_moved: 0,
            unit_bytes,
            told: Box::new(|_| ()),
        })
    }

    /// Saves the number of handles, the owner of each block, and the units that no host has written.
    pub(super) fn save(&self, to: &mut Writer) {
        to.byte(self.config.handles);
        to.bytes(&self.owners);
        to.longs(&self.planted);
    }

    /// All data written so far, of `units` logical units, was written by no host. Ranges have the data that lies in
    /// them, whoever wrote it.
    pub(super) fn plant(&mut self, units: u32) {
        if self.config.interface == Interface::Ranges {
            return;
        }
        self.planted = vec![u64::MAX; (units as usize).div_ceil(64)];
    }

    /// Whether a unit was planted and not written by a host since.
    fn is_planted(&self, lpn: Lpn) -> bool {
        self.planted.get(lpn.0 as usize / 64).is_some_and(|word| word >> (lpn.0 % 64) & 1 != 0)
    }

    /// A host writes a unit.
    pub(super) fn written(&mut self, lpn: Lpn) {
        if let Some(word) = self.planted.get_mut(lpn.0 as usize / 64) {
            *word &= !(1 << (lpn.0 % 64));
        }
    }

    /// Bytes for memory figures.
    pub(super) fn memory(&self) -> u64 {
        (self.owners.len() + self.planted.len() * 8) as u64
    }

    /// A block has been opened for a stream.
    pub(super) fn opened(&mut self, block: BlockId, stream: Stream) {
        self.owners[block.0 as usize] = streams::handle_of(&self.config, stream).unwrap_or(MIXED);
    }

    /// The stream for data moved out of a block.
    pub(super) fn moves_to(&self, block: BlockId) -> Stream {
        streams::collected_of(&self.config, self.owners[block.0 as usize])
    }

    /// The handle whose data a block holds; `None` where it is of several.
    pub(super) fn owner(&self, block: BlockId) -> Option<u8> {
        Some(self.owners[block.0 as usize]).filter(|owner| *owner != MIXED)
    }

    /// Bytes were written by a host.
    pub(super) fn accepted(&mut self, handle: u8, bytes: u64) {
        let of = &mut self.handles[usize::from(handle)];
        of.host_written += bytes;
        of.is_used = true;
    }

    /// Pages of a handle were programmed, which hold `bytes` of data and `padding`.
    pub(super) fn programmed(&mut self, handle: u8, bytes: u64, padding: u64) {
        let (unit, of) = (self.unit_bytes, &mut self.handles[usize::from(handle)]);
        of.programmed += bytes;
        let used = (bytes + padding) % unit;
        of.left = if of.left > used { of.left - used } else { of.left + unit - used };
    }

    /// Data was moved out of a block, `planted` bytes of which no host has written.
    pub(super) fn moved(&mut self, from: BlockId, bytes: u64, planted: u64) {
        let handle = self.owners[from.0 as usize];
        match self.handles.get_mut(usize::from(handle)) {
            Some(of) => {
                of.moved += bytes - planted;
                self.planted_moved += planted;
            }
            None => return self.mixed_moved += bytes,
        }
        if self.config.isolation == Isolation::Initial {
            (self.told)(PlacementEvent::Moved { handle, bytes });
        }
    }

    /// A handle continues in another block.
    pub(super) fn left(&self, handle: u8) {
        (self.told)(PlacementEvent::Left { handle });
    }
}

/// Reads the saved state, for a drive that may have other handles, or none. Data of a handle that the drive lacks has
/// no particular owner.
pub(super) fn restore(
    placed: Option<&mut Placed>,
    (blocks, units): (u32, u32),
    from: &mut Reader<'_>,
) -> Result<(), Malformed> {
    let (handles, owners) = (from.byte()?, from.bytes()?);
    let count = if from.is_at_end() { 0 } else { from.count(8)? };
    let planted = (0..count).map(|_| from.long()).collect::<Result<Vec<u64>, Malformed>>()?;
    if planted.len() != units.div_ceil(64) as usize && !planted.is_empty() {
        return Err(from.malformed(format!("{} words tell which of {units} units no host has written", planted.len())));
    }
    let is_owner = |owner: &u8| *owner < handles || *owner == MIXED;
    if owners.len() != blocks as usize || !owners.iter().all(is_owner) {
        return Err(from.malformed(format!("blocks belong to others than {handles} handles")));
    }
    if let Some(placed) = placed {
        let handles = placed.config.handles;
        placed.planted = planted;
        placed.owners = owners.iter().map(|owner| if *owner < handles { *owner } else { MIXED }).collect();
    }
    Ok(())
}

impl State {
    /// The figures of the handles. The caller adds the media's own counters.
    pub(super) fn placement_report(&self) -> Option<PlacementReport> {
        let placed = self.placed.as_ref()?;
        let unit = u64::from(self.geometry.unit_size());
        let block = u64::from(self.geometry.units_per_block()) * unit;
        let counters = &self.counters;
        Some(PlacementReport {
            isolation: placed.config.isolation,
            interface: placed.config.interface,
            page_bytes: self.geometry.page_size(),
            unit_bytes: placed.unit_bytes,
            media_written: (counters.host_units + counters.moved() + counters.padding_units) * unit,
            media_erased: self.tables.all_erases() * block,
            mixed_moved: placed.mixed_moved,
            planted_moved: placed.planted_moved,
            handles: placed.handles.clone(),
        })
    }

    /// The handle that places a unit: its range if ranges exist, otherwise the handle that the host named.
    pub(super) fn handle_of(&self, lpn: Lpn, named: u8) -> u8 {
        match &self.placed {
            Some(placed) if placed.config.interface == Interface::Ranges => {
                let ranges = u64::from(placed.config.handles);
                (u64::from(lpn.0) * ranges / u64::from(self.tables.map.units())) as u8
            }
            _ => named,
        }
    }

    /// A page of a block that is open for a stream was taken.
    #[inline]
    pub(super) fn opened(&mut self, page: PageId, stream: Stream) {
        if let Some(placed) = &mut self.placed {
            placed.opened(self.geometry.block_of(page), stream);
        }
    }

    /// Open blocks hold data of the handles whose streams they are open for.
    pub(super) fn find_owners(&mut self) {
        let Some(placed) = &mut self.placed else { return };
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if let BlockState::Open(stream) = self.tables.blocks.get(block).state {
                placed.opened(block, stream);
            }
        }
    }

    /// The stream for data moved out of a block.
    pub(super) fn moves_to(&self, block: BlockId) -> Stream {
        self.placed.as_ref().map_or(streams::COLLECTED, |placed| placed.moves_to(block))
    }

    /// The host stream whose open block a collector takes over if it finds no other.
    pub(super) fn host_beside(&self, stream: Stream) -> Stream {
        let handle = self.placed.as_ref().and_then(|placed| streams::handle_of(&placed.config, stream));
        streams::of_handle(handle.unwrap_or_default())
    }

    /// A collector takes a page of a plane from the open block of a stream of hosts, if there is one.
    pub(super) fn taken_over(&self, plane: PlaneId, stream: Stream) {
        let Some(placed) = &self.placed else { return };
        let handle = streams::handle_of(&placed.config, stream);
        if let Some(handle) = handle.filter(|_| self.tables.free.open(plane, stream).is_some()) {
            placed.left(handle);
        }
    }

    /// Counts units that were moved out of a block. `lpn` returns the logical unit of the data at a unit.
    #[cold]
    pub(super) fn count_placed(&mut self, moves: &Moves, lpn: impl Fn(UnitId) -> Lpn) {
        let per_page = self.geometry.units_per_page();
        let copied_units =
            moves.copybacks.iter().flat_map(|(from, _)| (0..per_page).map(|unit| self.geometry.unit_at(*from, unit)));
        let (mut units, mut planted) = (0, 0);
        for unit in copied_units.chain(moves.units.iter().copied()) {
            units += 1;
            planted += u64::from(self.placed.as_ref().is_some_and(|placed| placed.is_planted(lpn(unit))));
        }
        let copied = moves.copybacks.first().map(|(from, _)| *from);
        let from = copied.or_else(|| moves.units.first().map(|unit| self.geometry.page_of(*unit)));
        if let (Some(placed), Some(from)) = (&mut self.placed, from) {
            let bytes = u64::from(self.geometry.unit_size());
            placed.moved(self.geometry.block_of(from), units * bytes, planted * bytes);
        }
    }

    /// Starts a reclaim unit of a handle: the handle's open blocks take no more data.
    pub(super) fn change_unit(&mut self, handle: u8) {
        let Some(placed) = &mut self.placed else { return };
        let unit = placed.unit_bytes;
        let Some(of) = placed.handles.get_mut(usize::from(handle)) else { return };
        of.left = unit;
        for plane in (0..self.geometry.planes()).map(PlaneId) {
            let Some(block) = self.tables.free.open(plane, streams::of_handle(handle)) else { continue };
            if self.tables.blocks.get(block).allocated > 0 {
                self.tables.free.seal(&mut self.tables.blocks, block);
                self.set_fruitful(plane);
            }
            // The plane has less space now; otherwise its collector would notice only when the host takes a page of it.
            self.update_ready(plane);
            self.check_collector(plane);
            self.wake_collector(plane);
        }
    }
}
