//! fio's options as keys of a job. Numbers are fio's: `k` is 1024 everywhere, times without a unit are seconds.

use std::fmt::Display;
use std::str::FromStr;

use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use super::ini::{Given, Section};
use crate::distribution::Distribution;
use crate::placement::PlacementWords;
use crate::spec::{JobSpec, Rate, RateProcess};
use crate::words::{Action, Share};
use crate::zoned::ZoneWords;

/// Options that say how fio reaches a device, prints and prepares data: requests are the same without them.
const LEFT_OUT: [&str; 25] = [
    "allow_file_create",
    "buffer_compress_percentage",
    "clat_percentiles",
    "cpus_allowed",
    "cpus_allowed_policy",
    "description",
    "directory",
    "disable_lat",
    "file_service_type",
    "filename",
    "group_reporting",
    "gtod_reduce",
    "hipri",
    "invalidate",
    "lat_percentiles",
    "log_avg_msec",
    "name",
    "percentile_list",
    "randrepeat",
    "refill_buffers",
    "registerfiles",
    "fixedbufs",
    "sqthread_poll",
    "thread",
    "zero_buffers",
];

/// Engines of fio that have one request outstanding, whatever `iodepth` says. The first is fio's own default.
const SYNCHRONOUS: [&str; 7] = ["psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "sg"];

/// A job as read.
pub(super) struct Read {
    pub(super) spec: JobSpec,
    pub(super) runtime: Option<Span>,
    pub(super) time_based: bool,
    /// The line of `exitall`.
    pub(super) exitall: Option<usize>,
    /// The line of a size that is a share of the drive.
    pub(super) share: Option<usize>,
    zones: ZoneWords,
    placement: PlacementWords,
    number_ios: Option<u64>,
    io_size: Option<u64>,
    /// Options that were left out.
    pub(super) left_out: Vec<String>,
    /// What is different here.
    pub(super) notes: Vec<String>,
}

/// A line, and what is wrong in it.
type Wrong = (usize, String);

/// The job of a section.
///
/// # Errors
/// The line, the option, and what would be valid.
pub(super) fn job(section: &Section) -> Result<Read, Wrong> {
    let spec = JobSpec { name: section.name.clone(), iodepth: 1, ..JobSpec::default() };
    let mut read = Read {
        spec,
        runtime: None,
        time_based: false,
        exitall: None,
        share: None,
        zones: ZoneWords::default(),
        placement: PlacementWords::default(),
        number_ios: None,
        io_size: None,
        left_out: Vec::new(),
        notes: Vec::new(),
    };
    // What others depend on.
    let last = |keys: &[&str]| section.options.iter().rev().find(|given| keys.contains(&given.key.as_str()));
    match last(&["rw", "readwrite"]) {
        Some(given) => read.spec.rw = word(given)?,
        None => return Err((section.line, format!("job {} has no rw, such as rw=randread", section.name))),
    }
    if let Some(given) = last(&["numjobs"]) {
        read.spec.numjobs = whole(given)?;
    }
    section.options.iter().try_for_each(|given| read.set(given))?;
    if let (Some(rate), Some(given)) = (&mut read.spec.rate, last(&["rate_process"])) {
        rate.process = word(given)?;
    }
    read.spec.zoned = read.zones.zoned().map_err(|problem| (section.line, problem))?;
    read.spec.placing = read.placement.placing().map_err(|problem| (section.line, problem))?;
    read.one_at_a_time(last(&["ioengine"]));
    if read.spec.rw.random && read.spec.distribution == Distribution::Uniform.into() && last(&["norandommap"]).is_none()
    {
        let note = "random requests may meet a block again before all were met, as with norandommap";
        read.notes.push(note.to_owned());
    }
    Ok(read)
}

impl Read {
    fn set(&mut self, given: &Given) -> Result<(), Wrong> {
        let spec = &mut self.spec;
        match given.key.as_str() {
            "rw" | "readwrite" | "numjobs" => {}
            "bs" | "blocksize" => spec.bs = word(&one_size(given, spec.rw.action))?,
            "bssplit" => spec.bs = word(given)?,
            "iodepth" => spec.iodepth = whole(given)?,
            "rwmixread" => spec.rwmixread = word(given)?,
            "rwmixwrite" => {
                let writes: f64 = word(given)?;
                spec.rwmixread = 100.0 - writes;
            }
            "size" => {
                spec.size = word(given)?;
                self.share = matches!(spec.size, Share::Of(_)).then_some(given.line);
            }
            "io_size" | "io_limit" => self.io_size = Some(word::<Bytes>(given)?.0),
            "number_ios" => self.number_ios = Some(word::<Bytes>(given)?.0),
            "random_distribution" => spec.distribution = word(given)?,
            // It is read with the rate, which may come later.
            "rate_process" => drop(word::<RateProcess>(given)?),
            "rate_iops" if spec.rw.action == Action::Mixed => {
                let problem = "fio limits reads and writes each; give a job of reads and a job of writes instead";
                return Err(wrong(given, problem));
            }
            "rate_iops" => {
                let iops = word::<Bytes>(given)?.0 as f64 * f64::from(spec.numjobs);
                spec.rate = Some(Rate { iops, process: RateProcess::Linear });
            }
            "runtime" | "timeout" => self.runtime = Some(time(given)?),
            "time_based" => self.time_based = given.is_on(),
            "zonemode" | "max_open_zones" | "job_max_open_zones" => self.set_zones(given)?,
            "offset" => spec.offset = word(given)?,
            "fdp" | "dataplacement" | "plids" | "fdp_pli" | "plid_select" | "fdp_pli_select" => {
                self.set_placement(given);
            }
            "ioengine" => self.left_out.push("ioengine".to_owned()),
            "norandommap" => {}
            "exitall" => self.exitall = given.is_on().then_some(given.line),
            "direct" if !given.is_on() => return Err(wrong(given, "no page cache is modelled; give direct=1")),
            "buffered" if given.is_on() => return Err(wrong(given, "no page cache is modelled; give direct=1")),
            "end_fsync" if given.is_on() => {
                return Err(wrong(given, "a job has no flush at its end here; leave the option out"));
            }
            "fill_device" | "fill_fs" if given.is_on() => {
                return Err(wrong(given, "no job ends when the drive is full; give io_size instead"));
            }
            "direct" | "buffered" | "end_fsync" | "fill_device" | "fill_fs" => self.left_out.push(given.key.clone()),
            "filesize" => return Err(wrong(given, "a job uses one part of the drive; give size instead")),
            "stonewall" | "wait_for_previous" => {
                return Err(wrong(given, "jobs run at the same time here; put each into a file of its own"));
            }
            key if LEFT_OUT.contains(&key) => self.left_out.push(key.to_owned()),
            key => {
                let known = "rw, bs, bssplit, iodepth, numjobs, rwmixread, size, io_size, number_ios, random_distribution, \
                             rate_iops, rate_process, runtime and time_based are";
                return Err((given.line, format!("{key} is not understood; {known}")));
            }
        }
        Ok(())
    }

    /// fio's words about zones.
    fn set_zones(&mut self, given: &Given) -> Result<(), Wrong> {
        match (given.key.as_str(), given.value.as_str()) {
            ("zonemode", mode) => self.zones.mode = Some(mode.to_owned()),
            _ => self.zones.open = Some(whole(given)?),
        }
        Ok(())
    }

    /// fio's words about placement, of which some have an older form.
    fn set_placement(&mut self, given: &Given) {
        let text = Some(given.value.clone());
        match given.key.as_str() {
            "fdp" => self.placement.fdp = Some(given.is_on()),
            "dataplacement" => self.placement.by = text,
            "plids" | "fdp_pli" => self.placement.ids = text,
            _ => self.placement.select = text,
        }
    }

    /// A synchronous engine has one request outstanding.
    fn one_at_a_time(&mut self, engine: Option<&Given>) {
        let name = engine.map_or(SYNCHRONOUS[0], |given| given.value.as_str());
        let depth = self.spec.iodepth;
        if depth > 1 && self.spec.rate.is_none() && SYNCHRONOUS.contains(&name) {
            let by_default = if engine.is_none() { ", fio's engine when ioengine is left out," } else { "" };
            self.notes.push(format!(
                "iodepth={depth} counts as 1 in job {}: {name}{by_default} has one request outstanding",
                self.spec.name
            ));
            self.spec.iodepth = 1;
        }
    }

    /// Sequential clones of fio begin at the same address, those of a job here are spread: each becomes a job of its own.
    pub(super) fn specs(&self) -> Vec<JobSpec> {
        let clones = self.spec.numjobs;
        if self.spec.rw.random || clones < 2 {
            return vec![self.spec.clone()];
        }
        let clone = |number: u32| {
            let rate = self.spec.rate.map(|rate| Rate { iops: rate.iops / f64::from(clones), ..rate });
            JobSpec { name: format!("{}.{number}", self.spec.name), numjobs: 1, rate, ..self.spec.clone() }
        };
        (0..clones).map(clone).collect()
    }

    /// The requests of all clones of the job, if it says how much it does: the smaller of `number_ios` and the size.
    pub(super) fn requests(&self) -> Option<u64> {
        let mean = |action: Action| {
            let sizes = self.spec.bs.of(action).sizes();
            let weights: u64 = sizes.iter().map(|(_, weight)| u64::from(*weight)).sum();
            let bytes: u64 = sizes.iter().map(|(bytes, weight)| bytes * u64::from(*weight)).sum();
            bytes as f64 / weights.max(1) as f64
        };
        let mean = match self.spec.rw.action {
            Action::Mixed => {
                let reads = self.spec.rwmixread / 100.0;
                reads * mean(Action::Read) + (1.0 - reads) * mean(Action::Write)
            }
            action => mean(action),
        };
        let size = match self.spec.size {
            Share::Bytes(bytes) => Some(bytes),
            Share::Of(_) => None,
        };
        let of_size = || Some((self.io_size.or(size)? as f64 / mean.max(1.0)) as u64);
        let own = self.number_ios.into_iter().chain(of_size()).min();
        own.map(|requests| requests.saturating_mul(u64::from(self.spec.numjobs)))
    }
}

fn wrong(given: &Given, problem: impl Display) -> Wrong {
    (given.line, format!("{}: {problem}", given.key))
}

fn word<T>(given: &Given) -> Result<T, Wrong>
where
    T: FromStr,
    T::Err: Display,
{
    given.value.parse().map_err(|error: T::Err| wrong(given, error))
}

fn whole(given: &Given) -> Result<u32, Wrong> {
    given.value.parse().map_err(|_| wrong(given, format!("\"{}\" is not a whole number", given.value)))
}

/// fio's sizes for reads, writes and trims: the one of this job. An empty size is fio's default; the last size holds for the
/// directions after it.
fn one_size(given: &Given, action: Action) -> Given {
    let sizes: Vec<&str> = given.value.split(',').map(str::trim).collect();
    let of = |place: usize| match sizes[place.min(sizes.len() - 1)] {
        "" => "4k",
        size => size,
    };
    let value = match action {
        Action::Read => of(0),
        Action::Write => of(1),
        Action::Trim => of(2),
        Action::Mixed if of(0) == of(1) => of(0),
        Action::Mixed => &format!("{},{}", of(0), of(1)),
    };
    Given { value: value.to_owned(), ..given.clone() }
}

/// fio's times: seconds without a unit, and minutes, hours and days.
fn time(given: &Given) -> Result<Span, Wrong> {
    let text = given.value.as_str();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let seconds = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return text.parse().map_err(|error| wrong(given, format!("{error}"))),
    };
    let number: Option<u64> = digits.parse().ok();
    let seconds = number.and_then(|number| number.checked_mul(seconds)).filter(|seconds| *seconds <= 1_000_000_000);
    seconds.map(Span::from_s).ok_or_else(|| wrong(given, format!("\"{text}\" is not a time such as 30, 30s or 5m")))
}
