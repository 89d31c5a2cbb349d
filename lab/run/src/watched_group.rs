//! Drives that clients reach as one, observed for the report of a simulation of them: of a live run, or of its replay.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ssd::Resolved;
use nandscape_lab_workload::{Outcome, Served};
use nandscape_sim::Time;
use nandscape_sim::trace::{Event, Listener};
use nandscape_transport_reactor::Released;

use crate::chain::{LayerSettings, Section};
use crate::finished::{ChainFinished, notes_of_each};
use crate::host::Moment;
use crate::host_report::HostReport;
use crate::latency::Latencies;
use crate::live_drive::LiveDrive;
use crate::record::HostRecorder;
use crate::rig::DriveFinished;
use crate::simulation::Observer;
use crate::watched::{Clients, Watched};

/// See the file.
pub(crate) struct WatchedGroup {
    export: Rc<LiveDrive>,
    drives: Vec<Rc<Watched>>,
    clients: Clients,
    pub(crate) outcome: RefCell<Outcome>,
    recorder: Option<HostRecorder>,
    is_recording: Cell<bool>,
}

/// What a run on such drives leaves.
pub struct GroupFinished {
    /// The figures.
    pub finished: ChainFinished,
    /// The profile of the first drive.
    pub profile: Resolved,
    /// The settings of the layers.
    pub settings: Vec<LayerSettings>,
    pub(crate) latencies: Latencies,
}

/// How the run is described.
pub(crate) struct Described<'a> {
    /// The load.
    pub(crate) load: String,
    /// What follows the name of a drive.
    pub(crate) suffix: &'a str,
    pub(crate) seed: u64,
    /// When set-up began.
    pub(crate) created: Moment,
    /// What else the figures do not show.
    pub(crate) notes: Vec<String>,
}

impl WatchedGroup {
    /// Watches drives; with `details`, records them once [`WatchedGroup::begin`] is called.
    pub(crate) fn new(export: &Rc<LiveDrive>, details: bool, observer: Option<Rc<dyn Observer>>) -> WatchedGroup {
        let drives: Vec<Rc<Watched>> =
            export.models().map(|(_, model)| Rc::new(Watched::new(model, details, None))).collect();
        export.watch(drives.iter().map(|drive| drive.clone() as Rc<dyn crate::tap::Listener>).collect());
        let recorder = || HostRecorder::new(export.models().map(|(_, model)| &**model.ssd()), export.turns());
        WatchedGroup {
            export: export.clone(),
            drives,
            clients: Clients::new(observer),
            outcome: RefCell::default(),
            recorder: details.then(recorder),
            is_recording: Cell::new(false),
        }
    }

    /// The recording begins, unless it has.
    pub(crate) fn begin(&self, now: Time) {
        if !self.is_recording.replace(true) {
            self.recorder.iter().for_each(|recorder| recorder.begin(now));
            self.drives.iter().filter_map(|drive| drive.recorder.as_ref()).for_each(|recorder| recorder.begin(now));
        }
    }

    /// The name that clients use.
    pub(crate) fn name(&self) -> &str {
        self.export.name()
    }

    /// Whether a command of a client has completed.
    pub(crate) fn is_used(&self) -> bool {
        self.clients.has_begun()
    }

    /// A command of a client has completed.
    pub(crate) fn released(&self, released: &Released, offset: u64) {
        let served = |request: &Served<'_>| {
            self.recorder.iter().for_each(|recorder| recorder.served(request, self.export.schedule()));
        };
        self.clients.released(released, offset, &released.completion, &self.outcome, served);
    }

    /// The figures. Nothing completes any more.
    ///
    /// # Errors
    /// A profile or a layer that does not fit this program.
    pub(crate) fn finish(&self, described: Described<'_>) -> Result<GroupFinished, String> {
        let Described { load, suffix, seed, created, notes } = described;
        let (outcome, sections) = (self.outcome.take(), self.export.sections());
        let specs = self.export.spec().models().into_iter().flatten();
        let finish = |((watched, (name, model)), spec): ((&Rc<Watched>, (&str, &Rc<_>)), &_)| {
            let (report, details) =
                watched.finish_below(&outcome, (model, spec, seed), (format!("{name}{suffix}"), created));
            DriveFinished { name: name.to_owned(), report, details }
        };
        let drives: Vec<DriveFinished> = self.drives.iter().zip(self.export.models()).zip(specs).map(finish).collect();
        let mut host = HostReport::of_clients(&outcome, load, seed);
        host.array = sections.iter().find_map(Section::part).cloned();
        host.chain = sections;
        let of_drives: Vec<_> = drives.iter().map(|drive| (&*drive.name, &drive.report.notes[..])).collect();
        host.notes.extend(notes.into_iter().chain(notes_of_each(&of_drives)));
        let settings = LayerSettings::of(&self.export.spec().chain.resolve()?);
        let profile = self.export.models().next().map(|(_, model)| model.profile().clone());
        let profile = profile.ok_or("no model lies below the layers")?;
        let details = self.recorder.as_ref().map(|recorder| recorder.finish(&outcome));
        let finished = ChainFinished { host, drives, details };
        Ok(GroupFinished { finished, profile, settings, latencies: Latencies::of_all(&outcome) })
    }
}

impl Listener for WatchedGroup {
    fn ended(&self, event: &Event) {
        self.drives.iter().filter_map(|drive| drive.recorder.as_ref()).for_each(|recorder| recorder.ended(event));
        self.recorder.iter().for_each(|recorder| recorder.ended(event));
    }
}
