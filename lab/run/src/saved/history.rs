//! How a state came about: in words for people, and as figures.

use nandscape_drive::Precondition;
use nandscape_lab_workload::Workload;
use nandscape_sim::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::record::workload_lines;
use crate::state;

/// How a state came about.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct History {
    /// The kind of state.
    pub precondition: Precondition,
    /// It in words.
    pub words: String,
    /// The seed of the run that has made it.
    pub seed: u64,
    /// The program that has made it.
    pub program: String,
    /// The load that produced the state; null without one.
    pub settled: Option<Settled>,
    /// Runs since then, each of which saved the state again.
    #[serde(default)]
    pub runs: u32,
}

/// Preconditioning under a load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Settled {
    /// The workload.
    pub workload: String,
    /// Its jobs, a line each.
    pub workload_lines: Vec<String>,
    /// Bytes that the load has written in each window.
    pub window_bytes: u64,
    /// Write amplification in each window, the first one first.
    pub waf: Vec<f64>,
    /// Whether it stood still at the end.
    pub stood_still: bool,
    /// Drive time.
    pub virtual_s: f64,
}

impl History {
    /// Of a state that was planted.
    pub(crate) fn planted(precondition: Precondition, unit_bytes: u64, seed: u64) -> History {
        let words = state::in_words(precondition, unit_bytes);
        History { precondition, words, seed, program: program(), settled: None, runs: 0 }
    }

    /// Of the state after a run that began in this one.
    pub(crate) fn after(self, seed: u64, run: &str) -> History {
        let from = if self.seed == seed { String::new() } else { format!(" (seed {})", self.seed) };
        let words = format!("{}{from}, then {run}", self.words);
        History { words, seed, program: program(), runs: self.runs + 1, ..self }
    }

    /// Of a state that a load has produced.
    pub(crate) fn under_load(seed: u64, settled: Settled) -> History {
        let Settled { workload, window_bytes, waf, stood_still, .. } = &settled;
        let last = waf.last().copied().unwrap_or(1.0);
        let windows = format!("{} windows of {} written", waf.len(), Bytes(*window_bytes));
        let words = match stood_still {
            true => format!(
                "written full, then {workload} until write amplification stood still at {last:.3}, for {windows}"
            ),
            false => {
                format!(
                    "written full, then {workload} for {windows}; write amplification, {last:.3} at last, did not stand still"
                )
            }
        };
        History { precondition: Precondition::Load, words, seed, program: program(), settled: Some(settled), runs: 0 }
    }
}

impl Settled {
    pub(crate) fn new(workload: &Workload, window_bytes: u64) -> Settled {
        Settled {
            workload: workload.name.clone(),
            workload_lines: workload_lines(workload),
            window_bytes,
            waf: Vec::new(),
            stood_still: false,
            virtual_s: 0.0,
        }
    }
}

fn program() -> String {
    format!("nandscape {}", env!("CARGO_PKG_VERSION"))
}
