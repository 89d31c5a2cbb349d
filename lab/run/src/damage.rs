//! What was to go wrong with a drive's flash, and what has become of the drive: counted since it was made, the warm-up
//! included. Preconditioning does no operation of the flash and strikes no rule.

use nandscape_device_ssd::Ssd;
use nandscape_wire_nvme::Status;
use serde::Serialize;

/// A rule of the fault plan, and how often it came into play.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    /// The rule, with what was left out filled in.
    pub rule: String,
    /// Operations of its kind, at its place, in its time.
    pub matched: u64,
    /// Those that it struck.
    pub struck: u64,
}

/// What faults have done to a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Damage {
    /// Blocks that have gone bad in use.
    pub retired_blocks: u64,
    /// Planes that are used no more: they do not answer, or have no page left for their collector.
    pub planes_out_of_use: u64,
    /// Mapping units of which data was lost, for it could not be read when it had to be moved or completed.
    pub lost_units: u64,
    /// Mapping units that were in the write buffer when power went, and are gone.
    pub dropped_units: u64,
    /// Good blocks beyond those that are needed to go on writing.
    pub spare_blocks: u64,
    /// Those of the drive when it was new.
    pub spare_blocks_new: u64,
    /// How often power was cut.
    pub power_cuts: u32,
    /// Whether the drive takes no more writes.
    pub read_only: bool,
}

/// How requests fail for faults of the flash.
const FAILURES: [Status; 4] =
    [Status::UNRECOVERED_READ_ERROR, Status::WRITE_FAULT, Status::ABORTED_POWER_LOSS, Status::READ_ONLY_RANGE];

/// Whether requests that fail with this status may have failed for a fault of the flash.
pub(crate) fn is_for_faults(status: &str) -> bool {
    FAILURES.iter().any(|failure| failure.to_string() == status)
}

impl Fault {
    /// The rules that a drive has now, in the order in which it was given them.
    pub(crate) fn all_of(ssd: &Ssd) -> Vec<Fault> {
        let counts = ssd.media().faults().counts().into_iter();
        counts
            .map(|count| Fault { rule: count.rule.to_string(), matched: count.matched, struck: count.struck })
            .collect()
    }
}

impl Damage {
    /// A drive's, as it is now.
    pub(crate) fn of(ssd: &Ssd) -> Damage {
        let stats = ssd.ftl_stats();
        Damage {
            retired_blocks: stats.retired_blocks,
            planes_out_of_use: stats.planes_out_of_use,
            lost_units: stats.lost_units,
            dropped_units: stats.dropped_units,
            spare_blocks: stats.spare_blocks.0,
            spare_blocks_new: stats.spare_blocks.1,
            power_cuts: ssd.media().power_cuts(),
            read_only: ssd.is_read_only(),
        }
    }

    /// Whether nothing has happened.
    pub(crate) fn is_none(&self) -> bool {
        let Damage { retired_blocks, lost_units, dropped_units, spare_blocks, spare_blocks_new, .. } = self;
        (retired_blocks, lost_units, dropped_units) == (&0, &0, &0)
            && spare_blocks == spare_blocks_new
            && (self.power_cuts, self.read_only) == (0, false)
    }
}
