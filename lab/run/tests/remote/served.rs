//! The second server, and a host of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, HostMem, Io, Token};
use nandscape_host_driver::Remote;
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_lab_run::RemoteSpec;
use nandscape_sim::Span;
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::server::Server;

/// Serves `target` once more.
pub(crate) fn served_again(target: Target) -> Server {
    let spec = RemoteSpec { name: "far".to_owned(), target, seed: 1 };
    Server::of(None, 1 << 30, move |sim| Rc::new(spec.connect(sim).unwrap()))
}

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

/// A host of a server.
pub(crate) struct Rig {
    pub(crate) drive: NvmeTcp,
    pub(crate) ended: Rc<Ended>,
    clock: WallClock,
}

impl Rig {
    pub(crate) fn new(target: Target) -> Rig {
        let clock = WallClock::start();
        let drive = NvmeTcp::connect(target, Box::new(move || clock.now())).unwrap();
        Rig { drive, ended: Rc::default(), clock }
    }

    pub(crate) fn submit(&self, tag: u64, opcode: IoOpcode, slba: u64, mem: HostMem) {
        let command = match opcode {
            IoOpcode::FLUSH => SubmissionEntry::io(opcode, 1),
            _ => SubmissionEntry::blocks(opcode, 1, slba, (mem.len() / 512) as u32),
        };
        self.drive.submit(Io { command, mem, token: Token::new(self.ended.clone(), tag) });
    }

    pub(crate) fn count(&self) -> usize {
        self.ended.count.get()
    }

    /// Polls until a number of commands have ended.
    pub(crate) fn until(&self, count: usize) {
        let deadline = self.clock.now() + Span::from_s(60);
        while self.count() < count {
            assert!(self.clock.now() < deadline, "{} of {count} ended: {:?}", self.count(), self.drive.problem());
            if !self.drive.poll().unwrap() {
                std::thread::yield_now();
            }
        }
    }

    /// The status of the command that has ended last.
    pub(crate) fn last(&self) -> Status {
        self.ended.statuses.borrow().last().expect("one has ended").1
    }
}
