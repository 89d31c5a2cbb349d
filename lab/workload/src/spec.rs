//! The description of a workload.

use std::ops::Range;
use std::sync::Arc;

use nandscape_sim::Span;
use nandscape_wire_nvme::vendor::Attributes;

use crate::distribution::Distribution;
use crate::each::Each;
use crate::flushes::Flushes;
use crate::load::LoadSpec;
use crate::placement::Placing;
use crate::request::RequestStream;
use crate::scheduling::Scheduling;
use crate::think::Think;
use crate::words::{Action, BlockSizes, Burst, Pattern, Share};
use crate::zoned::Zoned;

/// Jobs that run at the same time, and the limit of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// A one-line description.
    pub description: String,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
    /// Loads whose requests depend on each other, in addition to the jobs.
    pub loads: Vec<LoadSpec>,
    /// The limit of the run.
    pub limit: Limit,
    /// The limits of the groups of jobs after the first, where jobs wait for those before them ([`JobSpec::stonewall`]). A group
    /// without an entry has `limit`.
    pub later: Vec<Limit>,
    /// Requests that run first, unmeasured.
    pub warmup: u64,
    /// Time that passes first, unmeasured; of each group of jobs.
    pub ramp: Span,
    /// The number of the first job within the workload that this one is a part of: a job draws the same requests alone
    /// as among the others. 0 for a whole workload.
    pub first_job: u64,
}

/// The limit of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// A number of requests, over all jobs.
    Requests(u64),
    /// A drive time.
    Runtime(Span),
    /// A number of requests or a drive time, whichever is reached first.
    Either(u64, Span),
}

/// One job, and the number of its clones.
#[derive(Clone, PartialEq, Debug)]
pub struct JobSpec {
    /// What it is called.
    pub name: String,
    /// Directions, and order of addresses.
    pub rw: Pattern,
    /// Request sizes.
    pub bs: Each<BlockSizes>,
    /// Outstanding requests of each of the `numjobs` clones.
    pub iodepth: u32,
    /// The number of clones.
    pub numjobs: u32,
    /// Percent of reads where reads and writes are mixed.
    pub rwmixread: f64,
    /// The part of the drive that is used.
    pub size: Share,
    /// Where this part begins.
    pub offset: Share,
    /// The namespace of the drive that is used.
    pub namespace: u32,
    /// The distribution of random addresses over it.
    pub distribution: Each<Distribution>,
    /// The arrival process of an open loop.
    pub rate: Option<Rate>,
    /// Bursts, with off periods between them.
    pub burst: Option<Burst>,
    /// The source of requests, if they are not drawn: then `rw`, `bs`, `rwmixread`, `size` and `distribution` are
    /// ignored.
    pub source: Option<Source>,
    /// How it uses zones, if it knows them; with `None` it chooses its addresses freely.
    pub zoned: Option<Zoned>,
    /// How it places its writes, if it does.
    pub placing: Option<Placing>,
    /// How it makes its writes durable.
    pub flushes: Flushes,
    /// Its pauses.
    pub think: Option<Think>,
    /// The workload class of its commands, 0 to 15 (CDW2 3:0); 0 is none stated.
    pub class: u8,
    /// The tenant of its commands, 0 to 4,095 (CDW2 15:4).
    pub tenant: u16,
    /// The attributes of the commands of each clone by rules ([`Workload::assign`]); empty without rules for it.
    pub assigned: Vec<Attributes>,
    /// How long after its submission each Read and Write is due (CDW3), if the job has a deadline.
    pub deadline: Option<Span>,
    /// How a host runs its threads.
    pub scheduling: Scheduling,
    /// Whether it waits until the jobs before it have ended, and the jobs after it with it.
    pub stonewall: bool,
}

/// An external source of requests: a trace, a generator. Equal only to itself.
#[derive(Clone, Debug)]
pub struct Source(pub Arc<dyn RequestStream>);

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Arrivals of an open loop.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Rate {
    /// Arrivals a second, all of the job's `numjobs` together.
    pub iops: f64,
    /// The arrival process.
    pub process: RateProcess,
}

/// An arrival process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RateProcess {
    /// Evenly.
    Linear,
    /// At random, independently of each other.
    Poisson,
}

impl RateProcess {
    /// Both, by their names.
    pub const ALL: [(&str, RateProcess); 2] = [("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)];
}

impl std::str::FromStr for RateProcess {
    type Err = crate::words::WordError;

    fn from_str(text: &str) -> Result<RateProcess, Self::Err> {
        let found = RateProcess::ALL.iter().find(|(name, _)| *name == text).map(|(_, process)| *process);
        found.ok_or_else(|| crate::words::WordError::new(text, "a process: linear or poisson"))
    }
}

/// Requests without another limit.
pub(crate) const DEFAULT_REQUESTS: u64 = 1_000_000;

impl Default for JobSpec {
    /// Random reads of 4 KiB, 32 at a time, over the whole drive.
    fn default() -> JobSpec {
        JobSpec {
            name: "job".to_owned(),
            rw: "randread".parse().expect("a pattern"),
            bs: "4k".parse().expect("a size"),
            iodepth: 32,
            numjobs: 1,
            rwmixread: 50.0,
            size: Share::Of(1.0),
            offset: Share::Bytes(0),
            namespace: 1,
            distribution: Distribution::Uniform.into(),
            rate: None,
            burst: None,
            source: None,
            zoned: None,
            placing: None,
            flushes: Flushes::default(),
            think: None,
            class: 0,
            tenant: 0,
            assigned: Vec::new(),
            deadline: None,
            scheduling: Scheduling::default(),
            stonewall: false,
        }
    }
}

impl JobSpec {
    /// Whether the job is an open loop; if not, `iodepth` requests are kept outstanding.
    pub fn is_open(&self) -> bool {
        self.rate.is_some() || self.is_timed()
    }

    /// The same with arrivals at a rate. A mix with separate rates of reads and writes becomes two jobs, NAME-reads and
    /// NAME-writes: two open loops are independent of each other.
    ///
    /// # Errors
    /// With two rates and no mix.
    pub fn at(self, iops: Each<f64>, process: RateProcess) -> Result<Vec<JobSpec>, String> {
        let Some(of_writes) = iops.writes else {
            return Ok(vec![JobSpec { rate: Some(Rate { iops: iops.reads, process }), ..self }]);
        };
        if self.rw.action != Action::Mixed {
            return Err(format!("rate_iops = {iops} {}", two_for(self.rw)));
        }
        let one = |action: Action, called: &str, iops: f64| JobSpec {
            name: format!("{}-{called}", self.name),
            rw: Pattern { action, ..self.rw },
            bs: self.bs.of(action).clone().into(),
            distribution: self.distribution.of(action).clone().into(),
            rate: Some(Rate { iops, process }),
            placing: self.placing.clone().filter(|_| action == Action::Write),
            flushes: if action == Action::Write { self.flushes } else { Flushes::default() },
            stonewall: self.stonewall && action == Action::Read,
            ..self.clone()
        };
        Ok(vec![one(Action::Read, "reads", iops.reads), one(Action::Write, "writes", of_writes)])
    }

    /// Whether the requests have their own times.
    pub fn is_timed(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.0.is_timed())
    }
}

impl Workload {
    /// One job for a million requests.
    pub fn of(job: JobSpec) -> Workload {
        Workload {
            name: job.name.clone(),
            description: String::new(),
            jobs: vec![job],
            loads: Vec::new(),
            limit: Limit::Requests(DEFAULT_REQUESTS),
            later: Vec::new(),
            warmup: 0,
            ramp: Span::ZERO,
            first_job: 0,
        }
    }

    /// The groups of jobs that run at the same time, one after the other: the numbers of their jobs.
    pub fn groups(&self) -> Vec<Range<usize>> {
        let walls = (1..self.jobs.len()).filter(|number| self.jobs[*number].stonewall);
        let begins: Vec<usize> = [0].into_iter().chain(walls).collect();
        let ends = begins.iter().copied().skip(1).chain([self.jobs.len()]);
        begins.iter().copied().zip(ends).map(|(begin, end)| begin..end).collect()
    }

    /// The limit of a group of jobs.
    pub fn limit_of(&self, group: usize) -> Limit {
        group.checked_sub(1).and_then(|later| self.later.get(later)).copied().unwrap_or(self.limit)
    }

    /// One of its jobs alone, with the requests that it draws among the others. It issued `requests[job]` measured
    /// requests among them, and has its part of the warm-up. `None` if it issued none.
    pub fn alone(&self, job: usize, requests: &[u64]) -> Option<Workload> {
        let (own, all) = (requests[job], requests.iter().sum::<u64>());
        let part = |of: u64| (u128::from(of) * u128::from(own) / u128::from(all.max(1))) as u64;
        let limit = match self.limit {
            _ if own == 0 => return None,
            Limit::Requests(_) => Limit::Requests(own),
            Limit::Runtime(span) => Limit::Runtime(span),
            Limit::Either(_, span) => Limit::Either(own, span),
        };
        let first_job = self.first_job + job as u64;
        Some(Workload {
            limit,
            warmup: part(self.warmup),
            ramp: self.ramp,
            first_job,
            ..Workload::of(self.jobs[job].clone())
        })
    }
}

/// What is wrong with two values for one kind of requests.
pub(crate) fn two_for(rw: Pattern) -> String {
    format!("has a value for reads and one for writes, which is for rw and randrw, and not for {rw}")
}
