//! The target and the controller behind it do not allocate per command: runs of different lengths allocate equally
//! often. The drive does nothing, so that only they are counted.

use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::host::{Host, Pdu};
use crate::null::{self, Allocations, null};
use crate::server::Server;

/// Commands of the shorter run, and how many more the longer one has.
const COMMANDS: (u64, u64) = (2_000, 24_000);

/// Allocations of the reactor's thread while `load` runs a number of commands on a queue.
fn allocations(commands: u64, load: impl FnOnce(&mut Host, u64)) -> u64 {
    let counted = Allocations::default();
    let counts = counted.clone();
    let server = Server::run_by(None, 1 << 30, null, move |reactor| counts.of(reactor));
    let admin = Host::admin(&server, Digests::default());
    let mut queue = admin.queue(&server, 1, Digests::default());
    load(&mut queue, commands);
    drop((queue, admin));
    server.stop();
    counted.count()
}

fn allocates_nothing(name: &str, load: impl Fn(&mut Host, u64)) {
    null::allocates_nothing(name, COMMANDS, |commands| allocations(commands, &load));
}

#[test]
fn commands_of_the_usual_size_allocate_nothing() {
    allocates_nothing("reads, one at a time", |queue, commands| {
        for round in 0..commands {
            assert_eq!(queue.read(round % 1_000 * 8, 8).0, Status::SUCCESS);
        }
    });
    allocates_nothing("reads, 32 at a time", |queue, commands| {
        for _ in 0..commands / 32 {
            for cid in 0..32u16 {
                let read = SubmissionEntry::blocks(IoOpcode::READ, 1, u64::from(cid) * 8, 8);
                let read = SubmissionEntry { cid: cid.into(), ..read.with_sgl(SglDescriptor::transport(4_096)) };
                queue.send_capsule(read, &[]);
            }
            let mut ended = 0;
            while ended < 32 {
                match queue.receive() {
                    Pdu::Response(entry) => ended += u32::from(entry.status() == Status::SUCCESS),
                    Pdu::Data(..) => {}
                    other => panic!("{other:?} was not to come"),
                }
            }
        }
    });
    allocates_nothing("writes in capsules", |queue, commands| {
        for round in 0..commands {
            assert_eq!(queue.write_in_capsule(round % 8 * 8, &[round as u8; 4_096]), Status::SUCCESS);
        }
    });
    allocates_nothing("writes by transfers", |queue, commands| {
        for round in 0..commands {
            assert_eq!(queue.write(round % 8 * 8, &[round as u8; 4_096], 4_096), Status::SUCCESS);
        }
    });
}
