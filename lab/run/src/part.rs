//! The figures of each FTL of a drive that has several.

use nandscape_device_ftl_core::Stats;
use nandscape_device_media::OpCounts;
use nandscape_device_ssd::Ssd;
use serde::Serialize;

/// One of several FTLs of a drive, in the measured phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PartReport {
    /// The name of the part.
    pub name: String,
    /// The kind of its FTL.
    pub kind: String,
    /// The channels that it owns.
    pub channels: Vec<u32>,
    /// Its dies of each of these channels; left out where it owns all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dies: Vec<u32>,
    /// Its NVM Set, and the namespace of a new drive in it.
    pub nvm_set: u32,
    /// Bytes that the host wrote.
    pub host_written_bytes: u64,
    /// Units programmed over units the host wrote; null without writes.
    pub waf: Option<f64>,
    /// Blocks erased by garbage collection.
    pub gc_blocks: u64,
    /// Mapping units that it moved.
    pub gc_units_moved: u64,
    /// Units programmed with tables and logs.
    pub units_metadata: u64,
    /// Erased blocks at the end.
    pub free_blocks: u64,
    /// Pages sent to the controller.
    pub page_reads: u64,
    /// Pages programmed.
    pub page_programs: u64,
    /// Blocks erased.
    pub block_erases: u64,
    /// Erases of the block erased least often, since the drive was made.
    pub erases_min: u32,
    /// Of the block erased most often.
    pub erases_max: u32,
}

/// The counters of a part at one time.
pub(crate) struct PartCounters {
    name: String,
    kind: String,
    channels: Vec<u32>,
    dies: Vec<u32>,
    stats: Stats,
    ops: OpCounts,
}

impl PartCounters {
    /// Of each part; none where a drive has one FTL.
    pub(crate) fn of(ssd: &Ssd) -> Vec<PartCounters> {
        let several = ssd.parts().iter().filter(|_| ssd.parts().len() > 1);
        several
            .map(|part| PartCounters {
                name: part.name().to_owned(),
                kind: part.kind().to_owned(),
                channels: part.media().channels_of_drive().to_vec(),
                dies: if part.has_some_dies() { part.media().dies_of_drive().to_vec() } else { Vec::new() },
                stats: part.stats(),
                ops: part.op_counts(),
            })
            .collect()
    }
}

/// The parts from one time to another.
pub(crate) fn reports(begun: &[PartCounters], ended: &[PartCounters], unit_bytes: u64) -> Vec<PartReport> {
    let report = |(number, (begun, ended)): (u32, (&PartCounters, &PartCounters))| {
        let (stats, ops) = (ended.stats.since(&begun.stats), ended.ops.since(&begun.ops));
        let programmed = (stats.programmed_units() * unit_bytes) as f64;
        PartReport {
            name: ended.name.clone(),
            kind: ended.kind.clone(),
            channels: ended.channels.clone(),
            dies: ended.dies.clone(),
            nvm_set: number,
            host_written_bytes: stats.host_bytes,
            waf: (stats.host_bytes > 0).then(|| programmed / stats.host_bytes as f64),
            gc_blocks: stats.gc_blocks,
            gc_units_moved: stats.gc_units,
            units_metadata: stats.metadata_units,
            free_blocks: stats.free_blocks,
            page_reads: ops.reads,
            page_programs: ops.programs,
            block_erases: ops.erases,
            erases_min: stats.erases.0,
            erases_max: stats.erases.1,
        }
    };
    (1..).zip(begun.iter().zip(ended)).map(report).collect()
}
