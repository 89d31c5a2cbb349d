//! An array in the report of a run.
//!
//! | file | what |
//! |---|---|
//! | `mod` | its figures, and sentences on failed members |
//! | `shown` | the figures as text and as JSON |
//! | `metrics` | counters of a served array, by the names of metrics |

mod metrics;
mod shown;

use nandscape_drive::Drive;
use serde::Serialize;

use crate::array::Array;
use crate::config::WindowMode;
use crate::history::{MemberFailure, Rebuild, reads_for_a_stripe};
use crate::stats::Stats;

pub use metrics::counters;

/// What an array has counted in the measured phase. A stripe read is what a request reads of one stripe.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ArrayReport {
    /// Level and members, such as `raid5:4`.
    pub array: String,
    /// The tail policy.
    pub technique: &'static str,
    /// Members that may fail at any time without loss of data.
    pub tolerates: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Stripe reads.
    pub stripe_reads: u64,
    /// Of those, by the number of busy sub-I/Os, from none to all members.
    pub busy_sub_ios: Vec<u64>,
    /// The share of stripe reads with one busy sub-I/O or more; null without stripe reads.
    pub busy_share: Option<f64>,
    /// Sub-reads sent for reads of the workload.
    pub reads: u64,
    /// Of those, of chunks that were not asked for.
    pub extra_reads: u64,
    /// Of those, sent again after a busy answer.
    pub resubmissions: u64,
    /// Stripe reads put together from other chunks.
    pub reconstructions: u64,
    /// Of those, read again as a write came between.
    pub rereads: u64,
    /// Stripe writes.
    pub stripe_writes: u64,
    /// Of those, of a whole stripe.
    pub full_writes: u64,
    /// Of those, by read-modify-write.
    pub read_modify_writes: u64,
    /// Of those, by reconstruct-write.
    pub reconstruct_writes: u64,
    /// Sub-writes sent, of data and of parity.
    pub writes: u64,
    /// Sub-reads sent for writes and rebuilds.
    pub reads_for_writes: u64,
    /// Changes of the length of windows.
    pub window_changes: u64,
    /// Whether the drives rejected requested windows.
    pub windows_refused: bool,
    /// The length of windows in force, in milliseconds; null without windows.
    pub window_ms: Option<f64>,
    /// Members that have failed and are not rebuilt.
    pub missing: Vec<usize>,
    /// Whether more have failed than the level tolerates.
    pub is_lost: bool,
    /// The member that is being rebuilt, and the rebuilt share of it; null if none is.
    pub rebuilding: Option<(usize, f64)>,
    /// Stripes that rebuilds have moved to spares.
    pub stripes_rebuilt: u64,
    /// Sub-reads for these rebuilds, included in the sub-reads.
    pub reads_for_rebuilds: u64,
    /// Members that have failed, in order; left out without any, and of arrays that are served.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub member_failures: Vec<MemberFailure>,
    /// Rebuilds, in order; left out likewise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rebuilds: Vec<Rebuild>,
    /// Chunks that could not be read, and were written again.
    pub chunks_repaired: u64,
    /// Chunks, or parts of them, that can no longer be reconstructed: reads of them fail.
    pub chunks_condemned: u64,
    /// By member; none with technique `rails`, which counts nothing of the above.
    pub members: Vec<MemberReport>,
    /// Of technique `rails`, since the run began; left out of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rails: Option<RailsReport>,
}

/// The counters of Flash on Rails.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RailsReport {
    /// Changes of roles.
    pub swaps: u64,
    /// The most bytes of missed writes in the host's memory.
    pub most_missed_bytes: u64,
}

/// What an array has sent to one of its members.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemberReport {
    /// The number of the drive that is the member at the end.
    pub drive: usize,
    /// Whether that has failed.
    pub has_failed: bool,
    /// Reads.
    pub reads: u64,
    /// Writes, deallocations and flushes.
    pub writes: u64,
    /// Reads that found background work in their way.
    pub busy: u64,
    /// Commands that failed.
    pub errors: u64,
}

impl ArrayReport {
    /// The report of an array since `begun`.
    pub fn of(array: &Array, begun: &Stats) -> ArrayReport {
        let (stats, config) = (array.stats().since(begun), array.config());
        ArrayReport {
            array: array.shape().to_string(),
            technique: config.technique.name(),
            tolerates: array.shape().level().tolerates(),
            chunk_bytes: config.chunk,
            bytes: array.info().bytes(),
            stripe_reads: stats.stripe_reads,
            busy_share: (stats.stripe_reads > 0)
                .then(|| stats.busy.iter().skip(1).sum::<u64>() as f64 / stats.stripe_reads as f64),
            busy_sub_ios: stats.busy,
            reads: stats.reads,
            extra_reads: stats.extra_reads,
            resubmissions: stats.resubmissions,
            reconstructions: stats.reconstructions,
            rereads: stats.rereads,
            stripe_writes: stats.stripe_writes,
            full_writes: stats.full_writes,
            read_modify_writes: stats.read_modify_writes,
            reconstruct_writes: stats.reconstruct_writes,
            writes: stats.writes,
            reads_for_writes: stats.reads_for_writes,
            window_changes: stats.window_changes,
            windows_refused: config.window_mode() != WindowMode::None && array.window().is_none(),
            window_ms: array.window().map(|window| window.as_us() / 1e3),
            missing: array.missing(),
            is_lost: array.is_lost(),
            rebuilding: array.rebuilding(),
            stripes_rebuilt: stats.rebuilt,
            reads_for_rebuilds: stats.rebuilt * reads_for_a_stripe(array.shape()),
            member_failures: Vec::new(),
            rebuilds: Vec::new(),
            chunks_repaired: stats.repairs,
            chunks_condemned: stats.condemned,
            members: stats
                .members
                .iter()
                .zip(array.drives())
                .map(|(member, drive)| MemberReport {
                    drive,
                    has_failed: array.member_of(drive).is_none(),
                    reads: member.reads,
                    writes: member.writes,
                    busy: member.busy,
                    errors: member.errors,
                })
                .collect(),
            rails: None,
        }
    }

    /// A note that a run is too short to judge windows, if it is: some drive did not collect in its own window.
    pub fn short_of_a_cycle(&self, run_s: f64) -> Option<String> {
        let cycle_s = self.window_ms? * self.members.len() as f64 / 1e3;
        (run_s < 2.0 * cycle_s).then(|| {
            format!(
                "the run took {run_s:.1} s, and a turn of all drives takes {cycle_s:.1} s. Not every drive has had two windows, so a longer run, or a \
                 shorter array.window, has other latencies of writes"
            )
        })
    }

    /// What became of members that failed, in sentences; `names` are those of the drives. None without failures.
    pub fn failures(&self, names: &[&str]) -> Vec<String> {
        let name = |drive: usize| names.get(drive).copied().unwrap_or("?");
        let of = |(number, member): (usize, &MemberReport)| {
            let rebuilding = self.rebuilding.filter(|(rebuilt, _)| *rebuilt == number);
            let (is_first, is_missing) = (member.drive == number, self.missing.contains(&number));
            match (is_first, is_missing, rebuilding) {
                (true, false, _) => None,
                (false, true, _) if member.has_failed => Some(format!(
                    "member {number} is missing: {}, which took the place of {}, has failed, too",
                    name(member.drive),
                    name(number)
                )),
                (true, true, _) => {
                    Some(format!("member {number}, {}, has failed, and no spare has taken its place", name(number)))
                }
                (false, true, Some((_, share))) => Some(format!(
                    "member {number}, {}, has failed; {} takes its place, {:.1}% are rebuilt",
                    name(number),
                    name(member.drive),
                    share * 100.0
                )),
                (false, missing, _) => Some(format!(
                    "member {number}, {}, has failed; {} {} its place",
                    name(number),
                    name(member.drive),
                    if missing { "is to take" } else { "was rebuilt and has taken" }
                )),
            }
        };
        let lost = self.is_lost.then(|| format!("more members have failed than {} tolerates: writes fail", self.array));
        let condemned = (self.chunks_condemned > 0).then(|| {
            format!(
                "{} chunks have unknown contents: a power cut and a failure came together, or too much could not be read. Their reads fail until \
                 they are written",
                self.chunks_condemned
            )
        });
        self.members.iter().enumerate().filter_map(of).chain(lost).chain(condemned).collect()
    }
}
