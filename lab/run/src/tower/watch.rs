//! The report of an engine's measured phase: its commands at the top, and the drives meanwhile. It is the report of a simulation, of
//! the only drive or of drives under layers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ssd::Resolved;
use nandscape_lab_workload::{Outcome, Served};
use nandscape_sim::{Sim, Time};

use crate::chain::{self, LayerSettings, Opened, Section};
use crate::finished::{ChainFinished, notes_of_layers};
use crate::host::Moment;
use crate::host_report::HostReport;
use crate::latency::Latencies;
use crate::record::HostRecorder;
use crate::rig::{DriveFinished, Placed, Rig};
use crate::tap::{Listener, Tally};
use crate::watched::{LiveDriveReport, LiveReport};
use crate::watched_group::GroupFinished;

/// An engine's load, for reports and states.
#[derive(Clone, Debug)]
pub struct EngineLoad {
    /// Its name.
    pub name: String,
    /// What it does, a line each.
    pub lines: Vec<String>,
}

/// See the file.
pub(super) struct Watch {
    sim: Sim,
    created: Moment,
    seed: u64,
    drives: Rc<[Placed]>,
    /// The commands of each drive; none without layers.
    tallies: Vec<Rc<Tally>>,
    opened: Rc<Opened>,
    settings: Vec<LayerSettings>,
    /// The recording above the drives, if there are layers.
    recorder: Option<Rc<HostRecorder>>,
    begun: Cell<Option<Time>>,
    outcome: RefCell<Outcome>,
    report: RefCell<Option<LiveReport>>,
}

/// What a watch is over.
pub(super) struct Watching {
    pub(super) created: Moment,
    pub(super) seed: u64,
    pub(super) tallies: Vec<Rc<Tally>>,
    pub(super) opened: Rc<Opened>,
    pub(super) settings: Vec<LayerSettings>,
}

impl Watch {
    /// Over the drives of a rig, whose activity is recorded.
    pub(super) fn new(rig: &Rig, Watching { created, seed, tallies, opened, settings }: Watching) -> Rc<Watch> {
        let names: Vec<&str> = rig.drives().iter().map(|drive| &*drive.given.name).collect();
        let turns = || chain::turns(&opened.layers, &names);
        let recorder = || Rc::new(HostRecorder::new(rig.ssds().map(|ssd| &**ssd), turns()));
        let recorder = (!opened.layers.is_empty()).then(recorder);
        recorder.iter().for_each(|recorder| rig.listen(recorder.clone()));
        Rc::new(Watch {
            sim: rig.sim().clone(),
            created,
            seed,
            drives: rig.drives().clone(),
            tallies,
            opened,
            settings,
            recorder,
            begun: Cell::new(None),
            outcome: RefCell::default(),
            report: RefCell::default(),
        })
    }

    /// The measured phase begins: commands submitted from now on count.
    pub(super) fn begin(&self) {
        let now = self.sim.now();
        self.begun.set(Some(now));
        self.outcome.borrow_mut().started = now;
        self.drives.iter().for_each(|drive| drive.begin(&self.sim));
        self.tallies.iter().for_each(|tally| tally.begin(now));
        self.opened.layers.iter().for_each(|layer| layer.node.begin());
        self.recorder.iter().for_each(|recorder| recorder.begin(now));
    }

    /// The measured phase ends.
    pub(super) fn end(&self, load: &EngineLoad) {
        if self.begun.take().is_none() {
            return;
        }
        let mut outcome = self.outcome.take();
        outcome.ended = self.sim.now();
        let report = match self.opened.layers.is_empty() {
            true => self.of_drive(&outcome, load),
            false => self.of_layers(&outcome, load),
        };
        self.report.replace(report);
    }

    pub(super) fn take_report(&self) -> Option<LiveReport> {
        self.report.take()
    }

    fn finish(&self, drive: &Placed, outcome: &Outcome, load: &EngineLoad) -> DriveFinished {
        let mut finished = drive.finish(self.created, outcome, (&load.name, None), self.seed);
        finished.report.inputs.workload_lines.clone_from(&load.lines);
        finished
    }

    fn of_drive(&self, outcome: &Outcome, load: &EngineLoad) -> Option<LiveReport> {
        let drive = self.drives.first()?;
        let DriveFinished { name, report, details } = self.finish(drive, outcome, load);
        let profile_toml = drive.given.profile.to_toml();
        Some(LiveReport::Drive(Box::new(LiveDriveReport { name, report, details: details?, profile_toml })))
    }

    fn of_layers(&self, outcome: &Outcome, load: &EngineLoad) -> Option<LiveReport> {
        let finish = |(drive, tally): (&Placed, &Rc<Tally>)| self.finish(drive, &tally.outcome(outcome), load);
        let drives: Vec<DriveFinished> = self.drives.iter().zip(&self.tallies).map(finish).collect();
        let mut host = HostReport::of_clients(outcome, load.name.clone(), self.seed);
        host.workload_lines.clone_from(&load.lines);
        host.chain = self.opened.layers.iter().map(Section::of).collect();
        host.array = host.chain.iter().find_map(Section::part).cloned();
        host.notes.extend(notes_of_layers(&host, &drives));
        let profile: Resolved = self.drives.first()?.given.profile.clone();
        let details = self.recorder.as_ref().map(|recorder| recorder.finish(outcome));
        let (finished, settings) = (ChainFinished { host, drives, details }, self.settings.clone());
        let latencies = Latencies::of_all(outcome);
        Some(LiveReport::Group(load.name.clone(), Box::new(GroupFinished { finished, profile, settings, latencies })))
    }
}

/// The commands of the engine.
impl Listener for Watch {
    fn passed(&self, served: &Served<'_>) {
        if self.begun.get().is_none_or(|begun| served.submitted < begun) {
            return;
        }
        let Served { direction, bytes, submitted, completed, completion, .. } = *served;
        self.outcome.borrow_mut().record(direction, bytes, submitted, completed, completion);
        match &self.recorder {
            Some(recorder) => {
                let schedule = chain::schedule(&self.opened.layers);
                recorder.served(served, schedule);
            }
            None => self.drives.iter().for_each(|drive| drive.served(served)),
        }
    }
}
