//! A small SSD behind a reactor on a thread, and a listener before it.

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, DriveInfo};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_transport_nvme_tcp::{Address, Listener, ListenerConfig, Subsystem};
use nandscape_transport_reactor::handle::Figures;
use nandscape_transport_reactor::recording::{Reader, Recorder};
use nandscape_transport_reactor::replay::{Ending, replay};
use nandscape_transport_reactor::{Connect, Export, Handle, PollMode, Port, QueueExport, Reactor, Released, Setup};
use nandscape_wire_nvme::Status;

/// A test that waits longer than this has failed.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

/// Serves a drive until it is stopped or dropped.
pub(crate) struct Server {
    pub(crate) handle: Handle,
    pub(crate) nqn: String,
    pub(crate) address: String,
    listener: Option<Listener>,
    reactor: Option<JoinHandle<Figures>>,
    complaints: Arc<Mutex<Vec<String>>>,
}

/// A drive with eight queue pairs.
pub(crate) struct SsdExport {
    ssd: Ssd,
    queues: QueueExport,
}

impl Connect for SsdExport {
    fn info(&self) -> DriveInfo {
        self.queues.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.queues.connect()
    }

    fn subsystem(&self) -> Option<Rc<dyn nandscape_drive::Subsystem>> {
        Some(self.ssd.subsystem())
    }
}

impl Export for SsdExport {}

impl SsdExport {
    pub(crate) fn of(sim: &Sim, ssd: Ssd) -> Rc<SsdExport> {
        let queues = QueueExport::new(sim, ssd.controller(), 8, 64);
        Rc::new(SsdExport { ssd, queues })
    }
}

fn export(sim: &Sim) -> Rc<SsdExport> {
    let mut profile = Profile::load("default").unwrap();
    for change in ["capacity=64MiB", "controller.queue_pairs=8", "controller.queue_entries=256"] {
        profile.set(change).unwrap();
    }
    let resolved = profile.resolve().unwrap().without_delay();
    let ssd = Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(1)).unwrap();
    SsdExport::of(sim, ssd)
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::with(None, 1 << 30)
    }

    /// Records to a file, if one is given; all clients together have `memory` bytes.
    pub(crate) fn with(record: Option<&Path>, memory: usize) -> Server {
        Server::of(record, memory, export)
    }

    /// Serves another drive than the small SSD.
    pub(crate) fn of<E: Export + 'static>(
        record: Option<&Path>,
        memory: usize,
        make: impl FnOnce(&Sim) -> Rc<E> + Send + 'static,
    ) -> Server {
        Server::run_by(record, memory, make, |reactor| reactor.run().unwrap().1)
    }

    /// As [`Server::of`]; the reactor is run by `run`.
    pub(crate) fn run_by<E: Export + 'static>(
        record: Option<&Path>,
        memory: usize,
        make: impl FnOnce(&Sim) -> Rc<E> + Send + 'static,
        run: impl FnOnce(Reactor) -> Figures + Send + 'static,
    ) -> Server {
        let complaints: Arc<Mutex<Vec<String>>> = Arc::default();
        let (tell, told) = channel();
        let hears = complaints.clone();
        let recorder = record.map(|path| Recorder::create(path, "{}").unwrap());
        let reactor = std::thread::spawn(move || {
            let executor = Executor::new();
            let export = make(&executor.sim());
            let nqn = export.subsystem().expect("it has controllers").names().nqn.clone();
            let mut port = Port::new(&executor.sim(), vec![export]);
            recorder.into_iter().for_each(|recorder| port.record(recorder));
            let log = Box::new(move |line: &str| hears.lock().unwrap().push(line.to_owned()));
            let names = vec!["drive".to_owned()];
            let setup = Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log };
            let (reactor, handle) = Reactor::with_memory(setup, memory).unwrap();
            tell.send((handle, nqn)).unwrap();
            run(reactor)
        });
        let (handle, nqn) = told.recv().unwrap();
        let hears = complaints.clone();
        let listener = Listener::start(ListenerConfig {
            address: Address::Tcp("127.0.0.1:0".to_owned()),
            allow_remote: false,
            max_clients: 64,
            patience: Duration::from_secs(20),
            subsystems: vec![Subsystem { nqn: nqn.clone(), handle: handle.clone(), number: 0 }],
            log: Box::new(move |line| hears.lock().unwrap().push(line.to_owned())),
        });
        let listener = listener.unwrap();
        let address = listener.address().to_string();
        Server { handle, nqn, address, listener: Some(listener), reactor: Some(reactor), complaints }
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap().clone()
    }

    /// Waits until the figures are so.
    pub(crate) fn until(&self, so: impl Fn(&Figures) -> bool) {
        self.until_told("", so);
    }

    /// As [`Server::until`]; where that never is, the test fails with these words.
    #[expect(clippy::disallowed_methods, reason = "only time tells what never comes from what is slow")]
    pub(crate) fn until_told(&self, words: &str, so: impl Fn(&Figures) -> bool) {
        let begun = Instant::now();
        while !so(&self.handle.figures().unwrap()) {
            assert!(begun.elapsed() < HANGS, "the figures do not become so {words}");
            std::thread::yield_now();
        }
    }

    /// Waits until the log has these words.
    #[expect(clippy::disallowed_methods, reason = "only time tells what never comes from what is slow")]
    pub(crate) fn until_complaint(&self, words: &str) {
        let begun = Instant::now();
        while !self.complaints().iter().any(|line| line.contains(words)) {
            assert!(begun.elapsed() < HANGS, "no complaint has {words:?}: {:?}", self.complaints());
            std::thread::yield_now();
        }
    }

    /// Ends it in order; its last figures.
    pub(crate) fn stop(mut self) -> Figures {
        self.end().expect("it was not stopped before")
    }

    fn end(&mut self) -> Option<Figures> {
        self.listener = None;
        self.handle.stop();
        Some(self.reactor.take()?.join().expect("the reactor has not panicked"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

/// The completions of a recorded run that is run again: opcode, tag-independent result and time of each command.
pub(crate) fn replayed(path: &Path) -> (Vec<(u8, u64, Status)>, Ending) {
    let mut executor = Executor::new();
    let mut port = Port::new(&executor.sim(), vec![export(&executor.sim())]);
    let mut released = Vec::new();
    let mut seen = |one: Released, _| released.push((one.opcode, one.at.ns(), one.completion.status));
    let replayed =
        replay(std::slice::from_mut(&mut executor), &mut port, &mut Reader::open(path).unwrap(), &mut seen).unwrap();
    (released, replayed.ending)
}
