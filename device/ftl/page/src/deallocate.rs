//! Deallocation: units that read as zeros from now on.
//!
//! A deallocation may cover the whole drive. It runs step by step, firmware takes its time for each step, and the steps
//! of several deallocations take turns. However many there are, they cost the host that runs the model a bounded share
//! of its time.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Location, Piece, SlotId};
use nandscape_device_ftl_core::component::Mapping;
use nandscape_device_ftl_core::ftl::{LEAST_STEP_TIME, Settling, UNMAPPED, Unwritable};
use nandscape_device_media::MediaError;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Class, Who};

use super::PageFtl;
use super::buffer::SlotState;
use super::state::State;
use super::tables::MapMiss;

/// Sectors deallocated in one step.
const STEP: u32 = 1 << 15;

/// The progress of a deallocation.
#[derive(Default)]
struct Deallocation {
    /// Pieces done.
    done: usize,
    /// Slots of the write buffer that it has freed.
    freed: usize,
    /// Waiters for these slots to reach the flash.
    watchers: Vec<Rc<Settling>>,
    /// Whether durable memory could not store it.
    refused: bool,
}

impl State {
    /// Deallocates the whole units of an extent, from where `deallocation` stopped.
    fn deallocate(&mut self, extent: Extent, deallocation: &mut Deallocation) -> Result<(), MapMiss> {
        if deallocation.done == 0 && self.memory.is_some() && self.remember_deallocation(extent).is_err() {
            deallocation.refused = true;
            return Ok(());
        }
        let whole = self.unit.sectors();
        for piece in extent.pieces(self.unit).skip(deallocation.done) {
            if piece.sectors == whole {
                self.deallocate_unit(&piece, deallocation)?;
            }
            deallocation.done += 1;
        }
        Ok(())
    }

    /// The whole units of an extent are one entry.
    fn remember_deallocation(&mut self, extent: Extent) -> Result<(), MediaError> {
        let whole = self.unit.sectors();
        let mut units = extent.pieces(self.unit).filter(|piece| piece.sectors == whole);
        let Some(first) = units.next() else { return Ok(()) };
        self.remember_trim(first.lpn, 1 + units.count() as u32)?;
        self.snapshot_if_due();
        Ok(())
    }

    fn deallocate_unit(&mut self, piece: &Piece, deallocation: &mut Deallocation) -> Result<(), MapMiss> {
        let location = self.tables.map.lookup(piece.lpn)?;
        if location != Location::Unmapped {
            self.tables.map.upsert(piece.lpn, Location::Unmapped)?;
        }
        if location != Location::Unmapped {
            self.copy_moves(piece.lpn);
        }
        match location {
            Location::Unmapped => {}
            Location::Buffered(slot) => self.drop_slot(slot, deallocation),
            copy => self.drop_copy(copy),
        }
        self.find_again(piece);
        Ok(())
    }

    /// A slot's unit is not mapped any more: neither its data nor the copies that it would have replaced are current.
    fn drop_slot(&mut self, slot: SlotId, deallocation: &mut Deallocation) {
        let previous = std::mem::replace(&mut self.buffer.slot_mut(slot).previous, Location::Unmapped);
        match previous {
            Location::Buffered(before) => {
                let older = std::mem::replace(&mut self.buffer.slot_mut(before).previous, Location::Unmapped);
                self.drop_copy(older);
            }
            copy => self.drop_copy(copy),
        }
        // A slot that is being programmed is freed when that has ended.
        if self.buffer.slot(slot).state != SlotState::Programming {
            deallocation.freed += 1;
            deallocation.watchers.extend(self.buffer.remove(slot));
        }
    }
}

/// See [`RandomWrites::deallocate`](nandscape_device_ftl_core::RandomWrites::deallocate).
pub(super) async fn deallocate(ftl: &PageFtl, extent: Extent, breakdown: &mut Breakdown) -> Result<(), MediaError> {
    let who = Who::new(cause::HOST_WRITE, Class::new(0));
    if ftl.config.rain.is_some() {
        let began = ftl.sim.now();
        let deallocated = ftl.deallocate_stripes(extent).await;
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, ftl.sim.now() - began);
        deallocated?;
        let units = u64::from(extent.units(ftl.state.borrow().unit));
        let time = ftl.config.firmware.deallocate_unit * units;
        ftl.deallocating.occupy(time, who, breakdown.waits(Stage::Queue)).await;
        breakdown.spend(Stage::Firmware, time);
        return Ok(());
    }
    for step in extent.steps(STEP) {
        let mut deallocation = Deallocation::default();
        while let Some(miss) = ftl.deallocate_step(step, &mut deallocation) {
            ftl.load(miss, breakdown).await?;
            ftl.state.borrow_mut().tables.map.loaded(miss, &[]);
        }
        if deallocation.refused {
            return Err(MediaError::Store);
        }
        let units = u64::from(step.units(ftl.state.borrow().unit));
        ftl.sim.note_work(units / UNMAPPED);
        let time = ftl.config.firmware.deallocate_unit * units;
        let time = if step.end() < extent.end() { time.max(LEAST_STEP_TIME) } else { time };
        ftl.deallocating.occupy(time, who, breakdown.waits(Stage::Queue)).await;
        breakdown.spend(Stage::Firmware, time);
    }
    match ftl.state.borrow().sync() {
        true => Ok(()),
        false => Err(MediaError::Store),
    }
}

impl PageFtl {
    /// Deallocates the whole units of an extent, from where `deallocation` stopped. `Some` is a part of the map that must
    /// be loaded before the deallocation can continue.
    fn deallocate_step(&self, extent: Extent, deallocation: &mut Deallocation) -> Option<MapMiss> {
        let deallocated = self.state.borrow_mut().deallocate(extent, deallocation);
        let is_safe = deallocation.watchers.is_empty() || self.state.borrow().sync();
        deallocation.watchers.drain(..).for_each(|settling| match is_safe {
            true => settling.one_settled(None),
            false => settling.give_up(1, Unwritable::ReadOnly),
        });
        self.free_slots.give(std::mem::take(&mut deallocation.freed));
        self.start_collectors();
        deallocated.err()
    }
}
