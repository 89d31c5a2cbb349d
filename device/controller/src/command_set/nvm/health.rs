//! The SMART log and the endurance group logs of an FTL and its flash (Base 5.1.12.1.3, 5.1.12.1.10).

use nandscape_device_ftl_core::Ftl;
use nandscape_sim::account::Totals;
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::log::{self, EnduranceGroup, Smart};
use zerocopy::FromZeros;

use super::Nvm;

/// Percent of spare blocks below which the controller warns.
const SPARE_THRESHOLD: u8 = 10;
/// Bytes of a unit of the SMART log, and of the log of an endurance group.
const SMART_UNIT: u64 = 512_000;
const GROUP_UNIT: u64 = 1_000_000_000;

/// The figures, of one FTL or of several.
#[derive(Copy, Clone, Debug)]
pub(in crate::command_set) struct Health {
    warnings: u8,
    spare: u8,
    used: u8,
    read_bytes: u64,
    written_bytes: u64,
    programmed_bytes: u64,
    reads: u64,
    writes: u64,
    busy: Span,
    powered: Span,
    power_cycles: u64,
    unsafe_shutdowns: u64,
}

impl Health {
    /// Combines the figures of two FTLs of one drive: the worse for health figures, otherwise the sum.
    pub(in crate::command_set) fn with(&self, other: &Health) -> Health {
        Health {
            warnings: self.warnings | other.warnings,
            spare: self.spare.min(other.spare),
            used: self.used.max(other.used),
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            programmed_bytes: self.programmed_bytes + other.programmed_bytes,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            busy: self.busy.max(other.busy),
            powered: self.powered.max(other.powered),
            power_cycles: self.power_cycles.max(other.power_cycles),
            unsafe_shutdowns: self.unsafe_shutdowns.max(other.unsafe_shutdowns),
        }
    }

    /// Fills in the SMART log.
    pub(in crate::command_set) fn fill_in(&self, smart: &mut Smart) {
        smart.available_spare = self.spare;
        smart.available_spare_threshold = SPARE_THRESHOLD;
        smart.percentage_used = self.used;
        smart.data_units_read = self.read_bytes.div_ceil(SMART_UNIT).into();
        smart.data_units_written = self.written_bytes.div_ceil(SMART_UNIT).into();
        (smart.host_reads, smart.host_writes) = (self.reads.into(), self.writes.into());
        smart.busy_minutes = (self.busy.ns() / 60_000_000_000).into();
        smart.power_on_hours = (self.powered.ns() / 3_600_000_000_000).into();
        smart.power_cycles = self.power_cycles.into();
        smart.unsafe_shutdowns = self.unsafe_shutdowns.into();
    }

    /// The log of an endurance group, without its capacity. `errors` is the number of commands with media errors.
    pub(in crate::command_set) fn group(&self, errors: u64) -> EnduranceGroup {
        let mut group = EnduranceGroup::new_zeroed();
        group.critical_warning = self.warnings;
        (group.available_spare, group.available_spare_threshold) = (self.spare, SPARE_THRESHOLD);
        group.percentage_used = self.used;
        group.data_units_read = self.read_bytes.div_ceil(GROUP_UNIT).into();
        group.data_units_written = self.written_bytes.div_ceil(GROUP_UNIT).into();
        group.media_units_written = self.programmed_bytes.div_ceil(GROUP_UNIT).into();
        (group.host_reads, group.host_writes) = (self.reads.into(), self.writes.into());
        // Each media error is an entry of an error log.
        (group.media_errors, group.error_log_entries) = (errors.into(), errors.into());
        group
    }
}

impl<F: Ftl> Nvm<F> {
    pub(in crate::command_set) fn health(&self) -> Health {
        let (host, stats, cuts) = (self.counts.get(), self.ftl.stats(), u64::from(self.media.power_cuts()));
        // A file-backed drive also counts the starts of its process; a start after a kill is an unsafe shutdown.
        let before = self.media.durable().map(|memory| memory.before()).unwrap_or_default();
        // Totals of the life before the run, whose command counts are unknown.
        let past = self.media.past();
        // The longest busy time of a plane: a lower bound of the time with commands outstanding.
        let busy = self.media.array_usage().iter().map(Totals::total).max().unwrap_or_default();
        Health {
            warnings: self.critical_warnings(),
            spare: self.available_spare(),
            used: stats.percentage_used(self.media.geometry().blocks().into(), self.rated_erases),
            read_bytes: past.read_bytes + host.read_bytes,
            written_bytes: past.written_bytes + stats.host_bytes,
            programmed_bytes: past.programmed_bytes + stats.programmed_units() * u64::from(self.ftl.unit().bytes()),
            reads: host.reads,
            writes: host.writes,
            busy,
            powered: past.powered + self.sim.now().since(Time::ZERO),
            power_cycles: 1 + past.starts + cuts + before.starts,
            unsafe_shutdowns: cuts + before.unclean + u64::from(before.in_use),
        }
    }

    /// Percent of the spare blocks that are left; 0 for a drive that never had any.
    fn available_spare(&self) -> u8 {
        let (left, new) = self.ftl.spare_blocks();
        (left * 100).checked_div(new).unwrap_or(0) as u8
    }

    pub(super) fn critical_warnings(&self) -> u8 {
        // Evaluated whenever a command ends, so it compares like `available_spare` without a division.
        let (left, new) = self.ftl.spare_blocks();
        let is_low = new == 0 || left * 100 < u64::from(SPARE_THRESHOLD) * new;
        let spare = if is_low { log::WARNING_SPARE } else { 0 };
        spare | if self.ftl.read_only().is_some() { log::WARNING_READ_ONLY } else { 0 }
    }
}
