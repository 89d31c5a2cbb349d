//! The state of a file-backed drive outside of its flash: the write cache and the log's records if capacitors keep them, and
//! counters. Everything else is in flash.
//!
//! A slot of the cache is written to the file when the host writes to it, and made void when its data is current. It becomes
//! void after the record of the data, so after a kill between the two the data is written again. Records go into the journal
//! of the file, which restarts with each checkpoint ([`ChainedLog::keep`]).
//!
//! Left out: time. The file stands for memory that the model gives none.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use nandscape_device_ftl_core::address::{SlotId, UnitSize};
use nandscape_device_ftl_core::component::{ChainedLog, NoteRecord, Record};
use nandscape_device_ftl_core::ftl::{ReadOnly, Stats, UNITS_COUNTED};
use nandscape_device_media::durable::{DurableMemory, FoundSlot, SlotRecord};
use nandscape_device_media::{Media, MediaError};

use super::OxBlockConfig;
use super::cache::WriteCache;
use super::core::Core;
use super::restart::Kept;
use crate::parts::{JournalEntry, KeptRecords, to_entries};

/// The write cache of a drive in a file.
pub(super) struct KeptCache {
    durable: Rc<DurableMemory>,
    /// The number of the last write to a slot.
    last: Cell<u64>,
}

impl KeptCache {
    /// The kept cache of a file-backed drive with capacitors.
    pub(super) fn of(media: &Media, config: &OxBlockConfig) -> Option<KeptCache> {
        let durable = media.durable().filter(|_| config.keeps_log)?.clone();
        let last = Cell::new(durable.committed_slots());
        Some(KeptCache { durable, last })
    }

    /// Saves a host write to slots. It counts as a whole or not at all.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(super) fn write(&self, cache: &WriteCache, slots: &[SlotId]) -> Result<(), MediaError> {
        for id in slots {
            self.last.set(self.last.get() + 1);
            let slot = cache.slot(*id);
            let (sequence, mask, was_lost) = (self.last.get(), slot.mask, slot.lost);
            let record = SlotRecord { slot: id.0, lpn: slot.lpn, sequence, mask, was_lost };
            let data = cache.data(*id).map(|data| &**data);
            self.durable.save_slot(&record, data, slots.len() == 1)?;
        }
        if slots.len() > 1 {
            self.durable.commit_slots(self.last.get())?;
        }
        self.durable.sync()
    }

    /// Voids slots whose data is already written.
    pub(super) fn forget(&self, slots: &[SlotId]) {
        // A file that cannot be written any more reports this when asked.
        let _ = slots.iter().try_for_each(|slot| self.durable.clear_slot(slot.0));
    }

    /// The cache as stored in the file.
    fn recall(&self, config: &OxBlockConfig, mut cache: WriteCache) -> io::Result<WriteCache> {
        let mut slots = self.durable.slots()?;
        slots.sort_by_key(|slot| slot.record.sequence);
        for FoundSlot { record, data } in slots {
            let fits = record.lpn < config.logical_units && record.slot < config.buffer_units;
            let is_restored = fits
                && match data {
                    Some(data) => cache.restore(&record, &data),
                    None => cache.restore_lost(&record),
                };
            if !is_restored {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a slot of the write cache is damaged"));
            }
            self.last.set(self.last.get().max(record.sequence));
        }
        if config.transactions {
            // All of each write is present, so that its slots may become current one by one.
            cache.make_transactions();
        }
        Ok(cache)
    }
}

/// The state that a file keeps of a drive in addition to its flash.
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub(super) fn recall(media: &Media, config: &OxBlockConfig, cache: Option<&KeptCache>) -> io::Result<Kept> {
    let Some(durable) = media.durable() else { return Ok(Kept::default()) };
    let mut records = KeptRecords::default();
    let cache = match cache {
        None => None,
        Some(kept) => {
            durable.entries(|entry| records.push(entry))?;
            let unit = UnitSize::of_bytes(media.geometry().unit_size());
            Some(kept.recall(config, WriteCache::new(config.buffer_units, unit, media.keeps_data()))?)
        }
    };
    let counters = durable.counters()?.map_or_else(Stats::default, |bytes| Stats::from_bytes(&bytes));
    Ok(Kept { cache, records: records.records, counters })
}

/// The writer of log records to the file, if the drive is file-backed.
pub(super) fn note_of(media: &Media) -> Option<NoteRecord<Record>> {
    let durable = media.durable()?.clone();
    Some(Rc::new(move |timestamp, record| {
        // A file that cannot be written any more reports this when asked.
        let _ = durable.append_all(&to_entries(timestamp, record));
    }))
}

impl Core {
    /// A checkpoint has ended, or the drive is turned off. Unchanged blocks since then need not be scanned when the
    /// file is opened, and records on flash need not be kept.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(super) fn save(&self) -> Result<(), MediaError> {
        let Some(durable) = self.media.durable() else { return Ok(()) };
        let state = self.state.borrow();
        let kept: Vec<JournalEntry> =
            state.log.kept().iter().flat_map(|(timestamp, record)| to_entries(*timestamp, record)).collect();
        durable.set_counters(&state.total_counters().to_bytes())?;
        self.media.save_snapshot(&kept, &mut |_, _| ())
    }

    /// Writes the counters with every few units of the host's data.
    pub(super) fn save_counters_if_due(&self) {
        let Some(durable) = self.media.durable() else { return };
        let state = self.state.borrow();
        let units = state.counters.host_units;
        if units >= self.flags.counted.get() + UNITS_COUNTED {
            self.flags.counted.set(units);
            // A file that cannot be written any more reports this when asked.
            let _ = durable.set_counters(&state.total_counters().to_bytes());
        }
    }

    /// The journal has become long although no checkpoint has ended.
    pub(super) fn save_if_due(&self) {
        if self.config.keeps_log && self.media.durable().is_some_and(|durable| durable.is_snapshot_due()) {
            let _ = self.save();
        }
    }

    /// Makes written data safe from a loss of the host's power, if the file promises that. A file that cannot be written any
    /// more ends all writing. Returns whether written data is safe.
    pub(super) fn sync(&self) -> bool {
        let is_safe = self.media.sync().is_ok() && !self.media.store_has_failed();
        if !is_safe {
            self.give_up_writing(ReadOnly::Store);
        }
        is_safe
    }

    /// Voids slots of the cache whose data is already written.
    pub(super) fn forget_slots(&self, slots: &[SlotId]) {
        if let Some(kept) = &self.shared.kept_cache {
            kept.forget(slots);
        }
    }
}
