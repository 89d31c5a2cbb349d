//! fio's job files as workloads: `[global]` and jobs with the options that describe requests. Options that say how fio reaches
//! a device are told and left out; every other option is an error with its line, so that no job runs as something else.
//!
//! | file | what |
//! |---|---|
//! | `ini` | lines, sections and options |
//! | `options` | options as keys of a job |
//!
//! Left out: jobs one after the other (`stonewall`), verification, think times, and `include`.

mod ini;
mod options;

use crate::file::WorkloadError;
use crate::spec::{DEFAULT_REQUESTS, Limit, Workload};

/// A workload of a job file, with notes on what is different here.
#[derive(Clone, PartialEq, Debug)]
pub struct FioJobs {
    /// The workload.
    pub workload: Workload,
    /// Options that were left out, and deviations.
    pub notes: Vec<String>,
}

/// Reads a job file.
///
/// # Errors
/// When it cannot be read, or an option is not understood: the line, the option, and what would be valid.
pub fn load_fio(path: &str) -> Result<FioJobs, WorkloadError> {
    let text = crate::file::text_of(path)
        .map_err(|error| WorkloadError { origin: path.to_owned(), problem: format!("cannot be read: {error}") })?;
    parse_fio(path, &text)
}

/// Reads the text of a job file; `origin` names it.
///
/// # Errors
/// As [`load_fio`].
pub fn parse_fio(origin: &str, text: &str) -> Result<FioJobs, WorkloadError> {
    let wrong = |problem: String| WorkloadError { origin: origin.to_owned(), problem };
    let at = |line: usize, problem: String| WorkloadError { origin: format!("{origin}:{line}"), problem };
    let sections = ini::sections(text).map_err(|(line, problem)| at(line, problem))?;
    let (mut jobs, mut left_out) = (Vec::new(), Vec::<String>::new());
    for section in &sections {
        let read = options::job(section).map_err(|(line, problem)| at(line, problem))?;
        for option in &read.left_out {
            if !left_out.contains(option) {
                left_out.push(option.clone());
            }
        }
        jobs.push(read);
    }
    if jobs.is_empty() {
        return Err(wrong("has no job: a section such as [reads] with rw=randread".to_owned()));
    }
    let mut notes = Vec::new();
    if !left_out.is_empty() {
        notes.push(format!("{origin}: left out, for the requests do not depend on them: {}", left_out.join(", ")));
    }
    if let Some(job) = jobs.iter().find(|job| job.spec.rate.is_some()) {
        notes.push(format!(
            "{origin}: rate_iops of job {} is an open loop here: requests arrive at this rate however many are outstanding",
            job.spec.name
        ));
    }
    let limit = limit(&jobs).map_err(&wrong)?;
    notes.extend(limit.1.map(|note| format!("{origin}: {note}")));
    let specs: Vec<_> = jobs.into_iter().map(|job| job.spec).collect();
    for spec in &specs {
        spec.check().map_err(|problem| wrong(format!("job \"{}\": {problem}", spec.name)))?;
    }
    let name = std::path::Path::new(origin).file_stem().map_or(origin.into(), |stem| stem.to_string_lossy());
    let workload =
        Workload { name: name.into_owned(), jobs: specs, limit: limit.0, ..Workload::of(Default::default()) };
    Ok(FioJobs { workload, notes })
}

/// When the run ends: by time if all jobs do, else after the requests of all jobs.
fn limit(jobs: &[options::Read]) -> Result<(Limit, Option<String>), String> {
    let timed: Vec<_> = jobs.iter().filter_map(|job| job.runtime.filter(|_| job.time_based)).collect();
    if timed.len() == jobs.len() {
        let longest = timed.iter().max().expect("there is a job");
        let differ = timed.iter().any(|time| time != longest);
        return Ok((
            Limit::Runtime(*longest),
            differ.then(|| format!("all jobs run for {longest}, the longest runtime")),
        ));
    }
    if !timed.is_empty() {
        return Err("some jobs are time_based and others not; give all of them time_based and a runtime".to_owned());
    }
    match jobs.iter().map(options::Read::requests).sum::<Option<u64>>() {
        Some(requests) if requests > 0 => {
            let note = (jobs.len() > 1).then(|| {
                format!("the run ends after {requests} requests, those of all jobs, whichever job issues them")
            });
            Ok((Limit::Requests(requests), note))
        }
        _ => {
            let note = format!(
                "no job says how much it does (time_based with runtime, number_ios, io_size, or size in bytes); the run \
                 ends after {DEFAULT_REQUESTS} requests"
            );
            Ok((Limit::Requests(DEFAULT_REQUESTS), Some(note)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Share;
    use nandscape_sim::Span;

    const TWO: &str = "\
; a comment
[global]
ioengine=libaio
direct=1
bs=16k
runtime=30
time_based

[reads]
rw=randread   # with a comment
iodepth=4
random_distribution=zipf:0.9
size=10g

[writes]
rw=write
rate_iops=1k
numjobs=2
bssplit=4k/60:64k/40
size=50%
";

    #[test]
    fn a_job_file_is_a_workload() {
        let FioJobs { workload, notes } = parse_fio("jobs/two.fio", TWO).unwrap();
        assert_eq!((workload.name.as_str(), workload.limit), ("two", Limit::Runtime(Span::from_s(30))));
        let [reads, writes] = &workload.jobs[..] else { panic!("two jobs") };
        assert_eq!((reads.name.as_str(), reads.iodepth, reads.bs.to_string().as_str()), ("reads", 4, "16KiB"));
        assert_eq!((reads.size, reads.distribution.to_string().as_str()), (Share::Bytes(10 << 30), "zipf:0.9"));
        // fio's k is 1024, and its rate is that of each clone.
        assert_eq!(writes.rate.map(|rate| rate.iops), Some(2_048.0));
        assert_eq!((writes.size, writes.bs.reads.sizes().len(), writes.numjobs), (Share::Of(0.5), 2, 2));
        assert!(notes.iter().any(|note| note.contains("ioengine, direct")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("job writes is an open loop")), "{notes:?}");
    }

    #[test]
    fn amounts_end_the_run() {
        let limit = |text: &str| parse_fio("x.fio", text).unwrap().workload.limit;
        assert_eq!(limit("[a]\nrw=read\nsize=1m\n[b]\nrw=read\nnumber_ios=10\nnumjobs=2\n"), Limit::Requests(276));
        assert_eq!(limit("[a]\nrw=read\nsize=1g\nio_size=40k\nbs=8k\n"), Limit::Requests(5));
        let FioJobs { workload, notes } = parse_fio("x.fio", "[a]\nrw=read\n").unwrap();
        assert!(workload.limit == Limit::Requests(DEFAULT_REQUESTS) && notes[0].contains("no job says"), "{notes:?}");
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_line() {
        let error = |text: &str| parse_fio("x.fio", text).unwrap_err().to_string();
        assert!(error("[a]\nrw=read\nthinktime=5\n").starts_with("x.fio:3: thinktime is not understood"));
        assert!(error("[a]\nrw=reed\n").starts_with("x.fio:2: rw: \"reed\" is not a pattern"));
        assert!(error("rw=read\n").starts_with("x.fio:1: rw stands before the first section"));
        assert!(error("[a]\nrw=read\n[b]\nstonewall\nrw=read\n").starts_with("x.fio:4: stonewall"));
        assert!(error("[a\n").starts_with("x.fio:1: "));
        assert!(error("[global]\nbs=4k\n").contains("has no job"));
        assert!(error("[a]\nbs=4k\n").starts_with("x.fio:1: job a has no rw"));
        assert!(error("[a]\nrw=randrw\nrate_iops=5\n").starts_with("x.fio:3: rate_iops"));
        assert!(error("[a]\nrw=randrw\nbs=4k,8k\n").starts_with("x.fio:3: bs"));
        assert!(error("[a]\nrw=read\niodepth=many\n").starts_with("x.fio:3: iodepth"));
        assert!(error("[a]\nrw=read\niodepth=0\n").contains("iodepth = 0 is out of range"));
        assert!(error("[a]\nrw=read\ntime_based\nruntime=1\n[b]\nrw=read\n").contains("some jobs are time_based"));
    }
}
