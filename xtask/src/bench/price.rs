//! The cost of each option: of NAND timing, of aging and scrubbing, of placement, partitions and zones. Processor time per request on a
//! drive with the option, as a ratio to the same drive without it, measured right before.
//!
//! The ratio is of the host's time, not of the drive's: an option that makes a drive slower or faster is cheap if the
//! simulator has no extra work. If a request needs more page programs or reads, it costs more.
//!
//! Left out: options together; random write areas of zones and open channels, which no job of `sim` writes to.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::subject::Subject;
use super::suite::{Figure, Measured};
use crate::say;

/// Reads and overwrites in equal parts, on a worn-in drive small enough for a fast set-up.
const LOAD: &[&str] = &[
    "--drive",
    "default",
    "--set",
    "capacity=4GiB",
    "--set",
    "geometry.channels=8",
    "--set",
    "geometry.dies_per_channel=8",
    "--rw",
    "randrw",
    "--rwmixread",
    "50",
    "--bs",
    "4k",
    "--iodepth",
    "32",
    "--precondition",
    "steady",
    "--warmup-count",
    "20000",
    "--io-count",
    "200000",
];

/// Writes at random, on an empty drive that may have zones.
const WRITES: &[&str] = &[
    "--drive",
    "default",
    "--set",
    "capacity=4GiB",
    "--set",
    "geometry.channels=8",
    "--set",
    "geometry.dies_per_channel=8",
    "--set",
    "lba_size=4KiB",
    "--set",
    "buffer.size=64MiB",
    "--bs",
    "16k",
    "--iodepth",
    "8",
    "--io-count",
    "200000",
];

/// An option.
struct Feature {
    /// Its key.
    name: &'static str,
    /// Settings for the drive without it.
    off: &'static [&'static str],
    /// Settings that switch it on.
    on: &'static [&'static str],
    /// The load of both.
    load: &'static [&'static str],
    /// More words of the load without it, and with it.
    words: [&'static [&'static str]; 2],
    /// Whether the drive may serve the load as it does without it, to the nanosecond.
    may_be_alike: bool,
}

const fn option(name: &'static str, off: &'static [&'static str], on: &'static [&'static str]) -> Feature {
    Feature { name, off, on, load: LOAD, words: [&[], &[]], may_be_alike: false }
}

impl Feature {
    /// With another load, and more words of it without the option and with it.
    const fn under(
        self,
        load: &'static [&'static str],
        off: &'static [&'static str],
        on: &'static [&'static str],
    ) -> Feature {
        Feature { load, words: [off, on], ..self }
    }

    /// One that changes nothing of what this load sees.
    const fn may_be_alike(self) -> Feature {
        Feature { may_be_alike: true, ..self }
    }
}

/// Words of a job that knows zones.
const ZONES: &[&str] = &["--rw", "randwrite", "--zonemode", "zbd", "--max-open-zones", "8"];
const APPENDS: &[&str] = &["--rw", "randwrite", "--zonemode", "zbd", "--max-open-zones", "8", "--zone-append"];
/// Two tenants, each with half of the channels.
const TENANTS: &str = "ftl.parts=[{name=\"one\", channels=\"0-3\"}, {name=\"other\", channels=\"4-7\"}]";

const OPTIONS: &[Feature] = &[
    option("timing.command", &[], &["timing.command=200ns"]),
    option("timing.ecc", &[], &["timing.ecc.time=5us", "timing.ecc.engines=8"]),
    option("timing.read_retry", &[], &["timing.read_retry.probability=[\"5%\", \"1%\"]", "timing.read_retry.time=2us"]),
    option(
        "timing.suspend",
        &[],
        &["timing.suspend.program=5us", "timing.suspend.erase=20us", "timing.suspend.resume=3us"],
    ),
    option("timing.planes = die", &[], &["timing.planes=die"]),
    option("timing.planes = multi_plane", &[], &["timing.planes=multi_plane"]),
    option("timing.program_unit = word_line", &[], &["timing.program_unit=word_line"]),
    option("timing.cache_read", &["timing.cache_read=false"], &["timing.cache_read=true"]),
    // Few dies, so that a die gets another page while it programs.
    option(
        "timing.cache_program",
        &["timing.cache_program=false", "geometry.dies_per_channel=1"],
        &["timing.cache_program=true"],
    ),
    // Pages of one unit, so that all of them are copied.
    option("ftl.gc.copyback_ecc", &["ftl.gc.copyback=true", "geometry.page_size=4KiB"], &["ftl.gc.copyback_ecc=true"]),
    option("ftl.gc.preempt", &[], &["ftl.gc.preempt=true"]),
    option("buffer.mode = register", &[], &["buffer.mode=register"]),
    option("link.packet", &[], &["link.packet=512B"]),
    option("link.duplex = half", &[], &["link.duplex=half"]),
    option("wear", &[], &["wear.cycles=1500", "wear.shelf=30days"]),
    option("wear.refresh", &["wear.cycles=3000", "wear.shelf=30days"], &["wear.refresh=30%"]),
    // The shortest interval of this drive: the patrol reads all the time. Nothing is old enough to be written anew.
    option("wear.scrub", &["wear.cycles=1500", "wear.refresh=100%"], &["wear.scrub=30s"]),
    // One stream of writes by two handles, and by one.
    option("ftl.fdp", &[], &["ftl.fdp.handles=2"]).under(LOAD, &[], &["--fdp", "--plids", "0,1"]),
    option("ftl.streams", &[], &["ftl.streams.count=2"]).under(
        LOAD,
        &[],
        &["--dataplacement", "streams", "--plids", "1,2"],
    ),
    // The first of two tenants, on a drive of twice the size.
    option("ftl.parts", &[], &[TENANTS]).may_be_alike(),
    option("ftl.kind = zone", &[], &["ftl.kind=zone"]).under(WRITES, &["--rw", "randwrite"], ZONES),
    option("zone append", &["ftl.kind=zone"], &["ftl.zone.append_time=1us"]).under(WRITES, ZONES, APPENDS),
];

/// Each option in turn with the drive without it.
pub(crate) fn option_price(subject: &Subject) -> Measured {
    let (mut figures, mut runs) = (Vec::new(), Vec::new());
    for feature in OPTIONS {
        let (off, on) = (changes(&[feature.off]), changes(&[feature.off, feature.on]));
        if !subject.has_drive(&on)? {
            say::line(&format!("{} has no {}: left out", subject.revision, feature.name));
            return Ok(None);
        }
        let run = |changes: &[&str], words| subject.report(&[feature.load, changes, words].concat());
        let (off, on) = (run(&off, feature.words[0])?, run(&on, feature.words[1])?);
        if drives_alike(&off, &on) && !feature.may_be_alike {
            bail!("{}: the drive is the same with it and without", feature.name);
        }
        let (without, with) = us_a_request(&off).zip(us_a_request(&on)).context("the report lacks a figure")?;
        figures.push(Figure { name: feature.name, value: with / without, aim: "", more_is_better: false });
        let load = [feature.load, feature.words[1]].concat();
        runs.push(json!({
            "option": feature.name,
            "load": load,
            "without_us": without,
            "with_us": with,
        }));
    }
    Ok(Some((figures, json!({"runs": runs}))))
}

/// The words that make changes.
fn changes(changes: &[&[&'static str]]) -> Vec<&'static str> {
    changes.iter().copied().flatten().flat_map(|change| ["--set", change]).collect()
}

/// Processor time, in microseconds.
fn us_a_request(report: &Value) -> Option<f64> {
    Some(report.pointer("/host/cpu_s")?.as_f64()? * 1e6 / report.pointer("/requests")?.as_f64()?)
}

/// Whether two drives behaved identically in virtual time.
fn drives_alike(one: &Value, other: &Value) -> bool {
    let latency = |report: &Value| report.pointer("/latency_us").cloned();
    latency(one) == latency(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_names_of_their_own_and_change_something() {
        let mut names: Vec<&str> = OPTIONS.iter().map(|option| option.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OPTIONS.len());
        assert!(OPTIONS.iter().all(|option| !option.on.is_empty() && option.on != option.off));
    }

    #[test]
    fn a_request_costs_its_share_of_the_processor() {
        assert_eq!(us_a_request(&json!({"host": {"cpu_s": 0.5}, "requests": 1_000})), Some(500.0));
        assert_eq!(us_a_request(&json!({})), None);
    }
}
