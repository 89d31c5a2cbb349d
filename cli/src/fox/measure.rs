//! The runs on a drive, in simulated time or at the wall clock.

use std::fs::File;
use std::rc::Rc;

use nandscape_lab_run::Phase;
use nandscape_papers_fox::{
    Benchmark, Choice, Engines, Opened, Report, RunError, Wanted, WearPlan, WearReport, pages_of, run, scale, tables,
    wear,
};

use crate::failure::Failure;
use crate::{output, progress};

/// What to run.
pub(super) enum What {
    /// A micro-benchmark of several runs.
    Benchmark(Benchmark, Choice),
    /// An engine alone; without pages, all of a block.
    Alone(Wanted),
    /// uOC-1; without pages, all of a block.
    Wear(WearPlan),
}

/// The file of all latencies.
pub(super) type Latencies = csv::Writer<File>;

/// A piece of work.
pub(super) struct Job {
    /// What to run.
    pub(super) what: What,
    /// Where each command's latency goes.
    pub(super) latencies: Option<Latencies>,
}

/// What was measured.
pub(super) enum Measured {
    /// Runs.
    Runs(Vec<Report>),
    /// The wear of a block.
    Wear(WearReport),
}

/// A plan with this many pages has all of the drive's, one with this many blocks the usual ones.
pub(super) const USUAL: u32 = u32::MAX;
/// Blocks of each PU of an engine alone, where there are so many.
const BLOCKS: u32 = 64;

fn failure(error: RunError) -> Failure {
    match error {
        RunError::Plan(_) | RunError::Blocks(_) => Failure::Input(error.into()),
        RunError::Command(_) => Failure::Run(error.into()),
    }
}

/// Runs it.
pub(super) async fn measure(job: Job, Opened { sim, host }: Opened) -> Result<Measured, Failure> {
    let Job { what, mut latencies } = job;
    let pages = |pages: u32| if pages == USUAL { pages_of(host.geometry()) } else { pages };
    let runs = match what {
        What::Benchmark(benchmark, choice) => benchmark.runs(host.geometry(), &choice),
        What::Alone(mut wanted) => {
            let plan = &mut wanted.plan;
            plan.pages = pages(plan.pages);
            if plan.blocks == USUAL {
                plan.blocks = BLOCKS.min(host.geometry().chunks.saturating_sub(plan.first_block));
            }
            vec![wanted]
        }
        What::Wear(mut plan) => {
            plan.pages = pages(plan.pages);
            let progress = progress::interruptible();
            let goes_on = |share| {
                progress.at(Phase::Running, share);
                !progress.is_stopped()
            };
            return wear(&sim, &host, &plan, &goes_on).await.map(Measured::Wear).map_err(failure);
        }
    };
    let (engines, mut reports) = (Engines::built_in(), Vec::new());
    for wanted in runs {
        let engine: Rc<_> = engines.find(&wanted.engine).map_err(|problem| Failure::Input(anyhow::anyhow!(problem)))?;
        let outcome = run(&sim, &host, &wanted.plan, &engine).await.map_err(failure)?;
        if let Some(table) = &mut latencies {
            tables::latencies((&wanted.group, &wanted.name), &outcome, table).map_err(Failure::run)?;
        }
        reports.push(outcome.report(&wanted));
    }
    if let Some(mut table) = latencies {
        table.flush().map_err(Failure::run)?;
    }
    if reports.iter().any(Report::is_split) {
        output::note(
            "a command of several pages reached this drive as one for each row of addresses, and its latency is that of the last",
        );
    }
    scale(&mut reports);
    Ok(Measured::Runs(reports))
}
