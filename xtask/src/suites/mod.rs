//! The test programs of the workspace, run concurrently: a suite that waits for clocks or clients leaves its core to one that
//! computes.
//!
//! | file | what |
//! |---|---|
//! | `mod` | a crew of as many workers as there are cores, and the summary |
//! | `build` | test programs, compiled and listed by cargo |
//! | `part` | parts of the workspace by name: a crate, its folder, a suite, or a module of one |
//! | `choice` | which tests of a program run |
//! | `outcome` | what a suite printed: counts, and tests skipped for want of something |

mod build;
mod choice;
mod outcome;
mod part;

use std::collections::VecDeque;
use std::sync::Mutex;

use anyhow::bail;

use crate::clock::Moment;
use crate::say;
use crate::watchdog::{Interrupted, Patience, watched};
pub(crate) use build::{Suite, compile};
pub(crate) use choice::Choice;
pub(crate) use outcome::Outcome;
pub(crate) use part::Part;

/// The longest suites, in the order of their start; all others follow. The last to start determines how long a core
/// is idle.
const LONGEST: [&str; 11] = [
    "nandscape-cli live",
    "nandscape-papers-claims ledger",
    "nandscape-lab-run suite",
    "nandscape-cli command",
    "nandscape-device-ssd",
    "nandscape-apps-llama-engine",
    "nandscape-device-ftl-page",
    "nandscape-apps-lsm-engine",
    "nandscape-layers-array",
    "nandscape-host-open_channel model",
    "nandscape-lab-guest",
];

/// Runs test programs.
///
/// # Errors
/// When a suite or the choice fails; a run names all suites that fail.
pub(crate) fn run(suites: Vec<Suite>, choice: Choice<'_>) -> anyhow::Result<()> {
    let workers = cores();
    say::line(&format!("\n==> {} test programs, {workers} side by side", suites.len()));
    let begun = Moment::now();
    let queue = Mutex::new(VecDeque::from(in_order(suites)));
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(suite) = next(&queue) {
                    let (outcome, is_interrupted) = one(&suite, choice);
                    if is_interrupted {
                        queue.lock().expect("no worker panics").clear();
                    }
                    outcomes.lock().expect("no worker panics").push((suite.name, outcome));
                }
            });
        }
    });
    summary(&outcomes.into_inner().expect("no worker panics"), begun)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn next(queue: &Mutex<VecDeque<Suite>>) -> Option<Suite> {
    queue.lock().expect("no worker panics").pop_front()
}

/// The longest first.
fn in_order(mut suites: Vec<Suite>) -> Vec<Suite> {
    suites.sort_by_key(|suite| LONGEST.iter().position(|name| suite.name.starts_with(name)).unwrap_or(LONGEST.len()));
    suites
}

/// Runs a suite; its result, and whether the user has ended it. What it prints is shown when it has ended: whole if it failed, else
/// its result.
fn one(suite: &Suite, choice: Choice<'_>) -> (Outcome, bool) {
    let mut command = suite.command();
    command.args(choice.words(suite));
    let mut text = Vec::new();
    let begun = Moment::now();
    let status = watched(Patience::default(), &mut command, &mut |line| text.extend_from_slice(line));
    let seconds = begun.passed().as_secs_f64();
    let is_interrupted = status.as_ref().is_err_and(|error| error.is::<Interrupted>());
    let outcome = Outcome::of(&String::from_utf8_lossy(&text), &status, seconds);
    if outcome.has_failed() {
        say::output(&text);
    }
    if outcome.is_worth_a_line() {
        say::line(&format!("    {}: {outcome}", suite.name));
    }
    (outcome, is_interrupted)
}

/// Prints what all suites gave together.
fn summary(outcomes: &[(String, Outcome)], begun: Moment) -> anyhow::Result<()> {
    for (name, outcome) in outcomes {
        for note in &outcome.skipped {
            say::line(&format!("    {name}: skipped: {note}"));
        }
    }
    let sum = |count: fn(&Outcome) -> usize| outcomes.iter().map(|(_, outcome)| count(outcome)).sum::<usize>();
    let (passed, failed) = (sum(|outcome| outcome.passed), sum(|outcome| outcome.failed));
    say::line(&format!(
        "    {:.0} s for {} suites\n{passed} passed, {failed} failed",
        begun.passed().as_secs_f64(),
        outcomes.len()
    ));
    let names: Vec<&str> =
        outcomes.iter().filter(|(_, outcome)| outcome.has_failed()).map(|(name, _)| name.as_str()).collect();
    match names[..] {
        [] if passed == 0 => bail!("no test has this in its name: none ran"),
        [] => Ok(()),
        _ => bail!("failed: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(name: &str) -> Suite {
        Suite { name: name.to_owned(), program: "sh".into(), folder: ".".into() }
    }

    #[test]
    fn the_longest_suites_begin_first() {
        let suites =
            ["nandscape-sim", "nandscape-papers-claims ledger", "nandscape-cli kv", "nandscape-cli live"].map(suite);
        let order: Vec<String> = in_order(suites.into()).into_iter().map(|suite| suite.name).collect();
        let right = ["nandscape-cli live", "nandscape-papers-claims ledger", "nandscape-sim", "nandscape-cli kv"];
        assert_eq!(order, right);
    }

    #[test]
    fn suites_that_fail_are_named_and_a_filter_that_fits_nothing_is_an_error() {
        let outcome = |text: &str| Outcome::of(text, &Ok(std::process::ExitStatus::default()), 1.0);
        let good = outcome("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n");
        let bad = outcome("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n");
        let none = outcome("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out\n");
        let sum = |outcomes: &[(&str, &Outcome)]| {
            let outcomes: Vec<_> = outcomes.iter().map(|(name, it)| ((*name).to_owned(), (*it).clone())).collect();
            summary(&outcomes, Moment::now()).map_err(|error| error.to_string())
        };
        assert_eq!(sum(&[("a", &good), ("b", &bad)]), Err("failed: b".to_owned()));
        assert_eq!(sum(&[("a", &good), ("c", &none)]), Ok(()));
        assert_eq!(sum(&[("c", &none)]), Err("no test has this in its name: none ran".to_owned()));
    }
}
