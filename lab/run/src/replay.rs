//! Replays a recorded run of live drives in virtual time, and reports on it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use nandscape_lab_workload::Outcome;
use nandscape_sim::Executor;
use nandscape_transport_reactor::recording::{Reader, RecordingError};
use nandscape_transport_reactor::replay::{Ending, replay};
use nandscape_transport_reactor::{Export, Port, Released};

use crate::host::Moment;
use crate::live::{BuildError, LiveDrives, SsdExport};
use crate::report::Report;
use crate::simulation::Progress;
use crate::snapshot::{About, Snapshot};
use crate::tap::direction;

/// A recording to replay.
pub struct Replay {
    /// The file.
    pub recording: PathBuf,
    /// Whether to record the activity of every die and channel.
    pub trace: bool,
    /// Whether to check the drives' tables afterwards.
    pub check: bool,
}

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Its header does not define its drives.
    #[error("{path}: the header cannot be read: {error}")]
    Header {
        /// The file.
        path: String,
        /// Why.
        error: serde_json::Error,
    },
    /// Its drives cannot be built.
    #[error("{path}: drive {error}")]
    Build {
        /// The file.
        path: String,
        /// Why.
        error: BuildError,
    },
    /// A drive's tables contradict each other.
    #[error("the drive is inconsistent after the run: {0}; this is a fault of the simulator, please report it")]
    Inconsistent(String),
}

/// The results of a replay.
pub struct Replayed {
    /// The figures of each drive.
    pub reports: Vec<Report>,
    /// The activity of every die and channel as Chrome-trace JSON, if it was recorded.
    pub trace: Option<String>,
    /// Whether the recording is truncated, for example because its writer was killed.
    pub broken_off: bool,
    /// The version of the program that recorded it.
    pub version: String,
}

impl Replay {
    /// Runs it.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn run(&self, progress: &dyn Progress) -> Result<Replayed, ReplayError> {
        let created = Moment::now();
        let path = || self.recording.display().to_string();
        let mut reader = Reader::open(&self.recording)?;
        let live: LiveDrives =
            serde_json::from_str(reader.header()).map_err(|error| ReplayError::Header { path: path(), error })?;
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = live.build(&sim, progress).map_err(|error| ReplayError::Build { path: path(), error })?;
        if self.trace {
            sim.trace().switch_on();
        }

        let begun: Vec<Snapshot> = drives.iter().map(|drive| Snapshot::of(drive.ssd())).collect();
        let mut outcomes = vec![Outcome::default(); drives.len()];
        let exports = drives.iter().map(|drive| drive.clone() as Rc<dyn Export>).collect();
        let mut port = Port::new(&sim, exports);
        let ending = replay(&mut executor, &mut port, &mut reader, |released| {
            record(&mut outcomes[usize::from(released.export)], &released);
        })?;
        if self.check {
            drives.iter().try_for_each(|drive| drive.ssd().check()).map_err(ReplayError::Inconsistent)?;
        }
        let report = |number: usize, drive: &SsdExport| {
            let name = format!("{} of {}", live.drives[number].name, file_name(&self.recording));
            let precondition = live.drives[number].precondition;
            let profile = drive.profile();
            let about = About { profile, name, workload: None, seed: live.seed, precondition };
            about.report(&outcomes[number], created, &begun[number], &Snapshot::of(drive.ssd()))
        };
        let reports = drives.iter().enumerate().map(|(number, drive)| report(number, drive)).collect();
        let trace = self.trace.then(|| sim.trace().to_chrome_json());
        let broken_off = ending == Ending::BrokenOff;
        Ok(Replayed { reports, trace, broken_off, version: live.version })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn record(outcome: &mut Outcome, released: &Released) {
    if let Some(direction) = direction(released.opcode) {
        outcome.record(direction, released.bytes, released.arrived, released.at, &released.completion);
    }
}
