//! What lies below an engine of a paper in simulated time: layers of a host over drives (`--over`), planned faults of the drives
//! (`--fault`), states (`--from-state`, `--save-state-after`), and the record of all events (`--chrome-trace`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::chain::{Chain, Named, drives_below};
use nandscape_lab_run::{Below, StateFile, Wanted};

use crate::failure::Failure;
use crate::files::Files;
use crate::over::OverWords;
use crate::sim::{self, FaultWord};
use crate::sim_layers::with_faults;

/// See the file.
#[derive(Args)]
pub(crate) struct BelowWords {
    #[command(flatten)]
    own: OverWords,
    /// Write the activity of every plane, channel and command of a run to this file, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    chrome_trace: Option<PathBuf>,
    /// Save the state of the drives and layers after the run to this file
    #[arg(long, value_name = "FILE")]
    save_state_after: Option<PathBuf>,
    /// Begin in the state of this file. Without --drive, the profile is that of the file, and so are the layers without --over
    #[arg(long, value_name = "FILE")]
    from_state: Option<PathBuf>,
}

/// What is below, with the layers resolved.
pub(crate) struct ResolvedBelow {
    /// The layers as text, with their settings.
    chain: Chain,
    /// The layers.
    pub(crate) layers: Vec<Named>,
    /// The state that the run begins in.
    pub(crate) file: Option<Arc<StateFile>>,
    /// Changes that are not of layers.
    pub(crate) set: Vec<String>,
}

impl BelowWords {
    /// The state that the run begins in.
    ///
    /// # Errors
    /// A file that is none.
    pub(crate) fn file(&self) -> Result<Option<StateFile>, Failure> {
        let opened = self.from_state.as_deref().map(StateFile::open).transpose();
        opened.map_err(|error| Failure::Input(anyhow::anyhow!("--from-state {error}")))
    }

    /// Whether the run begins in a saved state.
    pub(crate) fn has_state(&self) -> bool {
        self.from_state.is_some()
    }

    /// Whether there are no layers, given or of the state. What is wrong with the state is reported later.
    pub(crate) fn is_empty(&self) -> bool {
        let file = self.file().unwrap_or(None);
        self.own.is_empty() && file.as_ref().and_then(StateFile::chain).is_none()
    }

    /// The layers that are given, as text.
    pub(crate) fn words(&self) -> String {
        self.own.chain().to_string()
    }

    /// The layers with their settings, and the changes that are not theirs.
    ///
    /// # Errors
    /// Which layer or setting is not valid, and what would be.
    pub(crate) fn resolve(&self, set: &[String]) -> Result<ResolvedBelow, Failure> {
        let file = self.file()?;
        let of_file = file.as_ref().and_then(StateFile::chain).filter(|_| self.own.is_empty());
        let mut chain = of_file.cloned().unwrap_or_else(|| self.own.chain());
        let resolved = chain.take(set).and_then(|set| Ok((chain.resolve()?, set)));
        let (layers, set) = resolved.map_err(|problem| Failure::Input(anyhow::anyhow!("--over: {problem}")))?;
        Ok(ResolvedBelow { chain, layers, file: file.map(Arc::new), set })
    }

    /// The first drive, and what is below. Drives are those of the profile that is given, which `load` resolves with its faults, or
    /// else those of the state.
    ///
    /// # Errors
    /// A fault of no drive, or a drive that cannot be.
    pub(crate) fn below(
        &self,
        resolved: ResolvedBelow,
        given: Option<&str>,
        load: impl Fn(&[FaultWord]) -> Result<Resolved, Failure>,
    ) -> Result<(Resolved, Below), Failure> {
        let ResolvedBelow { chain, layers, file, set } = resolved;
        let own = match (&file, given) {
            (Some(file), None) => file.profiles().map_err(Failure::input)?,
            _ => Vec::new(),
        };
        let of = |number: usize, faults: &[FaultWord]| match (&file, own.get(number).or(own.first())) {
            (Some(file), Some(own)) => sim::resolve_saved(file, Profile::clone(own), &set, faults),
            _ => load(faults),
        };
        let drives = with_faults(self.own.faults(), drives_below(&layers), of)?;
        if let Some(file) = &file {
            let fits = file.check_fits_layers(&layers, &drives.iter().collect::<Vec<_>>());
            fits.map_err(|error| Failure::Input(anyhow::anyhow!("--from-state {error}")))?;
        }
        let wanted = Wanted { trace: self.chrome_trace.is_some(), details: false };
        let save_after = self.save_state_after.clone();
        let first = drives[0].clone();
        Ok((first, Below { layers, chain, drives, wanted, from: file, save_after, ..Below::default() }))
    }

    /// The files of a run, by option: those of its states first.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let of = [("--save-state-after", &self.save_state_after), ("--chrome-trace", &self.chrome_trace)];
        of.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }

    /// The files that are read and written, in addition to others.
    pub(crate) fn files(&self, files: Files) -> Files {
        let files = self.from_state.iter().fold(files, |files, path| files.reads("--from-state", path));
        self.outputs().fold(files, |files, (option, path)| files.writes(option, path))
    }

    /// Checks before the run that the record of all events can be written.
    ///
    /// # Errors
    /// When it cannot.
    pub(crate) fn check_trace(&self) -> Result<(), Failure> {
        let can_write = self.chrome_trace.as_deref().map(sim::can_write).transpose();
        can_write.map(drop).map_err(|error| Failure::Input(error.context("--chrome-trace")))
    }

    /// Writes the events of a run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write_trace(&self, trace: Option<&String>) -> Result<(), Failure> {
        match self.chrome_trace.as_ref().zip(trace) {
            Some((file, trace)) => sim::write(file, trace).map_err(Failure::Run),
            None => Ok(()),
        }
    }
}
