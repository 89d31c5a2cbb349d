//! The work of a drive for its tables in flash, in the measured phase.

use std::collections::BTreeMap;

use serde::Serialize;

/// Tables, log, checkpoints and recoveries of a drive that keeps its tables in flash.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Upkeep {
    /// Pages programmed that hold no data of the host, by what they hold.
    pub pages: BTreeMap<&'static str, u64>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Records appended to the log.
    pub log_records: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Mapping units of garbage that collections have reclaimed from the host's blocks.
    pub reclaimed_units: u64,
    /// Mapping units of garbage in the host's blocks at the end.
    pub garbage_units: u64,
    /// Channels that were being collected at the end, or were due to be.
    pub channels_to_collect: u32,
    /// Recoveries; left out where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recoveries: Option<Recoveries>,
}

/// What recoveries have done, all together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Recoveries {
    /// How many there were.
    pub count: u64,
    /// From a restart until the drive was in service.
    pub time_s: f64,
    /// Pages of the log that were read.
    pub log_pages: u64,
    /// Records in them.
    pub log_records: u64,
    /// Transactions that were applied.
    pub transactions_applied: u64,
    /// Transactions that were discarded, since their end was missing.
    pub transactions_discarded: u64,
}

impl Upkeep {
    /// The figures that follow from a drive's counters. Its pages have `page_bytes` bytes.
    pub(crate) fn of(counted: &nandscape_device_ftl_core::Upkeep, page_bytes: u64) -> Upkeep {
        let recovered = &counted.recovered;
        Upkeep {
            pages: counted.pages.by_name().into_iter().collect(),
            page_bytes,
            log_records: counted.records,
            checkpoints: counted.checkpoints,
            reclaimed_units: counted.reclaimed_units,
            garbage_units: counted.garbage_units,
            channels_to_collect: counted.channels_to_collect,
            recoveries: (recovered.count > 0).then(|| Recoveries {
                count: recovered.count,
                time_s: recovered.time.as_s(),
                log_pages: recovered.pages,
                log_records: recovered.records,
                transactions_applied: recovered.committed,
                transactions_discarded: recovered.aborted,
            }),
        }
    }
}
