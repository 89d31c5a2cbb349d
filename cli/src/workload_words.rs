//! A workload on the command line: a file, or fio's own words.

use std::path::Path;

use clap::Args;
use nandscape_lab_workload::{
    BlockSizes, Burst, Distribution, JobSpec, Limit, Pattern, Rate, RateProcess, Share, Workload, load,
};
use nandscape_sim::Span;

use crate::failure::Failure;
use crate::trace::TraceWords;

/// fio's words. Each has its default in a workload made of words, and none where a file is given.
#[derive(Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadWords {
    /// A workload by name or file, see `nandscape workloads`; its jobs replace the words below
    #[arg(long, value_name = "W", conflicts_with_all = ["rw", "bs", "iodepth", "numjobs", "rwmixread", "size", "random_distribution", "rate_iops", "rate_process", "burst"])]
    workload: Option<String>,
    /// What requests do: read, write, rw, trim in sequence, or randread, randwrite, randrw, randtrim
    #[arg(long, value_name = "PATTERN")]
    rw: Option<Pattern>,
    /// Bytes of a request, or several sizes with weights: 4k/60:64k/40 [default: 4k]
    #[arg(long, value_name = "SIZE")]
    bs: Option<BlockSizes>,
    /// Requests outstanding at a time, per job [default: 32]
    #[arg(long, value_name = "N")]
    iodepth: Option<u32>,
    /// Jobs that do this, each with a queue pair of its own [default: 1]
    #[arg(long, value_name = "N")]
    numjobs: Option<u32>,
    /// Percent of reads in rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT")]
    rwmixread: Option<u32>,
    /// The part of the drive that is used: 10GiB or 50% [default: 100%]
    #[arg(long, value_name = "SIZE")]
    size: Option<Share>,
    /// How random addresses are spread: uniform, zipf:1.1, pareto:0.2, normal:10, zoned:60/10:40/90
    #[arg(long, value_name = "D")]
    random_distribution: Option<Distribution>,
    /// Arrivals a second, all jobs together, whatever is outstanding: the load is open, and iodepth does not limit it
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    rate_iops: Option<f64>,
    /// How those arrivals are spaced: linear or poisson [default: poisson]
    #[arg(long, value_name = "PROCESS", requires = "rate_iops")]
    rate_process: Option<RateProcess>,
    /// Requests come for a time, then none for a time, in turn: 10ms/90ms
    #[arg(long, value_name = "ON/OFF")]
    burst: Option<Burst>,
    /// Requests in all, over all jobs [default: 1000000]
    #[arg(long, value_name = "N", conflicts_with = "runtime")]
    io_count: Option<u64>,
    /// How long requests are issued, in drive time: 10s
    #[arg(long, value_name = "TIME")]
    runtime: Option<Span>,
    /// Requests that run first and are not counted [default: 0]
    #[arg(long, value_name = "N")]
    warmup_count: Option<u64>,
}

impl WorkloadWords {
    /// The workload's file, if it is in one; names of built-in workloads are none.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.workload.as_deref().map(Path::new).filter(|path| path.is_file())
    }

    /// The workload meant.
    pub(crate) fn workload(&self, trace: &TraceWords) -> Result<Workload, Failure> {
        let mut workload = match (trace.workload(self.iodepth, self.rate_iops, self.warmup_count)?, &self.workload) {
            (Some(replay), _) => replay,
            (None, Some(name)) => load(name).map_err(Failure::input)?,
            (None, None) => Workload::of(self.job()?),
        };
        if let Some(count) = self.io_count {
            workload.limit = Limit::Requests(count);
        }
        if let Some(runtime) = self.runtime {
            workload.limit = Limit::Runtime(runtime);
        }
        if let Some(warmup) = self.warmup_count {
            workload.warmup = warmup;
        }
        Ok(workload)
    }

    fn job(&self) -> Result<JobSpec, Failure> {
        let Some(rw) = self.rw else {
            return Err(Failure::Input(anyhow::anyhow!(
                "no workload: give --rw (for example --rw randread), or --workload (see `nandscape workloads`), or --trace FILE"
            )));
        };
        let base = JobSpec::default();
        let process = self.rate_process.unwrap_or(RateProcess::Poisson);
        let job = JobSpec {
            name: rw.to_string(),
            rw,
            bs: self.bs.clone().unwrap_or(base.bs),
            iodepth: self.iodepth.unwrap_or(base.iodepth),
            numjobs: self.numjobs.unwrap_or(base.numjobs),
            rwmixread: self.rwmixread.unwrap_or(base.rwmixread),
            size: self.size.unwrap_or(base.size),
            distribution: self.random_distribution.clone().unwrap_or(base.distribution),
            rate: self.rate_iops.map(|iops| Rate { iops, process }),
            burst: self.burst,
            source: None,
        };
        job.check().map_err(|problem| Failure::Input(anyhow::anyhow!("--{}", problem.replace('_', "-"))))?;
        Ok(job)
    }
}
