//! The initiator does not allocate per command: runs of different lengths allocate equally often.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::mem::Buffer;
use nandscape_drive::{Completion, Drive, HostMem, Io, Token};
use nandscape_host_driver::Remote;
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_sim::Span;
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::server::Server;

/// Counts commands that have succeeded.
#[derive(Default)]
struct Ended(Cell<u64>);

impl Sink for Ended {
    fn complete(&self, _: u64, completion: Completion) {
        assert!(completion.status.is_success(), "{:?}", completion.status);
        self.0.set(self.0.get() + 1);
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

/// Allocations of `commands` commands, 32 at a time.
fn allocations(drive: &NvmeTcp, clock: WallClock, opcode: IoOpcode, commands: u64) -> u64 {
    let (ended, buffer): (Rc<Ended>, Buffer) = (Rc::default(), Rc::new(vec![7; 4_096].into()));
    let deadline = clock.now() + Span::from_s(60);
    let info = allocation_counter::measure(|| {
        let mut submitted = 0;
        while ended.0.get() < commands {
            while submitted < commands && submitted - ended.0.get() < 32 {
                let command = SubmissionEntry::blocks(opcode, 1, submitted % 64 * 8, 8);
                let (mem, token) = (HostMem::whole(&buffer), Token::new(ended.clone(), submitted));
                drive.submit(Io { command, mem, token });
                submitted += 1;
            }
            assert!(clock.now() < deadline, "{} of {commands} commands ended", ended.0.get());
            drive.poll().unwrap();
        }
    });
    info.count_total
}

#[test]
fn commands_of_the_usual_size_allocate_nothing() {
    let server = Server::start();
    let clock = WallClock::start();
    let drive = NvmeTcp::connect(Target::new(&server.address, &server.nqn), Box::new(move || clock.now())).unwrap();
    for opcode in [IoOpcode::READ, IoOpcode::WRITE] {
        // Buffers and lists grow to their size.
        allocations(&drive, clock, opcode, 2_000);
        let count = allocations(&drive, clock, opcode, 10_000);
        assert!(count < 10, "{opcode:?}: {count} allocations for 10,000 commands");
    }
}
