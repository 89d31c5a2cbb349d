//! The replay of drives that were served as one, under layers that take several: with the report of a simulation of them.

use std::rc::Rc;

use nandscape_device_ssd::Resolved;
use nandscape_drive::Progress;
use nandscape_sim::Executor;
use nandscape_transport_reactor::recording::Reader;
use nandscape_transport_reactor::{Export, Released};

use super::open_loop::Target;
use super::{Replay, ReplayError, ReplayReport, Replayed, exactly, file_name};
use crate::chain::LayerSettings;
use crate::finished::ChainFinished;
use crate::host::Moment;
use crate::latency::Latencies;
use crate::live::{BuildError, LiveDrives};
use crate::live_drive::LiveDrive;
use crate::percentile::Percentile;
use crate::simulation::Observer;
use crate::watched_group::{Described, GroupFinished, WatchedGroup};

/// Drives that were served as one, replayed.
pub struct ReplayedGroup {
    /// The figures, as of a simulation of the same drives and layers.
    pub finished: ChainFinished,
    /// The profile of the first drive.
    pub profile: Resolved,
    /// The settings of the layers.
    pub settings: Vec<LayerSettings>,
    /// What was replayed, and how.
    pub replay: ReplayReport,
    latencies: Latencies,
}

impl ReplayedGroup {
    /// Adds percentiles to the latencies that the clients saw.
    pub fn choose_percentiles(&mut self, chosen: &[Percentile]) {
        self.latencies.choose(&mut self.finished.host.latency_us, chosen);
    }
}

impl Replay {
    /// Replays drives under layers that take several of them.
    pub(super) fn run_group(
        &self,
        (live, created): (&LiveDrives, Moment),
        (executor, export): (&mut Executor, &Rc<LiveDrive>),
        reader: Reader,
        progress: &dyn Progress,
        observer: Option<Rc<dyn Observer>>,
    ) -> Result<Replayed, ReplayError> {
        let path = || self.recording.display().to_string();
        let failed = |problem: String| ReplayError::Build { path: path(), error: BuildError::Layers(problem) };
        let sim = executor.sim();
        let watched = Rc::new(WatchedGroup::new(export, self.details, observer));
        if self.details {
            watched.begin(sim.now());
            sim.trace().listen(watched.clone());
        }
        if self.trace {
            sim.trace().switch_on();
        }
        let on_release = |released: Released, offset| watched.released(&released, offset);
        let exports = vec![export.clone() as Rc<dyn Export>];
        let goes_on = self.goes_on(progress);
        let ended = match self.what_if {
            None => exactly(std::slice::from_mut(executor), exports, reader, on_release, goes_on)?,
            Some(_) => {
                let (name, export) = (export.name().to_owned(), export.clone() as Rc<dyn Export>);
                let target = Target { name, export, rules: live.rules_of(0) };
                self.differently(executor, &[target], reader, &[&watched.outcome], on_release, goes_on)?
            }
        };
        watched.outcome.borrow_mut().interrupted = ended.interrupted;
        if self.check {
            export.check().map_err(ReplayError::Inconsistent)?;
        }
        let trace = self.trace.then(|| sim.trace().to_chrome_json());
        let replay = self.report_of(live, export.name(), &ended);
        let file = file_name(&self.recording);
        let finished = watched.finish(Described {
            load: format!("clients of {file}"),
            suffix: &format!(" of {file}"),
            seed: live.seed,
            created,
            notes: replay.notes().into_iter().chain(ended.notes.into_iter().flatten()).collect(),
        });
        let GroupFinished { finished, profile, settings, latencies } = finished.map_err(failed)?;
        let group = ReplayedGroup { finished, profile, settings, replay, latencies };
        let (broken_off, version) = (ended.broken_off, live.version.clone());
        Ok(Replayed { drives: Vec::new(), group: Some(group), trace, broken_off, version })
    }
}
