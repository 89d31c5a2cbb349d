//! A thread with a drive and its server.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use nandscape_apps_kv_engine::noise::{Noise, Pattern};
use nandscape_apps_kv_engine::store::Layout;
use nandscape_apps_kv_engine::{Server, ServerConfig, Store};
use nandscape_apps_store::Cpu;
use nandscape_device_media::durable::StoreFile;
use nandscape_drive::Drive;
use nandscape_host_block::Config as BlockConfig;
use nandscape_lab_run::DriveSpec;
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_transport_reactor::listening::Accepting;
use nandscape_transport_reactor::socket::Address;
use nandscape_transport_reactor::{Export, Handle, PollMode, Port, Reactor, Setup};

use super::export::{KvExport, Service};
use super::sockets::{MOST_CLIENTS, Sockets};
use crate::place::{halves, segment_bytes};

/// The served drive and store.
pub struct ServeSpec {
    /// The drive.
    pub drive: DriveSpec,
    /// The file that it is in, if it is in one.
    pub file: Option<StoreFile>,
    /// Where clients connect.
    pub listen: Address,
    /// Whether that may be reached from other machines.
    pub allow_remote: bool,
    /// The block layer between the drive and the store.
    pub block: BlockConfig,
    /// Noise on the other half of the drive. It passes the block layer, which knows of all that a get may have to wait for.
    pub noise: Option<Pattern>,
    /// Seed of everything random.
    pub seed: u64,
    /// Receives messages for the log.
    pub log: Box<dyn Fn(&str) + Send>,
}

/// A running server. Dropping it ends it.
pub struct Serving {
    handle: Handle,
    thread: Option<JoinHandle<Result<(), String>>>,
    accepting: Option<Accepting>,
}

/// Serves a store on a drive. Returns once clients can connect.
///
/// # Errors
/// Why not.
pub fn serve(spec: ServeSpec) -> Result<Serving, String> {
    spec.listen.check(spec.allow_remote).map_err(|error| format!("{}: {error}", spec.listen))?;
    let (address, allow_remote) = (spec.listen.clone(), spec.allow_remote);
    let (tell, ready) = channel();
    let life = move || -> Result<(), String> {
        let (executor, sockets) = (Executor::new(), Sockets::new(MOST_CLIENTS).map_err(|error| error.to_string())?);
        let sim = executor.sim();
        let name = spec.drive.name.clone();
        let drive = spec.drive.build_in(&sim, spec.seed, spec.file, &()).map_err(|error| error.to_string())?;
        let layer = nandscape_lab_run::block_layer(&sim, drive.ssd(), drive.profile().priority(), &spec.block)?;
        let drive: Rc<dyn Export> = Rc::new(drive);
        let door = sockets.door();
        let service = Rc::new(Service {
            sockets,
            server: RefCell::default(),
            store: RefCell::default(),
            news: RefCell::default(),
            is_ending: Cell::new(false),
        });
        let connect = || {
            let below = drive.connect().map_err(|status| format!("the drive has no queue pair: {status}"))?;
            Ok::<Rc<dyn Drive>, String>(layer.over(below))
        };
        let (io, beside) = (connect()?, connect()?);
        let opened = tell.clone();
        let (noise, seed, served) = (spec.noise, Seed::new(spec.seed), service.clone());
        let clock = sim.clone();
        sim.spawn(async move {
            let outcome = open(&clock, io, &served, seed).await;
            if outcome.is_ok()
                && let Some(pattern) = noise
            {
                let noise = Noise::new(&clock, beside.clone(), halves(&beside).1);
                clock.spawn(noise.run(pattern, seed.child("noise")));
            }
            // The receiving thread is waiting for it.
            let _ = opened.send(outcome.map(|()| None));
        });
        let export: Rc<dyn Export> = Rc::new(KvExport { drive, layer, service });
        let port = Port::new(&sim, vec![export]);
        let log = spec.log;
        let setup = Setup { timelines: vec![executor], port, names: vec![name], poll: PollMode::Adaptive, log };
        let (reactor, handle) = Reactor::new(setup).map_err(|error| error.to_string())?;
        let _ = tell.send(Ok(Some((handle, door))));
        reactor.run().map(drop).map_err(|error| error.to_string())
    };
    let started = std::thread::Builder::new().name("kv server".to_owned()).spawn(life);
    let thread = started.map_err(|error| error.to_string())?;
    let (mut ways, mut is_open) = (None, false);
    while ways.is_none() || !is_open {
        match ready.recv() {
            Ok(Ok(Some(found))) => ways = Some(found),
            Ok(Ok(None)) => is_open = true,
            Ok(Err(problem)) => {
                ways.iter().for_each(|(handle, _): &(Handle, _)| handle.stop());
                return Err(problem);
            }
            Err(_) => return Err(ended(thread).err().unwrap_or_else(|| "the server has ended".to_owned())),
        }
    }
    let Some((handle, door)) = ways else { unreachable!("it was awaited") };
    let mut serving = Serving { handle, thread: Some(thread), accepting: None };
    let listening = address.listen(allow_remote).map_err(|error| format!("{address}: {error}"))?;
    let accepting = Accepting::start("kv", listening, move |stream| door.enter(stream), |_| ());
    serving.accepting = Some(accepting.map_err(|error| error.to_string())?);
    Ok(serving)
}

fn ended(thread: JoinHandle<Result<(), String>>) -> Result<(), String> {
    thread.join().unwrap_or_else(|_| Err("its thread has panicked".to_owned()))
}

/// Opens the store, and has the sockets served.
async fn open(sim: &Sim, drive: Rc<dyn Drive>, service: &Rc<Service>, seed: Seed) -> Result<(), String> {
    let (extent, _) = halves(&drive);
    let layout = Layout { extent, segment_bytes: segment_bytes(&extent, &drive.info()) };
    let id = seed.child("store").value();
    let keeps_data = drive.info().keeps_data;
    let store = if keeps_data {
        Store::open(sim, drive, layout, id).await
    } else {
        Store::create(sim, drive, layout, id).await
    };
    let store = Rc::new(store.map_err(|error| error.to_string())?);
    let unreadable = store.stats().unreadable;
    if unreadable > 0 {
        let news = format!("{unreadable} blocks of the store cannot be read, and the values in them are lost here");
        service.news.replace(Some(news));
    }
    let cpu = Rc::new(Cpu::elsewhere(sim));
    let config = ServerConfig { work: [Span::ZERO; 2], ..ServerConfig::default() };
    let server = Rc::new(Server::new(sim, store.clone(), cpu, config));
    service.sockets.open(server.clone());
    service.server.replace(Some(server));
    service.store.replace(Some(store));
    Ok(())
}

impl Serving {
    /// Where clients connect.
    pub fn address(&self) -> Option<&Address> {
        self.accepting.as_ref().map(Accepting::address)
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// Why it ended by itself, if it did.
    pub fn stop(mut self) -> Result<(), String> {
        self.accepting = None;
        self.handle.stop();
        self.thread.take().map_or(Ok(()), ended)
    }

    /// A handle to the loop.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.accepting = None;
        self.handle.stop();
        // `stop` returns the reason.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
