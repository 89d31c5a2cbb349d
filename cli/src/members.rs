//! What layers and drives below an engine, or below the stores of servers, have done: their part of the output.

use nandscape_lab_report::format::count;
use nandscape_lab_run::MembersReport;
use serde_json::{Value, json};

use crate::sim_layers::sections;
use crate::table;

/// Layers of a run that are printed. Runs with more of them have them in JSON only.
const MOST_SECTIONS: usize = 8;

/// Adds the layers, where the user has given some, and the faults of drives to a run.
pub(crate) fn add_json(run: &mut Value, below: &MembersReport, has_layers: bool) {
    if has_layers {
        run["chain"] = json!(below.chain);
    }
    if !below.drives.is_empty() {
        run["drives"] = json!(below.drives);
    }
}

/// The same of runs, by their names.
pub(crate) fn text<'a>(runs: impl Iterator<Item = (String, &'a MembersReport)>, has_layers: bool) -> String {
    let run = |(name, below): (String, &MembersReport)| {
        let layers = match below.chain.len() {
            _ if !has_layers => String::new(),
            all if all > MOST_SECTIONS => format!("{} layers, of which --json has the figures\n", count(all as u64)),
            _ => sections(&below.chain),
        };
        let drives: String = below.drives.iter().map(of_drive).collect();
        match layers + &drives {
            nothing if nothing.is_empty() => nothing,
            found => format!("\n{name}:\n{found}"),
        }
    };
    runs.map(run).collect()
}

fn of_drive(of: &nandscape_lab_run::MemberFaults) -> String {
    let name = format!("{}: ", of.drive);
    let read_only = of.damage.read_only_because.iter().map(|why| format!("{name}the drive is read-only: {why}\n"));
    table::rules(&of.faults, &name) + &read_only.collect::<String>()
}
