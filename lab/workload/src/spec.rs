//! A workload as given.

use std::sync::Arc;

use nandscape_sim::Span;

use crate::distribution::Distribution;
use crate::load::LoadSpec;
use crate::request::RequestStream;
use crate::words::{BlockSizes, Burst, Pattern, Share};

/// Jobs that run at the same time, and how long.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// One line on what it is.
    pub description: String,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
    /// Loads whose requests depend on each other, beside the jobs.
    pub loads: Vec<LoadSpec>,
    /// When it ends.
    pub limit: Limit,
    /// Requests that run first and are not counted.
    pub warmup: u64,
}

/// When a workload ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// After so many requests, over all jobs.
    Requests(u64),
    /// After so much drive time.
    Runtime(Span),
}

/// One job, and how many of its kind.
#[derive(Clone, PartialEq, Debug)]
pub struct JobSpec {
    /// What it is called.
    pub name: String,
    /// What kind of requests, in what order.
    pub rw: Pattern,
    /// How large they are.
    pub bs: BlockSizes,
    /// Requests outstanding at a time, of each of the `numjobs`.
    pub iodepth: u32,
    /// How many of this job run.
    pub numjobs: u32,
    /// Percent of reads where reads and writes are mixed.
    pub rwmixread: u32,
    /// The part of the drive that is used, from the beginning.
    pub size: Share,
    /// How random addresses are spread over it.
    pub distribution: Distribution,
    /// Arrivals at their own times, whatever is outstanding.
    pub rate: Option<Rate>,
    /// Times at which no requests come.
    pub burst: Option<Burst>,
    /// Where requests come from, if they are not drawn: then `rw`, `bs`, `rwmixread`, `size` and `distribution` do not
    /// count.
    pub source: Option<Source>,
}

/// Requests that come from elsewhere: a trace, a generator. Equal to itself only.
#[derive(Clone, Debug)]
pub struct Source(pub Arc<dyn RequestStream>);

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// An open load.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Rate {
    /// Arrivals a second, all of the job's `numjobs` together.
    pub iops: f64,
    /// How they are spaced.
    pub process: RateProcess,
}

/// How arrivals are spaced.
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
            rwmixread: 50,
            size: Share::Of(1.0),
            distribution: Distribution::Uniform,
            rate: None,
            burst: None,
            source: None,
        }
    }
}

impl JobSpec {
    /// Whether requests arrive at their times whatever is outstanding; else `iodepth` are kept outstanding.
    pub fn is_open(&self) -> bool {
        self.rate.is_some() || self.is_timed()
    }

    /// Whether they bring their times with them.
    pub(crate) fn is_timed(&self) -> bool {
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
            warmup: 0,
        }
    }
}
