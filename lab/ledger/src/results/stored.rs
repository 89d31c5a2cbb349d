//! One file of results: figures and their inputs. Two runs with the same inputs in simulated time write the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use nandscape_lab_run::Program;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::experiment::{Clock, Effort, Experiment, Point};
use crate::figures::Figures;
use crate::machine::Machine;

/// The version of this form.
const SCHEMA: u32 = 1;
/// The most bytes of a file of results.
const MOST_BYTES: u64 = 1 << 30;

/// The program that this is a part of.
pub fn this_program() -> Program {
    Program::of(env!("NANDSCAPE_SOURCES"))
}

/// The seed of a run of all points; the first run has `seed`. In real time all runs have the same seed.
pub(crate) fn seed_of(experiment: &Experiment, seed: u64, run: u32) -> u64 {
    match experiment.clock {
        Clock::Virtual => seed.wrapping_add(u64::from(run)),
        Clock::Wall => seed,
    }
}

/// Everything that a point's figures depend on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Inputs {
    /// The claim.
    pub claim: String,
    /// The point.
    pub point: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
    /// The user's seed.
    pub seed: u64,
    /// The effort.
    pub effort: EffortOf,
    /// Which program measured.
    pub program: Program,
    /// In real time, the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// The part of an effort that counts for one clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum EffortOf {
    /// In simulated time.
    Virtual {
        /// Percent of the requests of a full run.
        requests_percent: u32,
    },
    /// In real time.
    Wall {
        /// Rounds.
        rounds: u32,
        /// Time of each in a round.
        slice_ms: u64,
    },
}

impl EffortOf {
    /// Of an effort.
    pub fn new(effort: Effort, clock: Clock) -> EffortOf {
        match clock {
            Clock::Virtual => EffortOf::Virtual { requests_percent: effort.requests_percent },
            Clock::Wall => EffortOf::Wall { rounds: effort.rounds, slice_ms: effort.slice.ns() / 1_000_000 },
        }
    }

    /// Whether it suffices for a verdict.
    pub fn is_full(self) -> bool {
        match self {
            EffortOf::Virtual { requests_percent } => requests_percent >= Effort::FULL.requests_percent,
            EffortOf::Wall { rounds, slice_ms } => {
                u64::from(rounds) * slice_ms >= u64::from(Effort::FULL.rounds) * Effort::FULL.slice.ns() / 1_000_000
            }
        }
    }
}

impl std::fmt::Display for EffortOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EffortOf::Virtual { requests_percent } => write!(f, "{requests_percent}% of the requests"),
            EffortOf::Wall { rounds, slice_ms } => write!(f, "{rounds} rounds of {slice_ms} ms each"),
        }
    }
}

impl Inputs {
    /// Of a point, measured now and here.
    pub fn new(experiment: &Experiment, point: &Point, seed: u64, effort: Effort) -> Inputs {
        let parameters = point.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Inputs {
            claim: experiment.claim.id.to_owned(),
            point: point.name.clone(),
            parameters: parameters.collect(),
            seed,
            effort: EffortOf::new(effort, experiment.clock),
            program: this_program(),
            machine: (experiment.clock == Clock::Wall).then(Machine::here),
        }
    }

    /// The first difference of older inputs.
    fn differ(&self, older: &Inputs) -> Option<String> {
        let Inputs { claim, point, parameters, seed, effort, program, machine } = older;
        if (claim, point) != (&self.claim, &self.point) {
            return Some(format!("is of {claim}, {point}"));
        }
        if *parameters != self.parameters {
            return Some("was measured with other parameters".to_owned());
        }
        if *seed != self.seed {
            return Some(format!("was measured with seed {seed}"));
        }
        if *effort != self.effort {
            return Some(format!("was measured with {effort}"));
        }
        if *program != self.program {
            return Some(format!(
                "was measured by another program ({}, experiments {})",
                program.version, program.sources
            ));
        }
        match machine {
            other if *other == self.machine => None,
            Some(other) => Some(format!("was measured on another machine ({other})")),
            None => Some("was measured on a machine that is not known".to_owned()),
        }
    }
}

/// The content of a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stored {
    /// The version of this form.
    schema: u32,
    /// Its inputs.
    pub inputs: Inputs,
    /// In real time: how many threads wanted to run in the minute before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_before: Option<f64>,
    /// What was measured.
    pub figures: Figures,
    /// The digest of all that.
    digest: String,
}

/// The result of looking for a point.
#[derive(Debug)]
pub enum Found {
    /// It exists, and need not be measured again.
    Fits(Stored),
    /// There is nothing.
    Nothing,
    /// A valid file with other inputs; the difference.
    Other(Stored, String),
    /// A foreign or incomplete file; the problem.
    Broken(String),
}

impl Stored {
    /// Of a new measurement.
    pub fn new(inputs: Inputs, load_before: Option<f64>, figures: Figures) -> Stored {
        let mut stored = Stored { schema: SCHEMA, inputs, load_before, figures, digest: String::new() };
        stored.digest = stored.digest();
        stored
    }

    fn digest(&self) -> String {
        let plain = Stored { digest: String::new(), ..self.clone() };
        format!("{:016x}", xxh3_64(plain.to_json().as_bytes()))
    }

    /// The bytes of the file.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain data");
        text.push('\n');
        text
    }

    /// What a file holds, for a point with these inputs.
    pub fn find(file: &Path, inputs: &Inputs) -> Found {
        let text = match nandscape_files::input::bytes(file, MOST_BYTES, "result") {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Broken(format!("cannot be read ({error})")),
        };
        let stored: Stored = match serde_json::from_slice(&text) {
            Ok(stored) => stored,
            Err(error) if error.is_eof() => return Found::Broken("breaks off".to_owned()),
            Err(error) => return Found::Broken(format!("is not a file of results ({error})")),
        };
        if stored.schema != SCHEMA {
            return Found::Broken(format!("has form {} where this program writes {SCHEMA}", stored.schema));
        }
        if stored.digest != stored.digest() {
            return Found::Broken("was changed after it was written".to_owned());
        }
        match inputs.differ(&stored.inputs) {
            None => Found::Fits(stored),
            Some(difference) => Found::Other(stored, difference),
        }
    }
}
