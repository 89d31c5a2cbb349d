//! A live drive in this process, on a reactor's thread. It is started once for all inputs of a thread.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, DriveInfo, Subsystem};
use nandscape_sim::{Executor, Seed};
use nandscape_transport_reactor::handle::Figures;
use nandscape_transport_reactor::{Connect, Export, Handle, PollMode, Port, QueueExport, Reactor, Setup};
use nandscape_wire_nvme::Status;
use signal_hook::consts::SIGPIPE;
use tempfile::TempDir;

/// A server that takes longer than this for anything hangs.
pub(super) const HANGS: Duration = Duration::from_secs(20);
/// I/O queue pairs of the drive.
pub(super) const PAIRS: u16 = 8;
/// Memory of all clients in bytes.
const MEMORY: usize = 64 << 20;

struct Exported {
    ssd: Ssd,
    queues: QueueExport,
}

impl Connect for Exported {
    fn info(&self) -> DriveInfo {
        self.queues.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.queues.connect()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        Some(self.ssd.subsystem())
    }
}

impl Export for Exported {}

/// A drive and a listener for it, until it is dropped.
pub(super) struct Server<L> {
    pub(super) handle: Handle,
    pub(super) listener: Option<L>,
    reactor: Option<JoinHandle<Figures>>,
}

/// A listener at a socket in its own folder.
pub(super) struct AtSocket<L> {
    folder: TempDir,
    _listener: L,
}

impl<L> AtSocket<L> {
    /// Has `listen` begin to listen at the path that it is given.
    pub(super) fn new(listen: impl FnOnce(&Path) -> L) -> AtSocket<L> {
        let folder = tempfile::tempdir().expect("a folder");
        let _listener = listen(&folder.path().join("socket"));
        AtSocket { folder, _listener }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

/// What a listener has to know.
pub(super) struct Served {
    pub(super) handle: Handle,
    pub(super) nqn: String,
}

impl<L> Server<L> {
    /// Starts a drive of 64 MiB without delays, and a listener.
    pub(super) fn start(listen: impl FnOnce(&Served) -> L) -> Server<L> {
        // The server writes to clients that have gone. A test ignores the signal for that; the fuzzer would end.
        signal_hook::flag::register(SIGPIPE, Arc::default()).expect("a signal that can be handled");
        let (tell, told) = channel();
        let reactor = std::thread::spawn(move || {
            let executor = Executor::new();
            let export = exported(&executor);
            let nqn = export.ssd.subsystem().names().nqn.clone();
            let port = Port::new(&executor.sim(), vec![export]);
            let names = vec!["drive".to_owned()];
            let setup =
                Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log: Box::new(|_| ()) };
            let (reactor, handle) = Reactor::with_memory(setup, MEMORY).expect("a reactor");
            tell.send(Served { handle, nqn }).expect("it is waited for");
            reactor.run().expect("the reactor ends in order").1
        });
        let served = told.recv().expect("the reactor starts");
        let listener = Some(listen(&served));
        Server { handle: served.handle, listener, reactor: Some(reactor) }
    }

    /// Waits until no client is left, and no command.
    ///
    /// # Panics
    /// When some are left for long.
    #[expect(clippy::disallowed_methods, reason = "only time tells what never comes from what is slow")]
    pub(super) fn wait_until_idle(&self) {
        let begun = Instant::now();
        loop {
            let figures = self.handle.figures().expect("the reactor is at work");
            if figures.clients == 0 && figures.outstanding == 0 {
                return;
            }
            let (clients, commands) = (figures.clients, figures.outstanding);
            assert!(begun.elapsed() < HANGS, "{clients} clients and {commands} commands are left");
            std::thread::yield_now();
        }
    }
}

impl<L> Drop for Server<L> {
    fn drop(&mut self) {
        self.listener = None;
        self.handle.stop();
        let ended = self.reactor.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the reactor has panicked");
    }
}

/// A drive without clients.
pub(crate) fn export(executor: &Executor) -> Rc<impl Export + use<>> {
    exported(executor)
}

fn exported(executor: &Executor) -> Rc<Exported> {
    let mut profile = Profile::load("default").expect("it is built in");
    let pairs = format!("controller.queue_pairs={PAIRS}");
    let keys = ["capacity=64MiB", "controller.queue_entries=256", "buffer.mode=volatile", &pairs];
    keys.into_iter().for_each(|key| profile.set(key).expect("a key and its value"));
    let resolved = profile.resolve().expect("a drive").without_delay();
    let sim = executor.sim();
    let ssd = Ssd::new(&sim, &resolved, StoreKind::Ram, Seed::new(1)).expect("there is memory for it");
    let queues = QueueExport::new(&sim, ssd.controller(), PAIRS, 64);
    Rc::new(Exported { ssd, queues })
}
