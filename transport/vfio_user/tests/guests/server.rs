//! A live drive with PCI functions, on a reactor's thread.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, DriveInfo, Subsystem};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_transport_reactor::handle::Figures;
use nandscape_transport_reactor::{Connect, Export, Handle, PollMode, Port, Reactor, Setup};
use nandscape_transport_vfio_user::{DoorbellMode, Function, Listener};
use nandscape_wire_nvme::Status;

/// I/O queue pairs of the drive.
pub(crate) const PAIRS: u16 = 8;

struct Exported(Ssd);

impl Connect for Exported {
    fn info(&self) -> DriveInfo {
        self.0.subsystem().info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Err(Status::INVALID_QUEUE_ID)
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        Some(self.0.subsystem())
    }
}

impl Export for Exported {}

/// A drive and its functions, until it is dropped.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    listeners: Vec<Listener>,
    pub(crate) handle: Handle,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    reactor: Option<JoinHandle<Figures>>,
}

impl Server {
    /// Serves `functions` of one drive of 64 MiB.
    pub(crate) fn start(functions: usize, doorbells: DoorbellMode) -> Server {
        Server::run_by(functions, doorbells, small, |reactor| reactor.run().unwrap().1)
    }

    /// As [`Server::start`], with another drive, and a reactor that is run by `run`.
    pub(crate) fn run_by<E: Export + 'static>(
        functions: usize,
        doorbells: DoorbellMode,
        make: impl FnOnce(&Sim) -> Rc<E> + Send + 'static,
        run: impl FnOnce(Reactor) -> Figures + Send + 'static,
    ) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let (tell, told) = channel();
        let reactor = std::thread::spawn(move || run(reactor_of(make, |handle| tell.send(handle).unwrap())));
        let handle = receive(&told);
        let log = Arc::<Mutex<Vec<String>>>::default();
        let start = |number: usize| {
            let log = log.clone();
            Listener::start(Function {
                path: folder.path().join(number.to_string()),
                handle: handle.clone(),
                drive: 0,
                number: number as u16,
                queue_pairs: PAIRS,
                doorbells,
                log: Arc::new(move |text: &str| log.lock().unwrap().push(text.to_owned())),
            })
        };
        let listeners = (0..functions).map(|number| start(number).unwrap()).collect();
        Server { folder, listeners, handle, log, reactor: Some(reactor) }
    }

    /// The socket of a function.
    pub(crate) fn path(&self, number: usize) -> PathBuf {
        self.folder.path().join(number.to_string())
    }

    /// Ends it in order.
    pub(crate) fn stop(mut self) -> Figures {
        self.listeners.clear();
        self.handle.stop();
        self.reactor.take().unwrap().join().unwrap()
    }
}

fn receive(told: &Receiver<Handle>) -> Handle {
    told.recv().expect("the reactor starts")
}

/// A drive of 64 MiB with a cache.
fn small(sim: &Sim) -> Rc<Exported> {
    let mut profile = Profile::load("default").unwrap();
    let pairs = format!("controller.queue_pairs={PAIRS}");
    ["capacity=64MiB", "buffer.mode=volatile", &pairs].into_iter().for_each(|key| profile.set(key).unwrap());
    Rc::new(Exported(Ssd::new(sim, &profile.resolve().unwrap(), StoreKind::Ram, Seed::new(7)).unwrap()))
}

fn reactor_of<E: Export + 'static>(make: impl FnOnce(&Sim) -> Rc<E>, tell: impl FnOnce(Handle)) -> Reactor {
    let executor = Executor::new();
    let port = Port::new(&executor.sim(), vec![make(&executor.sim()) as Rc<dyn Export>]);
    let (names, log) = (vec!["drive".to_owned()], Box::new(|_: &str| ()));
    let setup = Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log };
    let (reactor, handle) = Reactor::new(setup).unwrap();
    tell(handle);
    reactor
}
