//! `nandscape sim --fairness`: each job of a workload alone on the same drive.

use anyhow::anyhow;
use nandscape_lab_run::{Report, Simulation};
use nandscape_lab_workload::{Limit, Workload};

use crate::failure::Failure;
use crate::{progress, sim};

/// The mean latency of each job alone, in microseconds. A job alone runs as long as beside the others, or issues as many
/// requests.
pub(crate) fn alone(simulation: &Simulation, together: &Report) -> Result<Vec<Option<f64>>, Failure> {
    if together.flows.is_empty() {
        let problem = "--fairness: the workload has no second job; give a file with several, such as noisy-neighbour";
        return Err(Failure::Input(anyhow!(problem)));
    }
    let jobs = simulation.workload.jobs.iter().zip(&together.flows);
    jobs.map(|(job, flow)| -> Result<Option<f64>, Failure> {
        let limit = match simulation.workload.limit {
            Limit::Requests(_) if flow.requests == 0 => return Ok(None),
            Limit::Requests(_) => Limit::Requests(flow.requests),
            limit => limit,
        };
        let workload = Workload { limit, ..Workload::of(job.clone()) };
        let run = Simulation { workload, trace: false, ..simulation.clone() };
        Ok(run.run(progress::bar()).map_err(sim::failure)?.mean_us())
    })
    .collect()
}
