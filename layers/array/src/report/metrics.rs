//! Counters of a served array, by the names of metrics.

use crate::array::Array;
use crate::config::WindowMode;

/// What an array has counted, by the names of metrics.
pub fn counters(array: &Array) -> Vec<(&'static str, f64)> {
    let stats = array.stats();
    let busy = |count: usize| stats.busy.get(count..).unwrap_or_default().iter().sum::<u64>() as f64;
    let (scrubbed, is_scrubbing) = array.scrubbed();
    let rebuilt = array.rebuilding().map_or(1.0, |(_, share)| share);
    let mut counters = vec![
        ("array_stripe_reads_total", stats.stripe_reads as f64),
        ("array_stripe_reads_busy_total", busy(1)),
        ("array_stripe_reads_busy_twice_total", busy(2)),
        ("array_stripe_reads_busy_thrice_total", busy(3)),
        ("array_reads_sent_total", stats.reads as f64),
        ("array_reads_extra_total", stats.extra_reads as f64),
        ("array_reads_resubmitted_total", stats.resubmissions as f64),
        ("array_reads_reconstructed_total", stats.reconstructions as f64),
        ("array_stripe_writes_total", stats.stripe_writes as f64),
        ("array_writes_sent_total", stats.writes as f64),
        ("array_chunks_repaired_total", stats.repairs as f64),
        ("array_chunks_condemned_total", stats.condemned as f64),
        ("array_scrubbing", f64::from(u8::from(is_scrubbing))),
        ("array_scrub_stripes", scrubbed.stripes as f64),
        ("array_scrub_mismatches", scrubbed.mismatches as f64),
        ("array_scrub_skipped", scrubbed.skipped as f64),
        ("array_scrub_unreadable", scrubbed.unreadable as f64),
        ("array_stripes_rebuilt_total", stats.rebuilt as f64),
        ("array_members_missing", array.missing().len() as f64),
        ("array_rebuilt_ratio", rebuilt),
        ("array_lost", f64::from(u8::from(array.is_lost()))),
    ];
    let is_refused = array.config().window_mode() != WindowMode::None && array.window().is_none();
    counters.push(("array_windows_refused", f64::from(u8::from(is_refused))));
    counters.extend(array.window().map(|window| ("array_window_ms", window.as_us() / 1e3)));
    counters
}
