//! The options of `nandscape sim` for the initial state of a drive, and for saving its state; and the initial states of live
//! drives, in words.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use nandscape_device_ssd::Resolved;
use nandscape_lab_run::chain::Named;
use nandscape_lab_run::{Begin, Precondition, Start, StateFile};
use nandscape_lab_workload::{Workload, load};

use crate::failure::Failure;
use crate::trace;

/// See the file.
#[derive(Args)]
pub(crate) struct StateWords {
    /// State of the drive at the start: none (new), every logical block written once, the steady state of uniform random overwrites,
    /// or steady under a load, by default the workload itself. Only `load` takes simulated time
    /// [default: full; with --replay as recorded]
    #[arg(long, value_enum)]
    precondition: Option<StateArg>,
    /// With --precondition load: the load, a workload by name or file [default: the workload of the run]
    #[arg(long, value_name = "W", conflicts_with_all = ["precondition_trace", "from_state"])]
    precondition_workload: Option<String>,
    /// With --precondition load: a trace as the load, repeated at its own pace
    #[arg(long, value_name = "FILE", conflicts_with = "from_state")]
    precondition_trace: Option<PathBuf>,
    /// Save the state that the drive begins in to this file, before the run; with layers, that of all drives and of what the layers
    /// hold
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_state", "find_rate", "fairness"])]
    save_state: Option<PathBuf>,
    /// Save the state that the drive is in after the run to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["find_rate", "fairness"])]
    save_state_after: Option<PathBuf>,
    /// Begin in the state of this file, which --save-state or --save-state-after has written. Policies, times, buffer and faults may differ from those that
    /// it was made with. Without --drive, the profile is that of the file, and so are the layers without --over
    #[arg(long, value_name = "FILE", conflicts_with = "precondition")]
    from_state: Option<PathBuf>,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum StateArg {
    None,
    Full,
    Steady,
    Load,
}

impl From<StateArg> for Precondition {
    fn from(word: StateArg) -> Precondition {
        match word {
            StateArg::None => Precondition::None,
            StateArg::Full => Precondition::Full,
            StateArg::Steady => Precondition::Steady,
            StateArg::Load => Precondition::Load,
        }
    }
}

/// The initial state of a live drive, as a word: a state that takes no drive time.
///
/// # Errors
/// For other words: the valid ones, and how to start in the state after a load.
pub(crate) fn live_state(word: &str) -> Result<Precondition, String> {
    let known = Precondition::ALL.into_iter().find(|(name, _)| *name == word);
    known.map(|(_, state)| state).ok_or_else(|| match word {
        "load" => "a load takes drive time, and a live drive begins at once. Save the state first, with \
                   `nandscape sim --drive P --rw RW --precondition load --save-state FILE`, then serve it with \
                   `nandscape serve --drive P --from-state FILE`; none, full and steady are valid here"
            .to_owned(),
        _ => "none, full and steady are valid".to_owned(),
    })
}

impl StateWords {
    /// The files that it reads, by option. Names of built-in workloads are none.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (&'static str, Option<&Path>)> {
        let workload = self.precondition_workload.as_deref().map(Path::new).filter(|path| path.is_file());
        let trace = self.precondition_trace.as_deref();
        [
            ("--from-state", self.from_state.as_deref()),
            ("--precondition-workload", workload),
            ("--precondition-trace", trace),
        ]
        .into_iter()
    }

    /// The files that states are saved to, by option.
    pub(crate) fn saves(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let after = self.save_state_after.as_deref();
        let both = [("--save-state", self.save_state.as_deref()), ("--save-state-after", after)];
        both.into_iter().filter_map(|(option, path)| Some((option, path?)))
    }

    /// The name of the file that the state is taken from, for the report.
    pub(crate) fn file_name(&self) -> Option<String> {
        self.from_state.as_deref().map(|path| path.display().to_string())
    }

    /// The state that a drive is brought into without a load.
    pub(crate) fn precondition(&self) -> Precondition {
        self.precondition.map_or(Precondition::Full, Precondition::from)
    }

    /// The state that was given for recorded drives.
    pub(crate) fn for_replay(&self) -> Result<Option<Precondition>, Failure> {
        match self.precondition {
            Some(StateArg::Load) => Err(Failure::Input(anyhow!(
                "--precondition load: a recording has no load of its own; none, full and steady are valid with --replay"
            ))),
            given => Ok(given.map(Precondition::from)),
        }
    }

    /// The file that the state is taken from.
    pub(crate) fn open(&self) -> Result<Option<StateFile>, Failure> {
        self.from_state.as_deref().map(StateFile::open).transpose().map_err(of_file("--from-state"))
    }

    /// How a run of `workload` begins on drives of these profiles, with layers or without.
    pub(crate) fn begin(
        &self,
        file: Option<StateFile>,
        workload: &Workload,
        (layers, profiles): (&[Named], &[&Resolved]),
    ) -> Result<Begin, Failure> {
        let start = match (file, self.load()?) {
            (Some(file), _) => {
                file.check_fits_layers(layers, profiles).map_err(of_file("--from-state"))?;
                Start::File(Box::new(file))
            }
            (None, Some(load)) => Start::Load(Box::new(load)),
            (None, None) if self.precondition == Some(StateArg::Load) => Start::Load(Box::new(workload.clone())),
            (None, None) => Start::Simulation,
        };
        let (save, save_after) = (self.save_state.clone(), self.save_state_after.clone());
        Ok(Begin { start, save, save_after, ..Begin::default() })
    }

    /// The load that is given by itself.
    fn load(&self) -> Result<Option<Workload>, Failure> {
        let given = match (&self.precondition_workload, &self.precondition_trace) {
            (None, None) => return Ok(None),
            (Some(_), _) => "--precondition-workload",
            (None, Some(_)) => "--precondition-trace",
        };
        if self.precondition != Some(StateArg::Load) {
            return Err(Failure::Input(anyhow!("{given} is for --precondition load: give that too, or leave it out")));
        }
        match (&self.precondition_workload, &self.precondition_trace) {
            (Some(name), _) => load(name).map(Some).map_err(Failure::input),
            (None, Some(path)) => trace::as_load(path).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// What is wrong with the file of an option.
fn of_file<E: std::fmt::Display>(option: &'static str) -> impl Fn(E) -> Failure {
    move |error| Failure::Input(anyhow!("{option} {error}"))
}
