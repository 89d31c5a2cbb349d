//! The checks of every drive, over the connection. The executor of a check runs in simulated time, in which a task
//! polls the initiator; the target runs in real time on its own thread.

use std::rc::Rc;

use nandscape_drive::conformance::{self, Deallocation, Load, Subject};
use nandscape_drive::{Drive, DriveInfo};
use nandscape_host_driver::Remote;
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::tcp::Digests;

use crate::server::Server;

/// Connects, and polls from a task of `sim`.
pub(crate) fn polled(sim: &Sim, target: Target) -> Rc<NvmeTcp> {
    let (clock, time) = (sim.clone(), sim.clone());
    let drive = Rc::new(NvmeTcp::connect(target, Box::new(move || time.now())).unwrap());
    let weak = Rc::downgrade(&drive);
    sim.spawn(async move {
        while let Some(drive) = weak.upgrade() {
            drive.poll().unwrap();
            let pause = if drive.outstanding() > 0 { Span::from_us(1) } else { Span::from_ms(10) };
            drop(drive);
            clock.sleep(pause).await;
        }
    });
    drive
}

pub(crate) fn target(server: &Server, digests: Digests, queues: u16) -> Target {
    // Simulated time may run far ahead, so no timeout may expire.
    let (keep_alive, patience) = (Span::from_s(40_000), Span::from_s(1_000_000));
    Target { digests, queues, keep_alive, patience, ..Target::new(&server.address, &server.nqn) }
}

#[test]
fn a_remote_drive_passes_the_checks_of_every_drive() {
    let load = Load { steps: 600, ..Load::default() };
    for (digests, queues) in
        [(Digests::default(), 1), (Digests { header: true, data: false }, 2), (Digests { header: true, data: true }, 3)]
    {
        let servers = std::cell::RefCell::new(Vec::new());
        let make = |sim: &Sim| {
            // A new drive for each check.
            let server = Server::start();
            let drive = polled(sim, target(&server, digests, queues));
            servers.borrow_mut().push(server);
            Subject { deallocation: Deallocation::OldOrZeros, ..Subject::new(drive) }
        };
        let outcome = conformance::fields(&make, 1)
            .and_then(|()| conformance::data(&make, &load, 2))
            .and_then(|()| conformance::overlap(&make, 3))
            .and_then(|()| conformance::once_each(&make, 4));
        assert_eq!(outcome, Ok(()), "{digests:?}, {queues} queues");
    }
}

#[test]
fn a_remote_drive_says_what_it_is() {
    let server = Server::start();
    let drive = NvmeTcp::connect(Target::new(&server.address, &server.nqn), Box::new(|| Time::ZERO)).unwrap();
    let DriveInfo { nsid, blocks, lba_bytes, max_blocks, keeps_data, .. } = drive.info();
    assert_eq!((nsid, blocks * u64::from(lba_bytes), lba_bytes, keeps_data), (1, 64 << 20, 512, true));
    assert_eq!(max_blocks * lba_bytes, 2 << 20);
}

#[test]
fn a_target_that_cannot_be_used_is_told() {
    let server = Server::start();
    let error = |target: Target| NvmeTcp::connect(target, Box::new(|| Time::ZERO)).err().unwrap().to_string();
    let unknown = error(Target::new(&server.address, "nqn.unknown"));
    assert_eq!(unknown, "Connect: the target answers Connect Invalid Parameters");
    let discovery = error(Target::new(&server.address, nandscape_wire_nvme::fabrics::DISCOVERY_NQN));
    assert!(discovery.contains("Identify: the target answers Invalid Field"), "{discovery}");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert!(error(Target::new(closed, &server.nqn)).contains("refused"));
}
