//! The drives of a server: their queues, and what they are called in messages.

use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use nandscape_apps_memcached_engine::{EngineError, Event, Given};
use nandscape_device_media::durable::{Owner, StoreFile};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_lab_run::{Connections, DriveSpec, SsdExport, Target};
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::{Counter, Export};

use super::remote::Remote;
use super::serve::{ServeError, other};
use crate::members::{Member, members};

/// A drive that is served from.
pub struct ServedDrive {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// Where a drive is.
pub enum Place {
    /// In memory.
    Memory(DriveSpec),
    /// In a file.
    File(DriveSpec, PathBuf, Box<StoreFile>),
    /// Its file is missing.
    Missing(PathBuf),
    /// At another server.
    Remote(Target),
    /// A further FTL of the drive of this process at another place: its number, and the FTL's namespace.
    Ftl(usize, u32),
}

impl Place {
    /// Drives of this process, in the engine's order, of which each has a number of FTLs. Each FTL is a drive of the engine.
    pub fn of_ftls(places: Vec<Place>, ftls: usize) -> Vec<Place> {
        let all = members(places.len(), ftls);
        let mut first = vec![0; places.len()];
        let mut places: Vec<Option<Place>> = places.into_iter().map(Some).collect();
        let place = |(number, Member { ssd, part })| match places[ssd].take() {
            Some(place) => {
                first[ssd] = number;
                place
            }
            None => Place::Ftl(first[ssd], part as u32 + 1),
        };
        all.into_iter().enumerate().map(place).collect()
    }
}

/// What a new drive of this process is called in orders.
pub const NEW: &str = "new";

/// A drive at work, or one that is missing.
pub(super) struct Drive {
    pub(super) name: String,
    /// Its file or URL.
    place: RefCell<Option<String>>,
    body: RefCell<Body>,
    /// What is about to take its place: a URL, or [`NEW`].
    coming: RefCell<Option<String>>,
    /// Counts the engine's commands for the operator.
    counter: OnceCell<Counter>,
    /// The server's connections to remote drives.
    pub(super) own: Connections,
}

#[derive(Clone)]
enum Body {
    /// A namespace of a drive of this process.
    Here(Rc<Here>, u32),
    Elsewhere(Rc<Remote>),
    Missing,
}

/// A drive of this process. Its FTLs share the admin queue.
struct Here {
    export: Rc<SsdExport>,
    admin: OnceCell<Rc<QueueDrive>>,
}

impl Here {
    fn admin(&self, sim: &Sim) -> Result<Rc<QueueDrive>, ServeError> {
        if let Some(admin) = self.admin.get() {
            return Ok(admin.clone());
        }
        let admin = QueueDrive::new(sim, self.export.ssd().controller(), QueueId::ADMIN, 32);
        let admin = admin.map_err(|status| other(format!("a drive has no admin queue: {status}")))?;
        Ok(self.admin.get_or_init(|| admin).clone())
    }
}

impl Drive {
    /// All drives of a server. `note` receives why one cannot be reached.
    pub(super) fn all(
        sim: &Sim,
        served: Vec<ServedDrive>,
        by: (u64, &Connections),
        note: &dyn Fn(&str),
    ) -> Result<Vec<Drive>, ServeError> {
        let mut drives: Vec<Drive> = Vec::new();
        for one in served {
            let drive = match one.place {
                Place::Ftl(of, nsid) => drives[of].ftl(one.name, nsid),
                _ => Drive::build(sim, one, by, note)?,
            };
            drives.push(drive);
        }
        Ok(drives)
    }

    /// Another FTL of the same drive.
    fn ftl(&self, name: String, nsid: u32) -> Drive {
        let body = match &*self.body.borrow() {
            Body::Here(here, _) => Body::Here(here.clone(), nsid),
            body => body.clone(),
        };
        let (place, own) = (self.place.clone(), self.own.clone());
        Drive { name, place, body: RefCell::new(body), coming: RefCell::default(), counter: OnceCell::new(), own }
    }

    /// One of them.
    pub(super) fn build(
        sim: &Sim,
        ServedDrive { name, place }: ServedDrive,
        (seed, own): (u64, &Connections),
        note: &dyn Fn(&str),
    ) -> Result<Drive, ServeError> {
        let of_file = |path: PathBuf| Some(path.display().to_string());
        let here = |spec: DriveSpec, file| {
            let built = spec.build_in(sim, seed, file, &());
            let here = |export| Here { export: Rc::new(export), admin: OnceCell::new() };
            built.map(|export| Body::Here(Rc::new(here(export)), 1)).map_err(other)
        };
        let (place, body) = match place {
            Place::Memory(spec) => (None, here(spec, None)?),
            Place::File(spec, path, file) => (of_file(path), here(spec, Some(*file))?),
            Place::Missing(path) => (of_file(path), Body::Missing),
            Place::Ftl(of, nsid) => {
                return Err(other(format!("drive {name}: namespace {nsid} of drive {of} cannot be made alone")));
            }
            Place::Remote(target) => {
                let body = match Remote::connect(sim, (&name, &target), (seed, own))? {
                    Ok(remote) => Body::Elsewhere(Rc::new(remote)),
                    Err(problem) => {
                        note(&format!("drive {name} is out of reach: {problem}"));
                        Body::Missing
                    }
                };
                (Some(target.to_string()), body)
            }
        };
        let (place, body, coming) = (RefCell::new(place), RefCell::new(body), RefCell::default());
        Ok(Drive { name, place, body, coming, counter: OnceCell::new(), own: own.clone() })
    }

    /// What a loop serves of it.
    pub(super) fn export(&self) -> Option<Rc<dyn Export>> {
        match &*self.body.borrow() {
            Body::Here(here, _) => Some(here.export.clone()),
            Body::Elsewhere(remote) => Some(remote.export.clone()),
            Body::Missing => None,
        }
    }

    /// It, if it is at another server.
    pub(super) fn remote(&self) -> Option<Rc<Remote>> {
        if let Body::Elsewhere(remote) = &*self.body.borrow() { Some(remote.clone()) } else { None }
    }

    /// Whether it is at another server, or was when the server began.
    pub(super) fn is_remote(&self) -> bool {
        self.place.borrow().as_ref().is_some_and(|place| Target::is_one(place))
    }

    /// Whether it is of this process, and takes no writes.
    pub(super) fn is_read_only(&self) -> bool {
        self.here().is_some_and(|(export, _)| export.read_only().is_some())
    }

    /// Whether it is there, by its URL.
    pub(super) fn is_at(&self, target: &Target) -> bool {
        self.place.borrow().as_ref().is_some_and(|place| *place == target.to_string())
    }

    /// Whether it is a namespace of the same drive as a target.
    pub(super) fn is_on(&self, target: &Target) -> bool {
        let whole = |url: &str| url.split('?').next().unwrap_or_default().to_owned();
        self.place.borrow().as_ref().is_some_and(|place| whole(place) == whole(&target.to_string()))
    }

    /// What is about to take its place.
    pub(super) fn coming(&self) -> Option<String> {
        self.coming.borrow().clone()
    }

    /// Another drive is about to take its place, or none any more.
    pub(super) fn awaits(&self, coming: Option<String>) {
        self.coming.replace(coming);
    }

    /// Another remote drive has taken its place.
    pub(super) fn replace(&self, target: &Target, remote: Rc<Remote>) {
        self.place.replace(Some(target.to_string()));
        self.body.replace(Body::Elsewhere(remote));
    }

    /// A new drive of this process has taken its place.
    pub(super) fn renew(&self, new: Drive) {
        self.body.replace(new.body.into_inner());
    }

    /// The drive of this process at this place, and the namespace of its FTL.
    fn here(&self) -> Option<(Rc<SsdExport>, u32)> {
        if let Body::Here(here, nsid) = &*self.body.borrow() { Some((here.export.clone(), *nsid)) } else { None }
    }

    /// The drive of this process, at the place of its first FTL only.
    fn whole(&self) -> Option<Rc<SsdExport>> {
        self.here().filter(|(_, nsid)| *nsid == 1).map(|(export, _)| export)
    }

    /// The engine's commands to whatever drive has this place are counted from now on.
    pub(super) fn count_by(&self, counter: Counter) {
        assert!(self.counter.set(counter).is_ok(), "a place has one counter");
    }

    /// Queues of the drive at this place, whose commands are counted.
    pub(super) fn counted(&self, given: Given) -> Given {
        match self.counter.get() {
            Some(counter) => Given { io: counter.over(given.io), ..given },
            None => given,
        }
    }

    /// Its queues, for an engine.
    pub(super) fn given(&self, sim: &Sim) -> Result<Option<Given>, ServeError> {
        let body = self.body.borrow().clone();
        let (here, nsid) = match &body {
            Body::Here(here, nsid) => (here, *nsid),
            Body::Elsewhere(remote) => return Ok(Some(self.counted(remote.given(sim)))),
            Body::Missing => return Ok(None),
        };
        let io =
            here.export.connect_to(nsid).map_err(|status| other(format!("a drive has no queue pair: {status}")))?;
        Ok(Some(self.counted(Given { io, admin: Some(here.admin(sim)?) })))
    }

    /// Marks its file as that of a member of the store. Why not, if so.
    pub(super) fn join(&self) -> Option<String> {
        let joined = self.whole()?.ssd().join(Owner::Engine);
        joined.err().map(|error| format!("the file of drive {} takes no mark of a member: {error}", self.name))
    }

    /// Turns it off in order, so that a drive in a file starts again at once. One that could not write before has been reported.
    pub(super) fn turn_off(&self, executor: &mut Executor) -> Result<(), ServeError> {
        let Some(export) = self.whole() else { return Ok(()) };
        let had_failed = export.ssd().store_failure().is_some();
        match export.turn_off(executor) {
            Err(error) if !had_failed => {
                Err(other(format!("the file of drive {} cannot be written: {error}", self.name)))
            }
            _ => Ok(()),
        }
    }

    /// Where it is, and why it is out of reach or takes no writes, if that is so.
    fn about(&self) -> Option<String> {
        let place = self.place.borrow();
        if let (Some(place), Some(problem)) = (&*place, self.remote().and_then(|remote| remote.problem())) {
            return Some(format!("{place} is out of reach: {problem}"));
        }
        let why = |(export, _): (Rc<SsdExport>, u32)| export.ssd().store_failure().or_else(|| export.read_only());
        match (place.as_ref(), self.here().and_then(why)) {
            (Some(place), Some(why)) => Some(format!("{place} takes no writes: {why}")),
            (Some(place), None) if Target::is_one(place) => Some(format!("it is {place}")),
            (Some(place), None) => Some(format!("its file is {place}")),
            (None, Some(why)) => Some(format!("it takes no writes: {why}")),
            (None, None) => None,
        }
    }
}

/// Text about a drive by its number, with what is known of the drive.
fn with_drive(drives: &[Drive], number: usize, text: String) -> String {
    match drives.get(number).and_then(Drive::about) {
        Some(about) => format!("{text} ({about})"),
        None => text,
    }
}

/// What has happened.
pub(super) fn event(drives: &[Drive], event: &Event) -> String {
    let text = event.to_string();
    match event {
        Event::Missing { drive, .. } | Event::Replaced { drive, .. } | Event::Rebuilt { drive, .. } => {
            with_drive(drives, *drive, text)
        }
        Event::Failed { error, .. } => with_drive(drives, error.drive(), text),
        Event::Damaged { .. } | Event::Unreadable { .. } => text,
    }
}

/// Why an engine does not serve any more.
pub(super) fn failure(drives: &[Drive], error: &EngineError) -> String {
    with_drive(drives, error.drive(), error.to_string())
}
