//! Connections that break under load, and targets that stay offline.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Drive, HostMem, Io, Token};
use nandscape_host_driver::Remote;
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_sim::{Seed, Span};
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use rustix::event::{PollFd, PollFlags, poll};

use crate::proxy::Proxy;
use crate::server::Server;

/// Completions by tag.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) statuses: RefCell<Vec<(u64, Status)>>,
    count: Cell<usize>,
}

impl Sink for Ended {
    fn complete(&self, tag: u64, completion: Completion) {
        self.statuses.borrow_mut().push((tag, completion.status));
        self.count.set(self.count.get() + 1);
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

impl Ended {
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// The status of the command that has ended last.
    pub(crate) fn last(&self) -> Status {
        self.statuses.borrow().last().expect("one has ended").1
    }
}

struct Rig {
    drive: NvmeTcp,
    ended: Rc<Ended>,
    clock: WallClock,
}

impl Rig {
    fn new(target: Target) -> Rig {
        let clock = WallClock::start();
        let drive = NvmeTcp::connect(target, Box::new(move || clock.now())).unwrap();
        Rig { drive, ended: Rc::default(), clock }
    }

    fn submit(&self, tag: u64, opcode: IoOpcode, slba: u64, mem: HostMem) {
        let blocks = (mem.len() / 512) as u32;
        let command = SubmissionEntry::blocks(opcode, 1, slba, blocks);
        self.drive.submit(Io { command, mem, token: Token::new(self.ended.clone(), tag) });
    }

    fn until(&self, count: usize) {
        let deadline = self.clock.now() + Span::from_s(60);
        while self.ended.count.get() < count {
            assert!(
                self.clock.now() < deadline,
                "{} of {count} ended: {:?}",
                self.ended.count.get(),
                self.drive.problem()
            );
            // It is lost in tests whose target stays offline.
            if !self.drive.poll().unwrap_or(false) {
                std::thread::yield_now();
            }
        }
    }
}

/// Writes and reads at depth while the network is cut repeatedly: all of them succeed, and the data is right.
#[test]
fn nothing_is_lost_when_connections_break() {
    const SLOTS: u64 = 64;
    let server = Server::start();
    let proxy = Proxy::start(&server.address);
    let rig = Rig::new(Target { queues: 2, depth: 8, ..Target::new(&proxy.address, &server.nqn) });
    let mut rng = Seed::new(5).child("breaking").rng();
    let mut model = vec![0u8; SLOTS as usize];
    for round in 0..40u64 {
        let before = rig.ended.count.get();
        // Each slot of 64 KiB is written at most once a round, so no two writes of it are outstanding together.
        let written: Vec<u64> = (0..SLOTS).filter(|_| rng.below(2) == 0).collect();
        for slot in &written {
            let value = rng.below(255) as u8 + 1;
            model[*slot as usize] = value;
            rig.submit(*slot, IoOpcode::WRITE, slot * 128, HostMem::from_bytes(&vec![value; 64 << 10]));
        }
        rig.drive.poll().unwrap();
        if round % 3 == 0 {
            rig.until(before + written.len() / 3);
            proxy.cut();
        }
        rig.until(before + written.len());
        let (slot, mem) = (rng.below(SLOTS), HostMem::zeroed(64 << 10));
        rig.submit(1_000, IoOpcode::READ, slot * 128, mem.clone());
        rig.until(before + written.len() + 1);
        assert!(mem.to_vec().iter().all(|byte| *byte == model[slot as usize]), "slot {slot} in round {round}");
    }
    assert!(rig.ended.statuses.borrow().iter().all(|(_, status)| status.is_success()));
}

#[test]
fn commands_fail_when_the_target_stays_away() {
    let server = Server::start();
    let proxy = Proxy::start(&server.address);
    let rig = Rig::new(Target { patience: Span::from_ms(300), ..Target::new(&proxy.address, &server.nqn) });
    proxy.close();
    for tag in 0..4 {
        rig.submit(tag, IoOpcode::READ, 0, HostMem::zeroed(4_096));
    }
    rig.until(4);
    let failed = Status::new(3, 0x70);
    assert!(rig.ended.statuses.borrow().iter().all(|(_, status)| *status == failed));
    assert!(rig.drive.problem().is_some() && rig.drive.outstanding() == 0);
    rig.submit(4, IoOpcode::READ, 0, HostMem::zeroed(4_096));
    assert_eq!(rig.ended.count.get(), 5, "it fails at once");
}

/// A command that is not idempotent fails when its outcome is unknown.
#[test]
fn a_command_that_may_not_be_repeated_is_not() {
    let server = Server::start();
    let proxy = Proxy::start(&server.address);
    let rig = Rig::new(Target::new(&proxy.address, &server.nqn));
    proxy.cut();
    let vendor = SubmissionEntry { opcode: 0xc0, nsid: 1.into(), ..Default::default() };
    rig.drive.submit(Io { command: vendor, mem: HostMem::none(), token: Token::new(rig.ended.clone(), 0) });
    rig.submit(1, IoOpcode::READ, 0, HostMem::zeroed(512));
    rig.until(2);
    let statuses = rig.ended.statuses.borrow();
    assert!(statuses.iter().any(|(tag, status)| *tag == 1 && status.is_success()), "{statuses:?}");
}

#[test]
fn a_command_that_waits_is_cancelled() {
    let server = Server::start();
    let rig = Rig::new(Target { depth: 1, ..Target::new(&server.address, &server.nqn) });
    for tag in 0..3 {
        rig.submit(tag, IoOpcode::READ, 0, HostMem::zeroed(512));
    }
    let sink: Rc<dyn Sink> = rig.ended.clone();
    assert!(rig.drive.cancel(CommandRef::new(&sink, 1)));
    assert!(!rig.drive.cancel(CommandRef::new(&sink, 0)), "the target has it, and is asked");
    rig.until(3);
    let mut statuses = rig.ended.statuses.borrow().clone();
    statuses.sort_by_key(|(tag, _)| *tag);
    assert_eq!((statuses[1], statuses[2].1), ((1, Status::ABORT_REQUESTED), Status::SUCCESS));
}

/// Keep Alive holds an idle association: its loop sleeps until work is due.
#[test]
fn an_idle_connection_stays() {
    let server = Server::start();
    let rig = Rig::new(Target { keep_alive: Span::from_ms(1_200), ..Target::new(&server.address, &server.nqn) });
    let end = rig.clock.now() + Span::from_s(4);
    let mut polls = 0;
    // Not polled before: the descriptor must also signal the first Keep Alive.
    while rig.clock.now() < end {
        let socket = rig.drive.socket();
        let mut fds = [PollFd::new(&socket, PollFlags::IN)];
        poll(&mut fds, None).unwrap();
        rig.drive.poll().unwrap();
        polls += 1;
    }
    assert!((6..100).contains(&polls), "{polls} polls");
    rig.submit(0, IoOpcode::READ, 0, HostMem::zeroed(512));
    rig.until(1);
    assert_eq!(rig.drive.problem(), None);
    assert!(server.complaints().is_empty(), "{:?}", server.complaints());
    assert_eq!(rig.ended.statuses.borrow()[0].1, Status::SUCCESS);
}
