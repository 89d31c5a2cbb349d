//! What lies below a store in simulated time: layers of a host over drives (`--over`), planned faults of the drives (`--fault`), and the
//! record of all events (`--chrome-trace`).

use std::path::PathBuf;

use clap::Args;
use nandscape_device_ssd::Resolved;
use nandscape_lab_run::Below;
use nandscape_lab_run::chain::{Named, drives_below};

use crate::failure::Failure;
use crate::over::{self, Over};
use crate::sim::{self, FaultWord};
use crate::sim_layers::with_faults;

/// The layers, and what else is below.
#[derive(Args)]
pub(crate) struct StoreLayers {
    /// Put a layer of a host below the store, over drives of the profile: [NAME=]KIND[:N][,KEY=VALUE]...; may be repeated, from the
    /// bottom up, as in `nandscape sim`. --set NAME.KEY=VALUE changes a layer, too
    #[arg(long, value_name = "LAYER")]
    over: Vec<Over>,
    /// Inject a fault into the flash, as in `nandscape sim`: a RULE for all drives, or for one of several: drive-1=RULE. May be repeated
    #[arg(long, value_name = "RULE")]
    fault: Vec<FaultWord>,
    /// Write the activity of every plane, channel and command of a run to this file, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    chrome_trace: Option<PathBuf>,
}

impl StoreLayers {
    /// Whether there are no layers.
    pub(crate) fn is_empty(&self) -> bool {
        self.over.is_empty()
    }

    /// The layers with their settings, and the changes that are not theirs.
    ///
    /// # Errors
    /// Which layer or setting is not valid, and what would be.
    pub(crate) fn resolve(&self, set: &[String]) -> Result<(Vec<Named>, Vec<String>), Failure> {
        let mut chain = over::chain(&self.over);
        let resolved = chain.take(set).and_then(|others| Ok((chain.resolve()?, others)));
        resolved.map_err(|problem| Failure::Input(anyhow::anyhow!("--over: {problem}")))
    }

    /// The first drive, and what is below a store. `resolve` makes a drive with its faults.
    ///
    /// # Errors
    /// A fault of no drive, or a drive that cannot be.
    pub(crate) fn below(
        &self,
        layers: Vec<Named>,
        resolve: impl Fn(&[FaultWord]) -> Result<Resolved, Failure>,
    ) -> Result<(Resolved, Below), Failure> {
        let trace = self.chrome_trace.is_some();
        let drives = with_faults(&self.fault, drives_below(&layers), |_, faults| resolve(faults))?;
        Ok((drives[0].clone(), Below { layers, drives, trace }))
    }

    /// Rejects a form of a store that lies in the drive itself, and a record of several runs.
    ///
    /// # Errors
    /// With layers, for such a form; with a file of events, for several runs.
    pub(crate) fn check(&self, is_of_blocks: bool, runs: usize, valid: &str) -> Result<(), Failure> {
        if !self.is_empty() && !is_of_blocks {
            return Err(Failure::Input(anyhow::anyhow!(
                "--over: layers pass blocks, and the other forms need a drive's own units; --form {valid} is valid"
            )));
        }
        match &self.chrome_trace {
            Some(file) if runs != 1 => Err(Failure::Input(anyhow::anyhow!(
                "--chrome-trace {}: there are {runs} runs, and a file has the events of one; --form {valid} is valid",
                file.display()
            ))),
            Some(file) => sim::can_write(file).map_err(|error| Failure::Input(error.context("--chrome-trace"))),
            None => Ok(()),
        }
    }

    /// Writes the events of a run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(&self, trace: Option<&String>) -> Result<(), Failure> {
        match self.chrome_trace.as_ref().zip(trace) {
            Some((file, trace)) => sim::write(file, trace).map_err(Failure::Run),
            None => Ok(()),
        }
    }
}
