//! Replays a recorded run of live drives in simulated time, exactly or on changed drives, and reports on it.
//!
//! | file | what |
//! |---|---|
//! | `group` | drives that were served as one |
//! | `what_if` | the changes of a what-if |
//! | `open_loop`, `fit` | the requests of a recording at their times on changed drives, and fitted to them |
//! | `report` | the part of a report about its recording |

mod fit;
mod group;
mod open_loop;
mod report;
mod what_if;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nandscape_device_ssd::ProfileError;
use nandscape_drive::{Phase, Progress};
use nandscape_lab_workload::Outcome;
use nandscape_sim::trace::{Listener, chrome_json};
use nandscape_sim::{Executor, Sim, Time};
use nandscape_transport_reactor::recording::{Reader, RecordingError, Requests, RunTiming};
use nandscape_transport_reactor::replay::{Ending, replay_while};
use nandscape_transport_reactor::{Export, Port, Released};

pub use group::ReplayedGroup;
pub use report::{Lag, ReplayReport};
pub use what_if::WhatIf;

use open_loop::Target;

use crate::host::Moment;
use crate::latency::Latencies;
use crate::live::{BuildError, LiveDrives};
use crate::live_drive::LiveDrive;
use crate::percentile::Percentile;
use crate::record::{Details, Recorder};
use crate::report::Report;
use crate::rig::FanOut;
use crate::simulation::Observer;
use crate::watched::Watched;

/// A recording to replay.
#[derive(Clone, Default, Debug)]
pub struct Replay {
    /// The file.
    pub recording: PathBuf,
    /// Whether to record the activity of every die and channel.
    pub trace: bool,
    /// Whether to check the drives' tables afterwards.
    pub check: bool,
    /// Whether to record distributions and timelines.
    pub details: bool,
    /// What is other than in the recorded run; `None` replays it exactly.
    pub what_if: Option<WhatIf>,
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
    /// The changes do not fit a drive.
    #[error("drive {drive}: {error}")]
    Change {
        /// The drive.
        drive: String,
        /// Why.
        error: ProfileError,
    },
    /// The changes name a drive that the recording does not have.
    #[error("{path} has no drive {name:?}; there are {names}")]
    NoDrive {
        /// The file.
        path: String,
        /// The name.
        name: String,
        /// The drives it has.
        names: String,
    },
    /// The requests cannot be played on a changed drive.
    #[error("{path}: {problem}")]
    Play {
        /// The file.
        path: String,
        /// Why.
        problem: String,
    },
    /// A drive's tables contradict each other.
    #[error("the drive is inconsistent after the run: {0}; this is a fault of the simulator, please report it")]
    Inconsistent(String),
}

/// The results of a replay.
pub struct Replayed {
    /// Each drive; none of drives that were served as one.
    pub drives: Vec<ReplayedDrive>,
    /// Drives that were served as one, under layers that take several.
    pub group: Option<ReplayedGroup>,
    /// The activity of every die and channel as Chrome-trace JSON, if it was recorded.
    pub trace: Option<String>,
    /// Whether the recording is truncated, for example because its writer was killed.
    pub broken_off: bool,
    /// The version of the program that recorded it.
    pub version: String,
}

/// One drive of a replay.
pub struct ReplayedDrive {
    /// Its name in the recording.
    pub name: String,
    /// Its figures.
    pub report: Report,
    /// The recordings of the drives, if they were requested.
    pub details: Option<Details>,
    /// Its profile with all keys.
    pub profile_toml: String,
    latencies: Latencies,
}

impl ReplayedDrive {
    /// Adds percentiles to the report's latencies.
    pub fn choose_percentiles(&mut self, chosen: &[Percentile]) {
        self.latencies.choose(&mut self.report.latency_us, chosen);
    }
}

/// What a run of either kind leaves.
#[derive(Default)]
struct Ended {
    broken_off: bool,
    /// Whether the user ended it.
    interrupted: bool,
    timing: Option<RunTiming>,
    /// By drive.
    notes: Vec<Vec<String>>,
}

impl Replay {
    /// Runs it.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn run(&self, progress: &dyn Progress) -> Result<Replayed, ReplayError> {
        self.run_observed(progress, None)
    }

    /// Runs it under the eyes of an observer.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn run_observed(
        &self,
        progress: &dyn Progress,
        observer: Option<Rc<dyn Observer>>,
    ) -> Result<Replayed, ReplayError> {
        let created = Moment::now();
        let path = || self.recording.display().to_string();
        let reader = Reader::open(&self.recording)?;
        let live: LiveDrives =
            serde_json::from_str(reader.header()).map_err(|error| ReplayError::Header { path: path(), error })?;
        let live = self.changed(live)?;
        // Other drives have no bursts of the recorded run, and one clock for its requests.
        let mut timelines = if self.what_if.is_none() { live.timelines() } else { Executor::apart(1) };
        let sims: Vec<Sim> = timelines.iter().map(Executor::sim).collect();
        let drives =
            live.build(&mut timelines, progress).map_err(|error| ReplayError::Build { path: path(), error })?;
        if let [group] = &drives[..]
            && group.only().is_none()
        {
            return self.run_group((&live, created), (&mut timelines[0], group), reader, progress, observer);
        }
        let watch = |drive: &Rc<LiveDrive>| {
            let (model, _) = drive.only()?;
            Some(Watched::new(model, self.details, observer.as_ref()).under_ftl(drive.lone_ftl()))
        };
        let watched: Vec<Watched> = drives.iter().filter_map(watch).collect();
        if self.details {
            let recorders: Vec<Rc<Recorder>> = watched.iter().filter_map(|drive| drive.recorder.clone()).collect();
            let begun = sims.iter().map(Sim::now).max().unwrap_or(Time::ZERO);
            recorders.iter().for_each(|recorder| recorder.begin(begun));
            let listeners = recorders.into_iter().map(|of| of as Rc<dyn Listener>).collect();
            let listener = Rc::new(FanOut(listeners));
            sims.iter().for_each(|sim| sim.trace().listen(listener.clone()));
        }
        if self.trace {
            sims.iter().for_each(|sim| sim.trace().switch_on());
        }
        let on_release = |released: Released, offset| watched[usize::from(released.export)].released(&released, offset);
        let ended = match self.what_if {
            None => {
                let exports = drives.iter().map(|drive| drive.clone() as Rc<dyn Export>).collect();
                exactly(&mut timelines, exports, reader, on_release, self.goes_on(progress))?
            }
            Some(_) => {
                let goes_on = self.goes_on(progress);
                let target = |(number, drive): (usize, &Rc<LiveDrive>)| {
                    let (name, export) = (drive.name().to_owned(), drive.clone() as Rc<dyn Export>);
                    Target { name, export, rules: live.rules_of(number) }
                };
                let targets: Vec<Target> = drives.iter().enumerate().map(target).collect();
                let outcomes: Vec<&RefCell<Outcome>> = watched.iter().map(|drive| &drive.outcome).collect();
                self.differently(&mut timelines[0], &targets, reader, &outcomes, on_release, goes_on)?
            }
        };
        watched.iter().for_each(|drive| drive.outcome.borrow_mut().interrupted = ended.interrupted);
        if self.check {
            drives.iter().try_for_each(|drive| drive.check()).map_err(ReplayError::Inconsistent)?;
        }
        let finished = drives.iter().zip(watched).enumerate().filter_map(|(number, (drive, watched))| {
            let notes = ended.notes.get(number).cloned().unwrap_or_default();
            self.finished(drive, watched, (&live, created), (&ended, notes))
        });
        let trace = self.trace.then(|| chrome_json(sims.iter().map(Sim::trace)));
        Ok(Replayed {
            drives: finished.collect(),
            group: None,
            trace,
            broken_off: ended.broken_off,
            version: live.version.clone(),
        })
    }

    /// Tells how far the recording was read, and asks whether the user wants the replay to end.
    fn goes_on(&self, progress: &dyn Progress) -> impl FnMut(u64) -> bool {
        let bytes = std::fs::metadata(&self.recording).map_or(0, |file| file.len()).max(1);
        move |position| {
            progress.at(Phase::Running, (position as f64 / bytes as f64).min(1.0));
            !progress.is_stopped()
        }
    }

    /// The drives, with the changes if there are any.
    fn changed(&self, live: LiveDrives) -> Result<LiveDrives, ReplayError> {
        let Some(what_if) = &self.what_if else { return Ok(live) };
        if let Some((Some(name), _)) = &what_if.drive
            && !live.drives.iter().any(|spec| spec.name == *name)
        {
            let names: Vec<&str> = live.drives.iter().map(|spec| &*spec.name).collect();
            let (path, names) = (self.recording.display().to_string(), names.join(", "));
            return Err(ReplayError::NoDrive { path, name: name.clone(), names });
        }
        let mut layers = live.layers.clone();
        let set = layers.take(&what_if.set).map_err(|problem| self.unplayable(problem))?;
        let of_drives = WhatIf { set, ..what_if.clone() };
        let changed = of_drives.apply_to(&live);
        let (drives, assign) = changed.map_err(|(drive, error)| ReplayError::Change { drive, error })?;
        Ok(LiveDrives { drives, layers, assign, ..live })
    }

    fn unplayable(&self, problem: String) -> ReplayError {
        ReplayError::Play { path: self.recording.display().to_string(), problem }
    }

    fn differently(
        &self,
        executor: &mut Executor,
        targets: &[Target],
        reader: Reader,
        outcomes: &[&RefCell<Outcome>],
        on_release: impl FnMut(Released, u64),
        goes_on: impl FnMut(u64) -> bool,
    ) -> Result<Ended, ReplayError> {
        let failed = |failure| match failure {
            open_loop::Failure::Recording(error) => ReplayError::Recording(error),
            open_loop::Failure::Drive(problem) => {
                ReplayError::Play { path: self.recording.display().to_string(), problem }
            }
        };
        let mut requests = Requests::new(reader);
        let player = open_loop::Player::new(executor, targets).map_err(failed)?;
        let (is_whole, played) = player.play(&mut requests, on_release, goes_on).map_err(failed)?;
        let mut notes = Vec::new();
        for (played, outcome) in played.into_iter().zip(outcomes) {
            outcome.borrow_mut().backlog = played.backlog;
            notes.push(played.notes);
        }
        let left_out = requests.left_out();
        for (count, what) in [(left_out.admin, "admin commands"), (left_out.refused, "refused commands")] {
            let note = format!("{count} {what} of the recording are left out");
            notes.iter_mut().filter(|_| count > 0).for_each(|notes| notes.push(note.clone()));
        }
        Ok(Ended { broken_off: requests.is_broken_off(), interrupted: !is_whole, timing: requests.timing(), notes })
    }

    /// What was replayed of the drive that clients called `name`, and how.
    fn report_of(&self, live: &LiveDrives, name: &str, ended: &Ended) -> ReplayReport {
        let replay = ReplayReport {
            recording: file_name(&self.recording),
            drive: name.to_owned(),
            kind: if self.what_if.is_some() { "what-if" } else { "exact" },
            changes: self.what_if.iter().flat_map(WhatIf::in_words).collect(),
            recorded_by: live.version.clone(),
            whole: !ended.broken_off,
            release_lag_us: None,
            poll_gap_us: None,
        };
        replay.with_timing(ended.timing)
    }

    /// The results of one drive.
    fn finished(
        &self,
        live_drive: &LiveDrive,
        watched: Watched,
        (live, created): (&LiveDrives, Moment),
        (ended, notes): (&Ended, Vec<String>),
    ) -> Option<ReplayedDrive> {
        let (recording, (drive, spec)) = (file_name(&self.recording), live_drive.only()?);
        let name = match &self.what_if {
            None => format!("{} of {recording}", spec.name),
            Some(_) => format!("{} of {recording}, what if", spec.name),
        };
        let (mut report, details, outcome) = watched.finish((drive, spec, live.seed), (name, created));
        let replay = self.report_of(live, &spec.name, ended);
        report.notes.extend(replay.notes().into_iter().chain(notes));
        report.inputs.set = self.what_if.iter().flat_map(|what_if| what_if.set.clone()).collect();
        report.replay = Some(replay);
        let sections = live_drive.sections();
        if !sections.is_empty() {
            report.under(sections, &outcome);
        }
        let profile_toml = drive.profile().to_toml();
        let latencies = Latencies::of_all(&outcome);
        Some(ReplayedDrive { name: spec.name.clone(), report, details, profile_toml, latencies })
    }
}

/// The recorded run again.
fn exactly(
    timelines: &mut [Executor],
    exports: Vec<Rc<dyn Export>>,
    mut reader: Reader,
    on_release: impl FnMut(Released, u64),
    mut goes_on: impl FnMut(u64) -> bool,
) -> Result<Ended, ReplayError> {
    let count = exports.len();
    let sims: Vec<Sim> = timelines.iter().map(Executor::sim).collect();
    let mut port = Port::apart(&sims, exports);
    let position = |reader: &Reader| goes_on(reader.position());
    let replayed = replay_while(timelines, &mut port, &mut reader, on_release, position)?;
    let mut notes = Vec::new();
    if replayed.without_data > 0 {
        notes.push("the data of writes is not recorded: the replay stores zeros, at the same times".to_owned());
    }
    if replayed.compares > 0 {
        let compares = replayed.compares;
        notes.push(format!("{compares} compares are made with data that is not recorded, and may end otherwise"));
    }
    let notes = vec![notes; count];
    let ending = replayed.ending;
    let (broken_off, interrupted) = (ending == Ending::BrokenOff, ending == Ending::Stopped);
    Ok(Ended { broken_off, interrupted, timing: replayed.timing, notes })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
