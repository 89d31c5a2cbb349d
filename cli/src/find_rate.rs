//! `nandscape sim --find-rate`: the highest rate of arrivals at which a latency stays below a bound.

use nandscape_lab_report::format::{count, rounded, us_or_dash};
use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::search::{self, Bound, Found, Measured, Search};
use nandscape_lab_run::{Begin, Simulation, Stack, StackFinished};
use nandscape_lab_workload::Workload;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::sim::SimArgs;
use crate::{output, progress, table};

/// Searches on one drive, and prints the tried rates and the answer.
pub(crate) fn run(args: &SimArgs, simulation: &Simulation, begin: &Begin, bound: Bound) -> Result<(), Failure> {
    let bar = progress::bar();
    let found = find(&simulation.workload, bound, |workload| {
        let trial = Simulation { workload, ..simulation.clone() };
        let finished = trial.run_begun(begin, bar.clone(), false, None).map_err(crate::sim::failure)?;
        crate::sim::judge([&finished.report])?;
        Ok(finished)
    })?;
    show(args, bound, found, |finished| {
        let mut report = finished.report;
        report.inputs.set.clone_from(&args.set);
        report.host.command = Some(output::command());
        json!(report)
    })
}

/// The same on drives with layers; `json` makes an object of a run.
pub(crate) fn run_stack(
    args: &SimArgs,
    (stack, begin): (&Stack, (&Begin, &Chain)),
    bound: Bound,
    json: impl FnOnce(&StackFinished) -> Value,
) -> Result<(), Failure> {
    let bar = progress::bar();
    let found = find(&stack.workload, bound, |workload| {
        let trial = Stack { workload, ..stack.clone() };
        let finished = trial.run_begun(begin, bar.clone(), None).map_err(crate::sim::failure)?;
        crate::sim::judged(finished.failures().1, finished.host.interrupted)?;
        Ok(finished)
    })?;
    show(args, bound, found, |finished| json(&finished))
}

/// Prints the tried rates and the answer.
fn show<R>(args: &SimArgs, bound: Bound, found: Found<R>, json: impl FnOnce(R) -> Value) -> Result<(), Failure> {
    let Found { search, finished } = found;
    // A search without any figure is bad input; one that ended early is shown, and fails.
    if let Some(why) = search.ended.as_ref().filter(|_| search.probes.is_empty()) {
        return Err(input(bound, why));
    }
    match args.json {
        true => {
            let report = finished.map(json);
            let object = json!({ "schema": 1, "bound": bound.to_string(), "search": search, "report": report });
            output::result(&serde_json::to_string_pretty(&object).expect("plain data"))
        }
        false => output::result(&text(&search, bound)),
    }?;
    match &search.ended {
        None => Ok(()),
        Some(why) => Err(Failure::Run(anyhow::anyhow!("--find-rate \"{bound}\": the search ended early: {why}"))),
    }
}

fn input(bound: Bound, problem: &str) -> Failure {
    Failure::Input(anyhow::anyhow!("--find-rate \"{bound}\": {problem}"))
}

fn find<R: Measured>(
    workload: &Workload,
    bound: Bound,
    run: impl FnMut(Workload) -> Result<R, Failure>,
) -> Result<Found<R>, Failure> {
    search::find(workload, bound, |problem| input(bound, &problem), run)
}

fn text(search: &Search, bound: Bound) -> String {
    let figure = format!("{} {}, us", bound.direction.name(), bound.quantity);
    let mut rows = table::table(&["arrivals a second", &figure, "requests", ""]);
    for probe in &search.probes {
        let verdict = match (probe.holds, probe.overloaded) {
            (true, _) => "holds",
            (false, true) => "overloaded",
            (false, false) => "exceeds",
        };
        rows.add_row([rounded(probe.rate_iops), us_or_dash(probe.figure_us), count(probe.samples), verdict.to_owned()]);
    }
    let answer = match (search.answer(), search.exceeds_iops) {
        (Some(probe), None) if search.ended.is_some() => {
            format!("{bound} holds at {} arrivals a second; higher rates are open", rounded(probe.rate_iops))
        }
        (None, Some(lowest)) if search.ended.is_some() => {
            format!("{bound} is exceeded at {} arrivals a second; lower rates are open", rounded(lowest))
        }
        (None, Some(lowest)) => format!("no rate holds: {bound} is exceeded at {} a second, too", rounded(lowest)),
        (Some(probe), Some(higher)) => format!(
            "{bound} holds up to {} arrivals a second (of {} {}), and not at {}",
            rounded(probe.rate_iops),
            count(probe.samples),
            bound.direction.plural(),
            rounded(higher)
        ),
        (_, None) => format!("{bound} holds at every rate that was tried"),
    };
    format!("{}\n\n{answer}\n", rows.trim_fmt())
}
