//! The planned faults of a drive's flash, and their damage: counted since the drive was built, including the
//! warm-up. Preconditioning performs no flash operation and triggers no rule.

use nandscape_device_media::fault::RuleCount;
use nandscape_device_ssd::Ssd;
use nandscape_wire_nvme::Status;
use serde::Serialize;

use crate::outages::FaultCost;

/// A rule of the fault plan, and how often it applied.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fault {
    /// The rule, with defaults filled in.
    pub rule: String,
    /// Operations that match its kind, place and time.
    pub matched: u64,
    /// Operations that it struck.
    pub struck: u64,
    /// Its number among all rules that the drive has had.
    #[serde(skip)]
    pub number: u32,
    /// The requests of the measured phase that met it; left out without any.
    #[serde(flatten)]
    pub cost: Option<FaultCost>,
}

/// The damage that faults have done to a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Damage {
    /// Blocks that failed in use.
    pub retired_blocks: u64,
    /// Planes out of use: they do not answer, or have no page left for their collector.
    pub planes_out_of_use: u64,
    /// Mapping units whose data could not be read when it had to be moved or completed.
    pub lost_units: u64,
    /// Mapping units lost from the write buffer in power cuts.
    pub dropped_units: u64,
    /// Good blocks beyond those that writing needs.
    pub spare_blocks: u64,
    /// Spare blocks of the new drive.
    pub spare_blocks_new: u64,
    /// Power cuts.
    pub power_cuts: u32,
    /// Whether the drive refuses writes.
    pub read_only: bool,
    /// Why it does; left out if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_because: Option<String>,
}

/// Statuses of requests that fail because of flash faults.
const FAILURES: [Status; 6] = [
    Status::UNRECOVERED_READ_ERROR,
    Status::WRITE_FAULT,
    Status::ABORTED_POWER_LOSS,
    Status::READ_ONLY_RANGE,
    Status::ZONE_IS_READ_ONLY,
    Status::ZONE_IS_OFFLINE,
];

/// Whether a flash fault can be the reason of this status.
pub(crate) fn is_for_faults(status: &str) -> bool {
    FAILURES.iter().any(|failure| failure.to_string() == status)
}

impl Fault {
    /// The current rules of a drive, in the order they were added.
    pub(crate) fn all_of(ssd: &Ssd) -> Vec<Fault> {
        let counts = ssd.media().faults().counts().into_iter();
        counts
            .map(|count| {
                let RuleCount { rule, number, matched, struck } = count;
                Fault { rule: rule.to_string(), matched, struck, number, cost: None }
            })
            .collect()
    }
}

impl Damage {
    /// The damage of a drive so far.
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
            read_only_because: ssd.read_only(),
        }
    }

    /// Whether there is no damage.
    pub(crate) fn is_none(&self) -> bool {
        let Damage { retired_blocks, lost_units, dropped_units, spare_blocks, spare_blocks_new, .. } = self;
        (retired_blocks, lost_units, dropped_units) == (&0, &0, &0)
            && spare_blocks == spare_blocks_new
            && (self.power_cuts, self.read_only) == (0, false)
    }
}
