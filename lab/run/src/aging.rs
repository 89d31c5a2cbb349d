//! The effects of aging on the flash of a drive: counted since the drive was built, including the warm-up, as damage is.
//!
//! Left out: preconditioning, which performs no flash operation.

use nandscape_device_media::AgingCounts;
use nandscape_device_ssd::{Part, Ssd};
use serde::Serialize;

/// What aging has done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AgingReport {
    /// Erases as a share of the rated ones, in percent, as SMART has it: that of the part of the drive that is worn most.
    pub percentage_used: u8,
    /// Pages read, by the host, by garbage collection and for scrubbing.
    pub page_reads: u64,
    /// Those that were corrected, by the retries that they took, from none on.
    pub retries: Vec<u64>,
    /// Retries of a corrected read, in the mean; null without reads.
    pub mean_retries: Option<f64>,
    /// Pages read that could not be corrected after all retries.
    pub uncorrectable: u64,
    /// Programs that failed because of wear.
    pub failed_programs: u64,
    /// Erases that failed because of wear.
    pub failed_erases: u64,
    /// Pages that scrubbing read, included in `page_reads`.
    pub scrub_reads: u64,
    /// The raw bit error rate of the first attempt, in the mean; null without reads.
    pub rber_mean: Option<f64>,
    /// The largest.
    pub rber_max: f64,
    /// Pages read by that rate, in quarters of a decade.
    pub rber: Vec<RberBin>,
}

/// Reads at a raw bit error rate.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RberBin {
    /// The lower end; the upper end is that times 10^(1/4).
    pub from: f64,
    /// Pages read.
    pub page_reads: u64,
}

impl AgingReport {
    pub(crate) fn of(ssd: &Ssd) -> Option<AgingReport> {
        let used = |part: &Part| {
            let media = part.media();
            let rated = media.aging().map_or(0, |aging| aging.rated);
            part.stats().percentage_used(media.geometry().blocks().into(), rated)
        };
        let used = ssd.parts().iter().map(used).max().unwrap_or(0);
        ssd.aging_counts().map(|counts| AgingReport { percentage_used: used, ..AgingReport::new(&counts) })
    }

    fn new(counts: &AgingCounts) -> AgingReport {
        let corrected: u64 = counts.retries.iter().sum();
        let retries: u64 = (0..).zip(&counts.retries).map(|(retries, reads)| retries * reads).sum();
        let reads = counts.reads();
        let bin = |(bin, reads): (&i32, &u64)| RberBin { from: AgingCounts::lower_end(*bin), page_reads: *reads };
        AgingReport {
            percentage_used: 0,
            page_reads: reads,
            retries: counts.retries.clone(),
            mean_retries: (corrected > 0).then(|| retries as f64 / corrected as f64),
            uncorrectable: counts.uncorrectable,
            failed_programs: counts.failed_programs,
            failed_erases: counts.failed_erases,
            scrub_reads: counts.scrub_reads,
            rber_mean: (reads > 0).then(|| counts.rate_sum / reads as f64),
            rber_max: counts.rate_max,
            rber: counts.rates.iter().map(bin).collect(),
        }
    }
}
