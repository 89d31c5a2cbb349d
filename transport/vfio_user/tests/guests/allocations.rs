//! The server and the controller behind it do not allocate per command: runs of different lengths allocate equally
//! often. The drive does nothing, so that only they are counted.

use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::{IoOpcode, Status};

use crate::host::{Host, Pointer};
use crate::null::{self, Allocations, null};
use crate::server::Server;

/// Rounds of the shorter run, and how many more the longer one has.
const ROUNDS: (u64, u64) = (200, 1_000);

/// Allocations of the reactor's thread while a host runs a number of rounds.
fn allocations(mode: DoorbellMode, rounds: u64, round: &impl Fn(&mut Host)) -> u64 {
    let counted = Allocations::default();
    let counts = counted.clone();
    let server = Server::run_by(1, mode, null, move |reactor| counts.of(reactor));
    let mut host = Host::start(&server.path(0));
    if mode != DoorbellMode::Mapped {
        host.use_buffers();
        for id in 1..3 {
            host.delete(id);
            host.create(id);
        }
    }
    (0..rounds).for_each(|_| round(&mut host));
    drop(host);
    server.stop();
    counted.count()
}

/// Commands on queue 1, all at once, each of `blocks` blocks.
fn commands(host: &mut Host, opcode: IoOpcode, count: u64, blocks: u32, pointer: Pointer) {
    for number in 0..count {
        let entry = host.entry(opcode, number, number * 32, blocks, pointer);
        host.put(1, number as u16, entry);
    }
    host.ring(1);
    for _ in 0..count {
        assert_eq!(host.wait(1).status(), Status::SUCCESS);
    }
}

/// Each round has `count` commands.
fn allocates_nothing(name: &str, count: u64, round: impl Fn(&mut Host)) {
    for mode in [DoorbellMode::Mapped, DoorbellMode::Buffered] {
        let (rounds, more) = ROUNDS;
        null::allocates_nothing(&format!("{name}, {mode:?}"), (rounds * count, more * count), |commands| {
            allocations(mode, commands / count, &round)
        });
    }
}

#[test]
fn commands_of_the_usual_sizes_allocate_nothing() {
    for (name, opcode) in [("reads", IoOpcode::READ), ("writes", IoOpcode::WRITE)] {
        allocates_nothing(&format!("{name} of 4 KiB, one at a time"), 1, |host| {
            commands(host, opcode, 1, 8, Pointer::Prp);
        });
        allocates_nothing(&format!("{name} of 4 KiB, 24 at a time"), 24, |host| {
            commands(host, opcode, 24, 8, Pointer::Prp);
        });
        allocates_nothing(&format!("{name} of 16 KiB with SGLs, 24 at a time"), 24, |host| {
            commands(host, opcode, 24, 32, Pointer::Sgl);
        });
    }
}
