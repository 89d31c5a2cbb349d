//! The durable state that the FTL keeps outside of its tables, for flash in a file: enough to rebuild the tables.
//!
//! | file | what |
//! |---|---|
//! | `entry` | entries of the journal: what the flash itself does not record |
//! | `trims` | deallocations and their numbers |
//! | `tables` | tables as a snapshot |
//! | `recall` | rebuilding the map: snapshot, records of pages, journal |
//! | `start` | all tables of a drive that is started |
//! | `pace` | when snapshots are written, a chunk at a time |
//!
//! Every write of the host has a number, which is stored with its data in the out-of-band area and moves with the data:
//! of several copies the one with the highest number counts. A deallocation has a number as well, and is in the
//! journal, as are lost sectors. A write buffer that outlasts power is written slot by slot as the host writes.
//!
//! Snapshots of the tables are written as the host writes, and at an orderly stop. After a kill the last snapshot gives
//! the state of all blocks unchanged since it began, and the out-of-band areas of the other blocks give the rest.

mod entry;
mod pace;
mod recall;
mod start;
mod tables;
mod trims;

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Location, Lpn, SlotId};
use nandscape_device_ftl_core::ftl::{Stats, UNITS_COUNTED};
use nandscape_device_media::durable::{DurableMemory, SlotRecord};
use nandscape_device_media::{BlockId, Media, MediaError, Oob, OobBytes};

use super::mistakes::{self, Mistake};
use super::state::State;
use entry::Entry;
use pace::Pace;
pub(super) use start::start;
pub(super) use tables::snapshot_bytes;

#[cfg(test)]
mod tests;

/// See the module.
pub(super) struct Memory {
    media: Rc<Media>,
    durable: Rc<DurableMemory>,
    /// The number of the last write.
    sequence: u64,
    /// Whether the write buffer is kept.
    keeps_buffer: bool,
    /// Units of the host's data up to which the counters were written.
    counted: u64,
    pace: Pace,
}

/// The number in an out-of-band area.
fn sequence_of(bytes: &OobBytes) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("an area is as long"))
}

impl Memory {
    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn append(&self, entry: Entry) -> Result<(), MediaError> {
        self.durable.append(&entry.encode())
    }
}

impl State {
    /// A write to a slot of the buffer: it has the next number. With a buffer that is kept, it is written; `is_alone` if
    /// the host's write is to this slot only.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(super) fn remember_write(&mut self, id: SlotId, is_alone: bool) -> Result<(), MediaError> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let sequence = memory.next();
        self.buffer.slot_mut(id).sequence = sequence;
        if !memory.keeps_buffer {
            return Ok(());
        }
        let slot = self.buffer.slot(id);
        let (mask, was_lost) = (slot.mask, slot.was_lost);
        let record = SlotRecord { slot: id.0, lpn: slot.lpn.0, sequence, mask, was_lost };
        memory.durable.save_slot(&record, self.buffer.data(id), is_alone)
    }

    /// A write of the host to `slots` slots is whole.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(super) fn remember_whole_write(&mut self, slots: u32) -> Result<(), MediaError> {
        let Some(memory) = &self.memory else { return Ok(()) };
        if memory.keeps_buffer {
            if slots > 1 {
                memory.durable.commit_slots(memory.sequence)?;
            }
            memory.durable.sync()?;
        }
        self.go_on_with_snapshot(slots);
        Ok(())
    }

    /// The copies of all units on flash have moved.
    pub(super) fn all_copies_move(&mut self) {
        self.memory.iter_mut().for_each(|memory| memory.pace.all_changes());
    }

    /// The copy of a unit on flash has moved.
    #[inline]
    pub(super) fn copy_moves(&mut self, lpn: Lpn) {
        if let Some(memory) = &mut self.memory {
            memory.pace.map_changes(lpn);
        }
    }

    /// The out-of-band area for a slot's data, where one is written.
    #[inline]
    pub(super) fn oob_for(&self, id: SlotId) -> Option<Oob> {
        self.memory.as_ref()?;
        let slot = self.buffer.slot(id);
        let mut bytes = OobBytes::default();
        bytes[..8].copy_from_slice(&slot.sequence.to_le_bytes());
        Some(Oob { tag: slot.lpn.0, bytes })
    }

    /// Units are deallocated now.
    ///
    /// # Errors
    /// [`MediaError::Store`]; they must not be deallocated then.
    pub(super) fn remember_trim(&mut self, lpn: Lpn, count: u32) -> Result<(), MediaError> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let sequence = memory.next();
        if mistakes::is_made(Mistake::TrimNotNoted) {
            return Ok(());
        }
        memory.append(Entry::Trim { sequence, lpn: lpn.0, count })
    }

    /// The copy of a unit on flash is lost; a write that is in `slot` is not.
    pub(super) fn remember_lost_copy(&mut self, lpn: Lpn, slot: Option<SlotId>) {
        let Some(memory) = &mut self.memory else { return };
        let sequence = slot.map_or_else(|| memory.next(), |slot| self.buffer.slot(slot).sequence);
        // A file that fails makes the drive read-only, which is reported elsewhere.
        let _ = memory.append(Entry::Trim { sequence, lpn: lpn.0, count: 1 });
    }

    /// Sectors are lost from now on.
    pub(super) fn remember_lost(&mut self, lpn: Lpn, sectors: u64) {
        let Some(memory) = &mut self.memory else { return };
        let sequence = memory.next();
        // As above.
        let _ = memory.append(Entry::Lost { sequence, lpn: lpn.0, sectors });
    }

    /// Sectors that were lost are written again by the next write.
    pub(super) fn remember_found(&mut self, lpn: Lpn, sectors: u64) {
        let Some(memory) = &self.memory else { return };
        // As above.
        let _ = memory.append(Entry::Found { sequence: memory.sequence + 1, lpn: lpn.0, sectors });
    }

    /// Writes the counters with every few units of the host's data. A kill loses later counts.
    pub(super) fn save_counters_if_due(&mut self) {
        let units = self.counters.host_units;
        if let Some(memory) = &mut self.memory
            && units.abs_diff(memory.counted) >= UNITS_COUNTED
        {
            memory.counted = units;
            self.save_counters();
        }
    }

    /// Writes the counters.
    pub(super) fn save_counters(&self) {
        if let Some(memory) = &self.memory {
            // As above.
            let _ = memory.durable.set_counters(&self.counters.to_bytes());
        }
    }

    /// The counters as they were written.
    fn recall_counters(&mut self) -> std::io::Result<()> {
        let bytes = self.memory.as_ref().map_or(Ok(None), |memory| memory.durable.counters())?;
        self.counters = bytes.map_or(self.counters, |bytes| Stats::from_bytes(&bytes));
        let units = self.counters.host_units;
        self.memory.iter_mut().for_each(|memory| memory.counted = units);
        Ok(())
    }

    /// Removes all data of the host from the durable memory. The write buffer is empty.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(super) fn forget_writes(&self) -> Result<(), MediaError> {
        match &self.memory {
            Some(memory) if memory.keeps_buffer => memory.durable.wipe_slots(),
            _ => Ok(()),
        }
    }

    /// Makes programmed data safe from a loss of the host's power, where that is promised. Returns whether it is safe.
    #[must_use]
    pub(super) fn sync(&self) -> bool {
        self.memory.as_ref().is_none_or(|memory| memory.durable.sync().is_ok())
    }

    /// A block is permanently bad.
    pub(super) fn remember_bad(&self, block: BlockId) {
        self.memory.iter().for_each(|memory| memory.media.mark_bad(block));
    }

    /// Whether a block went bad before the drive was started.
    pub(super) fn is_remembered_bad(&self, block: BlockId) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.media.is_marked_bad(block))
    }

    /// A block must be retired.
    pub(super) fn remember_retiring(&self, block: BlockId) {
        self.memory.iter().for_each(|memory| memory.media.mark_retiring(block));
    }

    /// Begins a snapshot, or continues one, if the journal has become long.
    pub(super) fn snapshot_if_due(&mut self) {
        if self.memory.as_ref().is_some_and(|memory| memory.durable.is_snapshot_due()) {
            self.go_on_with_snapshot(pace::WRITES_A_CHUNK);
        }
    }

    /// The copy of a unit on flash, whether or not the write buffer holds a newer one.
    pub(super) fn flash_copy(&self, lpn: Lpn) -> Location {
        match self.tables.location(lpn) {
            Location::Buffered(slot) => match self.buffer.slot(slot).previous {
                Location::Buffered(before) => self.buffer.slot(before).previous,
                copy => copy,
            },
            copy => copy,
        }
    }
}
