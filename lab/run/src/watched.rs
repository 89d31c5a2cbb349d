//! A live or replayed drive, observed for a report: the commands that complete, and the drive's work meanwhile.
//!
//! Left out: remote drives, which have no report.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::Completion;
use nandscape_lab_workload::{Outcome, Served};
use nandscape_sim::Sim;
use nandscape_sim::trace::{Event, Listener};
use nandscape_transport_reactor::Released;

use crate::host::Moment;
use crate::live::{DriveSpec, SsdExport};
use crate::live_drive::LiveDrive;
use crate::record::{Details, Recorder};
use crate::report::Report;
use crate::simulation::Observer;
use crate::snapshot::{About, Snapshot};
use crate::tap::{direction, of_ftl};
use crate::watched_group::{Described, GroupFinished, WatchedGroup};

/// Clients whose commands complete.
pub(crate) struct Clients {
    is_begun: Cell<bool>,
    observer: Option<Rc<dyn Observer>>,
}

impl Clients {
    pub(crate) fn new(observer: Option<Rc<dyn Observer>>) -> Clients {
        Clients { is_begun: Cell::new(false), observer }
    }

    /// Whether a command has completed.
    pub(crate) fn has_begun(&self) -> bool {
        self.is_begun.get()
    }

    /// A command has completed, whose times are those of `completion`.
    pub(crate) fn released(
        &self,
        released: &Released,
        offset: u64,
        completion: &Completion,
        outcome: &RefCell<Outcome>,
        served: impl FnOnce(&Served<'_>),
    ) {
        if released.is_admin {
            return;
        }
        let Released { bytes, arrived: submitted, at: completed, .. } = released;
        let mut outcome = outcome.borrow_mut();
        // That of a command that no figure counts, too: resets of zones keep flash busy.
        if !self.is_begun.replace(true) || *submitted < outcome.started {
            outcome.started = *submitted;
        }
        let Some(direction) = direction(released.opcode, released.is_forced_write) else { return };
        outcome.record(direction, *bytes, *submitted, *completed, completion);
        let request =
            Served { direction, bytes: *bytes, offset, submitted: *submitted, completed: *completed, completion };
        served(&request);
        self.observer.iter().for_each(|observer| observer.served(&request));
    }
}

/// One drive while it is watched.
pub(crate) struct Watched {
    pub(crate) outcome: RefCell<Outcome>,
    clients: Clients,
    pub(crate) recorder: Option<Rc<Recorder>>,
    begun: Snapshot,
    /// The FTL of a host that clients reach directly, by its name among layers.
    ftl: Option<&'static str>,
}

impl Watched {
    pub(crate) fn new(drive: &SsdExport, details: bool, observer: Option<&Rc<dyn Observer>>) -> Watched {
        let recorder = details.then(|| Rc::new(Recorder::new(drive.ssd(), drive.profile().namespaces().len())));
        let (outcome, clients) = (RefCell::default(), Clients::new(observer.cloned()));
        Watched { outcome, clients, recorder, begun: Snapshot::of(drive.ssd()), ftl: None }
    }

    /// The same under the FTL of a host, which is the drive of its clients: it is a layer in the times of commands, as in a simulation.
    pub(crate) fn under_ftl(self, ftl: Option<&'static str>) -> Watched {
        Watched { ftl, ..self }
    }

    /// A completion with the times of an FTL of a host charged to the layer, which its own queues do not do.
    fn charged<'a>(&self, completion: &'a Completion) -> Cow<'a, Completion> {
        match self.ftl {
            Some(ftl) if !completion.breakdown.layers().any(|(layer, _)| layer == ftl) => {
                let breakdown = of_ftl(ftl, &completion.breakdown);
                Cow::Owned(Completion { breakdown, ..completion.clone() })
            }
            _ => Cow::Borrowed(completion),
        }
    }

    pub(crate) fn released(&self, released: &Released, offset: u64) {
        let served = |served: &Served<'_>| self.recorder.iter().for_each(|recorder| recorder.served(served));
        self.clients.released(released, offset, &self.charged(&released.completion), &self.outcome, served);
    }

    /// The report of a drive below others whose clients saw `host`, and its recording, as [`Watched::finish`] has them.
    pub(crate) fn finish_below(
        &self,
        host: &Outcome,
        (drive, spec, seed): (&SsdExport, &DriveSpec, u64),
        (name, created): (String, Moment),
    ) -> (Report, Option<Details>) {
        let Outcome { started, ended, interrupted, .. } = *host;
        let outcome = Outcome { started, ended, interrupted, ..self.outcome.take() };
        let (profile, precondition) = (drive.profile(), spec.precondition);
        let about = About { profile, name, workload: None, seed, precondition, history: None };
        let report = about.report(&outcome, created, &self.begun, &Snapshot::of(drive.ssd()));
        (report, self.recorder.as_ref().map(|recorder| recorder.finish(&outcome)))
    }

    /// The report of a drive that was watched under a name since set-up began at `created`, its recording, and its measurements.
    pub(crate) fn finish(
        self,
        (drive, spec, seed): (&SsdExport, &DriveSpec, u64),
        (name, created): (String, Moment),
    ) -> (Report, Option<Details>, Outcome) {
        let outcome = self.outcome.into_inner();
        let (profile, precondition) = (drive.profile(), spec.precondition);
        let about = About { profile, name, workload: None, seed, precondition, history: None };
        let report = about.report(&outcome, created, &self.begun, &Snapshot::of(drive.ssd()));
        let details = self.recorder.as_ref().map(|recorder| recorder.finish(&outcome));
        (report, details, outcome)
    }
}

/// The commands that arrays send to a drive.
impl crate::tap::Listener for Watched {
    fn passed(&self, served: &Served<'_>) {
        let Served { direction, bytes, submitted, completed, completion, .. } = *served;
        self.outcome.borrow_mut().record(direction, bytes, submitted, completed, completion);
        self.recorder.iter().for_each(|recorder| recorder.served(served));
    }
}

/// The drives of a reactor whose reports are wanted, until they end.
pub struct LiveWatch {
    /// By the number of the drive there; `None` of one that has no flash here.
    drives: Vec<Option<Watching>>,
    seed: u64,
    created: Moment,
    timelines: Vec<Sim>,
}

/// A drive that is watched.
enum Watching {
    Drive(Rc<LiveDrive>, Box<Watched>),
    Group(Box<WatchedGroup>),
}

/// The report of a live drive.
pub enum LiveReport {
    /// Of one drive.
    Drive(Box<LiveDriveReport>),
    /// Of drives that clients reach as one: the name that they use, and the figures.
    Group(String, Box<GroupFinished>),
}

impl LiveReport {
    /// What the figures alone do not show.
    pub fn notes(&self) -> &[String] {
        match self {
            LiveReport::Drive(live) => &live.report.notes,
            LiveReport::Group(_, live) => &live.finished.host.notes,
        }
    }
}

/// The report of one live drive.
pub struct LiveDriveReport {
    /// The drive.
    pub name: String,
    /// Its figures.
    pub report: Report,
    /// Its recording.
    pub details: Details,
    /// Its profile with all keys.
    pub profile_toml: String,
}

/// The note of a report whose clock is the one on the wall.
const CLOCK: &str = "this drive was served: its time is that of the clock on the wall, and its load came from clients. Latencies are those of the \
    drive; clients saw them later by the release lag of the server and by the time of their transport";

impl LiveWatch {
    /// Watches drives on these timelines from now on, those with flash of this process.
    pub fn start(timelines: &[Sim], seed: u64, drives: &[Rc<LiveDrive>]) -> Rc<LiveWatch> {
        let watching = |drive: &Rc<LiveDrive>| match drive.only() {
            Some((model, _)) => {
                let watched = Watched::new(model, true, None).under_ftl(drive.lone_ftl());
                Watching::Drive(drive.clone(), Box::new(watched))
            }
            None => Watching::Group(Box::new(WatchedGroup::new(drive, true, None))),
        };
        let drives = drives.iter().map(|drive| drive.spec().has_report().then(|| watching(drive))).collect();
        let watch = Rc::new(LiveWatch { drives, seed, created: Moment::now(), timelines: timelines.to_vec() });
        timelines.iter().for_each(|sim| sim.trace().attend(watch.clone()));
        watch
    }

    /// A command has completed. A server may wait long for its first client, with which recordings begin.
    pub fn released(&self, released: &Released) {
        match self.drives.get(usize::from(released.export)) {
            Some(Some(Watching::Drive(_, watched))) => {
                if !released.is_admin && !watched.clients.has_begun() {
                    watched.recorder.iter().for_each(|recorder| recorder.begin(released.arrived));
                }
                watched.released(released, released.offset);
            }
            Some(Some(Watching::Group(group))) => {
                if !released.is_admin {
                    group.begin(released.arrived);
                }
                group.released(released, released.offset);
            }
            Some(None) | None => {}
        }
    }

    /// The reports, once nothing completes any more. Drives that served no command have none.
    pub fn finish(self: Rc<LiveWatch>) -> Vec<LiveReport> {
        self.timelines.iter().for_each(|sim| sim.trace().attend_no_more());
        let Ok(LiveWatch { drives, seed, created, .. }) = Rc::try_unwrap(self) else { return Vec::new() };
        let report = |watching| match watching {
            Watching::Drive(drive, watched) => report_of(&drive, *watched, seed, created),
            Watching::Group(group) => report_of_group(&group, seed, created),
        };
        drives.into_iter().flatten().filter_map(report).collect()
    }
}

fn report_of(drive: &LiveDrive, watched: Watched, seed: u64, created: Moment) -> Option<LiveReport> {
    if !watched.clients.has_begun() {
        return None;
    }
    let (model, spec) = drive.only()?;
    let name = format!("{}, served", spec.name);
    let (mut report, details, outcome) = watched.finish((model, spec, seed), (name, created));
    report.clock = Some("wall");
    report.notes.insert(0, CLOCK.to_owned());
    let sections = drive.sections();
    if !sections.is_empty() {
        report.under(sections, &outcome);
    }
    let (name, profile_toml) = (spec.name.clone(), model.profile().to_toml());
    Some(LiveReport::Drive(Box::new(LiveDriveReport { name, report, details: details?, profile_toml })))
}

fn report_of_group(watched: &WatchedGroup, seed: u64, created: Moment) -> Option<LiveReport> {
    if !watched.is_used() {
        return None;
    }
    let name = watched.name().to_owned();
    let (load, notes) = (format!("clients of {name}"), vec![CLOCK.to_owned()]);
    let finished = watched.finish(Described { load, suffix: ", served", seed, created, notes });
    // The layers were opened with these settings.
    let mut finished = finished.ok()?;
    finished.finished.drives.iter_mut().for_each(|drive| drive.report.clock = Some("wall"));
    Some(LiveReport::Group(name, Box::new(finished)))
}

impl Listener for LiveWatch {
    fn ended(&self, event: &Event) {
        for watching in self.drives.iter().flatten() {
            match watching {
                Watching::Drive(_, watched) => watched.recorder.iter().for_each(|recorder| recorder.ended(event)),
                Watching::Group(group) => group.ended(event),
            }
        }
    }
}
