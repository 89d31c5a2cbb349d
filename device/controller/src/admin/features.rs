//! Get and Set Features (Base 5.1.11, 5.1.25).

use std::cell::RefCell;

use nandscape_drive::HostMem;
use nandscape_wire_nvme::feature::{self, Arbitration, ERROR_RECOVERY_DULBE, NumberOfQueues, WRITE_CACHE_ENABLE};
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::Answer;
use crate::command_set::CommandSet;
use crate::engine::NvmeController;

/// Bit 31 of CDW10 of Set Features: keep the value over a reset.
const SAVE: u32 = 1 << 31;
/// The 48 bits of a timestamp, which counts on from zero after them.
const TIMESTAMP_MASK: u64 = (1 << 48) - 1;

/// What the host has set, as commands see it.
#[derive(Default)]
pub struct Settings(RefCell<Features>);

/// The features that can be set.
#[derive(Clone, Debug)]
struct Features {
    arbitration: Arbitration,
    error_recovery: u32,
    write_cache: u32,
    /// Asynchronous Event Configuration.
    async_events: u32,
    /// Temperature Threshold, Interrupt Coalescing, ...: kept, without effect.
    without_effect: [(u8, u32); 4],
    /// Milliseconds since 1970 at the drive's time zero, modulo 2^64: a host may set a time that is below the drive's
    /// own. And whether a host has set it.
    epoch_ms: u64,
    epoch_set: bool,
}

impl Default for Features {
    fn default() -> Features {
        Features {
            // Bursts of 8, as identified.
            arbitration: Arbitration(3),
            error_recovery: 0,
            async_events: 0,
            write_cache: WRITE_CACHE_ENABLE,
            without_effect: [
                (feature::POWER_MANAGEMENT, 0),
                (feature::TEMPERATURE_THRESHOLD, 0x157),
                (feature::INTERRUPT_COALESCING, 0),
                (feature::WRITE_ATOMICITY, 0),
            ],
            epoch_ms: 0,
            epoch_set: false,
        }
    }
}

impl Settings {
    /// How many entries of one queue are fetched in a row.
    pub(crate) fn arbitration_burst(&self) -> Option<u32> {
        self.0.borrow().arbitration.burst()
    }

    /// Whether reads of deallocated blocks are reported.
    pub(crate) fn reports_deallocated(&self) -> bool {
        self.0.borrow().error_recovery & ERROR_RECOVERY_DULBE != 0
    }

    /// The critical warnings of which the host wants to be told (bits 7:0 of Asynchronous Event Configuration).
    pub(super) fn wanted_warnings(&self) -> u8 {
        self.0.borrow().async_events as u8
    }

    /// Whether a volatile write cache is used.
    pub(crate) fn write_cache_enabled(&self) -> bool {
        self.0.borrow().write_cache & WRITE_CACHE_ENABLE != 0
    }

    /// After a reset all have their defaults but the timestamp, which counts on (Base 5.1.25.1.7).
    pub(super) fn reset(&self) {
        let mut features = self.0.borrow_mut();
        *features = Features { epoch_ms: features.epoch_ms, epoch_set: features.epoch_set, ..Features::default() };
    }
}

impl<C: CommandSet> NvmeController<C> {
    pub(super) fn get_features(&self, entry: &SubmissionEntry) -> Result<Answer, Status> {
        // Select (bits 10:8): only current values; nothing can be saved.
        if entry.cdw10.get() >> 8 & 0b111 != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let features = self.admin.settings.0.borrow();
        let value = match entry.cdw10.get() as u8 {
            feature::ARBITRATION => features.arbitration.0,
            feature::ERROR_RECOVERY => features.error_recovery,
            feature::ASYNC_EVENT_CONFIG => features.async_events,
            feature::VOLATILE_WRITE_CACHE if self.subsystem.set.info().volatile_cache => features.write_cache,
            feature::NUMBER_OF_QUEUES => self.queue_counts().0,
            feature::TIMESTAMP => return Ok(Answer::data(&self.timestamp(&features))),
            other => features.get_without_effect(other).ok_or(Status::INVALID_FIELD)?,
        };
        Ok(Answer::value(value))
    }

    pub(super) fn set_features(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Answer, Status> {
        if entry.cdw10.get() & SAVE != 0 {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        let value = entry.cdw11.get();
        let features = &mut *self.admin.settings.0.borrow_mut();
        match entry.cdw10.get() as u8 {
            feature::ARBITRATION => features.arbitration = Arbitration(value),
            feature::ERROR_RECOVERY => features.error_recovery = value,
            feature::ASYNC_EVENT_CONFIG => features.async_events = value,
            feature::VOLATILE_WRITE_CACHE if self.subsystem.set.info().volatile_cache => features.write_cache = value,
            // The host says how many it would like and is told how many there are; 65,535 counted from zero is none.
            feature::NUMBER_OF_QUEUES => {
                let wish = NumberOfQueues(value);
                return match wish.submission_z() != u16::MAX && wish.completion_z() != u16::MAX {
                    true => Ok(Answer::value(self.queue_counts().0)),
                    false => Err(Status::INVALID_FIELD),
                };
            }
            feature::TIMESTAMP => self.set_timestamp(features, mem)?,
            other => *features.without_effect_mut(other).ok_or(Status::INVALID_FIELD)? = value,
        }
        Ok(Answer::default())
    }

    /// Whether there is such a feature.
    pub(super) fn has_feature(&self, id: u8) -> bool {
        match id {
            feature::VOLATILE_WRITE_CACHE => self.subsystem.set.info().volatile_cache,
            feature::ARBITRATION | feature::ERROR_RECOVERY | feature::NUMBER_OF_QUEUES | feature::TIMESTAMP => true,
            feature::ASYNC_EVENT_CONFIG => true,
            other => self.admin.settings.0.borrow().get_without_effect(other).is_some(),
        }
    }

    fn queue_counts(&self) -> NumberOfQueues {
        NumberOfQueues::new(self.subsystem.config.max_queue_pairs, self.subsystem.config.max_queue_pairs)
    }

    /// Timestamp (Base 5.1.25.1.7): 48 bits of milliseconds, then whether the host has set it (origin, bits 3:1).
    fn timestamp(&self, features: &Features) -> [u8; 8] {
        let now = features.epoch_ms.wrapping_add(self.sim.now().ns() / 1_000_000);
        let mut bytes = (now & TIMESTAMP_MASK).to_le_bytes();
        bytes[6] = u8::from(features.epoch_set) << 1;
        bytes
    }

    fn set_timestamp(&self, features: &mut Features, mem: &HostMem) -> Result<(), Status> {
        let mut bytes = [0; 8];
        mem.must_cover(bytes.len())?;
        mem.read(0, &mut bytes);
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR);
        }
        let ms = u64::from_le_bytes(bytes) & TIMESTAMP_MASK;
        features.epoch_ms = ms.wrapping_sub(self.sim.now().ns() / 1_000_000);
        features.epoch_set = true;
        Ok(())
    }
}

impl Features {
    fn get_without_effect(&self, id: u8) -> Option<u32> {
        self.without_effect.iter().find(|(known, _)| *known == id).map(|(_, value)| *value)
    }

    fn without_effect_mut(&mut self, id: u8) -> Option<&mut u32> {
        self.without_effect.iter_mut().find(|(known, _)| *known == id).map(|(_, value)| value)
    }
}
