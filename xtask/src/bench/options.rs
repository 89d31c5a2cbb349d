//! The options whose cost the benchmarks measure: the drive with each, the same drive without it, and the load of both.
//!
//! Left out: combinations of options; random write areas of zones and open channels, which no job of `sim` writes to.

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
];

/// An option.
pub(super) struct Feature {
    /// Its key.
    pub(super) name: &'static str,
    /// Settings for the drive without it.
    off: &'static [&'static str],
    /// Settings that switch it on.
    on: &'static [&'static str],
    /// The load of both.
    load: &'static [&'static str],
    /// More words of the load without it, and with it.
    words: [&'static [&'static str]; 2],
    /// Whether the drive may serve the load as it does without it, to the nanosecond.
    pub(super) may_be_alike: bool,
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
    const fn alike(self) -> Feature {
        Feature { may_be_alike: true, ..self }
    }

    /// The options of the drive, without it or with it.
    pub(super) fn drive(&self, is_on: bool) -> Vec<&'static str> {
        let on: &[&str] = if is_on { self.on } else { &[] };
        self.off.iter().chain(on).flat_map(|change| ["--set", *change]).collect()
    }

    /// The words of a run on either drive; the number of requests is left to the caller.
    pub(super) fn run(&self, is_on: bool) -> Vec<&'static str> {
        [self.load, &self.drive(is_on), self.words[usize::from(is_on)]].concat()
    }
}

/// Words of a job that knows zones.
const ZONES: &[&str] = &["--rw", "randwrite", "--zonemode", "zbd", "--max-open-zones", "8"];
const APPENDS: &[&str] = &["--rw", "randwrite", "--zonemode", "zbd", "--max-open-zones", "8", "--zone-append"];
/// Two tenants, each with half of the channels.
const TENANTS: &str = "ftl.parts=[{name=\"one\", channels=\"0-3\"}, {name=\"other\", channels=\"4-7\"}]";

pub(super) const OPTIONS: &[Feature] = &[
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
    option("timing.interleaving = rows", &[], &["timing.interleaving=rows"]),
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
    // The shortest interval of this drive: scrubbing reads all the time. No data is old enough to be rewritten.
    option("wear.scrub", &["wear.cycles=1500", "wear.refresh=100%"], &["wear.scrub=30s"]),
    // One stream of writes by two handles, and by one.
    option("ftl.fdp", &[], &["ftl.fdp.handles=2"]).under(LOAD, &[], &["--fdp", "--plids", "0,1"]),
    option("ftl.streams", &[], &["ftl.streams.count=2"]).under(
        LOAD,
        &[],
        &["--dataplacement", "streams", "--plids", "1,2"],
    ),
    // The first of two tenants, on a drive of twice the size.
    option("ftl.parts", &[], &[TENANTS]).alike(),
    option("ftl.kind = zone", &[], &["ftl.kind=zone"]).under(WRITES, &["--rw", "randwrite"], ZONES),
    option("zone append", &["ftl.kind=zone"], &["ftl.zone.append_time=1us"]).under(WRITES, ZONES, APPENDS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_names_of_their_own_and_change_something() {
        let mut names: Vec<&str> = OPTIONS.iter().map(|option| option.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OPTIONS.len());
        assert!(OPTIONS.iter().all(|option| option.run(false) != option.run(true)));
        assert!(OPTIONS.iter().all(|option| option.drive(false) != option.drive(true)));
    }
}
