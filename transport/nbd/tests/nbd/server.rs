//! A reactor on a thread, and a listener before it.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nandscape_sim::{Executor, Sim};
use nandscape_transport_nbd::{Address, Exported, Listener, ListenerConfig};
use nandscape_transport_reactor::handle::Figures;
use nandscape_transport_reactor::{Export, Handle, PollMode, Port, Reactor, Setup};

use crate::client::HANGS;
use crate::drive::{Log, PlainExport, Seen};

/// The drives, by their export names.
pub(crate) const NAMES: [&str; 2] = ["first", "second"];

/// Serves two drives until it is stopped or dropped.
pub(crate) struct Server {
    pub(crate) handle: Handle,
    pub(crate) path: PathBuf,
    listener: Option<Listener>,
    reactor: Option<JoinHandle<Figures>>,
    logs: Vec<Log>,
    /// Log messages about clients.
    complaints: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

/// What may differ.
pub(crate) struct Limits {
    pub(crate) max_clients: usize,
    pub(crate) patience: Duration,
    /// Clients of each drive.
    pub(crate) pairs: usize,
    /// Memory of all clients.
    pub(crate) memory: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_clients: 64, patience: Duration::from_secs(60), pairs: 64, memory: 1 << 30 }
    }
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Server {
        let logs = vec![Log::default(), Log::default()];
        let (hear, most) = (logs.clone(), limits.pairs);
        let plain = move |sim: &Sim| -> Vec<_> {
            hear.into_iter().map(|log| Rc::new(PlainExport::new(sim, log, most))).collect()
        };
        let mut server = Server::serving(limits, plain);
        server.logs = logs;
        server
    }

    /// Serves two other drives.
    pub(crate) fn serving<E: Export + 'static>(
        limits: Limits,
        make: impl FnOnce(&Sim) -> Vec<Rc<E>> + Send + 'static,
    ) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nbd.sock");
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let (handle, reactor) = start_reactor(make, complaints.clone(), limits.memory);
        let exported = |name: &str| Exported { name: name.to_owned(), description: format!("the {name} one") };
        let hears = complaints.clone();
        let listener = Listener::start(ListenerConfig {
            address: Address::Unix(path.clone()),
            allow_remote: false,
            max_clients: limits.max_clients,
            patience: limits.patience,
            exports: NAMES.iter().zip(0..).map(|(name, number)| (exported(name), handle.clone(), number)).collect(),
            log: Box::new(move |line| hears.lock().unwrap().push(line.to_owned())),
        });
        let listener = Some(listener.unwrap());
        Server { handle, path, listener, reactor: Some(reactor), logs: Vec::new(), complaints, _folder: folder }
    }

    /// The first drive's commands since the last call.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.logs[0].lock().unwrap())
    }

    pub(crate) fn figures(&self) -> Arc<Figures> {
        self.handle.figures().expect("the reactor is at work")
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap().clone()
    }

    /// Waits until the figures are so. A test that waits for a minute has failed.
    #[expect(
        clippy::disallowed_methods,
        reason = "only time distinguishes a server that is silent from one that is slow"
    )]
    pub(crate) fn until(&self, so: impl Fn(&Figures) -> bool) {
        let begun = Instant::now();
        while !so(&self.figures()) {
            assert!(begun.elapsed() < HANGS, "it does not come to that");
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
        let figures = self.reactor.take()?.join();
        assert!(!self.path.exists(), "a server that has ended leaves no socket");
        Some(figures.expect("the reactor has not panicked"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

fn start_reactor<E: Export + 'static>(
    make: impl FnOnce(&Sim) -> Vec<Rc<E>> + Send + 'static,
    complaints: Arc<Mutex<Vec<String>>>,
    memory: usize,
) -> (Handle, JoinHandle<Figures>) {
    let (tell, told) = channel();
    let reactor = std::thread::spawn(move || {
        let executor = Executor::new();
        let sim = executor.sim();
        let exports = make(&sim).into_iter().map(|export| export as Rc<dyn Export>).collect();
        let port = Port::new(&sim, exports);
        let names = NAMES.map(str::to_owned).to_vec();
        let log = Box::new(move |line: &str| complaints.lock().unwrap().push(line.to_owned()));
        let setup = Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log };
        let (reactor, handle) = Reactor::with_memory(setup, memory).unwrap();
        tell.send(handle).unwrap();
        reactor.run().unwrap().1
    });
    (told.recv().unwrap(), reactor)
}
