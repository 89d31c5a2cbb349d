//! What the drive log says of flash and FTL.

use nandscape_device_ftl::{Ftl, Upkeep};
use nandscape_drive::breakdown::cause;
use nandscape_sim::account::Totals;
use nandscape_wire_nvme::vendor::{CAUSES, DriveLog, UpkeepLog};
use zerocopy::little_endian::U64;

use super::Nvm;

const _: () = assert!(cause::ALL.len() == CAUSES, "the log tells all causes apart");

impl<F: Ftl> Nvm<F> {
    /// Counters of flash and FTL.
    pub(super) fn fill_in_drive_log(&self, log: &mut DriveLog) {
        let (stats, counts) = (self.ftl.stats(), self.media.counts());
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
        log.array_busy = by_cause(&self.media.array_usage());
        log.channel_busy = by_cause(&self.media.channel_usage());
        log.buffer_waits = by_cause(&[self.ftl.buffer_waits()]);
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

/// The sums of several totals.
pub(crate) fn by_cause(totals: &[Totals]) -> [U64; CAUSES] {
    std::array::from_fn(|index| {
        let of = |totals: &Totals| totals.by(cause::ALL[index].0).ns();
        totals.iter().map(of).sum::<u64>().into()
    })
}
