//! What lies below a store in simulated time, and what a run leaves besides its figures: the state in which its operations begin
//! (`--save-state`), the report of the drives (`--out`), a recording of its commands (`--record`).

use std::path::{Path, PathBuf};

use clap::Args;
use nandscape_device_ssd::Resolved;
use nandscape_lab_run::{Below, LiveReport, Ran, Recording, TowerError};

use crate::below_words::{BelowWords, ResolvedBelow};
use crate::failure::Failure;
use crate::files::Files;
use crate::output;
use crate::pages::{self, Page};
use crate::sim::FaultWord;

/// See the file.
#[derive(Args)]
pub(crate) struct StoreLayers {
    #[command(flatten)]
    below: BelowWords,
    /// Save the state in which the operations begin, with the filled store, to this file. They run from that state
    #[arg(long, value_name = "FILE", conflicts_with = "from_state")]
    save_state: Option<PathBuf>,
    /// Write a report of the operations into this folder, as of `nandscape sim`: commands, drives and layers over time
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Record the commands of the store, without their data, for `nandscape sim --replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl StoreLayers {
    /// Whether there are no layers.
    pub(crate) fn is_empty(&self) -> bool {
        self.below.is_empty()
    }

    /// Whether the run begins in a saved state.
    pub(crate) fn has_state(&self) -> bool {
        self.below.has_state()
    }

    /// The layers with their settings, and the changes that are not theirs.
    ///
    /// # Errors
    /// Which layer or setting is not valid, and what would be.
    pub(crate) fn resolve(&self, set: &[String]) -> Result<ResolvedBelow, Failure> {
        self.below.resolve(set)
    }

    /// As [`BelowWords::below`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn below(
        &self,
        resolved: ResolvedBelow,
        given: Option<&str>,
        load: impl Fn(&[FaultWord]) -> Result<Resolved, Failure>,
    ) -> Result<(Resolved, Below), Failure> {
        let (drive, mut below) = self.below.below(resolved, given, load)?;
        below.wanted.details = self.out.is_some();
        (below.save, below.record) = (self.save_state.clone(), recording(self.record.as_deref()));
        Ok((drive, below))
    }

    /// Rejects a form of a store that lies in the drive itself, and files of several runs.
    ///
    /// # Errors
    /// With layers, for such a form; with a file or a state, for several runs.
    pub(crate) fn check(&self, is_of_blocks: bool, runs: usize, valid: &str) -> Result<(), Failure> {
        if !self.is_empty() && !is_of_blocks {
            return Err(Failure::Input(anyhow::anyhow!(
                "--over: layers pass blocks, and the other forms need a drive's own units; --form {valid} is valid"
            )));
        }
        let own = [("--save-state", &self.save_state), ("--out", &self.out), ("--record", &self.record)];
        let own = own.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
        if let Some((option, path)) = self.below.outputs().chain(own).next().filter(|_| runs != 1) {
            return Err(Failure::Input(anyhow::anyhow!(
                "{option} {}: there are {runs} runs, and a file has one of them; --form {valid} is valid",
                path.display()
            )));
        }
        if self.has_state() && runs != 1 {
            return Err(Failure::Input(anyhow::anyhow!(
                "--from-state: there are {runs} runs, and a state has the store of one form; --form {valid} is valid"
            )));
        }
        self.files().check()?;
        self.below.check_trace()?;
        self.out.as_deref().map_or(Ok(()), pages::prepare)
    }

    fn files(&self) -> Files {
        let own = [("--save-state", &self.save_state), ("--record", &self.record)];
        let own = own.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
        own.fold(self.below.files(Files::default()), |files, (option, path)| files.writes(option, path))
    }

    /// Writes what a run has left besides its figures, which it returns.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn write<T>(&self, ran: Ran<T>) -> Result<T, Failure> {
        let Ran { outcome, report, trace } = ran;
        self.below.write_trace(trace.as_ref())?;
        report.iter().flat_map(LiveReport::notes).for_each(|note| output::note(note));
        if let (Some(folder), Some(mut report)) = (&self.out, report) {
            write_page(folder, &mut report).map_err(Failure::Run)?;
        }
        Ok(outcome)
    }
}

fn write_page(folder: &Path, report: &mut LiveReport) -> anyhow::Result<()> {
    pages::note_command(report);
    pages::write(folder, &[Page::of(report)])
}

/// The recording that an option asks for.
pub(crate) fn recording(path: Option<&Path>) -> Option<Recording> {
    let warn = |text: &str| output::note(&format!("WARNING: --record: {text}"));
    path.map(|path| Recording { path: path.to_owned(), warn })
}

/// Why there is nothing below a store, as the failure of a command.
pub(crate) fn failure(error: TowerError) -> Failure {
    match error {
        TowerError::Layers(problem) => Failure::Input(anyhow::anyhow!("--over: {problem}")),
        error if error.is_input() => Failure::input(error),
        error => Failure::run(error),
    }
}
