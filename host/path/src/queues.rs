//! The queues of a drive, or the ports of a controller: their tags, and the requests that wait for one.
//!
//! The operations are those of the thesis' hardware abstraction layer (Shin 3.3.2):
//!
//! | operation | here |
//! |---|---|
//! | `get_free_tags` | [`Port::take_tag`]; without a free tag the drive is busy |
//! | `bind_tag_cmd`, `begin_cmd`, `issue_tags` | `Path::send`: the flight keeps the tag and the time of issue |
//! | `check_event`, `fetch_event` | `Vector::waiting`, `Vector::take` |
//! | `detach_tag_cmd`, `release_tags` | `Path::release` |
//! | `end_cmd` | `Path::end` |
//! | the upcall, which can be masked | `Path::posted`; with a poll thread none is raised |

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::{Drive, DriveInfo};
use nandscape_sim::slots::Key;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

/// The queues that a path leads to.
pub struct Queues {
    /// Queue pairs of one drive, or ports of a controller with a drive each.
    pub drives: Vec<Rc<dyn Drive>>,
    /// Commands that each takes at a time. `usize::MAX`: the queue itself makes further commands wait.
    pub tags: usize,
    /// How addresses map to ports; `None` of queue pairs, any of which takes any command.
    pub stripe: Option<Stripe>,
}

/// Ports that share an interrupt, and whose drives are one address space in chunks (RAID-0).
pub struct Stripe {
    /// All of them as one drive, for commands that are not for one port alone.
    pub whole: Rc<dyn Drive>,
    /// Logical blocks of a chunk, at least one.
    pub chunk_blocks: u64,
}

impl From<Vec<Rc<dyn Drive>>> for Queues {
    fn from(drives: Vec<Rc<dyn Drive>>) -> Queues {
        Queues { drives, tags: usize::MAX, stripe: None }
    }
}

impl Stripe {
    /// The port of a command, which then names the addresses of that port; `None` of a command that is for several, or for all.
    pub(crate) fn port_of(&self, command: &mut SubmissionEntry, ports: usize, info: DriveInfo) -> Option<usize> {
        let blocks = u64::from(command.blocks_in_a_row());
        let (first, chunk) = (command.slba(), self.chunk_blocks);
        let is_plain = [IoOpcode::READ, IoOpcode::WRITE].contains(&IoOpcode(command.opcode));
        let is_inside = first.checked_add(blocks).is_some_and(|end| end <= self.whole.info().blocks);
        if !is_plain || blocks == 0 || !is_inside || first % chunk + blocks > chunk {
            return None;
        }
        let (number, ports) = (first / chunk, ports as u64);
        let there = number / ports * chunk + first % chunk;
        command.cdw10 = (there as u32).into();
        command.cdw11 = ((there >> 32) as u32).into();
        command.nsid = info.nsid.into();
        Some((number % ports) as usize)
    }
}

/// A queue pair, or a port.
pub(crate) struct Port {
    pub(crate) drive: Rc<dyn Drive>,
    free: Cell<usize>,
    /// Requests without a tag, in the order in which they came.
    fifo: RefCell<VecDeque<Key>>,
}

impl Port {
    pub(crate) fn new(drive: Rc<dyn Drive>, tags: usize) -> Port {
        Port { drive, free: Cell::new(tags), fifo: RefCell::default() }
    }

    /// Takes a tag; whether one was free.
    pub(crate) fn take_tag(&self) -> bool {
        let free = self.free.get();
        self.free.set(free.saturating_sub(1));
        free > 0
    }

    pub(crate) fn release_tag(&self) {
        self.free.set(self.free.get().saturating_add(1));
    }

    pub(crate) fn enqueue(&self, key: Key) {
        self.fifo.borrow_mut().push_back(key);
    }

    pub(crate) fn dequeue(&self) -> Option<Key> {
        self.fifo.borrow_mut().pop_front()
    }

    /// Whether a request waits, and could be issued.
    pub(crate) fn can_issue(&self) -> bool {
        self.free.get() > 0 && self.has_requests()
    }

    /// Whether a request waits.
    pub(crate) fn has_requests(&self) -> bool {
        !self.fifo.borrow().is_empty()
    }
}
