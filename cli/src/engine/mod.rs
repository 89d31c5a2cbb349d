//! `nandscape paper engine`: readers and writers on the storage engine over several drives, in simulated time, and the same loads on a live
//! server of memcached's protocol.
//!
//! | file | what |
//! |---|---|
//! | `args`, `words` | the words of the command, and their values |
//! | `cases` | the runs: each policy with each placement and scheduler |
//! | `drives` | the drives of an engine |
//! | `figures`, `names` | what the paper's load gives, and the columns that name a run |
//! | `loads` | a trace of a cache, and YCSB |
//! | `server` | all three loads on a live server, in wall time (Linux) |

mod args;
mod cases;
mod drives;
mod figures;
mod loads;
mod names;
#[cfg(target_os = "linux")]
mod server;
mod words;

use nandscape_apps_memcached_engine::OpenError;
use nandscape_apps_memcached_run::{Left, Outcome, RunError};

use crate::failure::Failure;
use crate::output;
use crate::progress::Runs;
use crate::sim::write;

pub(crate) use args::EngineArgs;
use cases::Case;
#[cfg(target_os = "linux")]
pub(crate) use drives::{check_drives, check_parts, drive_of};
#[cfg(target_os = "linux")]
pub(crate) use words::{known, placement, small_items};

fn failure(error: RunError, policy: &str) -> Failure {
    match error {
        RunError::TooLarge { read, most } => {
            let flag = if read { "--read-size" } else { "--write-size" };
            Failure::Input(anyhow::anyhow!("{flag}: on drives of this size {most} bytes or less are valid"))
        }
        RunError::Open(error @ OpenError::Block { .. }) => Failure::Input(anyhow::anyhow!("--write-size: {error}")),
        RunError::Open(error @ OpenError::Dirty { .. }) => Failure::Input(anyhow::anyhow!("--dirty: {error}")),
        RunError::Open(error @ OpenError::InPlace(_)) => Failure::Input(anyhow::anyhow!("--in-place: {error}")),
        RunError::Spec(text) => Failure::Input(anyhow::anyhow!("{text}")),
        RunError::Open(OpenError::Engine(error)) => Failure::Input(anyhow::anyhow!("--policy {policy}: {error}")),
        RunError::Open(error) => Failure::Input(anyhow::anyhow!("the engine: {error}")),
        RunError::Layers(problem) => Failure::Input(anyhow::anyhow!("--over: {problem}")),
        RunError::Queue(_) => Failure::input(error),
        RunError::Stopped(_) | RunError::Lost { .. } => Failure::Run(anyhow::anyhow!("--policy {policy}: {error}")),
        other => Failure::run(other),
    }
}

/// Prints the engine's events of a run as notes.
fn note_events(case: &Case<'_>, left: &Left) {
    left.events.iter().for_each(|event| output::note(&format!("{}: {event}", case.policy)));
}

pub(crate) fn run(args: &EngineArgs) -> Result<(), Failure> {
    args.check()?;
    #[cfg(target_os = "linux")]
    if let Some(server) = &args.server.server {
        return server::run(args, server);
    }
    let without = args.policies()?.1;
    if !without.is_empty() {
        output::note(&format!("the layers do not pass what a policy needs, which is left out: {}", without.join(", ")));
    }
    if let Some(ran) = loads::run(args) {
        return ran;
    }
    let cases = args.cases()?;
    let mut runs = Vec::new();
    let specs = cases.iter().map(|case| args.checked(case)).collect::<Result<Vec<_>, _>>()?;
    let progress = Runs::of(cases.len() as u64);
    for (number, (case, spec)) in cases.into_iter().zip(specs).enumerate() {
        progress.next(case.policy, number);
        let outcome = nandscape_apps_memcached_run::run(&spec).map_err(|error| failure(error, case.policy))?;
        note_events(&case, &outcome.left);
        if args.writers > 0 && outcome.put_bytes == 0 {
            let policy = case.policy;
            output::note(&format!("{policy}: no put ended during the reads: a larger --reads lets drives collect"));
        }
        runs.push((case, outcome));
    }
    drop(progress);
    if let (Some(file), [(_, Outcome { trace: Some(trace), .. })]) = (&args.chrome_trace, &runs[..]) {
        write(file, trace).map_err(Failure::Run)?;
    }
    if let Some(file) = &args.page {
        write(file, &figures::page(&runs, args)).map_err(Failure::Run)?;
    }
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&figures::as_json(&runs, args)).expect("plain data")),
        false => output::result(&figures::text(&runs, args)),
    }
}
