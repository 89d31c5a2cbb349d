//! The reactor, a queue pair in this process and the controller behind it allocate nothing for a command.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use nandscape_sim::Executor;
use nandscape_transport_reactor::ring::RingHost;
use nandscape_transport_reactor::{PollMode, Port, Reactor, Setup};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::null::{Allocations, allocates_nothing, null};

/// Commands of the shorter run, and how many more the longer one has.
const COMMANDS: (u64, u64) = (2_000, 24_000);
/// A test that waits longer than this for a command has failed.
const HANGS: Duration = Duration::from_secs(60);

/// Allocations of the reactor's thread while commands of 4 KiB run on a ring, `depth` at a time.
fn allocations(opcode: IoOpcode, depth: usize, commands: u64) -> u64 {
    let (counted, (tell, told)) = (Allocations::default(), channel());
    let counts = counted.clone();
    let thread = std::thread::spawn(move || {
        let executor = Executor::new();
        let port = Port::new(&executor.sim(), vec![null(&executor.sim())]);
        let (names, log) = (vec!["null".to_owned()], Box::new(|_: &str| ()));
        let setup = Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log };
        let (reactor, handle) = Reactor::new(setup).unwrap();
        tell.send(handle).unwrap();
        counts.of(reactor)
    });
    let handle = told.recv().unwrap();
    let mut host = RingHost::connect(&handle, 0, depth).unwrap();
    let mut buffers: Vec<Vec<u8>> = (0..depth).map(|_| vec![7; 4_096]).collect();
    let (mut begun, mut ended) = (0, 0);
    while ended < commands {
        while begun < commands
            && let Some(buffer) = buffers.pop()
        {
            let entry = SubmissionEntry::blocks(opcode, 1, begun % 1_000 * 8, 8);
            assert!(host.submit(begun, entry, buffer).is_ok(), "there is room for {depth}");
            begun += 1;
        }
        let reply = next(&mut host);
        assert_eq!(reply.status, Status::SUCCESS);
        buffers.push(reply.data);
        ended += 1;
    }
    drop(host);
    handle.stop();
    thread.join().unwrap();
    counted.count()
}

/// The next completion.
#[expect(clippy::disallowed_methods, reason = "only time tells what never comes from what is slow")]
fn next(host: &mut RingHost) -> nandscape_transport_reactor::ring::Reply {
    let begun = Instant::now();
    loop {
        if let Some(reply) = host.poll() {
            return reply;
        }
        assert!(begun.elapsed() < HANGS, "a command does not complete");
        std::thread::yield_now();
    }
}

#[test]
fn commands_over_a_ring_allocate_nothing() {
    for (opcode, name) in [(IoOpcode::READ, "reads"), (IoOpcode::WRITE, "writes")] {
        for depth in [1, 32] {
            allocates_nothing(&format!("{name}, {depth} at a time"), COMMANDS, |commands| {
                allocations(opcode, depth, commands)
            });
        }
    }
}
