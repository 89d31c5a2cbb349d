//! A thread with drives, an engine and its server.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use nandscape_apps_memcached_engine::memcached::Server;
use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{Config, Engine, Given, OpenError, Stats};
use nandscape_apps_store::Host;
use nandscape_lab_run::Connections;
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::listening::Accepting;
use nandscape_transport_reactor::socket::Address;
use nandscape_transport_reactor::{Handle, PollMode, Port, Reactor, Setup};

use super::drives::{Drive, ServedDrive};
use super::remote::{self, Remotes};
use super::replace::Replacer;
use super::seat::Seat;
use super::sockets::{Door, OnFailure, Sockets};

/// What is served.
pub struct ServeSpec {
    /// The drives.
    pub drives: Vec<ServedDrive>,
    /// The policy's name.
    pub policy: &'static str,
    /// The engine's settings.
    pub config: Config,
    /// What `version` answers.
    pub version: String,
    /// Where clients connect.
    pub listen: Vec<Address>,
    /// Whether that may be reached from other machines.
    pub allow_remote: bool,
    /// Clients at a time: beyond, the one that has finished no command for longest is cut off.
    pub most_clients: usize,
    /// Whether remote drives are emptied first.
    pub overwrites: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Hears why the server has failed, should it fail once clients can connect. [`Serving::stop`] is what remains to be called.
    pub failed: Arc<dyn Fn(String) + Send + Sync>,
    /// Receives what happens.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The drives are not those of a store.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A drive cannot be used for a store, or not alone.
    #[error("{0}")]
    Refused(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// A server at work. Dropped, it ends, and changes that wait are lost.
pub struct Serving {
    handle: Handle,
    names: Vec<String>,
    door: Door,
    thread: Option<JoinHandle<Result<(), String>>>,
    accepting: Vec<Accepting>,
    /// Items that were found.
    pub items: u64,
    /// The most bytes of key and value of an item.
    pub item_limit: usize,
}

/// What the thread reports while it begins.
enum Begun {
    Loop(Handle, Door),
    Open(u64, usize),
}

/// On the server's thread: reports its panic.
struct Watched(OnFailure);

impl Drop for Watched {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)(PANICKED.to_owned());
        }
    }
}

const PANICKED: &str = "its thread has panicked";

pub(super) fn other(error: impl ToString) -> ServeError {
    ServeError::Other(error.to_string())
}

/// Serves memcached's protocols. Returns once clients can connect.
///
/// # Errors
/// Why not.
pub fn serve(spec: ServeSpec) -> Result<Serving, ServeError> {
    let (listen, allow_remote) = (spec.listen.clone(), spec.allow_remote);
    let names = spec.drives.iter().map(|drive| drive.name.clone()).collect();
    let (tell, begun) = channel();
    let life = move || -> Result<(), String> {
        let report = tell.clone();
        let watched = Watched(spec.failed.clone());
        live(spec, &move |what| drop(tell.send(what))).map_err(|error| {
            let text = error.to_string();
            drop(report.send(Err(error)));
            (watched.0)(text.clone());
            text
        })
    };
    let thread = std::thread::Builder::new().name("memcached".to_owned()).spawn(life).map_err(other)?;
    let (mut ways, mut open) = (None, None);
    while ways.is_none() || open.is_none() {
        match begun.recv() {
            Ok(Ok(Begun::Loop(handle, door))) => ways = Some((handle, door)),
            Ok(Ok(Begun::Open(items, limit))) => open = Some((items, limit)),
            Ok(Err(error)) => {
                ways.iter().for_each(|(handle, _): &(Handle, Door)| handle.stop());
                return Err(error);
            }
            Err(_) => return Err(other("the server has ended")),
        }
    }
    let (Some((handle, door)), Some((items, item_limit))) = (ways, open) else { unreachable!("both were awaited") };
    let mut serving = Serving { handle, names, door, thread: Some(thread), accepting: Vec::new(), items, item_limit };
    for address in listen {
        let listening = address.listen(allow_remote).map_err(|error| other(format!("{address}: {error}")))?;
        let door = serving.door.clone();
        let accepting = Accepting::start("memcached", listening, move |stream| door.enter(stream), |_| ());
        serving.accepting.push(accepting.map_err(other)?);
    }
    Ok(serving)
}

/// The thread's life.
fn live(spec: ServeSpec, tell: &(impl Fn(Result<Begun, ServeError>) + Clone + 'static)) -> Result<(), ServeError> {
    let executor = Executor::new();
    let sim = executor.sim();
    let (log, own) = (spec.log.clone(), Connections::default());
    let drives: Rc<[Drive]> = Drive::all(&sim, spec.drives, (spec.seed, &own), &|what| log(what))?.into();
    let (log, failed) = (spec.log.clone(), spec.failed.clone());
    let sockets = Sockets::new(&sim, (spec.most_clients, spec.seed), drives.clone(), (log, failed)).map_err(other)?;
    let sockets = Rc::new(sockets);
    let door = sockets.door();
    let seats = Seat::all(&drives, &sockets).ok_or_else(|| other("no drive can be reached"))?;
    let names = drives.iter().map(|drive| drive.name.clone()).collect();
    let port = Port::new(&sim, seats);
    (0..).zip(&*drives).for_each(|(number, drive)| drive.count_by(port.counter(number)));
    let given = drives.iter().map(|drive| drive.given(&sim)).collect::<Result<Vec<_>, _>>()?;
    let log = spec.log;
    let note = log.clone();
    let setup = Setup {
        timelines: vec![executor],
        port,
        names,
        poll: PollMode::Adaptive,
        log: Box::new(move |what| log(what)),
    };
    let (reactor, handle) = Reactor::new(setup).map_err(other)?;
    tell(Ok(Begun::Loop(handle, door)));
    let how = How { policy: spec.policy, config: spec.config, version: spec.version, overwrites: spec.overwrites };
    let members = drives.clone();
    let (clock, tell) = (sim.clone(), tell.clone());
    sim.spawn(async move {
        let opened = open(&clock, (&members, given), &how, &sockets, &|what| note(what)).await;
        if opened.is_ok() {
            // Only now it is known that the drives are members. A failing one that takes no mark is served around.
            members.iter().filter_map(Drive::join).for_each(|why| note(&why));
        }
        tell(opened);
    });
    let (mut timelines, _) = reactor.run().map_err(other)?;
    drives.iter().try_for_each(|drive| drive.turn_off(&mut timelines[0]))
}

/// How the engine is opened.
struct How {
    policy: &'static str,
    config: Config,
    version: String,
    overwrites: bool,
}

/// Opens the engine, and has clients served.
async fn open(
    sim: &Sim,
    (drives, given): (&[Drive], Vec<Option<Given>>),
    how: &How,
    sockets: &Rc<Sockets>,
    note: &dyn Fn(&str),
) -> Result<Begun, ServeError> {
    let policy = policy(how.policy).ok_or_else(|| other(format!("no policy {}", how.policy)))?;
    let host = Host::free(sim);
    let remotes = drives.iter().enumerate().filter_map(|(number, one)| Some((number, &*one.name, one.remote()?)));
    let remotes: Remotes<'_> = remotes.collect();
    remote::take(&host, &remotes, how.overwrites, note).await?;
    let config = Config { records_opening: !remotes.is_empty(), hedges_reads: !remotes.is_empty(), ..how.config };
    let engine = Engine::open(&host, given, policy, config).await?;
    remote::look_again(&remotes, &engine);
    let (items, limit) = (engine.stats().items, engine.item_limit());
    sockets.report(&engine);
    sockets.open(Server::new(engine, &how.version));
    Ok(Begun::Open(items, limit))
}

impl Serving {
    /// Where clients connect.
    pub fn addresses(&self) -> Vec<String> {
        self.accepting.iter().map(|accepting| accepting.address().to_string()).collect()
    }

    /// The loop of its drives, for an operator.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The way to put other drives in the place of lost ones.
    pub fn replacer(&self) -> Replacer {
        Replacer::new(self.names.clone(), self.door.clone())
    }

    /// Ends it in order: everything is on the drives afterwards. The engine's counters at the end.
    ///
    /// # Errors
    /// Why it is not, or why the server has ended by itself.
    pub fn stop(mut self) -> Result<Stats, String> {
        self.accepting.clear();
        let flushed = self.door.end().recv();
        self.handle.stop();
        let ended =
            self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(|_| Err(PANICKED.to_owned())));
        ended?;
        flushed.unwrap_or_else(|_| Err("the server has ended before everything was on its drives".to_owned()))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.accepting.clear();
        self.handle.stop();
        // `stop` reports why it ended.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
