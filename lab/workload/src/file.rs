//! Workloads as TOML files, and the built-in ones.

use std::sync::Arc;

use nandscape_files::excerpt;
use nandscape_sim::Span;
use nandscape_wire_nvme::vendor::Attributes;
use serde::Deserialize;

use crate::flushes::FlushWords;
use crate::keys::shown;
use crate::load::{LoadKind, LoadSpec};
use crate::placement::PlacementWords;
use crate::scheduling::SchedulingWords;
use crate::spec::{DEFAULT_REQUESTS, JobSpec, Limit, RateProcess, Source, Workload, two_for};
use crate::think::{Pause, ThinkWords};
use crate::words::{self, Action, NumberOrText, Share, SwitchOrText};
use crate::zoned::ZoneWords;
use crate::{characteristics, filebench, ycsb};

/// An error of a workload file: place, problem, and valid values.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct WorkloadError {
    /// The file, with line and column if known.
    pub origin: String,
    /// The problem.
    pub problem: String,
}

/// A built-in workload.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BuiltinWorkload {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        /// All of them.
        pub const BUILTIN: &[BuiltinWorkload] = &[
            $(BuiltinWorkload { name: $name, text: include_str!(concat!("../workloads/", $name, ".toml")) },)*
        ];
    };
}

builtin![
    "mixed",
    "noisy-neighbour",
    "bursts",
    "zipf-oltp",
    "log-and-compact",
    "commit-log",
    "fileserver",
    "webserver",
    "varmail",
    "webproxy",
    "videoserver",
    "oltp",
    "networkfs",
    "ycsb-load",
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "teafa-ast",
    "teafa-bidx",
    "teafa-bsel",
    "teafa-cosm",
    "teafa-dtrs",
    "teafa-est",
    "teafa-lmbe",
    "teafa-msnfs",
    "teafa-tpcc",
    "flashshare-bfs",
    "flashshare-gpgnu",
    "flashshare-gp",
    "flashshare-gzip",
    "flashshare-index",
    "flashshare-kmn",
    "flashshare-pr",
    "flashshare-ungzip",
    "flashshare-wcgnu",
    "flashshare-wc",
    "flashshare-ap",
    "flashshare-au",
    "flashshare-is",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    description: String,
    io_count: Option<NumberOrText>,
    runtime: Option<NumberOrText>,
    warmup_count: Option<NumberOrText>,
    ramp_time: Option<NumberOrText>,
    #[serde(default)]
    job: Vec<JobKeys>,
    #[serde(default)]
    characteristics: Vec<characteristics::Keys>,
    #[serde(default)]
    filebench: Vec<filebench::Keys>,
    #[serde(default)]
    ycsb: Vec<ycsb::Keys>,
}

/// One `[[job]]`, with fio's terms.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobKeys {
    name: Option<String>,
    rw: String,
    bs: Option<String>,
    iodepth: Option<u32>,
    numjobs: Option<u32>,
    rwmixread: Option<f64>,
    size: Option<String>,
    offset: Option<String>,
    namespace: Option<u32>,
    random_distribution: Option<String>,
    rate_iops: Option<NumberOrText>,
    rate_process: Option<String>,
    burst: Option<String>,
    zonemode: Option<String>,
    max_open_zones: Option<u32>,
    zone_append: Option<bool>,
    zone_fill: Option<String>,
    zone_finish: Option<bool>,
    fdp: Option<bool>,
    dataplacement: Option<String>,
    plids: Option<String>,
    plid_select: Option<String>,
    fsync: Option<u32>,
    fdatasync: Option<u32>,
    sync: Option<SwitchOrText>,
    end_fsync: Option<bool>,
    thinktime: Option<NumberOrText>,
    thinktime_blocks: Option<u32>,
    thinktime_blocks_type: Option<String>,
    thinktime_spin: Option<NumberOrText>,
    class: Option<u8>,
    tenant: Option<u16>,
    deadline: Option<NumberOrText>,
    nice: Option<i64>,
    cpus_allowed: Option<NumberOrText>,
    cpus_allowed_policy: Option<String>,
    stonewall: Option<bool>,
}

/// Reads a workload by name or path.
///
/// # Errors
/// When the file does not exist or is not a workload.
pub fn load(name_or_path: &str) -> Result<Workload, WorkloadError> {
    if let Some(builtin) = BUILTIN.iter().find(|builtin| builtin.name == name_or_path) {
        return parse(builtin.name, builtin.text);
    }
    let error = |problem: String| WorkloadError { origin: name_or_path.to_owned(), problem };
    if !name_or_path.contains('/') && !name_or_path.ends_with(".toml") {
        let names: Vec<&str> = BUILTIN.iter().map(|builtin| builtin.name).collect();
        return Err(error(format!("no such workload; there are {}, or give a path to a .toml file", names.join(", "))));
    }
    let text = text_of(name_or_path).map_err(|io| error(format!("cannot be read: {io}")))?;
    parse(name_or_path, &text)
}

/// Whether a name or path is that of a workload, even a faulty one: no other file has its sections.
pub fn is_workload(name_or_path: &str) -> bool {
    let is_file = std::path::Path::new(name_or_path).is_file();
    let table = text_of(name_or_path).ok().filter(|_| is_file).and_then(|text| text.parse::<toml::Table>().ok());
    let has_section = |table: toml::Table| SECTIONS.iter().any(|section| table.contains_key(*section));
    BUILTIN.iter().any(|builtin| builtin.name == name_or_path) || table.is_some_and(has_section)
}

/// The sections that make a workload.
const SECTIONS: [&str; 4] = ["job", "characteristics", "filebench", "ycsb"];

/// The most bytes of a workload: a longer or endless file is no workload.
const MAX_BYTES: u64 = 1 << 20;

/// The text of a workload's file.
///
/// # Errors
/// When it cannot be read, or is too long for a workload.
pub fn text_of(path: &str) -> std::io::Result<String> {
    nandscape_files::input::text(std::path::Path::new(path), MAX_BYTES, "workload")
}

fn parse(origin: &str, text: &str) -> Result<Workload, WorkloadError> {
    let file: File = toml::from_str(text).map_err(|error| WorkloadError {
        origin: match error.span() {
            Some(span) => format!("{origin}:{}", excerpt::line_and_column(text, span.start).0),
            None => origin.to_owned(),
        },
        problem: message(&error),
    })?;
    of_file(origin, file)
}

/// Reads a workload from the table of a workload file; `origin` names it.
///
/// # Errors
/// When it is not a workload.
pub fn parse_table(origin: &str, table: toml::Table) -> Result<Workload, WorkloadError> {
    let file =
        table.try_into().map_err(|error| WorkloadError { origin: origin.to_owned(), problem: message(&error) })?;
    of_file(origin, file)
}

fn message(error: &toml::de::Error) -> String {
    excerpt::brief(&error.message().trim().replace('\n', "; "))
}

fn of_file(origin: &str, file: File) -> Result<Workload, WorkloadError> {
    let error = |problem: String| WorkloadError { origin: origin.to_owned(), problem: excerpt::brief(&problem) };
    if file.version != 1 {
        return Err(error(format!("version = {} is not known; this is version 1", file.version)));
    }
    let count = |key: &str, given: Option<NumberOrText>| {
        let parsed = given.map(|given| words::count(&given.to_string()));
        parsed.transpose().map_err(|wrong| error(format!("{key}: {wrong}")))
    };
    let warmup = count("warmup_count", file.warmup_count)?.unwrap_or(0);
    let time = |key: &str, given: NumberOrText| {
        words::runtime(&given.to_string()).map_err(|wrong| error(format!("{key}: {wrong}")))
    };
    let ramp = file.ramp_time.map_or(Ok(Span::ZERO), |given| time("ramp_time", given))?;
    let limit = match (file.io_count, file.runtime) {
        (Some(_), Some(_)) => return Err(error("give io_count or runtime, not both".to_owned())),
        (None, Some(runtime)) => Limit::Runtime(time("runtime", runtime)?),
        (given, None) => Limit::Requests(count("io_count", given)?.unwrap_or(DEFAULT_REQUESTS)),
    };
    let jobs: Vec<Vec<JobSpec>> =
        file.job.into_iter().enumerate().map(|(index, keys)| job(keys, index, &error)).collect::<Result<_, _>>()?;
    let mut jobs = jobs.concat();
    for keys in &file.characteristics {
        jobs.push(characterised(keys, jobs.len()).map_err(&error)?);
    }
    let loads: Vec<LoadSpec> = loads(&file.filebench, &file.ycsb).map_err(&error)?;
    if jobs.is_empty() && loads.is_empty() {
        return Err(error("has no [[job]], [[characteristics]], [[filebench]] or [[ycsb]]".to_owned()));
    }
    let name = std::path::Path::new(origin).file_stem().map_or(origin.into(), |stem| stem.to_string_lossy());
    let workload = Workload {
        name: name.into_owned(),
        description: file.description,
        jobs,
        loads,
        limit,
        warmup,
        ramp,
        ..Workload::of(JobSpec::default())
    };
    workload.check_groups().map_err(error)?;
    Ok(workload)
}

/// A job whose requests have the given characteristics.
fn characterised(keys: &characteristics::Keys, index: usize) -> Result<JobSpec, String> {
    let name = keys.name.clone().unwrap_or_else(|| format!("load{index}"));
    let of = |problem: String| format!("characteristics \"{name}\": {problem}");
    let base = JobSpec::default();
    let spec = keys.spec().map_err(of)?;
    let iodepth = keys.iodepth.unwrap_or(base.iodepth);
    let job = JobSpec { name: name.clone(), iodepth, source: Some(Source(Arc::new(spec))), ..base };
    job.check().map_err(of)?;
    Ok(job)
}

fn loads(filebench: &[filebench::Keys], ycsb: &[ycsb::Keys]) -> Result<Vec<LoadSpec>, String> {
    let filebench = filebench.iter().map(|keys| {
        let name = keys.name.clone().unwrap_or_else(|| keys.personality.clone());
        let spec = keys.spec().map_err(|problem| format!("filebench \"{name}\": {problem}"))?;
        Ok(LoadSpec { name, kind: LoadKind::Filebench(spec), assigned: Attributes::default() })
    });
    let ycsb = ycsb.iter().map(|keys| {
        let own = || format!("ycsb-{}", keys.workload.as_deref().unwrap_or("own").to_ascii_lowercase());
        let name = keys.name.clone().unwrap_or_else(own);
        let spec = keys.spec().map_err(|problem| format!("ycsb \"{name}\": {problem}"))?;
        Ok(LoadSpec { name, kind: LoadKind::Ycsb(spec), assigned: Attributes::default() })
    });
    filebench.chain(ycsb).collect()
}

/// A job; two for a mix with separate rates of reads and writes.
fn job(keys: JobKeys, index: usize, error: &dyn Fn(String) -> WorkloadError) -> Result<Vec<JobSpec>, WorkloadError> {
    let name = keys.name.unwrap_or_else(|| format!("job{index}"));
    let at = |key: &str, problem: String| error(format!("job \"{name}\": {key}: {problem}"));
    fn word<T: std::str::FromStr>(
        text: Option<String>,
        default: T,
        wrong: impl Fn(String) -> WorkloadError,
    ) -> Result<T, WorkloadError>
    where
        T::Err: std::fmt::Display,
    {
        text.map_or(Ok(default), |text| text.parse().map_err(|error: T::Err| wrong(error.to_string())))
    }
    let base = JobSpec::default();
    let fill = match keys.zone_fill {
        Some(text) => Some(text.parse().map_err(|wrong: crate::words::WordError| at("zone_fill", wrong.to_string()))?),
        None => None,
    };
    let zones = ZoneWords {
        mode: keys.zonemode,
        open: keys.max_open_zones,
        append: keys.zone_append,
        fill,
        finish: keys.zone_finish,
    };
    let placement = PlacementWords { fdp: keys.fdp, by: keys.dataplacement, ids: keys.plids, select: keys.plid_select };
    let flushes = FlushWords {
        fsync: keys.fsync,
        fdatasync: keys.fdatasync,
        sync: keys.sync.map(|sync| sync.to_string()),
        end: keys.end_fsync,
    };
    let pause = |key: &str, given: Option<NumberOrText>| {
        let parsed = given.map(|given| given.to_string().parse::<Pause>());
        parsed.transpose().map_err(|wrong| at(key, wrong.to_string()))
    };
    let think = ThinkWords {
        time: pause("thinktime", keys.thinktime)?,
        blocks: keys.thinktime_blocks,
        counts: keys.thinktime_blocks_type,
        spin: pause("thinktime_spin", keys.thinktime_spin)?,
    };
    let scheduling = SchedulingWords {
        nice: keys.nice,
        cpus: keys.cpus_allowed.map(|cpus| cpus.to_string()),
        mask: None,
        policy: keys.cpus_allowed_policy,
    };
    let of_job = |problem: String| error(format!("job \"{name}\": {problem}"));
    let process = word(keys.rate_process, RateProcess::Poisson, |problem| at("rate_process", problem))?;
    let spec = JobSpec {
        rw: word(Some(keys.rw), base.rw, |problem| at("rw", problem))?,
        bs: word(keys.bs, base.bs, |problem| at("bs", problem))?,
        iodepth: keys.iodepth.unwrap_or(base.iodepth),
        numjobs: keys.numjobs.unwrap_or(base.numjobs),
        rwmixread: keys.rwmixread.unwrap_or(base.rwmixread),
        size: word(keys.size, base.size, |problem| at("size", problem))?,
        offset: word(keys.offset, base.offset, |problem| at("offset", problem))?,
        namespace: keys.namespace.unwrap_or(base.namespace),
        distribution: word(keys.random_distribution, base.distribution, |problem| at("random_distribution", problem))?,
        rate: None,
        burst: match keys.burst {
            Some(text) => Some(text.parse().map_err(|wrong: crate::words::WordError| at("burst", wrong.to_string()))?),
            None => None,
        },
        source: None,
        zoned: zones.zoned().map_err(of_job)?,
        placing: placement.placing().map_err(of_job)?,
        flushes: flushes.flushes().map_err(of_job)?,
        think: think.think().map_err(of_job)?,
        class: keys.class.unwrap_or(0),
        tenant: keys.tenant.unwrap_or(0),
        assigned: Vec::new(),
        deadline: pause("deadline", keys.deadline)?.map(|Pause(span)| span),
        scheduling: scheduling.of_job().map_err(of_job)?,
        stonewall: keys.stonewall.unwrap_or(false),
        name: name.clone(),
    };
    let jobs = match keys.rate_iops {
        Some(given) => {
            let iops = words::rates(&given.to_string()).map_err(|wrong| at("rate_iops", wrong.to_string()))?;
            spec.at(iops, process).map_err(of_job)?
        }
        None => vec![spec],
    };
    for job in &jobs {
        job.check().map_err(of_job)?;
    }
    Ok(jobs)
}

impl JobSpec {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The invalid number, with the valid range.
    pub fn check(&self) -> Result<(), String> {
        let range = |name: &str, value: u32, least: u32, most: u32| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(format!("{name} = {value} is out of range; from {least} to {most} is valid")),
        };
        range("iodepth", self.iodepth, 1, 65_535)?;
        range("numjobs", self.numjobs, 1, 65_534)?;
        if !(0.0..=100.0).contains(&self.rwmixread) {
            return Err(format!("rwmixread = {} is out of range; from 0 to 100 is valid", self.rwmixread));
        }
        range("namespace", self.namespace, 1, u32::MAX - 1)?;
        if self.rw.action != Action::Mixed && self.source.is_none() {
            if self.bs.writes.is_some() {
                return Err(format!("bs = {} {}", self.bs, two_for(self.rw)));
            }
            if self.distribution.writes.is_some() {
                return Err(format!("random_distribution = {} {}", self.distribution, two_for(self.rw)));
            }
        }
        self.zoned.map_or(Ok(()), |zoned| zoned.check(self))?;
        self.placing.as_ref().map_or(Ok(()), |placing| placing.check(self))?;
        self.flushes.check(self)?;
        self.think.map_or(Ok(()), |think| think.check(self))?;
        self.check_attributes()?;
        if self.offset != Share::Bytes(0) && self.zoned.is_some() {
            return Err(
                "offset does not go with zonemode = zbd, whose jobs use the zones from the first one on; give size \
                        (--size) alone, such as \"10%\""
                    .to_owned(),
            );
        }
        if self.offset != Share::Bytes(0) && self.source.is_some() {
            return Err("offset is for jobs of drawn requests".to_owned());
        }
        match self.rate {
            Some(rate) if !(1e-6..=1e9).contains(&rate.iops) => {
                let iops = shown(&rate.iops);
                Err(format!("rate_iops = {iops} is out of range; from 0.000001 to 1e9 is valid"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_is_a_workload_with_a_description() {
        for builtin in BUILTIN {
            let workload = load(builtin.name).unwrap();
            assert!(workload.description.len() > 20, "{}", builtin.name);
        }
    }

    #[test]
    fn two_rates_make_a_job_of_reads_and_one_of_writes() {
        let text = "version = 1\n[[job]]\nname = \"a\"\nrw = \"randrw\"\nbs = \"4k,16k\"\nrate_iops = \"2k,500\"\n";
        let jobs = parse("w.toml", text).unwrap().jobs;
        let told = |job: &JobSpec| (job.name.clone(), job.rw.to_string(), job.bs.to_string(), job.rate.unwrap().iops);
        let expected = [("a-reads", "randread", "4KiB", 2_000.0), ("a-writes", "randwrite", "16KiB", 500.0)];
        let expected = expected.map(|(name, rw, bs, iops)| (name.to_owned(), rw.to_owned(), bs.to_owned(), iops));
        assert_eq!(jobs.iter().map(told).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let error = |text: &str| parse("w.toml", text).err().unwrap().to_string();
        assert!(
            error("version = 1\n[[job]]\nrw = \"read\"\ndepth = 3\n").starts_with("w.toml:4: unknown field `depth`")
        );
        assert!(error("version = 1\n[[job]]\nrw = \"reed\"\n").contains("job \"job0\": rw: \"reed\" is not a pattern"));
        assert!(error("version = 1\n[[job]]\nrw = \"read\"\niodepth = 0\n").contains("iodepth = 0 is out of range"));
        assert!(error("version = 1\nio_count = 1\nruntime = \"1s\"\n[[job]]\nrw = \"read\"\n").contains("not both"));
        let two = |words: &str| error(&format!("version = 1\n[[job]]\nrw = \"randread\"\n{words}\n"));
        assert!(two("bs = \"4k,8k\"").contains("bs = 4KiB,8KiB has a value for reads and one for writes"));
        assert!(two("rate_iops = \"5,6\"").contains("which is for rw and randrw, and not for randread"));
        assert!(two("rate_iops = \"5,x\"").contains("rate_iops: \"x\" is not a number"));
        assert!(load("nothing").unwrap_err().to_string().contains("there are mixed,"));
    }
}
