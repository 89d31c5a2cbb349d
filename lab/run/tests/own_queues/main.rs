//! A host with queues of its own in a live drive's controller: admin commands, doorbells, resets and memory that comes
//! and goes arrive through the port, and the recording, run again in virtual time, gives the same events to the byte.
//! The host is a thread, and another process.
#![cfg(target_os = "linux")]

mod client;
mod host;
mod messages;

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{DriveSpec, LiveDrives, Precondition, Replay};
use nandscape_sim::Executor;
use nandscape_transport_reactor::handle::{Figures, Handle};
use nandscape_transport_reactor::recording::Recorder;
use nandscape_transport_reactor::ring::RingHost;
use nandscape_transport_reactor::{Export, PollMode, Port, Reactor, Setup};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use host::Host;

/// The environment variable that names the socket to a process that is the host, and that of its seed.
const SOCKET: &str = "NANDSCAPE_TEST_HOST_SOCKET";
const SEED: &str = "NANDSCAPE_TEST_SEED";

fn seed() -> u64 {
    std::env::var(SEED).map_or(7, |seed| seed.parse().expect("a number"))
}

fn drives(seed: u64) -> LiveDrives {
    let mut profile = Profile::load("default").unwrap();
    for (key, value) in [("capacity", "64MiB"), ("buffer.mode", "volatile")] {
        profile.set(&format!("{key}={value}")).unwrap();
    }
    let resolved = profile.resolve().unwrap();
    let spec = DriveSpec {
        name: "drive".to_owned(),
        number: 0,
        profile_name: resolved.name.clone(),
        profile: resolved.to_toml(),
        keeps_data: true,
        precondition: Precondition::None,
    };
    LiveDrives { version: "test".to_owned(), seed, drives: vec![spec] }
}

/// Stops a reactor, also when a host has found something wrong.
struct End(Handle);

impl Drop for End {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Serves a drive while `hosts` works; its trace and its figures.
fn serve(live: &LiveDrives, record: &Path, hosts: impl FnOnce(&Handle)) -> (String, Figures) {
    let (tell, told) = channel();
    thread::scope(|scope| {
        let reactor = scope.spawn(move || {
            let executor = Executor::new();
            let sim = executor.sim();
            let exports = live.build(&sim, &()).unwrap();
            sim.trace().switch_on();
            let mut port = Port::new(&sim, exports.iter().map(|export| export.clone() as Rc<dyn Export>).collect());
            port.record(Recorder::create(record, &serde_json::to_string(live).unwrap()).unwrap());
            let (names, poll) = (vec!["drive".to_owned()], PollMode::Adaptive);
            // Hosts break off.
            let log = Box::new(|_: &str| {});
            let (reactor, handle) = Reactor::new(Setup { executor, port, names, poll, log }).unwrap();
            tell.send(handle).unwrap();
            let (executor, figures) = reactor.run().unwrap();
            exports.iter().for_each(|export| export.ssd().check().unwrap());
            (executor.sim().trace().to_chrome_json(), figures)
        });
        let end = End(told.recv().unwrap());
        hosts(&end.0);
        drop(end);
        reactor.join().unwrap()
    })
}

/// Records a run and replays it.
fn the_clocks_agree(hosts: impl FnOnce(&Handle)) {
    let (folder, seed) = (tempfile::tempdir().unwrap(), seed());
    let record = folder.path().join("run.rec");
    let (trace, figures) = serve(&drives(seed), &record, hosts);
    let live = &figures.exports[0];
    assert!(live.writes.latency.count() > 100 && live.reads.latency.count() > 100, "seed {seed}");
    let again = Replay { recording: record, trace: true, check: true }.run(&()).unwrap();
    assert!(!again.broken_off, "seed {seed}");
    let report = &again.reports[0];
    for (direction, tally) in [("read", &live.reads), ("write", &live.writes)] {
        let found = &report.latency_us[direction];
        assert_eq!(found.count, tally.latency.count(), "seed {seed}: {direction}s");
        assert_eq!(found.max, Some(tally.latency.max().as_us()), "seed {seed}: the longest {direction}");
    }
    let again = again.trace.expect("it was asked for");
    let differs = trace.bytes().zip(again.bytes()).position(|(live, again)| live != again);
    assert_eq!((differs, trace.len()), (None, again.len()), "seed {seed}: the first byte that differs, the lengths");
}

/// Two hosts one after another: the first leaves in order, the second in the middle of its work.
#[test]
fn a_host_on_a_thread() {
    the_clocks_agree(|handle| {
        for in_order in [true, false] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            thread::scope(|scope| {
                let host = scope.spawn(move || Host::connect(theirs, seed(), in_order, 0).work(in_order));
                client::attach(handle, ours);
                host.join().unwrap();
            });
        }
    });
}

/// Two hosts with a controller each, and a client of the controller in this process, use one drive at once. Each resets
/// its controller and leaves in the middle of its work; the others see nothing of it.
#[test]
fn several_hosts_at_once() {
    the_clocks_agree(|handle| {
        let mut ring = RingHost::connect(handle, 0, 4).unwrap();
        let mut execute = |opcode, data: Vec<u8>| {
            ring.submit(1, SubmissionEntry::blocks(opcode, 1, 100_000, 8), data).unwrap();
            std::iter::repeat_with(|| ring.poll()).flatten().next().expect("they come without end")
        };
        thread::scope(|scope| {
            let work = |first| {
                let (ours, theirs) = UnixStream::pair().unwrap();
                let host = scope.spawn(move || Host::connect(theirs, seed(), true, first).work(false));
                client::attach(handle, ours);
                host
            };
            let hosts = [work(0), work(40_000)];
            for round in 0u32.. {
                let value = round as u8;
                assert_eq!(execute(IoOpcode::WRITE, vec![value; 4_096]).status, Status::SUCCESS);
                let read = execute(IoOpcode::READ, vec![0; 4_096]);
                assert_eq!((read.status, read.data), (Status::SUCCESS, vec![value; 4_096]));
                if hosts.iter().all(|host| host.is_finished()) {
                    break;
                }
            }
        });
    });
}

#[test]
fn a_host_that_is_another_process() {
    the_clocks_agree(|handle| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut host = Command::new(std::env::current_exe().unwrap());
        let mut host = host.args(["--exact", "the_other_process"]).env(SOCKET, &path).spawn().unwrap();
        client::attach(handle, listener.accept().unwrap().0);
        assert!(host.wait().unwrap().success(), "the host found something wrong");
    });
}

/// Not a test by itself: what the other process does.
#[test]
fn the_other_process() {
    if let Some(path) = std::env::var_os(SOCKET) {
        Host::connect(UnixStream::connect(path).unwrap(), seed(), true, 0).work(false);
    }
}
