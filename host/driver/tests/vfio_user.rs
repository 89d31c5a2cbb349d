//! The driver of PCI functions against the vfio-user server, with doorbells of each kind.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, DriveInfo, Subsystem};
use nandscape_host_driver::vfio_user::{Function, FunctionError, QueuePair};
use nandscape_sim::{Executor, Seed};
use nandscape_transport_reactor::{Export, Handle, PollMode, Port, Reactor, Setup};
use nandscape_transport_vfio_user::{DoorbellMode, Function as Served, Listener};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// The longest wait for a completion: a hang is reported.
const PATIENCE: Duration = Duration::from_secs(60);

struct Exported(Ssd);

impl Export for Exported {
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

/// A drive of 64 MiB as a PCI function.
struct Server {
    folder: tempfile::TempDir,
    listener: Option<Listener>,
    handle: Handle,
    reactor: Option<JoinHandle<()>>,
}

impl Server {
    fn start(doorbells: DoorbellMode) -> Server {
        let (tell, told) = channel();
        let reactor = std::thread::spawn(move || {
            let mut profile = Profile::load("default").unwrap();
            ["capacity=64MiB", "controller.queue_pairs=4"].into_iter().for_each(|key| profile.set(key).unwrap());
            let resolved = profile.resolve().unwrap().without_delay();
            let executor = Executor::new();
            let sim = executor.sim();
            let ssd = Ssd::new(&sim, &resolved, StoreKind::Ram, Seed::new(7)).unwrap();
            let port = Port::new(&sim, vec![Rc::new(Exported(ssd)) as Rc<dyn Export>]);
            let (names, log) = (vec!["drive".to_owned()], Box::new(|_: &str| ()));
            let setup = Setup { executor, port, names, poll: PollMode::Adaptive, log };
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
            queue_pairs: 4,
            doorbells,
            log: Arc::new(|_: &str| ()),
        };
        let listener = Some(Listener::start(served).unwrap());
        Server { folder, listener, handle, reactor: Some(reactor) }
    }

    fn path(&self) -> PathBuf {
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

#[expect(clippy::disallowed_methods, reason = "a test that hangs is reported")]
fn now() -> Instant {
    Instant::now()
}

/// Waits until all commands of a pair have completed successfully.
fn finish(pair: &mut QueuePair) {
    let begun = now();
    while pair.outstanding() > 0 {
        while let Some(entry) = pair.reap().unwrap() {
            assert_eq!(entry.status(), Status::SUCCESS);
        }
        pair.tell_head().unwrap();
        assert!(now().duration_since(begun) < PATIENCE, "{} commands have not completed", pair.outstanding());
    }
}

/// Writes and reads back many blocks of 4 KiB on two pairs; the queues wrap around several times.
fn work(function: &mut Function) {
    assert_eq!(function.namespace(1).unwrap(), (512, (64 << 20) / 512));
    let data = function.memory().take(16 * 4_096).unwrap();
    let mut pairs = [1, 15].map(|depth| function.create_pair(depth).unwrap());
    for round in 0..20u64 {
        for pair in &mut pairs {
            for opcode in [IoOpcode::WRITE, IoOpcode::READ] {
                for slot in 0..u64::from(pair.depth()) {
                    let (at, place) = (data + slot * 4_096, round * 16 + slot);
                    let bytes = if opcode == IoOpcode::WRITE { [place as u8 | 1; 4_096] } else { [0; 4_096] };
                    function.memory().write(at, &bytes).unwrap();
                    let entry = SubmissionEntry::blocks(opcode, 1, place * 8, 8);
                    pair.submit(&SubmissionEntry { cid: (slot as u16).into(), prp1: at.into(), ..entry }).unwrap();
                }
                let full = pair.submit(&SubmissionEntry::io(IoOpcode::FLUSH, 1));
                assert!(full.is_err(), "all entries are taken");
                finish(pair);
            }
            for slot in 0..u64::from(pair.depth()) {
                let mut bytes = [0; 4_096];
                function.memory().read(data + slot * 4_096, &mut bytes).unwrap();
                assert!(bytes == [(round * 16 + slot) as u8 | 1; 4_096], "round {round}, slot {slot}");
            }
        }
    }
}

/// Commands of `work`.
const COMMANDS: u64 = 20 * 2 * 16;

#[test]
fn doorbells_of_each_kind() {
    for (mode, buffers) in [
        (DoorbellMode::Trapped, false),
        (DoorbellMode::Shadow, true),
        (DoorbellMode::Shadow, false),
        (DoorbellMode::Buffered, true),
        (DoorbellMode::Mapped, false),
    ] {
        let server = Server::start(mode);
        let mut function = Function::connect(&server.path(), 64 * 4_096).unwrap();
        assert_eq!(function.maps_doorbells(), mode == DoorbellMode::Mapped);
        if buffers {
            function.use_doorbell_buffers().unwrap();
        }
        work(&mut function);
        let messages = function.doorbell_messages();
        match (mode, buffers) {
            (DoorbellMode::Mapped, _) => assert_eq!(messages, 0),
            // One for each command, and more for heads.
            (_, false) => assert!(messages > COMMANDS, "{mode:?}: {messages}"),
            // Their number depends on timing. Without any, no command would have begun.
            (_, true) => assert!(messages > 0, "{mode:?}"),
        }
    }
}

#[test]
fn what_is_wrong_is_told() {
    let server = Server::start(DoorbellMode::Trapped);
    let nowhere = Function::connect(&server.folder.path().join("nothing"), 0);
    assert!(matches!(nowhere, Err(FunctionError::Io(_))));
    let mut function = Function::connect(&server.path(), 3 * 4_096).unwrap();
    let error = function.namespace(9).unwrap_err().to_string();
    assert!(error.contains("Identify Namespace") || error.contains("no active namespace"), "{error}");
    function.create_pair(1).unwrap();
    let error = function.create_pair(1).err().expect("the memory is full").to_string();
    assert!(error.contains("left of the shared memory"), "{error}");
}
