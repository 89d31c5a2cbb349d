//! The initial state of a point's drive: planted, settled under a load, or the state of a file.
//!
//! Several points may share an initial state. A runner can make it once, and have the points begin from its file:
//! their results are the same bytes as without.

use std::path::Path;
use std::rc::Rc;

use nandscape_lab_run::{Begin, Precondition, Progress, RunError, Simulation, Start, StateFile};
use nandscape_lab_workload::{Workload, parse_table};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::point::Inputs;
use crate::stored::this_program;

/// The load that a drive is preconditioned under, where it is not the workload itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Load {
    /// The name of the workload.
    pub name: String,
    /// The text of its file.
    pub text: String,
}

impl Inputs {
    /// How the run of the point begins, whose simulation was made from these inputs.
    ///
    /// # Errors
    /// When its saved state or its load cannot be used.
    pub fn begin(&self, simulation: &Simulation) -> Result<Begin, String> {
        let chain = self.layers.as_ref().map(|layers| layers.chain.clone()).unwrap_or_default();
        Ok(Begin { start: self.start(&simulation.workload)?, chain, ..Begin::default() })
    }

    /// Where the run of the point begins.
    fn start(&self, workload: &Workload) -> Result<Start, String> {
        if let Some(state) = &self.from_state {
            let file = state.open().map_err(|error| format!("from_state: {error}"))?;
            return Ok(Start::File(Box::new(file)));
        }
        match (&self.precondition_workload, self.precondition) {
            (Some(Load { name, text }), Precondition::Load) => {
                let table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
                let load = parse_table(name, table).map_err(|error| error.to_string())?;
                Ok(Start::Load(Box::new(load)))
            }
            (_, Precondition::Load) => Ok(Start::Load(Box::new(workload.clone()))),
            _ => Ok(Start::Simulation),
        }
    }

    /// The digest of everything that the state at the start depends on, if it takes long to bring about.
    pub(crate) fn state_digest(&self) -> Option<String> {
        let is_slow = matches!(self.precondition, Precondition::Steady | Precondition::Load);
        // The drives of an array are brought there by each point itself.
        if self.from_state.is_some() || !is_slow || self.layers.is_some() {
            return None;
        }
        let own = match (self.precondition, &self.precondition_workload) {
            (Precondition::Load, Some(load)) => Some((&load.name, &load.text, None)),
            (Precondition::Load, None) => Some((&self.workload_name, &self.workload, self.trace.as_ref())),
            _ => None,
        };
        let all = (this_program(), &self.drive, self.precondition, own, self.seed);
        let text = serde_json::to_string(&all).expect("plain data");
        Some(format!("{:032x}", xxh3_128(text.as_bytes())))
    }

    /// Brings a drive into the initial state of the point, and saves that to a file, unless the file exists.
    pub(crate) fn make_state(&self, path: &Path, progress: &Rc<dyn Progress>) -> Result<(), String> {
        if StateFile::open(path).is_ok() {
            return Ok(());
        }
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| error.to_string())?;
        let simulation = self.simulation()?;
        let begin = Begin { save: Some(path.to_owned()), ..self.begin(&simulation)? };
        begin.make(&simulation, progress).map_err(|error| error.to_string())
    }
}

/// The start of a simulation's run: the state of a file where one was made, or else the state of the point's inputs.
pub(crate) fn begin(inputs: &Inputs, simulation: &Simulation, made: Option<&Path>) -> Result<Begin, String> {
    match made.map(StateFile::open) {
        Some(Ok(file)) => Ok(Begin { start: Start::File(Box::new(file)), ..Begin::default() }),
        // A file that is gone is no reason to fail.
        Some(Err(_)) | None => inputs.begin(simulation),
    }
}

/// Whether a run failed only because of the file that its state was to come from.
pub(crate) fn is_of_state(error: &RunError) -> bool {
    matches!(error, RunError::State(_))
}
