//! A workload in words, so that a comparison can recognise runs of the same workload.

use nandscape_lab_workload::{JobSpec, Limit, LoadSpec, Rate, RateProcess, Share, Workload};

/// A line for each job and each load, and one for when it ends.
pub(crate) fn workload_lines(workload: &Workload) -> Vec<String> {
    let loads = workload.loads.iter().map(LoadSpec::describe);
    workload.jobs.iter().map(job).chain(loads).chain([limit(workload)]).collect()
}

fn job(job: &JobSpec) -> String {
    let JobSpec { name, rw, bs, iodepth, numjobs, rwmixread, size, offset, namespace, distribution, .. } = job;
    let called = if *name == rw.to_string() { String::new() } else { format!("{name}: ") };
    let depth = match &job.rate {
        Some(Rate { iops, process }) => format!("rate_iops={iops} rate_process={}", process_name(*process)),
        None => format!("iodepth={iodepth}"),
    };
    if let Some(source) = &job.source {
        let depth = if source.0.is_timed() { String::new() } else { format!(" {depth}") };
        return format!(
            "{name}: {}{depth}{}",
            source.0.describe(),
            job.describe_attributes() + &job.scheduling.describe()
        );
    }
    let burst = job.burst.map_or(String::new(), |burst| format!(" burst={burst}"));
    let namespace = if *namespace == 1 { String::new() } else { format!(" namespace={namespace}") };
    let offset = if *offset == Share::Bytes(0) { String::new() } else { format!(" offset={offset}") };
    let placing = job.placing.as_ref().map_or(String::new(), |placing| format!(" {}", placing.describe()));
    let zoned = job.zoned.map_or(String::new(), |zoned| format!(" {}", zoned.describe()));
    let flushes = job.flushes.describe();
    let think = job.think.map_or(String::new(), |think| think.describe());
    let attributes = job.describe_attributes() + &job.scheduling.describe();
    let stonewall = if job.stonewall { " stonewall" } else { "" };
    format!(
        "{called}rw={rw} bs={bs} {depth} numjobs={numjobs} rwmixread={rwmixread} size={size}{offset}{namespace} \
         random_distribution={distribution}{burst}{zoned}{placing}{flushes}{think}{attributes}{stonewall}"
    )
}

fn process_name(process: RateProcess) -> &'static str {
    RateProcess::ALL.iter().find(|(_, one)| *one == process).map_or("?", |(name, _)| name)
}

fn limit(workload: &Workload) -> String {
    let one = |limit: Limit| match limit {
        Limit::Requests(count) => format!("io_count={count}"),
        Limit::Runtime(span) => format!("runtime={span}"),
        Limit::Either(count, span) => format!("io_count={count} or runtime={span}, whichever ends first"),
    };
    let limits: Vec<String> = (0..workload.groups().len()).map(|group| one(workload.limit_of(group))).collect();
    let ramp = if workload.ramp.is_zero() { String::new() } else { format!(" ramp_time={}", workload.ramp) };
    format!("{} warmup_count={}{ramp}", limits.join("; then "), workload.warmup)
}
