//! A host with its own queues in a live drive's controller: admin commands, doorbells, resets and memory that comes
//! and goes arrive through the port. The recording, run again in simulated time, gives the same events to the byte.
//! The host is a thread, and another process.
#![cfg(target_os = "linux")]

mod client;
mod host;
mod messages;
#[path = "../recorded/mod.rs"]
mod recorded;

use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::thread;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Chain, DriveSpec, LiveDrives, Precondition};
use nandscape_transport_reactor::PollMode;
use nandscape_transport_reactor::handle::Handle;
use nandscape_transport_reactor::ring::RingHost;
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
        from_state: None,
        is_shared: false,
        own_seed: None,
    };
    let (version, layers) = ("test".to_owned(), Chain::default());
    LiveDrives { version, seed, drives: vec![spec], layers, is_engine: false, assign: Vec::new() }
}

/// Records a run and replays it.
fn the_clocks_agree(hosts: impl FnOnce(&Handle)) {
    let (folder, seed) = (tempfile::tempdir().unwrap(), seed());
    let record = folder.path().join("run.rec");
    let work = |handle: &Handle, _| hosts(handle);
    let (trace, figures) = recorded::serve(&drives(seed), PollMode::Adaptive, &record, work);
    let live = &figures.exports[0];
    assert!(live.writes.latency.count() > 100 && live.reads.latency.count() > 100, "seed {seed}");
    let report = &recorded::replay(record, &trace, &format!("seed {seed}"))[0];
    for (direction, tally) in [("read", &live.reads), ("write", &live.writes)] {
        let found = &report.latency_us[direction];
        assert_eq!(found.count, tally.latency.count(), "seed {seed}: {direction}s");
        assert_eq!(found.max, Some(tally.latency.max().as_us()), "seed {seed}: the longest {direction}");
    }
}

/// Two hosts one after another: the first leaves in order, the second in the middle of its work.
#[test]
fn a_host_on_a_thread() {
    the_clocks_agree(|handle| {
        for in_order in [true, false] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            thread::scope(|scope| {
                let host = scope.spawn(move || Host::connect(theirs, seed(), in_order, 0).work(in_order));
                client::attach(handle, ours, false);
                host.join().unwrap();
            });
        }
    });
}

/// The same where the drive reaches none of the hosts' memory, and asks for all of it.
#[test]
fn a_host_that_is_asked_for_its_memory() {
    the_clocks_agree(|handle| {
        for in_order in [true, false] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            thread::scope(|scope| {
                let host = scope.spawn(move || Host::connect(theirs, seed(), in_order, 0).work(in_order));
                client::attach(handle, ours, true);
                host.join().unwrap();
            });
        }
    });
}

/// Three users of one drive at once: two hosts with a controller each, one of them asked for its memory, and a client of the
/// controller in this process. Each resets its controller and leaves in the middle of its work; the others notice nothing.
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
                client::attach(handle, ours, first > 0);
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
        client::attach(handle, listener.accept().unwrap().0, false);
        assert!(host.wait().unwrap().success(), "the host found something wrong");
    });
}

/// The code of the other process; no test by itself.
#[test]
fn the_other_process() {
    if let Some(path) = std::env::var_os(SOCKET) {
        Host::connect(UnixStream::connect(path).unwrap(), seed(), true, 0).work(false);
    }
}
