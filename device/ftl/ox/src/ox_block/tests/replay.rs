//! A failed run once more, with its event trace.
//!
//! | variable | what |
//! |---|---|
//! | `NANDSCAPE_TEST_CASE` | the case, as a failure prints it |
//! | `NANDSCAPE_TEST_MISTAKE` | the deliberate mistake that is made, if any |
//! | `NANDSCAPE_TEST_TRACE` | the file of the trace (Chrome's form) |

use std::path::PathBuf;

use nandscape_sim::Sim;

use super::case::Case;
use super::journal::Journal;
use crate::ox_block::mistakes::{self, Mistake};

/// Lines that are printed: operations of the flash and notes, the last before the end.
const LINES: usize = 60;

/// The command that runs a case once more.
pub(super) fn command(case: &Case) -> String {
    let mistake = mistakes::made().map_or_else(String::new, |mistake| format!(" NANDSCAPE_TEST_MISTAKE={mistake:?}"));
    format!(
        "to see it again: NANDSCAPE_TEST_CASE='{case}'{mistake} \
         cargo test -p nandscape-device-ftl-ox --lib replays_a_case -- --nocapture"
    )
}

/// Prints the last lines of a run, and writes its trace to a file.
pub(super) fn show(sim: &Sim, journal: &Journal) {
    let path =
        variable("NANDSCAPE_TEST_TRACE").map_or_else(|| std::env::temp_dir().join("ox_block.json"), PathBuf::from);
    std::fs::write(&path, sim.trace().to_chrome_json()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    journal.last(LINES).iter().for_each(|line| println!("{line}"));
    println!("{} events in {}", sim.trace().len(), path.display());
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn replays_a_case() {
    let given = variable("NANDSCAPE_TEST_CASE");
    let short = "tiny seed=1 steps=20 rounds=2; power_cut nth=60 torn=any";
    let case: Case = given.as_deref().unwrap_or(short).parse().unwrap_or_else(|error| panic!("{error}"));
    if let Some(name) = variable("NANDSCAPE_TEST_MISTAKE") {
        let mistake = Mistake::ALL.into_iter().find(|mistake| format!("{mistake:?}") == name);
        mistakes::make(Some(mistake.unwrap_or_else(|| panic!("{name:?} is none of {:?}", Mistake::ALL))));
    }
    let mut kept = None;
    let ended = case.run_with(|sim, setup| {
        let journal = Journal::begin(sim, setup.flash.geometry());
        kept = Some((sim.clone(), journal.clone()));
        Some(journal)
    });
    let (sim, journal) = kept.expect("the run was begun");
    assert!(!sim.trace().is_empty() && !journal.last(1).is_empty());
    if given.is_some() {
        show(&sim, &journal);
    }
    ended.unwrap_or_else(|wrong| panic!("{case}: {wrong}"));
}
