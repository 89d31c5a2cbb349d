//! The memory of queue entries, as a controller sees it: a submission queue to fetch from, a completion queue to post
//! to (Base 3.3.1). The controller keeps head, tail and phase tag.
//!
//! Left out: the owner of the memory. [`Ring`](crate::ring::Ring) is in this process,
//! [`guest_queues`](crate::guest_queues) in a guest.

use std::rc::Rc;

use nandscape_sim::Time;
use nandscape_wire_nvme::SubmissionEntry;

use crate::controller::QueueId;
use crate::ring::{Posted, Submission};

/// The smallest number of entries a queue can have (Base 3.3.3.2).
pub const MIN_ENTRIES: u32 = 2;
/// The largest number of entries a queue can have.
pub const MAX_ENTRIES: u32 = 1 << 16;

/// The entries of a submission queue.
pub trait SubmissionMemory {
    /// Entries, one of which always stays empty.
    fn entries(&self) -> u32;

    /// The host has rung the doorbell: the entries from `from` up to `to`, which is not included, are new.
    fn rung(&self, _from: u16, _to: u16) {}

    /// Takes the entry at `head`; `None` when the memory cannot be reached, or not yet.
    fn fetch(&self, head: u16) -> Option<Submission>;

    /// Whether entries that could not be fetched were requested: the doorbell is rung again when they are received.
    fn is_coming(&self) -> bool {
        false
    }

    /// The entry at `index`, which stays; `None` when the memory cannot be reached.
    fn peek(&self, index: u16) -> Option<Peeked>;

    /// The controller has deleted the queue, and no command of it is in work.
    fn released(&self) {}
}

/// The fields of an entry that can be read before it is fetched.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Peeked {
    /// Flags: bits 15:8 of CDW0.
    pub flags: u8,
    /// The command identifier.
    pub cid: u16,
    /// The namespace.
    pub nsid: u32,
    /// CDW2.
    pub cdw2: u32,
    /// CDW3.
    pub cdw3: u32,
    /// When the host submitted it.
    pub submitted: Time,
}

impl Peeked {
    /// The visible fields of an entry, which was submitted at `submitted`.
    pub fn of(entry: &SubmissionEntry, submitted: Time) -> Peeked {
        let (cdw2, cdw3) = (entry.cdw2.get(), entry.cdw3.get());
        Peeked { flags: entry.flags, cid: entry.cid.get(), nsid: entry.nsid.get(), cdw2, cdw3, submitted }
    }
}

/// The entries of a completion queue.
pub trait CompletionMemory {
    /// Entries, one of which always stays empty.
    fn entries(&self) -> u32;

    /// Whether the entry at `tail` can be written now.
    fn is_reachable(&self, _tail: u16) -> bool {
        true
    }

    /// Puts a completion at `tail`, which is reachable.
    fn post(&self, tail: u16, posted: Posted);

    /// Notifies the host of posted entries: an interrupt, or nothing for a host that polls.
    fn notify(&self);

    /// The controller has deleted the queue. No entry, posted or pending, touches the host's memory any more.
    fn released(&self) {}
}

/// The memory of a host that creates queues by admin commands and names them by address.
pub trait HostMemory {
    /// Bytes of a memory page (CC.MPS), a power of two.
    fn page(&self) -> u32;

    /// Interrupt vectors, counted from 0.
    fn vectors(&self) -> u16;

    /// The submission queue `id` of `entries` entries at `base`.
    fn submissions(&self, id: QueueId, base: u64, entries: u32) -> Rc<dyn SubmissionMemory>;

    /// The completion queue `id` of `entries` entries at `base`, which interrupts by `vector` if by any.
    fn completions(&self, id: QueueId, base: u64, entries: u32, vector: Option<u16>) -> Rc<dyn CompletionMemory>;

    /// Whether doorbells may also be in the host's memory: Doorbell Buffer Config (Base 5.2.5) is supported.
    fn takes_doorbell_buffers(&self) -> bool {
        false
    }

    /// Whether doorbells in the page at an address can be watched.
    fn can_watch(&self, _address: u64) -> bool {
        true
    }

    /// The location of the host's doorbell buffers from now on; `None` after a reset or shutdown of the controller.
    /// The code that watches doorbells also watches these and passes them to the controller.
    fn set_doorbell_buffers(&self, _buffers: Option<DoorbellBuffers>) {}
}

/// Both have the layout of the doorbell registers. The value of a queue's doorbell in `shadow` is that of its
/// register. The host also writes the register when the value passes that in `event_index`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DoorbellBuffers {
    /// Address of the Shadow Doorbell Buffer (PRP1).
    pub shadow: u64,
    /// Address of the EventIdx Buffer (PRP2).
    pub event_index: u64,
}
