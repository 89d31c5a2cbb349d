//! The end of a run of fio's jobs. Each job of fio ends by itself; here the run ends once, for all of them.

use nandscape_sim::Span;

use super::options::Read;
use crate::spec::{DEFAULT_REQUESTS, Limit};

/// The line if there is one, and the error.
pub(super) type Wrong = (Option<usize>, String);

/// The end of the run, with a note on differences from fio: by time if all jobs are `time_based`, else after the requests of all
/// jobs, or after their runtime if that comes first.
///
/// # Errors
/// The line if there is one, the problem, and what would be valid.
pub(super) fn of(jobs: &[Read], capacity: Option<u64>) -> Result<(Limit, Option<String>), Wrong> {
    let timed = jobs.iter().filter(|job| job.time_based && job.runtime.is_some()).count();
    if timed > 0 && timed < jobs.len() {
        let problem = "some jobs are time_based and others not; give all of them time_based and a runtime";
        return Err((None, problem.to_owned()));
    }
    let longest = longest(jobs)?;
    if let Some((span, differ)) = longest.filter(|_| timed > 0) {
        if differ {
            refuse_exitall(jobs)?;
        }
        return Ok((Limit::Runtime(span), differ.then(|| format!("all jobs run for {span}, the longest runtime"))));
    }
    if jobs.len() > 1 || jobs[0].spec.numjobs > 1 {
        refuse_exitall(jobs)?;
    }
    let requests = jobs.iter().map(|job| job.requests(capacity));
    let requests = requests.reduce(|sum, own| Some(sum?.saturating_add(own?))).flatten().filter(|sum| *sum > 0);
    match (requests, longest) {
        (Some(requests), None) => Ok((Limit::Requests(requests), together(jobs, requests))),
        (Some(requests), Some((span, _))) => Ok((Limit::Either(requests, span), together(jobs, requests))),
        (None, Some((span, _))) => {
            let note = format!("the run takes {span}: it does not end earlier when a job has done all of its size");
            Ok((Limit::Runtime(span), Some(note)))
        }
        (None, None) => default(jobs),
    }
}

/// The longest runtime if all jobs have one, and whether they differ.
fn longest(jobs: &[Read]) -> Result<Option<(Span, bool)>, Wrong> {
    let times: Vec<Span> = jobs.iter().filter_map(|job| job.runtime).collect();
    let longest = times.iter().max().copied();
    match longest {
        Some(_) if times.len() < jobs.len() => {
            let problem = "some jobs have a runtime and others not; give all of them one, or none";
            Err((None, problem.to_owned()))
        }
        longest => Ok(longest.map(|longest| (longest, times.iter().any(|time| *time != longest)))),
    }
}

fn refuse_exitall(jobs: &[Read]) -> Result<(), Wrong> {
    let problem = "exitall: jobs end together here; give all of them time_based and the same runtime";
    jobs.iter().find_map(|job| job.exitall).map_or(Ok(()), |line| Err((Some(line), problem.to_owned())))
}

fn together(jobs: &[Read], requests: u64) -> Option<String> {
    let several = jobs.len() > 1;
    several.then(|| format!("the run ends after {requests} requests, those of all jobs, whichever job issues them"))
}

/// No job has a limit.
fn default(jobs: &[Read]) -> Result<(Limit, Option<String>), Wrong> {
    if let Some(line) = jobs.iter().find_map(|job| job.share) {
        let problem = "a share of the drive: its size is not known here; give a size in bytes, number_ios, or time_based \
                       with runtime";
        return Err((Some(line), problem.to_owned()));
    }
    let note = format!(
        "no job says how much it does (time_based with runtime, number_ios, io_size, or size in bytes); the run ends after \
         {DEFAULT_REQUESTS} requests"
    );
    Ok((Limit::Requests(DEFAULT_REQUESTS), Some(note)))
}
