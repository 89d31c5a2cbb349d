//! `nandscape sim --fairness`: each job of a workload alone on the same drive, or on the same drives under the same layers.

use anyhow::anyhow;
use nandscape_lab_run::FlowReport;
use nandscape_lab_workload::Workload;

use crate::failure::Failure;

/// Checks before the run that the workload has jobs to compare.
pub(crate) fn check(workload: &Workload) -> Result<(), Failure> {
    if workload.groups().len() > 1 {
        let problem = "--fairness compares jobs that run at the same time; leave out stonewall";
        return Err(Failure::Input(anyhow!(problem)));
    }
    if workload.jobs.len() > 1 && workload.loads.is_empty() {
        return Ok(());
    }
    let problem = "--fairness: the workload has no second job; give a file with several, such as noisy-neighbour";
    Err(Failure::Input(anyhow!(problem)))
}

/// The mean latency of each job alone, in microseconds, as `run` measures it. A job alone draws the same requests as with the
/// others, after its part of the warm-up. It runs as long, or issues as many.
pub(crate) fn alone(
    workload: &Workload,
    together: &[FlowReport],
    run: impl Fn(Workload) -> Result<Option<f64>, Failure>,
) -> Result<Vec<Option<f64>>, Failure> {
    let requests: Vec<u64> = together.iter().map(|flow| flow.requests).collect();
    (0..requests.len()).map(|job| workload.alone(job, &requests).map_or(Ok(None), &run)).collect()
}
