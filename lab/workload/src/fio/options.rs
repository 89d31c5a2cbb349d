//! fio's options as keys of a job. Numbers are fio's: `k` is 1024 everywhere, times without a unit are seconds.

use std::fmt::Display;
use std::str::FromStr;

use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use super::ini::{Given, Section};
use super::known::{LEFT_OUT, neutral, not_understood};
use crate::distribution::Distribution;
use crate::flushes::{FlushWords, Flushes};
use crate::placement::PlacementWords;
use crate::scheduling::SchedulingWords;
use crate::spec::{JobSpec, Rate, RateProcess};
use crate::think::{Pause, ThinkWords};
use crate::words::{Action, Share};
use crate::zoned::ZoneWords;

/// Engines of fio with one outstanding request, whatever the `iodepth`. The first is fio's default.
pub const SYNCHRONOUS: [&str; 7] = ["psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "sg"];

/// A job as read.
pub(super) struct Read {
    pub(super) spec: JobSpec,
    pub(super) runtime: Option<Span>,
    /// The time before measurements begin.
    pub(super) ramp: Span,
    pub(super) time_based: bool,
    /// The line of `exitall`.
    pub(super) exitall: Option<usize>,
    /// The line of the first size that is a share of the drive, or of the job's size.
    pub(super) share: Option<usize>,
    zones: ZoneWords,
    placement: PlacementWords,
    flushes: FlushWords,
    think: ThinkWords,
    scheduling: SchedulingWords,
    prio: Option<u8>,
    prioclass: Option<u8>,
    number_ios: Option<u64>,
    io_size: Option<Share>,
    /// How often the job does its size.
    loops: u64,
    /// Options that were left out.
    pub(super) left_out: Vec<String>,
    /// What is different here.
    pub(super) notes: Vec<String>,
}

/// A line, and its error.
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
        ramp: Span::ZERO,
        time_based: false,
        exitall: None,
        share: None,
        zones: ZoneWords::default(),
        placement: PlacementWords::default(),
        flushes: FlushWords::default(),
        think: ThinkWords::default(),
        scheduling: SchedulingWords::default(),
        prio: None,
        prioclass: None,
        number_ios: None,
        io_size: None,
        loops: 1,
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
    read.spec.flushes = read.flushes.flushes().map_err(|problem| (section.line, problem))?;
    if !matches!(read.spec.rw.action, Action::Write | Action::Mixed) && read.spec.flushes.is_some() {
        let words = read.spec.flushes.describe();
        read.notes.push(format!("{} has no effect in job {}, which does not write", words.trim(), read.spec.name));
        read.spec.flushes = Flushes::default();
    }
    read.spec.think = read.think.think().map_err(|problem| (section.line, problem))?;
    read.spec.scheduling = read.scheduling.of_job().map_err(|problem| (section.line, problem))?;
    read.prioritise();
    read.repeats(last(&["randrepeat"]));
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
                self.share = self.share.or(matches!(spec.size, Share::Of(_)).then_some(given.line));
            }
            "io_size" | "io_limit" => {
                self.io_size = Some(word(given)?);
                self.share = self.share.or(matches!(self.io_size, Some(Share::Of(_))).then_some(given.line));
            }
            "loops" => self.loops = word::<Bytes>(given)?.0.max(1),
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
            "ramp_time" => self.ramp = time(given)?,
            "fsync" | "fdatasync" | "sync" | "end_fsync" | "fsync_on_close" => self.set_flushes(given)?,
            "thinktime" | "thinktime_blocks" | "thinktime_blocks_type" | "thinktime_spin" => self.set_think(given)?,
            "stonewall" | "wait_for_previous" => spec.stonewall = given.is_on(),
            "class" => spec.class = word(given)?,
            "tenant" => spec.tenant = word(given)?,
            "deadline" => spec.deadline = pause(given)?.map(|Pause(span)| span),
            "numa_cpu_nodes" | "numa_mem_policy" => {
                let note = "is left out; cpus_allowed names the processors of a simulated host";
                self.notes.push(format!("{} {note}", given.key));
            }
            "nice" | "cpus_allowed" | "cpumask" | "cpus_allowed_policy" => self.set_scheduling(given)?,
            "prio" => self.prio = Some(priority(given, 7)?),
            "prioclass" => self.prioclass = Some(priority(given, 3)?),
            "time_based" => self.time_based = given.is_on(),
            "zonemode" | "max_open_zones" | "job_max_open_zones" => self.set_zones(given)?,
            "offset" => spec.offset = word(given)?,
            "fdp" | "dataplacement" | "plids" | "fdp_pli" | "plid_select" | "fdp_pli_select" => {
                self.set_placement(given);
            }
            "ioengine" => self.left_out.push("ioengine".to_owned()),
            "norandommap" | "randrepeat" | "allrandrepeat" => {}
            "exitall" => self.exitall = given.is_on().then_some(given.line),
            "direct" | "odirect" if !given.is_on() => {
                return Err(wrong(given, "no page cache is modelled; give direct=1"));
            }
            "buffered" if given.is_on() => return Err(wrong(given, "no page cache is modelled; give direct=1")),
            "fill_device" | "fill_fs" if given.is_on() => {
                return Err(wrong(given, "no job ends when the drive is full; give io_size instead"));
            }
            "direct" | "odirect" | "buffered" | "fill_device" | "fill_fs" => self.left_out.push(given.key.clone()),
            "filesize" => return Err(wrong(given, "a job uses one part of the drive; give size instead")),
            key if LEFT_OUT.contains(&key) => self.left_out.push(key.to_owned()),
            key => match neutral(key) {
                Some(values) if values.contains(&given.value.as_str()) => self.left_out.push(key.to_owned()),
                Some(values) => {
                    let valid = values.join(", ");
                    return Err(wrong(given, format!("its effect is not modelled; valid, without effect: {valid}")));
                }
                None => return Err((given.line, not_understood(key))),
            },
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

    /// fio's words about flushes.
    fn set_flushes(&mut self, given: &Given) -> Result<(), Wrong> {
        match given.key.as_str() {
            "fsync" => self.flushes.fsync = Some(whole(given)?),
            "fdatasync" => self.flushes.fdatasync = Some(whole(given)?),
            // A job has one file, which it closes at its end.
            "end_fsync" | "fsync_on_close" => {
                self.flushes.end = Some(given.is_on() || self.flushes.end == Some(true));
            }
            _ => self.flushes.sync = Some(given.value.clone()),
        }
        Ok(())
    }

    /// fio's words about pauses.
    fn set_think(&mut self, given: &Given) -> Result<(), Wrong> {
        match given.key.as_str() {
            "thinktime" => self.think.time = pause(given)?,
            "thinktime_blocks" => self.think.blocks = Some(whole(given)?),
            "thinktime_blocks_type" => self.think.counts = Some(given.value.clone()),
            _ => {
                self.think.spin = pause(given)?;
                let note = "thinktime_spin counts as a part of thinktime: the processor is free during it";
                self.notes.push(note.to_owned());
            }
        }
        Ok(())
    }

    /// fio's words about threads, each checked in its line.
    fn set_scheduling(&mut self, given: &Given) -> Result<(), Wrong> {
        let (words, text) = (&mut self.scheduling, given.value.clone());
        match given.key.as_str() {
            "nice" => {
                words.nice = Some(text.parse().map_err(|_| wrong(given, "a whole number from -20 to 19 is valid"))?)
            }
            "cpus_allowed" => words.cpus = Some(text),
            "cpumask" => words.mask = Some(text),
            _ => words.policy = Some(text),
        }
        words.scheduling().map(drop).map_err(|problem| (given.line, problem))
    }

    /// fio's I/O priority as a class: prioclass 1 is real time, 2 (as without it) best effort, 3 idle; prio 0 is the highest of 8. Of real
    /// time, 4 priorities have a class each. Without prio, fio sets 0. The word `class` comes first.
    fn prioritise(&mut self) {
        let is_given = self.prio.is_some() || self.prioclass.is_some();
        if self.spec.class != 0 && is_given {
            let (name, class) = (&self.spec.name, self.spec.class);
            self.notes.push(format!("job {name} has class {class}; its prio and prioclass have no effect"));
            return;
        }
        let prio = self.prio.unwrap_or(0);
        self.spec.class = match (self.prioclass, self.prio) {
            (None | Some(0), None) => return,
            (Some(1), _) => 1 + prio / 2,
            (Some(3), _) => 15,
            _ => 5 + prio,
        };
    }

    /// fio draws the same addresses in each loop unless randrepeat is 0; a job here draws new ones.
    fn repeats(&mut self, repeat: Option<&Given>) {
        let is_drawn = self.spec.rw.random && self.loops > 1;
        if is_drawn && repeat.is_none_or(Given::is_on) {
            self.notes.push(format!(
                "job {} draws new addresses in each of its {} loops; fio seeds its generator anew before each loop unless \
                 randrepeat=0, and then writes the same addresses in the same order: a drive collects nothing by that, and write \
                 amplification stays at 1. On a live drive, give randrepeat=0",
                self.spec.name, self.loops
            ));
        }
    }

    /// fio's words about placement, some with an older form.
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

    /// Sequential clones of fio begin at the same address; clones here are spread. So each becomes a separate job.
    pub(super) fn specs(&self) -> Vec<JobSpec> {
        let clones = self.spec.numjobs;
        if self.spec.rw.random || clones < 2 {
            return vec![self.spec.clone()];
        }
        let clone = |number: u32| {
            let rate = self.spec.rate.map(|rate| Rate { iops: rate.iops / f64::from(clones), ..rate });
            let (name, stonewall) = (format!("{}.{number}", self.spec.name), self.spec.stonewall && number == 0);
            let scheduling = self.spec.scheduling.of_clone(number as usize);
            JobSpec { name, numjobs: 1, rate, scheduling, stonewall, ..self.spec.clone() }
        };
        (0..clones).map(clone).collect()
    }

    /// The requests of all clones of the job, if it has a limit: the smaller of `number_ios` and the size. A share of the
    /// drive is of `capacity` bytes, if that is known.
    pub(super) fn requests(&self, capacity: Option<u64>) -> Option<u64> {
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
        // Without a size, the job has no limit.
        let is_said = self.share.is_some() || self.io_size.is_some();
        let size = match (self.spec.size, capacity) {
            (Share::Bytes(bytes), _) => Some(bytes),
            (share, Some(capacity)) if is_said => {
                Some(share.bytes(capacity).min(capacity.saturating_sub(self.spec.offset.bytes(capacity))))
            }
            (Share::Of(_), _) => None,
        };
        // A share of io_size is of size, as in fio.
        let amount = match self.io_size {
            Some(Share::Of(share)) => size.map(|size| (size as f64 * share) as u64),
            Some(Share::Bytes(bytes)) => Some(bytes),
            None => size,
        };
        let of_size = || Some(((amount? as f64 / mean.max(1.0)) as u64).saturating_mul(self.loops));
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

/// A time; a number alone is of microseconds.
fn pause(given: &Given) -> Result<Option<Pause>, Wrong> {
    match time_of(&given.value, Span::from_us(1)) {
        Some(span) => Ok(Some(Pause(span))),
        None => word(given).map(Some),
    }
}

/// An I/O priority or its class, from 0 to `most`.
fn priority(given: &Given, most: u8) -> Result<u8, Wrong> {
    let value = given.value.parse().ok().filter(|value| *value <= most);
    value.ok_or_else(|| wrong(given, format!("\"{}\" is not a whole number from 0 to {most}", given.value)))
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
    let known = time_of(text, Span::from_s(1)).or_else(|| text.parse().ok());
    known.ok_or_else(|| wrong(given, format!("\"{text}\" is not a time such as 30, 30s or 5m")))
}

/// A whole number of fio's units of time, of `plain` without one; `None` of a unit that is no such.
fn time_of(text: &str, plain: Span) -> Option<Span> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => plain,
        "s" | "sec" => Span::from_s(1),
        "m" => Span::from_s(60),
        "h" => Span::from_s(3_600),
        "d" => Span::from_s(86_400),
        "ms" | "msec" => Span::from_ms(1),
        "us" | "usec" => Span::from_us(1),
        _ => return None,
    };
    let nanoseconds = digits.parse::<u64>().ok()?.checked_mul(unit.ns())?;
    (nanoseconds <= 1_000_000_000_000_000_000).then(|| Span::from_ns(nanoseconds))
}
