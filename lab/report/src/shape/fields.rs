//! The places of figures that comparisons, explanations and their pages read, in the order in which they are checked: an object
//! before its fields. A `*` is each field of an object, or each place of a list.

use super::kind::Kind;
use Kind::{
    Amount, AmountOrNull, Count, CountOrNull, Flag, List, Members, Object, ObjectOrNull, Rebuilding, Stages, Text,
    TextOrNull,
};

/// A place of a report.
pub(super) struct Field {
    /// Names, separated by dots.
    pub(super) path: &'static str,
    /// Whether the object that it is in must have it.
    pub(super) must: bool,
    /// What it takes.
    pub(super) kind: Kind,
}

const fn must(path: &'static str, kind: Kind) -> Field {
    Field { path, must: true, kind }
}

/// A field that some runs, or programs of before, leave out. Of a run on a drive behind a socket some are null.
const fn may(path: &'static str, kind: Kind) -> Field {
    Field { path, must: false, kind }
}

/// Of a run on a drive or on an array.
pub(super) const REPORT: [Field; 106] = [
    must("profile", TextOrNull),
    must("workload", Text),
    must("precondition", TextOrNull),
    must("seed", Count),
    must("requests", Count),
    must("latency_us", Object),
    must("breakdown_us", Object),
    may("bytes", Count),
    may("virtual_s", Amount),
    may("iops", AmountOrNull),
    may("bytes_per_s", AmountOrNull),
    may("standstill_us", Amount),
    may("interrupted", Flag),
    may("arrivals", Object),
    must("arrivals.asked_iops", AmountOrNull),
    must("arrivals.outstanding_end", Count),
    must("arrivals.overloaded", Flag),
    may("latency_us.*", Object),
    must("latency_us.*.count", Count),
    must("latency_us.*.mean", AmountOrNull),
    must("latency_us.*.p50", AmountOrNull),
    must("latency_us.*.p90", AmountOrNull),
    must("latency_us.*.p99", AmountOrNull),
    must("latency_us.*.p99_9", AmountOrNull),
    must("latency_us.*.p99_99", AmountOrNull),
    must("latency_us.*.p99_9999", AmountOrNull),
    must("latency_us.*.max", AmountOrNull),
    may("latency_corrected_us", Object),
    may("latency_corrected_us.*", Object),
    must("latency_corrected_us.*.count", Count),
    must("latency_corrected_us.*.mean", AmountOrNull),
    must("latency_corrected_us.*.p50", AmountOrNull),
    must("latency_corrected_us.*.p90", AmountOrNull),
    must("latency_corrected_us.*.p99", AmountOrNull),
    must("latency_corrected_us.*.p99_9", AmountOrNull),
    must("latency_corrected_us.*.p99_99", AmountOrNull),
    must("latency_corrected_us.*.p99_9999", AmountOrNull),
    must("latency_corrected_us.*.max", AmountOrNull),
    may("breakdown_us.*", Stages),
    may("waf", AmountOrNull),
    may("gc", ObjectOrNull),
    must("gc.blocks", Count),
    must("gc.pages_moved", Count),
    must("gc.blocked_reads", Count),
    may("over_provisioning", AmountOrNull),
    may("over_provisioning_asked", Amount),
    may("busy", Object),
    may("busy.*", Object),
    may("busy.*.mean", AmountOrNull),
    may("damage", Object),
    must("damage.retired_blocks", Count),
    must("damage.planes_out_of_use", Count),
    must("damage.spare_blocks", Count),
    must("damage.lost_units", Count),
    must("damage.dropped_units", Count),
    may("errors", Object),
    may("errors.*", Count),
    may("array", Object),
    must("array.technique", Text),
    must("array.tolerates", Count),
    must("array.stripe_reads", Count),
    must("array.busy_sub_ios", List),
    may("array.busy_sub_ios.*", Count),
    must("array.reads", Count),
    must("array.extra_reads", Count),
    must("array.resubmissions", Count),
    must("array.reconstructions", Count),
    must("array.stripe_writes", Count),
    must("array.writes", Count),
    must("array.reads_for_writes", Count),
    must("array.missing", Members),
    must("array.is_lost", Flag),
    may("array.rebuilding", Rebuilding),
    may("array.stripes_rebuilt", Count),
    may("array.reads_for_rebuilds", Count),
    may("array.member_failures", List),
    may("array.member_failures.*", Object),
    must("array.member_failures.*.member", Count),
    must("array.member_failures.*.drive", Count),
    must("array.member_failures.*.at_s", AmountOrNull),
    may("array.rebuilds", List),
    may("array.rebuilds.*", Object),
    must("array.rebuilds.*.member", Count),
    must("array.rebuilds.*.drive", Count),
    must("array.rebuilds.*.from_s", AmountOrNull),
    must("array.rebuilds.*.took_s", AmountOrNull),
    may("array.chunks_repaired", Count),
    may("drives", List),
    may("inputs", Object),
    may("inputs.iodepth", CountOrNull),
    must("inputs.workload_lines", List),
    may("inputs.workload_lines.*", Text),
    may("inputs.profile_keys", Object),
    may("host", Object),
    may("host.version", Text),
    may("details", Object),
    may("details.histogram", Object),
    may("details.histogram.*", Object),
    must("details.histogram.*.latency_us", List),
    may("details.histogram.*.latency_us.*", Amount),
    must("details.histogram.*.requests", List),
    may("details.histogram.*.requests.*", Count),
    may("details.timeline", Object),
    may("details.timeline.dies", List),
    may("details.timeline.dies.*", Text),
    may("details.tail", Object),
];

/// Of the slowest requests of a direction.
pub(super) const TAIL: [Field; 13] = [
    must("requests", Count),
    must("of", Count),
    must("from_us", Amount),
    must("mean_us", Amount),
    must("breakdown_us", Stages),
    must("located", Count),
    must("dies", List),
    may("dies.*", Count),
    may("die_busy_us", Object),
    may("die_busy_us.*", Amount),
    must("interval_s", Amount),
    must("windows", List),
    may("windows.*", Count),
];

/// Of a drive of an array.
pub(super) const DRIVE: [Field; 2] = [must("name", Text), must("report", Object)];
