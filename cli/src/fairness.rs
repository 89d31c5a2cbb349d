//! `nandscape sim --fairness`: each job of a workload alone on the same drive.

use anyhow::anyhow;
use nandscape_lab_run::{Begin, Report, Simulation};
use nandscape_lab_workload::Workload;

use crate::failure::Failure;
use crate::{progress, sim};

/// Checks before the run that there are jobs to compare.
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

/// The mean latency of each job alone, in microseconds. A job alone draws the same requests as beside the others, after its part
/// of the warm-up, and runs as long or issues as many.
pub(crate) fn alone(simulation: &Simulation, begin: &Begin, together: &Report) -> Result<Vec<Option<f64>>, Failure> {
    let requests: Vec<u64> = together.flows.iter().map(|flow| flow.requests).collect();
    let alone = |job| -> Result<Option<f64>, Failure> {
        let Some(workload) = simulation.workload.alone(job, &requests) else { return Ok(None) };
        let run = Simulation { workload, trace: false, ..simulation.clone() };
        Ok(run.run_begun(begin, progress::bar(), false, None).map_err(sim::failure)?.mean_us())
    };
    (0..requests.len()).map(alone).collect()
}
