//! A workload in words, so that two runs can be told to have had the same.

use std::fmt::Debug;

use nandscape_lab_workload::{JobSpec, Limit, LoadSpec, Rate, RateProcess, Workload};

/// The most characters of what has no words in fio: a trace, a generator, a file system.
const MOST: usize = 1_000;

/// A line for each job and load, and one for when it ends.
pub(super) fn lines(workload: &Workload) -> Vec<String> {
    let jobs = workload.jobs.iter().map(job);
    jobs.chain(workload.loads.iter().map(load)).chain([limit(workload)]).collect()
}

fn load(load: &LoadSpec) -> String {
    format!("{}: {}", load.name, spelled(&load.kind))
}

fn spelled(given: &impl Debug) -> String {
    format!("{given:?}").chars().take(MOST).collect()
}

fn job(job: &JobSpec) -> String {
    if let Some(source) = &job.source {
        return format!("{}: iodepth={} numjobs={} {}", job.name, job.iodepth, job.numjobs, spelled(&source.0));
    }
    let JobSpec { name, rw, bs, iodepth, numjobs, rwmixread, size, distribution, .. } = job;
    let called = if *name == rw.to_string() { String::new() } else { format!("{name}: ") };
    let depth = match &job.rate {
        Some(Rate { iops, process }) => format!("rate_iops={iops} rate_process={}", process_name(*process)),
        None => format!("iodepth={iodepth}"),
    };
    let burst = job.burst.map_or(String::new(), |burst| format!(" burst={burst}"));
    format!(
        "{called}rw={rw} bs={bs} {depth} numjobs={numjobs} rwmixread={rwmixread} size={size} \
         random_distribution={distribution}{burst}"
    )
}

fn process_name(process: RateProcess) -> &'static str {
    RateProcess::ALL.iter().find(|(_, one)| *one == process).map_or("?", |(name, _)| name)
}

fn limit(workload: &Workload) -> String {
    let limit = match workload.limit {
        Limit::Requests(count) => format!("io_count={count}"),
        Limit::Runtime(span) => format!("runtime={span}"),
    };
    format!("{limit} warmup_count={}", workload.warmup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_told_in_the_words_it_is_given_in() {
        let rate = Some(Rate { iops: 500.0, process: RateProcess::Linear });
        let job = JobSpec { name: "log".to_owned(), rwmixread: 70, rate, ..JobSpec::default() };
        let words = "rate_iops=500 rate_process=linear numjobs=1 rwmixread=70 size=100% random_distribution=uniform";
        let expected = [format!("log: rw=randread bs=4KiB {words}"), "io_count=1000000 warmup_count=0".to_owned()];
        assert_eq!(lines(&Workload::of(job)), expected);
    }
}
