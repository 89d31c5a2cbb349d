//! The replay of drives that were served as one, under layers that take several: with the report of a simulation of them.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ssd::Resolved;
use nandscape_lab_workload::Outcome;
use nandscape_sim::Executor;
use nandscape_transport_reactor::recording::Reader;
use nandscape_transport_reactor::{Export, Released};

use super::{Replay, ReplayError, ReplayReport, Replayed, exactly, file_name};
use crate::chain::{LayerSettings, Section};
use crate::host::Moment;
use crate::host_report::HostReport;
use crate::live::{BuildError, LiveDrives};
use crate::rig::DriveFinished;
use crate::served_group::GroupSpec;
use crate::simulation::{Observer, Progress};
use crate::stack::{StackFinished, notes_of_each};
use crate::tap::Listener;
use crate::watched::{Clients, Watched};

/// Drives that were served as one, replayed.
pub struct ReplayedGroup {
    /// The figures, as of a simulation of the same drives and layers.
    pub finished: StackFinished,
    /// The profile of the first drive.
    pub profile: Resolved,
    /// The settings of the layers.
    pub settings: Vec<LayerSettings>,
    /// What was replayed, and how.
    pub replay: ReplayReport,
}

impl Replay {
    /// Replays drives under layers that take several of them.
    pub(super) fn run_group(
        &self,
        (live, spec): (&LiveDrives, &GroupSpec),
        reader: Reader,
        progress: &dyn Progress,
        observer: Option<Rc<dyn Observer>>,
    ) -> Result<Replayed, ReplayError> {
        let created = Moment::now();
        let path = || self.recording.display().to_string();
        let failed = |problem: String| ReplayError::Build { path: path(), error: BuildError::Layers(problem) };
        let mut executor = Executor::new();
        let sim = executor.sim();
        let export = Rc::new(spec.build(&mut executor, live.seed, progress).map_err(failed)?);
        let drives: Vec<Rc<Watched>> =
            export.models().map(|(_, model)| Rc::new(Watched::new(model, false, None))).collect();
        export.watch(drives.iter().map(|drive| drive.clone() as Rc<dyn Listener>).collect());
        if self.trace {
            sim.trace().switch_on();
        }
        let (clients, outcome) = (Clients::new(observer), RefCell::<Outcome>::default());
        let on_release =
            |released: Released, offset| clients.released(&released, offset, &released.completion, &outcome, |_| ());
        let exports = vec![export.clone() as Rc<dyn Export>];
        let goes_on = self.goes_on(progress);
        let ended = match self.what_if {
            None => exactly(std::slice::from_mut(&mut executor), exports, reader, on_release, goes_on)?,
            Some(_) => {
                let named = vec![(spec.name.clone(), export.clone() as Rc<dyn Export>)];
                self.differently(&mut executor, &named, reader, &[&outcome], on_release, goes_on)?
            }
        };
        let mut outcome = outcome.into_inner();
        outcome.interrupted = ended.interrupted;
        if self.check {
            export.check().map_err(ReplayError::Inconsistent)?;
        }
        let sections = export.sections();
        let trace = self.trace.then(|| sim.trace().to_chrome_json());
        let models: Vec<_> = export.models().map(|(name, model)| (name.to_owned(), model.clone())).collect();
        drop(export);
        let finish = |((watched, (name, model)), spec): ((Rc<Watched>, (String, Rc<_>)), &_)| {
            let named = (format!("{name} of {}", file_name(&self.recording)), created);
            let (report, details) = watched.finish_below(&outcome, (&model, spec, live.seed), named);
            DriveFinished { name, report, details }
        };
        let drives: Vec<DriveFinished> = drives.into_iter().zip(models).zip(&spec.drives).map(finish).collect();
        let replay = self.report_of(live, &spec.name, &ended);
        let mut host =
            HostReport::of_clients(&outcome, format!("clients of {}", file_name(&self.recording)), live.seed);
        host.array = sections.iter().find_map(Section::array).cloned();
        host.chain = sections;
        let of_drives: Vec<_> = drives.iter().map(|drive| (&*drive.name, &drive.report.notes[..])).collect();
        let notes =
            replay.notes().into_iter().chain(ended.notes.into_iter().flatten()).chain(notes_of_each(&of_drives));
        host.notes.extend(notes);
        let settings = LayerSettings::of(&spec.chain.resolve().map_err(failed)?);
        let profile = spec.drives[0].resolve().map_err(|error| failed(error.to_string()))?;
        let finished = StackFinished::of_clients(host, drives, &outcome);
        let group = ReplayedGroup { finished, profile, settings, replay };
        let (broken_off, version) = (ended.broken_off, live.version.clone());
        Ok(Replayed { drives: Vec::new(), group: Some(group), trace, broken_off, version })
    }
}
