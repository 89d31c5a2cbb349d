//! A drive that another server exports over NVMe/TCP.
//!
//! The engine has it alone: it is marked and reserved ([`User`]), must be empty or of a store, and is looked at when it reconnects. While it
//! is out of reach the engine treats it as a drive without power, so that reads ask the other drives at once and all else waits within the
//! engine's patience.
//!
//! A drive is a namespace: of a server's drive with several FTLs, each is one, with its own connection.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use nandscape_apps_memcached_engine::{Engine, Format, Given, clear, format_on};
use nandscape_apps_store::{Disk, Host};
use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Io, Issuer, Token};
use nandscape_host_driver::nvme_tcp::{Connected, NvmeTcp, Refusal, Target};
use nandscape_lab_run::{
    Claimed, Connection, Connections, Records, RemoteError, RemoteExport, RemoteSpec, UNMARKED, User,
};
use nandscape_sim::Sim;
use nandscape_transport_reactor::{Export as _, Source};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::serve::{ServeError, other};

/// How the engine is known to its drives.
pub(super) static USER: User = User::MEMCACHED;

/// See the file.
pub(super) struct Remote {
    pub(super) export: Rc<RemoteExport>,
    io: Rc<Away>,
    /// The subsystem: its address and NQN.
    subsystem: (String, String),
    /// Counted until it is closed.
    connection: RefCell<Option<Connection>>,
}

impl Remote {
    /// Connects to it; the error is why it is out of reach.
    pub(super) fn connect(
        sim: &Sim,
        (name, target): (&str, &Target),
        (seed, own): (u64, &Connections),
    ) -> Result<Result<Remote, String>, ServeError> {
        let connected = spec((name, target), seed).connect(sim);
        match connected.and_then(|export| Remote::of(sim, target, export, own)) {
            Ok(remote) => Ok(Ok(remote)),
            Err(RemoteError::OutOfReach(problem)) => Ok(Err(problem)),
            Err(RemoteError::Unusable(problem)) => Err(ServeError::Refused(format!("drive {name}: {problem}"))),
        }
    }

    /// The drive of a connection that another thread has made.
    pub(super) fn over(
        sim: &Sim,
        named: (&str, &Target),
        (seed, own): (u64, &Connections),
        connected: Connected,
    ) -> Result<Remote, RemoteError> {
        Remote::of(sim, named.1, spec(named, seed).over(sim, connected)?, own)
    }

    fn of(sim: &Sim, target: &Target, export: RemoteExport, own: &Connections) -> Result<Remote, RemoteError> {
        check_namespace(target, &export.identity().namespaces).map_err(RemoteError::Unusable)?;
        let export = Rc::new(export);
        let io = Away::over(sim, &export, export.drive());
        let given_back = Rc::downgrade(&io);
        export.on_loss(move || given_back.upgrade().iter().for_each(|io| io.give_back()));
        let subsystem = (target.address.clone(), target.nqn.clone());
        Ok(Remote { export, io, subsystem, connection: RefCell::new(Some(own.add(target))) })
    }

    /// Whether it is the same namespace as another.
    pub(super) fn is(&self, other: &Remote) -> bool {
        self.subsystem == other.subsystem && self.io.info().nsid == other.io.info().nsid
    }

    /// It, as a drive that the server is to use alone.
    pub(super) fn claimed<'a>(&self, name: &'a str, drive: &'a dyn Drive) -> Claimed<'a> {
        let own = self.connection.borrow().as_ref().map_or(1, |connection| connection.own()());
        Claimed { name, drive, own }
    }

    /// Its queues, for an engine.
    pub(super) fn given(&self, sim: &Sim) -> Given {
        let admin = Away::over(sim, &self.export, self.export.admin());
        Given { io: self.io.clone(), admin: Some(admin) }
    }

    /// Its descriptor and commands, for a loop.
    pub(super) fn sources(&self) -> Vec<Rc<dyn Source>> {
        self.export.sources()
    }

    /// Disconnects it for good: another drive takes its place.
    pub(super) fn close(&self) {
        self.export.close("another drive takes its place");
        self.connection.take();
    }

    /// Why it is not connected to, if so.
    pub(super) fn problem(&self) -> Option<String> {
        let connection = self.export.connection();
        connection.refusal().or_else(|| connection.problem())
    }

    /// Empties it, or checks that it is empty or of a store. `note` receives the progress of a long look.
    pub(super) async fn prepare(
        &self,
        host: &Host,
        name: &str,
        overwrites: bool,
        note: &dyn Fn(&str),
    ) -> Result<(), ServeError> {
        let failed = |error| other(format!("drive {name}: {error}"));
        if overwrites {
            return clear(host, self.io.clone()).await.map_err(failed);
        }
        let disk = Disk::new(host, self.io.clone());
        match format_on(&disk).await.map_err(failed)? {
            None => {}
            Some(Format::OWN) => return Ok(()),
            Some(format) => {
                return Err(ServeError::Refused(format!(
                    "drive {name}: it has a store of format {format}, and this program reads format {own}; the program that wrote the store, \
                     or an empty drive, is valid",
                    own = Format::OWN
                )));
            }
        }
        let progress = |percent| note(&format!("drive {name}: is it empty? {percent}% read"));
        match disk.first_data(progress).await.map_err(failed)? {
            None => Ok(()),
            Some(slba) => Err(ServeError::Refused(format!(
                "drive {name}: block {slba} has data, and the drive belongs to no store; an empty drive is valid, and --overwrite empties \
                 all remote drives"
            ))),
        }
    }

    /// Has it looked at when it reconnects: it must have what the engine has recorded on it. From now on the engine notices when it is out of
    /// reach.
    pub(super) fn look_again(&self, engine: &Rc<Engine>, drive: usize) {
        let (info, witness) = (self.io.info(), engine.witness(drive));
        let records: Records = Box::new(move |execute| {
            let first = SubmissionEntry::blocks(IoOpcode::READ, info.nsid, 0, 1);
            let (status, block) = execute(first, &[], info.lba_bytes as usize)?;
            match status.is_success() {
                true => witness.look(&block).map_err(|why| Refusal::ForGood(why.to_owned())),
                false => Err(Refusal::ForNow(format!("its first block cannot be read: {status}"))),
            }
        });
        // The note of the start is enough: the drive is the same.
        let own = self.connection.borrow().as_ref().map(Connection::own);
        let own = move || own.as_ref().map_or(1, |own| own());
        let (look, _) = USER.look_again(info.nsid, own, records);
        let connection = self.export.connection();
        connection.look_again(look);
        let watched = connection.clone();
        let end = engine.watch(drive, move || watched.is_lost());
        if connection.has_given_up() {
            end();
        }
        self.export.on_end(end);
    }
}

/// A URL without a namespace names a drive that has one.
fn check_namespace(target: &Target, active: &[u32]) -> Result<(), String> {
    if target.namespace.is_some() || active.len() < 2 {
        return Ok(());
    }
    let numbers: Vec<String> = active.iter().map(u32::to_string).collect();
    Err(format!(
        "{target} has {} namespaces; ?namespace=N behind the URL is valid, with N of {}",
        active.len(),
        numbers.join(", ")
    ))
}

fn spec((name, target): (&str, &Target), seed: u64) -> RemoteSpec {
    RemoteSpec { name: name.to_owned(), target: USER.target(target), seed }
}

/// Remote drives by their numbers and names.
pub(super) type Remotes<'a> = Vec<(usize, &'a str, Rc<Remote>)>;

/// Makes the engine the only user of its remote drives.
pub(super) async fn take(
    host: &Host,
    remotes: &Remotes<'_>,
    overwrites: bool,
    note: &dyn Fn(&str),
) -> Result<(), ServeError> {
    for (place, (_, name, remote)) in remotes.iter().enumerate() {
        if let Some((_, first, _)) = remotes[..place].iter().find(|(_, _, other)| other.is(remote)) {
            let problem = format!("drive {name}: it is the namespace of drive {first}; each namespace once is valid");
            return Err(ServeError::Refused(problem));
        }
    }
    let direct: Vec<_> = remotes.iter().map(|(_, _, remote)| remote.export.drive()).collect();
    let direct = remotes.iter().zip(&direct).map(|((_, name, remote), drive)| remote.claimed(name, &**drive));
    let direct: Vec<Claimed<'_>> = direct.collect();
    let unmarked = USER.check_alone(&Issuer::new(host.sim()), &direct).await.map_err(ServeError::Refused)?;
    unmarked.iter().for_each(|name| note(&format!("drive {name}: {UNMARKED}")));
    for (_, name, remote) in remotes {
        remote.prepare(host, name, overwrites, note).await?;
    }
    Ok(())
}

/// Has all of them looked at when they reconnect.
pub(super) fn look_again(remotes: &Remotes<'_>, engine: &Rc<Engine>) {
    remotes.iter().for_each(|(number, _, remote)| remote.look_again(engine, *number));
}

/// A queue of such a drive. Commands end as in a power cut while the drive is out of reach, also those that it has. Once it is out of reach
/// for longer than the patience of its URL they fail.
struct Away {
    sim: Sim,
    connection: Rc<NvmeTcp>,
    below: Rc<dyn Drive>,
    passing: RefCell<BTreeMap<u64, Token>>,
    next: Cell<u64>,
    me: Weak<Away>,
}

impl Away {
    fn over(sim: &Sim, export: &RemoteExport, below: Rc<dyn Drive>) -> Rc<Away> {
        let (sim, connection, passing) = (sim.clone(), export.connection().clone(), RefCell::default());
        Rc::new_cyclic(|me| Away { sim, connection, below, passing, next: Cell::new(0), me: me.clone() })
    }

    fn sink(&self) -> Rc<dyn Sink> {
        self.me.upgrade().expect("a queue in use is alive")
    }

    /// The connection is lost: the initiator does not wait with what the drive had.
    fn give_back(&self) {
        let (tags, sink): (Vec<u64>, _) = (self.passing.borrow().keys().copied().collect(), self.sink());
        for tag in tags {
            // One that has ended meanwhile is not found.
            let _ = self.below.cancel(CommandRef::new(&sink, tag));
        }
    }
}

impl Drive for Away {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        if self.connection.is_lost() && !self.connection.has_given_up() {
            return io.token.complete(Completion::of(Status::ABORTED_POWER_LOSS));
        }
        let tag = self.next.replace(self.next.get() + 1);
        self.passing.borrow_mut().insert(tag, io.token);
        self.below.submit(Io { command: io.command, mem: io.mem, token: Token::new(self.sink(), tag) });
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let found = self.passing.borrow().iter().find(|(_, token)| token.is_of(command)).map(|(tag, _)| *tag);
        found.is_some_and(|tag| self.below.cancel(CommandRef::new(&self.sink(), tag)))
    }
}

impl Sink for Away {
    fn complete(&self, tag: u64, completion: Completion) {
        let token = self.passing.borrow_mut().remove(&tag).expect("a command completes once");
        let is_back = matches!(completion.status.meaning(), Status::HOST_PATHING_ERROR | Status::ABORT_REQUESTED);
        token.complete(match is_back && !self.connection.has_given_up() {
            true => Completion::of(Status::ABORTED_POWER_LOSS),
            false => completion,
        });
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}
