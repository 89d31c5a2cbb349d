//! `nandscape sim --find-rate`: the highest rate of arrivals at which a latency stays below a bound.

use nandscape_lab_report::format::{count, rounded, us_or_dash};
use nandscape_lab_run::search::{self, Bound, Found, Search};
use nandscape_lab_run::{Begin, Simulation};
use serde_json::json;

use crate::failure::Failure;
use crate::sim::SimArgs;
use crate::{output, progress, table};

/// Searches, and prints the tried rates and the answer. `set` are the changed keys.
pub(crate) fn run(
    args: &SimArgs,
    (simulation, begin): (&Simulation, &Begin),
    bound: Bound,
    set: &[String],
) -> Result<(), Failure> {
    let bar = progress::bar();
    let found = search::find(
        &simulation.workload,
        bound,
        |problem| input(bound, &problem),
        |workload| {
            let trial = Simulation { workload, ..simulation.clone() };
            let finished = trial.run_begun(begin, bar.clone(), None).map_err(crate::sim::failure)?;
            crate::sim::judged(finished.failures().1, finished.is_interrupted())?;
            Ok(finished)
        },
    );
    let Found { search, finished } = found?;
    // A search without any figure is bad input; one that ended early is shown, and fails.
    if let Some(why) = search.ended.as_ref().filter(|_| search.probes.is_empty()) {
        return Err(input(bound, why));
    }
    match args.json {
        true => {
            let report = finished.map(|mut finished| finished.to_value(simulation, set, Some(&output::command())));
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
