//! A workload on the command line: a file, or fio's options.

use std::path::Path;

use clap::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use nandscape_drive::Assignments;
use nandscape_lab_workload::{
    Action, BlockSizes, Burst, Distribution, Each, FioJobs, FlushWords, JobSpec, Limit, Pattern, Pause, PlacementWords,
    RateProcess, SYNCHRONOUS, Scheduling, SchedulingWords, Share, ThinkWords, Workload, ZoneWords, count, load,
    load_fio, rates, runtime,
};
use nandscape_sim::Span;

use crate::failure::Failure;
use crate::numbers::whole_32;
use crate::output;
use crate::trace::TraceWords;

/// The options that describe a job: a workload, a job file or a trace comes in their place.
pub(crate) const JOB_WORDS: [&str; 35] = [
    "rw",
    "bs",
    "iodepth",
    "numjobs",
    "rwmixread",
    "size",
    "namespace",
    "random_distribution",
    "rate_iops",
    "rate_process",
    "burst",
    "zonemode",
    "max_open_zones",
    "zone_append",
    "zone_fill",
    "zone_finish",
    "offset",
    "fdp",
    "dataplacement",
    "plids",
    "plid_select",
    "fsync",
    "fdatasync",
    "sync",
    "end_fsync",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "thinktime_spin",
    "class",
    "tenant",
    "deadline",
    "nice",
    "cpus_allowed",
    "cpus_allowed_policy",
];

/// Sections of a workload file: a drive has no such keys.
const SECTIONS: [&str; 4] = ["job", "characteristics", "filebench", "ycsb"];

/// Refuses changes of a workload's keys among those of a drive.
pub(crate) fn refuse_keys_of_jobs(changes: &[String]) -> Result<(), Failure> {
    let is_of_job =
        |change: &&String| change.split_once('.').is_some_and(|(section, _)| SECTIONS.contains(&section.trim()));
    match changes.iter().find(is_of_job) {
        None => Ok(()),
        Some(change) => Err(Failure::Input(anyhow::anyhow!(
            "--set {change}: keys of a job are set in the workload's file, or by `nandscape sweep --set workload=FILE --vary {change}`"
        ))),
    }
}

/// Adds to the error of a command line a drive, if it lacks one, and where a job of `--workload` has the words that conflict with it.
pub(crate) fn with_way_out(mut error: clap::Error) -> clap::Error {
    let named = [ContextKind::InvalidArg, ContextKind::PriorArg].map(|kind| match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    });
    let names: Vec<String> = named.concat().iter().filter_map(|word| name_of(word)).collect();
    if error.kind() == ErrorKind::MissingRequiredArgument && names.iter().any(|name| name == "drive") {
        let tip = "--drive default is one; `nandscape drives` lists all".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let word = names.iter().find(|name| JOB_WORDS.contains(&name.as_str()));
    if let Some(word) = word.filter(|_| names.iter().any(|name| name == "workload")) {
        let tip = format!(
            "set {word} in a [[job]] of the workload's file (`nandscape workloads show NAME > mine.toml` writes that of a built-in one), or \
             by `nandscape sweep --set workload=NAME --vary job.JOB.{word}=...`"
        );
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The name of an option in an error: `rate_iops` of `--rate-iops <N[,N]>`.
fn name_of(shown: &str) -> Option<String> {
    let name = shown.strip_prefix("--")?.split([' ', '=', '[']).next()?;
    Some(name.replace('-', "_"))
}

/// fio's options. Each has a default, unless a workload file is given.
#[derive(Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadWords {
    /// A workload by name or file, see `nandscape workloads`; its jobs replace the options below
    #[arg(long, value_name = "W", conflicts_with_all = JOB_WORDS)]
    workload: Option<String>,
    /// Pattern of requests: read, write, rw, trim (sequential), randread, randwrite, randrw or randtrim
    #[arg(long, value_name = "PATTERN")]
    rw: Option<Pattern>,
    /// Size of a request, or several sizes with weights: 4k/60:64k/40. In rw and randrw, also one for reads and one for writes:
    /// 4k,64k [default: 4k]
    #[arg(long, value_name = "SIZE[,SIZE]")]
    bs: Option<Each<BlockSizes>>,
    /// Outstanding requests of each job [default: 32]
    #[arg(long, value_name = "N", value_parser = whole_32, allow_negative_numbers = true)]
    iodepth: Option<u32>,
    /// Number of such jobs, each with its own queue pair [default: 1]
    #[arg(long, value_name = "N", value_parser = whole_32, allow_negative_numbers = true)]
    numjobs: Option<u32>,
    /// Percentage of reads in rw and randrw, such as 70 or 99.5 [default: 50]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    rwmixread: Option<f64>,
    /// The part of the drive that is used: 10GiB or 50% [default: 100%]
    #[arg(long, value_name = "SIZE")]
    size: Option<Share>,
    /// Where that part begins: 10GiB or 50% [default: 0]
    #[arg(long, value_name = "SIZE")]
    offset: Option<Share>,
    /// The namespace that is used, of a drive that has several [default: the first]
    #[arg(long, value_name = "N", value_parser = whole_32, allow_negative_numbers = true)]
    namespace: Option<u32>,
    /// Distribution of random addresses: uniform, zipf:1.1, pareto:0.2, normal:10, zoned:60/10:40/90. In randrw, also one for
    /// reads and one for writes: uniform,zipf:0.9
    #[arg(long, value_name = "D[,D]")]
    random_distribution: Option<Each<Distribution>>,
    /// Arrivals a second, over all jobs: 500, 10k or 1.5M. The load is open: requests arrive however many are outstanding, and iodepth
    /// does not apply. In rw and randrw, also a rate of reads and one of writes: 10k,2k, which makes a job of each
    #[arg(long, value_name = "N[,N]", allow_negative_numbers = true, value_parser = rates)]
    rate_iops: Option<Each<f64>>,
    /// Spacing of the arrivals: linear or poisson [default: poisson]
    #[arg(long, value_name = "PROCESS", requires = "rate_iops")]
    rate_process: Option<RateProcess>,
    /// Alternate between a time with requests and a time without: 10ms/90ms
    #[arg(long, value_name = "ON/OFF")]
    burst: Option<Burst>,
    /// none, or zbd as in fio: the job knows zones, writes at their write pointers and resets those that it uses again. trim resets
    /// zones [default: none]
    #[arg(long, value_name = "MODE")]
    zonemode: Option<String>,
    /// Zones that each job writes at a time [default: 1]
    #[arg(long, value_name = "N", requires = "zonemode", value_parser = whole_32, allow_negative_numbers = true)]
    max_open_zones: Option<u32>,
    /// Write by Zone Append, any number to a zone at a time; a write waits for the one before it in its zone
    #[arg(long, requires = "zonemode")]
    zone_append: bool,
    /// The part of a zone's capacity that is written before the job continues in another zone: 4KiB or 25% [default: 100%]
    #[arg(long, value_name = "SIZE", requires = "zonemode")]
    zone_fill: Option<Share>,
    /// Finish a zone that is left before it is full
    #[arg(long, requires = "zonemode")]
    zone_finish: bool,
    /// What names the place of writes, as in fio: none, fdp (reclaim unit handles) or streams [default: none]
    #[arg(long, value_name = "HOW")]
    dataplacement: Option<String>,
    /// The same as --dataplacement fdp
    #[arg(long)]
    fdp: bool,
    /// Placement identifiers, or stream identifiers, that writes are placed by: 0,1,3 [default: all handles]
    #[arg(long, value_name = "ID[,ID]")]
    plids: Option<String>,
    /// Which of them the next write has: roundrobin or random [default: roundrobin]
    #[arg(long, value_name = "HOW")]
    plid_select: Option<String>,
    /// Flush the drive's write cache after every N writes of each job. A drive without a volatile cache gets no flush, as from Linux
    #[arg(long, value_name = "N", value_parser = whole_32, allow_negative_numbers = true)]
    fsync: Option<u32>,
    /// The same: to a drive, fdatasync and fsync are one command
    #[arg(long, value_name = "N", value_parser = whole_32, allow_negative_numbers = true)]
    fdatasync: Option<u32>,
    /// Write with Force Unit Access: none (or 0), sync (or 1), dsync [default: none]
    #[arg(long, value_name = "HOW")]
    sync: Option<String>,
    /// Flush after the last write of each job, as fio's fsync_on_close does as well
    #[arg(long, visible_alias = "fsync-on-close", num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "1", value_parser = clap::builder::FalseyValueParser::new())]
    end_fsync: Option<bool>,
    /// Pause of each job, in which none of its requests is outstanding: 200us; a number alone is microseconds
    #[arg(long, value_name = "TIME")]
    thinktime: Option<Pause>,
    /// Requests between two such pauses [default: 1]
    #[arg(long, value_name = "N", value_parser = whole_32, allow_negative_numbers = true)]
    thinktime_blocks: Option<u32>,
    /// Which of them count: complete or issue [default: complete]
    #[arg(long, value_name = "WHICH")]
    thinktime_blocks_type: Option<String>,
    /// The part of the pause in which fio keeps a processor busy; here the processor is free during it
    #[arg(long, value_name = "TIME")]
    thinktime_spin: Option<Pause>,
    /// Class of the commands: 1 to 4 real time, 5 to 12 best effort, 15 idle, the lower the more urgent; 0 is none. Arbiters
    /// (controller.arbiter) and the block layer (block.scheduler) use it [default: 0]
    #[arg(long, value_name = "N", value_parser = whole_32, allow_negative_numbers = true)]
    class: Option<u32>,
    /// Tenant of the commands, 0 to 4095: the process that block.scheduler=cfq knows a command by [default: 0]
    #[arg(long, value_name = "N", value_parser = whole_32, allow_negative_numbers = true)]
    tenant: Option<u32>,
    /// When each read and write is due after its submission: 500us; a number alone is microseconds. The arbiter
    /// controller.arbiter=deadline and the block layer use it [default: none]
    #[arg(long, value_name = "TIME")]
    deadline: Option<Pause>,
    /// Nice value of the job's threads on a simulated host (--host), -20 to 19 [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    nice: Option<i64>,
    /// Processors of a simulated host (--host) that these threads may use: 0-3,6 [default: all]
    #[arg(long, value_name = "SET")]
    cpus_allowed: Option<String>,
    /// How several jobs share them: shared, or split, a processor each in turn [default: shared]
    #[arg(long, value_name = "HOW")]
    cpus_allowed_policy: Option<String>,
    /// Give commands that state no class or tenant those of a rule: queue=2,class=15 or namespace=1,tenant=7; several rules with blanks
    /// between them, or repeated. Queue 1 is that of the first job: docs/techniques/arbitration.md
    #[arg(long, value_name = "RULE")]
    assign: Vec<Assignments>,
    /// Accepted as in fio: a job waits for those before it, which only a file of jobs has
    #[arg(long)]
    stonewall: bool,
    #[command(flatten)]
    fio: FioWords,
    /// Total requests of all jobs: 200000 or 200k [default: 1000000]
    #[arg(long, value_name = "N", conflicts_with = "runtime", value_parser = count, allow_negative_numbers = true)]
    io_count: Option<u64>,
    /// Drive time during which requests are issued: 20ms, 10s; a number alone is seconds
    #[arg(long, value_name = "TIME", value_parser = runtime)]
    runtime: Option<Span>,
    /// Requests before the measured phase [default: 0]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    warmup_count: Option<u64>,
    /// Drive time before the measured phase: 20ms, 10s; a number alone is seconds [default: 0]
    #[arg(long, value_name = "TIME", value_parser = runtime)]
    ramp_time: Option<Span>,
}

/// Options of fio's command line that do not change the requests here. They are accepted, and a note names them.
#[derive(Args)]
struct FioWords {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "1", require_equals = true, value_parser = unbuffered)]
    direct: Option<String>,
    #[arg(long, hide = true, value_parser = asynchronous)]
    ioengine: Option<String>,
    #[arg(long, hide = true)]
    randseed: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    group_reporting: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    norandommap: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "1", require_equals = true, requires = "runtime")]
    time_based: Option<String>,
}

impl FioWords {
    /// The note of those that were given.
    fn note(&self) -> Option<String> {
        let each = [
            ("--direct", &self.direct),
            ("--ioengine", &self.ioengine),
            ("--randseed", &self.randseed),
            ("--group-reporting", &self.group_reporting),
            ("--norandommap", &self.norandommap),
            ("--time-based", &self.time_based),
        ];
        let given: Vec<&str> = each.iter().filter(|(_, value)| value.is_some()).map(|(word, _)| *word).collect();
        (!given.is_empty()).then(|| format!("left out, as requests do not depend on them: {}", given.join(", ")))
    }
}

/// The value of `--ioengine`.
fn asynchronous(engine: &str) -> Result<String, String> {
    match SYNCHRONOUS.contains(&engine) {
        true => Err(format!("{engine} has one request outstanding; --iodepth 1 in its place is valid")),
        false => Ok(engine.to_owned()),
    }
}

/// The value of `--direct`.
fn unbuffered(value: &str) -> Result<String, String> {
    match value {
        "0" | "false" => Err("no page cache is modelled; --direct=1 is valid".to_owned()),
        _ => Ok(value.to_owned()),
    }
}

/// All rules of `--assign`.
pub(crate) fn rules(given: &[Assignments]) -> Result<Assignments, Failure> {
    let all = given.iter().cloned().try_fold(Assignments::default(), Assignments::and);
    all.map_err(|problem| Failure::Input(anyhow::anyhow!("--assign: {problem}")))
}

impl WorkloadWords {
    /// The workload's file, if it has one; names of built-in workloads are no files.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.workload.as_deref().map(Path::new).filter(|path| path.is_file())
    }

    /// The workload meant, of a job file of fio or of these words. Shares of the drive are of `capacity` bytes, if that is known.
    pub(crate) fn workload_of(
        &self,
        jobs: Option<&str>,
        trace: &TraceWords,
        capacity: Option<u64>,
    ) -> Result<Workload, Failure> {
        let mut workload = match jobs {
            None => self.workload(trace)?,
            Some(jobs) => {
                let FioJobs { workload, notes } = load_fio(jobs, capacity).map_err(Failure::input)?;
                notes.iter().for_each(|note| output::note(note));
                self.limited(workload)
            }
        };
        workload.assign(&rules(&self.assign)?);
        Ok(workload)
    }

    /// The workload meant.
    pub(crate) fn workload(&self, trace: &TraceWords) -> Result<Workload, Failure> {
        let mean_rate = self.rate_iops.as_ref().map(|rates| rates.reads);
        let workload = match (trace.workload(self.iodepth, mean_rate, self.warmup_count)?, &self.workload) {
            (Some(_), _) if self.rate_iops.as_ref().is_some_and(|rates| rates.writes.is_some()) => {
                return Err(Failure::Input(anyhow::anyhow!("--rate-iops: a trace has one rate, of all its requests")));
            }
            (Some(mut replay), _) => {
                self.attribute(&mut replay.jobs)?;
                replay
            }
            (None, Some(name)) => load(name).map_err(Failure::input)?,
            (None, None) => {
                let jobs = self.jobs()?;
                Workload {
                    name: self.rw.expect("jobs() refuses to be without").to_string(),
                    jobs,
                    ..Workload::of(JobSpec::default())
                }
            }
        };
        Ok(self.limited(workload))
    }

    /// A workload with the limits of the command line.
    pub(crate) fn limited(&self, mut workload: Workload) -> Workload {
        let given = self.io_count.map(Limit::Requests).or(self.runtime.map(Limit::Runtime));
        if let Some(limit) = given {
            (workload.limit, workload.later) = (limit, Vec::new());
        }
        if let Some(ramp) = self.ramp_time {
            workload.ramp = ramp;
        }
        self.fio.note().iter().for_each(|note| output::note(note));
        if self.stonewall && workload.groups().len() == 1 {
            output::note("--stonewall has no effect: no job comes before another");
        }
        if let Some(warmup) = self.warmup_count {
            workload.warmup = warmup;
        }
        workload
    }

    /// Gives jobs the class, the tenant, the deadline, and the words about threads.
    fn attribute(&self, jobs: &mut [JobSpec]) -> Result<(), Failure> {
        let fits = |word: &str, given: Option<u32>, most: u32| match given.unwrap_or(0) {
            value if value > most => {
                Err(Failure::Input(anyhow::anyhow!("--{word} = {value} is out of range; from 0 to {most} is valid")))
            }
            value => Ok(value),
        };
        let (class, tenant) = (fits("class", self.class, 15)? as u8, fits("tenant", self.tenant, 4_095)? as u16);
        let (cpus, policy) = (self.cpus_allowed.clone(), self.cpus_allowed_policy.clone());
        let scheduling = SchedulingWords { nice: self.nice, cpus, mask: None, policy }.of_job();
        let scheduling = scheduling.map_err(|problem| Failure::Input(anyhow::anyhow!("--{problem}")))?;
        for job in jobs {
            job.scheduling = scheduling.clone();
            (job.class, job.tenant, job.deadline) = (class, tenant, self.deadline.map(|Pause(span)| span));
        }
        Ok(())
    }

    /// Options that this pattern has no use for.
    fn tell_without_effect(&self, rw: Pattern) {
        let has_rates = self.rate_iops.as_ref().is_some_and(|rates| rates.writes.is_some());
        let no_mix = rw.action != Action::Mixed || has_rates;
        let unused = [
            ("--rwmixread", self.rwmixread.is_some() && no_mix, "rw and randrw of one rate"),
            ("--random-distribution", self.random_distribution.is_some() && !rw.random, "patterns of random addresses"),
        ];
        for (option, _, patterns) in unused.iter().filter(|(_, is_unused, _)| *is_unused) {
            output::note(&format!("{option} has no effect on --rw {rw}: it is for {patterns}"));
        }
    }

    /// One job; two for a mix with separate rates of reads and writes.
    fn jobs(&self) -> Result<Vec<JobSpec>, Failure> {
        let Some(rw) = self.rw else {
            return Err(Failure::Input(anyhow::anyhow!(
                "no workload: give --rw (for example --rw randread), or --workload (see `nandscape workloads`), or --trace FILE"
            )));
        };
        self.tell_without_effect(rw);
        let base = JobSpec::default();
        let refused = |problem: String| {
            // The problem begins with the word, in the form of files.
            let (word, rest) = problem.split_once(' ').unwrap_or((&problem, ""));
            Failure::Input(anyhow::anyhow!("--{} {rest}", word.replace('_', "-")))
        };
        let zones = ZoneWords {
            mode: self.zonemode.clone(),
            open: self.max_open_zones,
            append: self.zone_append.then_some(true),
            fill: self.zone_fill,
            finish: self.zone_finish.then_some(true),
        };
        let placement = PlacementWords {
            fdp: self.fdp.then_some(true),
            by: self.dataplacement.clone(),
            ids: self.plids.clone(),
            select: self.plid_select.clone(),
        };
        let flushes =
            FlushWords { fsync: self.fsync, fdatasync: self.fdatasync, sync: self.sync.clone(), end: self.end_fsync };
        let think = ThinkWords {
            time: self.thinktime,
            blocks: self.thinktime_blocks,
            counts: self.thinktime_blocks_type.clone(),
            spin: self.thinktime_spin,
        };
        let process = self.rate_process.unwrap_or(RateProcess::Poisson);
        let job = JobSpec {
            name: rw.to_string(),
            rw,
            bs: self.bs.clone().unwrap_or(base.bs),
            iodepth: self.iodepth.unwrap_or(base.iodepth),
            numjobs: self.numjobs.unwrap_or(base.numjobs),
            rwmixread: self.rwmixread.unwrap_or(base.rwmixread),
            size: self.size.unwrap_or(base.size),
            offset: self.offset.unwrap_or(base.offset),
            namespace: self.namespace.unwrap_or(base.namespace),
            distribution: self.random_distribution.clone().unwrap_or(base.distribution),
            rate: None,
            burst: self.burst,
            source: None,
            zoned: zones.zoned().map_err(refused)?,
            placing: placement.placing().map_err(refused)?,
            flushes: flushes.flushes().map_err(refused)?,
            think: think.think().map_err(refused)?,
            class: 0,
            tenant: 0,
            assigned: Vec::new(),
            deadline: None,
            scheduling: Scheduling::default(),
            stonewall: false,
        };
        let mut jobs = match &self.rate_iops {
            Some(iops) => job.at(iops.clone(), process).map_err(refused)?,
            None => vec![job],
        };
        self.attribute(&mut jobs)?;
        jobs.iter().try_for_each(JobSpec::check).map_err(refused)?;
        Ok(jobs)
    }
}
