//! The flash and FTL sections of the drive log.

use nandscape_device_ftl_core::{Ftl, Stats, Upkeep};
use nandscape_device_media::OpCounts;
use nandscape_drive::breakdown::cause;
use nandscape_sim::account::Totals;
use nandscape_wire_nvme::vendor::{CAUSES, DriveLog, UpkeepLog};
use zerocopy::little_endian::U64;

use super::Nvm;

const _: () = assert!(cause::POWER.index() == CAUSES, "the log tells all causes apart but those of trouble");

/// Counters of one or several FTLs and their flash.
#[derive(Clone, Debug)]
pub(crate) struct FlashLog {
    stats: Stats,
    counts: OpCounts,
    arrays: Vec<Totals>,
    channels: Vec<Totals>,
    buffer_waits: Vec<Totals>,
}

impl<F: Ftl> Nvm<F> {
    pub(in crate::command_set) fn flash_log(&self) -> FlashLog {
        FlashLog {
            stats: self.ftl.stats(),
            counts: self.media.counts(),
            arrays: self.media.array_usage(),
            channels: self.media.channel_usage(),
            buffer_waits: vec![self.ftl.inspection().buffer_waits()],
        }
    }
}

impl FlashLog {
    /// The counters of two FTLs of one drive together.
    pub(in crate::command_set) fn with(self, other: FlashLog) -> FlashLog {
        FlashLog {
            stats: self.stats.plus(&other.stats),
            counts: self.counts.plus(&other.counts),
            arrays: [self.arrays, other.arrays].concat(),
            channels: [self.channels, other.channels].concat(),
            buffer_waits: [self.buffer_waits, other.buffer_waits].concat(),
        }
    }

    pub(in crate::command_set) fn fill_in(&self, log: &mut DriveLog) {
        let (stats, counts) = (&self.stats, &self.counts);
        log.host_bytes = stats.host_bytes.into();
        log.host_units = stats.host_units.into();
        log.gc_units = stats.gc_units.into();
        log.wear_units = stats.wear_units.into();
        log.padding_units = stats.padding_units.into();
        log.gc_blocks = stats.gc_blocks.into();
        log.wear_blocks = stats.wear_blocks.into();
        log.read_modify_writes = stats.read_modify_writes.into();
        log.buffer_merges = stats.buffer_merges.into();
        log.retired_blocks = stats.retired_blocks.into();
        log.lost_units = stats.lost_units.into();
        log.dropped_units = stats.dropped_units.into();
        log.free_blocks = stats.free_blocks.into();
        log.spare_blocks = [stats.spare_blocks.0.into(), stats.spare_blocks.1.into()];
        let (least, most, sum) = stats.erases;
        log.erases = [u64::from(least).into(), u64::from(most).into(), sum.into()];
        log.operations = [counts.reads, counts.programs, counts.copybacks, counts.erases].map(Into::into);
        log.array_busy = by_cause(&self.arrays);
        log.channel_busy = by_cause(&self.channels);
        log.buffer_waits = by_cause(&self.buffer_waits);
        log.upkeep = upkeep(&stats.upkeep);
    }
}

fn upkeep(counted: &Upkeep) -> UpkeepLog {
    let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).into();
    let recovered = &counted.recovered;
    UpkeepLog {
        pages: counted.pages.by_name().map(|(_, pages)| pages.into()),
        records: counted.records.into(),
        checkpoints: counted.checkpoints.into(),
        reclaimed_units: counted.reclaimed_units.into(),
        recoveries: short(recovered.count),
        channels_to_collect: counted.channels_to_collect.into(),
        recovery_time: recovered.time.ns().into(),
        recovered_records: recovered.records.into(),
        transactions: [short(recovered.committed), short(recovered.aborted)],
    }
}

/// The sums of several totals. Retries and the time that faults add count as host reads: the log has no field for them.
pub(crate) fn by_cause(totals: &[Totals]) -> [U64; CAUSES] {
    let sum = |cause| totals.iter().map(|totals| totals.by(cause).ns()).sum::<u64>();
    std::array::from_fn(|index| {
        let cause = cause::ALL[index].0;
        let trouble = if cause == cause::HOST_READ { sum(cause::RETRY) + sum(cause::FAULT) } else { 0 };
        (sum(cause) + trouble).into()
    })
}
