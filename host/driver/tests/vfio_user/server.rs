//! A vfio-user server of a drive, for tests of its clients.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{Drive, DriveInfo, Subsystem};
use nandscape_sim::{Executor, Seed};
use nandscape_transport_reactor::{Connect, Export, Handle, PollMode, Port, Reactor, Setup};
use nandscape_transport_vfio_user::{DoorbellMode, Function as Served, Listener};
use nandscape_wire_nvme::Status;

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

fn resolved(name: &str, changes: &[&str]) -> Resolved {
    let mut profile = Profile::load(name).unwrap();
    changes.iter().for_each(|key| profile.set(key).unwrap());
    profile.resolve().unwrap()
}

/// A drive as a PCI function.
pub(crate) struct Server {
    pub(crate) folder: tempfile::TempDir,
    listener: Option<Listener>,
    handle: Handle,
    reactor: Option<JoinHandle<()>>,
}

impl Server {
    /// A drive of 64 MiB.
    pub(crate) fn start(doorbells: DoorbellMode) -> Server {
        Server::of("default", &["capacity=64MiB", "controller.queue_pairs=4"], doorbells)
    }

    /// A drive with a changed profile, whose operations take no time.
    pub(crate) fn of(name: &'static str, changes: &'static [&'static str], doorbells: DoorbellMode) -> Server {
        Server::made(doorbells, move || resolved(name, changes).without_delay())
    }

    /// The same, whose operations take the profile's times.
    pub(crate) fn timed(name: &'static str, changes: &'static [&'static str], doorbells: DoorbellMode) -> Server {
        Server::made(doorbells, move || resolved(name, changes))
    }

    fn made(doorbells: DoorbellMode, profile: impl FnOnce() -> Resolved + Send + 'static) -> Server {
        let (tell, told) = channel();
        let reactor = std::thread::spawn(move || {
            let resolved = profile();
            let executor = Executor::new();
            let sim = executor.sim();
            let ssd = Ssd::new(&sim, &resolved, StoreKind::Ram, Seed::new(7)).unwrap();
            let port = Port::new(&sim, vec![Rc::new(Exported(ssd)) as Rc<dyn Export>]);
            let (names, log) = (vec!["drive".to_owned()], Box::new(|_: &str| ()));
            let setup = Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log };
            let (reactor, handle) = Reactor::new(setup).unwrap();
            tell.send(handle).unwrap();
            reactor.run().unwrap();
        });
        let handle = told.recv().expect("the reactor starts");
        let folder = tempfile::tempdir().unwrap();
        let served = Served {
            path: folder.path().join("function"),
            handle: handle.clone(),
            drive: 0,
            number: 0,
            queue_pairs: 4,
            doorbells,
            log: Arc::new(|_: &str| ()),
        };
        let listener = Some(Listener::start(served).unwrap());
        Server { folder, listener, handle, reactor: Some(reactor) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("function")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.listener.take());
        self.handle.stop();
        if let Some(reactor) = self.reactor.take() {
            reactor.join().expect("the reactor ends in order");
        }
    }
}
