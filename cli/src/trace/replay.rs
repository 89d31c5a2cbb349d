//! `sim --trace`: the replay of a trace.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use nandscape_lab_trace::{Address, Pace, Replay};
use nandscape_lab_workload::{JobSpec, Limit, Workload, count};

use super::select::SelectWords;
use crate::failure::Failure;

/// Options of a replay.
#[derive(Args)]
#[command(next_help_heading = "Trace")]
pub(crate) struct TraceWords {
    /// A trace, compressed or not, or - for standard input. Requests arrive at its times however many are outstanding, unless
    /// --replay-no-stall is given. --rate-iops scales its times to this mean rate
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "rw", "bs", "numjobs", "rwmixread", "size", "namespace", "random_distribution", "rate_process", "burst", "zonemode", "max_open_zones", "zone_append", "zone_fill", "zone_finish", "offset", "fdp", "dataplacement", "plids", "plid_select", "fsync", "fdatasync", "sync", "thinktime", "thinktime_blocks", "thinktime_blocks_type", "thinktime_spin", "stonewall"])]
    trace: Option<PathBuf>,
    /// Replay the trace X times as fast: 2 halves all times [default: 1]
    #[arg(long, value_name = "X", conflicts_with_all = ["rate_iops", "replay_no_stall"], allow_negative_numbers = true)]
    time_scale: Option<f64>,
    /// Ignore the times of the trace: keep --iodepth requests outstanding, in its order
    #[arg(long, conflicts_with = "rate_iops")]
    replay_no_stall: bool,
    /// Addresses: wrap those beyond the capacity, or scale all to fill the drive [default: wrap]
    #[arg(long, value_name = "wrap|scale")]
    address: Option<Address>,
    /// Replay the trace N times in one run, each time a mean gap after the last request of the time before [default: 1]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    trace_repeat: Option<u64>,
    #[command(flatten)]
    select: SelectWords,
}

impl TraceWords {
    /// The trace, if one was given.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// The first option besides the trace that was given, if any. clap ignores `requires` where the required option conflicts
    /// with another.
    fn given(&self) -> Option<&'static str> {
        let own = [
            ("--time-scale", self.time_scale.is_some()),
            ("--replay-no-stall", self.replay_no_stall),
            ("--address", self.address.is_some()),
            ("--trace-repeat", self.trace_repeat.is_some()),
        ];
        own.into_iter().find(|(_, given)| *given).map(|(word, _)| word).or_else(|| self.select.given())
    }

    /// The replay, if a trace was given, with the options of the workload that apply to it.
    pub(crate) fn workload(
        &self,
        iodepth: Option<u32>,
        rate_iops: Option<f64>,
        warmup: Option<u64>,
    ) -> Result<Option<Workload>, Failure> {
        let input = |problem: String| Failure::Input(anyhow!(problem));
        let Some(path) = &self.trace else {
            return match self.given() {
                Some(word) => Err(input(format!("{word} is for traces: give --trace FILE, or leave it out"))),
                None => Ok(None),
            };
        };
        let pace = match (self.replay_no_stall, iodepth, rate_iops) {
            (true, iodepth, _) => Pace::NoStall(iodepth.unwrap_or(JobSpec::default().iodepth)),
            (false, Some(_), _) => {
                let problem = "--iodepth does not limit requests that arrive at the times of a trace; \
                               give --replay-no-stall, or leave it out";
                return Err(input(problem.to_owned()));
            }
            (false, None, Some(rate)) => Pace::Rate(rate),
            (false, None, None) => Pace::Scaled(self.time_scale.unwrap_or(1.0)),
        };
        let trace = super::open(self.select.of(path))?;
        let (address, repeat) = (self.address.unwrap_or_default(), self.trace_repeat.unwrap_or(1));
        let mut workload = Replay::repeated(trace, pace, address, repeat).map_err(super::failed)?;
        if let (Limit::Requests(all), Some(warmup)) = (workload.limit, warmup) {
            let left = all.checked_sub(warmup).filter(|left| *left > 0);
            let left =
                left.ok_or_else(|| input(format!("--warmup-count {warmup} leaves nothing of {all} requests")))?;
            workload.limit = Limit::Requests(left);
        }
        workload.jobs.iter().try_for_each(JobSpec::check).map_err(|problem| input(format!("--{problem}")))?;
        Ok(Some(workload))
    }
}
