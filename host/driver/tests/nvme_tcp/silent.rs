//! Connections that stay open but carry nothing: they end within the patience, whichever direction is lost. The
//! initiator waits for a drive that is only slow.
//!
//! The initiator has a clock of the test, which stops during waits, so no outcome depends on the machine's speed.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Io, Token};
use nandscape_host_driver::Remote as _;
use nandscape_host_driver::nvme_tcp::{AdminQueue, NvmeTcp, Target};
use nandscape_sim::{Seed, Span, Time};
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::identify::cns;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::breaking::Ended;
use crate::proxy::{Fate, Passing, Proxy};
use crate::server::{Server, SsdExport};

const PATIENCE: Span = Span::from_s(1_000);
/// The step of the clock.
const STEP: Span = Span::from_s(50);
/// Host Pathing Error.
const FAILED: Status = Status::new(3, 0x70);

struct Rig {
    drive: Rc<NvmeTcp>,
    ended: Rc<Ended>,
    time: Rc<Cell<Time>>,
}

impl Rig {
    fn new(address: &str, nqn: &str, queues: u16) -> Rig {
        Rig::with(Target { queues, patience: PATIENCE, keep_alive: PATIENCE, ..Target::new(address, nqn) })
    }

    fn with(target: Target) -> Rig {
        let time = Rc::new(Cell::new(Time::ZERO + STEP));
        let clock = time.clone();
        let drive = Rc::new(NvmeTcp::connect(target, Box::new(move || clock.get())).unwrap());
        Rig { drive, ended: Rc::default(), time }
    }

    fn submit(&self, opcode: IoOpcode, len: usize) {
        let command = SubmissionEntry::blocks(opcode, 1, 0, (len / 512) as u32);
        self.drive.submit(Io { command, mem: HostMem::zeroed(len), token: Token::new(self.ended.clone(), 0) });
    }

    /// Polls until the condition holds. The clock is stopped.
    fn until(&self, what: &str, so: impl Fn(&Rig, bool) -> bool) {
        let (clock, limit) = (WallClock::start(), Span::from_s(60));
        let begun = clock.now();
        while !so(self, self.drive.poll().unwrap_or(false)) {
            assert!(clock.now().since(begun) < limit, "{what} does not come: {:?}", self.drive.problem());
            std::thread::yield_now();
        }
    }

    fn executes(&self, opcode: IoOpcode, len: usize) {
        let before = self.ended.count();
        self.submit(opcode, len);
        self.until("the end of a command", |rig, _| rig.ended.count() > before);
        assert_eq!(self.ended.last(), Status::SUCCESS);
    }

    /// Advances the clock until the condition holds; returns by how much.
    fn advance_until(&self, so: impl Fn(&Rig) -> bool) -> Span {
        let begun = self.time.get();
        while !so(self) {
            self.time.set(self.time.get() + STEP);
            // It is lost in the end.
            let _ = self.drive.poll();
            assert!(self.time.get().since(begun) < PATIENCE * 3, "it waits for ever");
        }
        self.time.get().since(begun)
    }
}

/// With one I/O queue, every second connection is that of an admin queue.
fn is_io(passing: &Passing) -> bool {
    passing.connection % 2 == 1
}

#[test]
fn a_command_on_a_silent_connection_fails_within_the_patience() {
    const LARGE: usize = 1 << 20;
    type Row = (&'static str, fn(&Passing) -> Fate, IoOpcode, usize, usize);
    let rows: [Row; 5] = [
        ("answers", |at| if is_io(at) && !at.is_up { Fate::Lost } else { Fate::Arrives }, IoOpcode::READ, 4_096, 3),
        ("commands", |at| if is_io(at) && at.is_up { Fate::Lost } else { Fate::Arrives }, IoOpcode::READ, 4_096, 3),
        ("both", |at| if is_io(at) { Fate::Lost } else { Fate::Arrives }, IoOpcode::WRITE, 4_096, 3),
        (
            "the data of writes",
            |at| if is_io(at) && at.is_up { Fate::Lost } else { Fate::Arrives },
            IoOpcode::WRITE,
            LARGE,
            3,
        ),
        (
            "nothing, and nothing is taken",
            |at| if is_io(at) { Fate::Stuck } else { Fate::Arrives },
            IoOpcode::WRITE,
            8_192,
            100,
        ),
    ];
    let server = Server::start();
    for (what, rule, opcode, len, count) in rows {
        let proxy = Proxy::start(&server.address);
        let rig = Rig::new(&proxy.address, &server.nqn, 1);
        rig.executes(IoOpcode::WRITE, 4_096);
        proxy.set(rule);
        (0..count).for_each(|_| rig.submit(opcode, len));
        let _ = rig.drive.poll();
        let took = rig.advance_until(|rig| rig.ended.count() == 1 + count);
        assert!(took <= PATIENCE + STEP * 2, "{what} lost: it took {took}");
        assert!(rig.ended.statuses.borrow()[1..].iter().all(|(_, status)| *status == FAILED), "{what} lost");
        assert!(rig.drive.has_given_up(), "{what} lost");
    }
}

/// One of two I/O connections is silent, the next association is not: no command fails.
#[test]
fn a_connection_that_falls_silent_is_made_again() {
    let server = Server::start();
    let proxy = Proxy::start(&server.address);
    let rig = Rig::new(&proxy.address, &server.nqn, 2);
    rig.executes(IoOpcode::WRITE, 4_096);
    rig.executes(IoOpcode::WRITE, 4_096);
    proxy.set(|at| if at.connection == 1 { Fate::Lost } else { Fate::Arrives });
    (0..8).for_each(|_| rig.submit(IoOpcode::READ, 4_096));
    rig.until("the other connection's answers", |rig, _| rig.ended.count() == 2 + 4);
    let took = rig.advance_until(|rig| rig.drive.is_lost());
    assert!(took <= PATIENCE / 2 + STEP, "it was noticed after {took}");
    let problem = rig.drive.problem().unwrap();
    assert!(problem.starts_with("no answer for 500.0 s"), "{problem}");
    rig.until("the end of all", |rig, _| rig.ended.count() == 2 + 8);
    assert!(rig.ended.statuses.borrow().iter().all(|(_, status)| status.is_success()));
    assert_eq!(rig.drive.problem(), None);
}

/// Every connection is made, carries a little, and falls silent: a command is not submitted again and again beyond the patience.
#[test]
fn connections_that_fall_silent_one_after_another_end_within_the_patience() {
    let server = Server::start();
    let proxy = Proxy::start(&server.address);
    let rig = Rig::new(&proxy.address, &server.nqn, 1);
    proxy.set(|at| if is_io(at) && at.is_up && at.before >= 2_048 { Fate::Lost } else { Fate::Arrives });
    rig.submit(IoOpcode::WRITE, 1 << 20);
    rig.until("a request for the data", |rig, came| came || rig.ended.count() > 0);
    rig.advance_until(|rig| rig.drive.is_lost());
    rig.until("another connection", |rig, _| !rig.drive.is_lost());
    rig.until("a request for the data", |rig, came| came || rig.ended.count() > 0);
    rig.advance_until(|rig| rig.ended.count() == 1);
    assert_eq!(rig.ended.last(), FAILED);
}

/// Its commands take longer than the patience, but its target still answers probes.
#[test]
fn a_slow_drive_is_waited_for() {
    let server = Server::of(None, 1 << 30, |sim| {
        let mut profile = Profile::load("default").unwrap();
        for change in ["capacity=64MiB", "timing.read=10s", "buffer.mode=through", "controller.queue_pairs=8"] {
            profile.set(change).unwrap();
        }
        let ssd = Ssd::new(sim, &profile.resolve().unwrap(), StoreKind::Ram, Seed::new(1)).unwrap();
        SsdExport::of(sim, ssd)
    });
    // No Keep Alive within the test: all input is answers on the I/O connection, and the clock is stopped until they
    // arrive.
    let target = Target::new(&server.address, &server.nqn);
    let rig = Rig::with(Target { queues: 1, patience: PATIENCE, keep_alive: PATIENCE * 1_000, ..target });
    rig.executes(IoOpcode::WRITE, 4_096);
    rig.submit(IoOpcode::READ, 4_096);
    let _ = rig.drive.poll();
    let begun = rig.time.get();
    // A machine on which a few probes take longer than the read has shown less.
    while rig.time.get().since(begun) < PATIENCE * 3 && rig.ended.count() == 1 {
        rig.time.set(rig.time.get() + PATIENCE / 4);
        rig.until("the answer to a probe", |_, came| came);
        assert_eq!(rig.drive.problem(), None);
    }
    assert_eq!(rig.ended.last(), Status::SUCCESS);
    // The drive would serve the read to its end, and the server wait for it.
    std::mem::forget(server);
}

#[test]
fn a_command_on_a_silent_admin_queue_fails_within_the_patience() {
    let server = Server::start();
    let proxy = Proxy::start(&server.address);
    let rig = Rig::new(&proxy.address, &server.nqn, 1);
    rig.executes(IoOpcode::WRITE, 4_096);
    proxy.set(|at| if is_io(at) { Fate::Arrives } else { Fate::Lost });
    let command = SubmissionEntry::identify(cns::CONTROLLER, 0);
    let token = Token::new(rig.ended.clone(), 1);
    AdminQueue::of(&rig.drive).submit(Io { command, mem: HostMem::zeroed(4_096), token });
    let _ = rig.drive.poll();
    let took = rig.advance_until(|rig| rig.ended.count() == 2);
    assert!(took <= PATIENCE / 2 + STEP, "it took {took}");
    assert_eq!(rig.ended.last(), FAILED);
}
