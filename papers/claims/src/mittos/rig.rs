//! Runs of the experiments on MittOS: clusters of the key-value store, whose drives have noisy neighbours.
//!
//! Left out: the parts of a single claim.

use anyhow::Result;
use nandscape_apps_kv_run::{Outcome, Spec};
use nandscape_device_ssd::{Profile, Resolved};

use nandscape_lab_ledger::experiment::{Choice, Parameter};
use nandscape_lab_ledger::figures::Figures;

/// Quantiles of requests, by their names.
pub(crate) const QUANTILES: [(f64, &str); 6] =
    [(0.5, "p50"), (0.75, "p75"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")];

/// The drive of MittSSD, with a number of its channels, of 512 MiB each.
///
/// # Errors
/// When its profile is invalid.
pub(crate) fn drive(channels: u32) -> Result<Resolved> {
    drive_of(channels, 512)
}

/// The same, with some MiB of each channel.
///
/// # Errors
/// When its profile is invalid.
pub(crate) fn drive_of(channels: u32, mib: u32) -> Result<Resolved> {
    let mut profile = Profile::load("default")?;
    let size = format!("capacity={}MiB", mib * channels);
    let channels = format!("geometry.channels={channels}");
    let changes = [
        "geometry.dies_per_channel=8",
        "geometry.planes_per_die=1",
        "geometry.page_size=16KiB",
        "geometry.pages_per_block=512",
        "timing.cell=mlc",
        "timing.read=40us",
        "timing.program=[\"1ms\", \"2ms\"]",
        "timing.erase=6ms",
        "timing.bus=280MB/s",
        "timing.partial_transfer=false",
        "buffer.size=2MiB",
        "controller.priority=fifo",
    ];
    profile.set_all(changes.map(str::to_owned))?;
    profile.set_all(&[channels, size])?;
    Ok(profile.resolve()?)
}

/// The parameters that all have.
pub(crate) const DRIVE: Parameter = Parameter {
    what: "drive",
    value: "8 chips a channel, pages of 16 KiB, 40 us and 60 us on the channel, programs of 1 and 2 ms, erases of 6 ms, 280 MB/s a channel",
    source: "Li 2020, 3.1.7 and 3.5",
};
/// Choices that all take.
pub(crate) const REJECTION: Choice = Choice {
    open: "who predicts",
    taken: "the block layer of the server's host, by next free times of chips and channels; gets and noise both pass it. A get is rejected \
            when it would end after its deadline",
    why: "the paper's host owns the chips and predicts by next-free times",
};
pub(crate) const BUFFER: Choice = Choice {
    open: "the write buffer",
    taken: "2 MiB, protected; chips serve first come first served",
    why: "LightNVM's host-side FTL buffers writes; its size is not given",
};

/// Adds latencies and counts under a line's name.
pub(crate) fn add(figures: &mut Figures, line: &str, outcome: &Outcome, gets: u64) {
    let latency = &outcome.requests;
    figures.add(format!("{line} mean"), latency.mean_ns() / 1e3, "us");
    for (quantile, name) in QUANTILES {
        figures.add(format!("{line} {name}"), latency.quantile(quantile).as_us(), "us");
    }
    figures.add(format!("{line} tries a get"), outcome.tries_a_get(gets), "");
    figures.add(format!("{line} failed"), outcome.failed as f64, "");
}

/// Gets that are measured.
pub(crate) fn gets(spec: &Spec) -> u64 {
    spec.load.requests * spec.load.scale as u64
}
