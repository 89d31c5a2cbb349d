//! The memory that the entries of queues lie in, as a controller sees it: a submission queue to fetch from, a completion
//! queue to post to (Base 3.3.1). Head, tail and phase tag are the controller's business.
//!
//! Left out: whose memory it is. [`Ring`](crate::ring::Ring) is our own, [`guest_queues`](crate::guest_queues) a guest's.

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

    /// Whether entries that could not be fetched have been asked for: the doorbell is rung again when they have come.
    fn is_coming(&self) -> bool {
        false
    }

    /// The entry at `index`, which stays; `None` when the memory cannot be reached.
    fn peek(&self, index: u16) -> Option<Peeked>;
}

/// What can be seen of an entry without taking it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Peeked {
    /// Flags: bits 15:8 of CDW0.
    pub flags: u8,
    /// The command identifier.
    pub cid: u16,
    /// CDW2.
    pub cdw2: u32,
    /// When the host submitted it.
    pub submitted: Time,
}

impl Peeked {
    /// Of an entry that was submitted at a time.
    pub fn of(entry: &SubmissionEntry, submitted: Time) -> Peeked {
        Peeked { flags: entry.flags, cid: entry.cid.get(), cdw2: entry.cdw2.get(), submitted }
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

    /// Tells the host of what was posted: an interrupt, or nothing for a host that polls.
    fn notify(&self);

    /// The controller has deleted the queue, and nothing that was posted to it, or would have been, touches memory of the
    /// host any more.
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

    /// Whether doorbells may also lie in the host's memory: Doorbell Buffer Config (Base 5.2.5) is supported.
    fn takes_doorbell_buffers(&self) -> bool {
        false
    }

    /// Whether doorbells can be looked at in the page at an address.
    fn can_watch(&self, _address: u64) -> bool {
        true
    }

    /// Where the host puts its doorbells from now on; `None` once a reset of the controller or its shutdown has ended that. The code
    /// that watches doorbells looks there too, and passes them to the controller.
    fn set_doorbell_buffers(&self, _buffers: Option<DoorbellBuffers>) {}
}

/// The two pages of Doorbell Buffer Config (Base 5.2.5). Both are laid out as the doorbell registers are: the value of a
/// queue's doorbell in `shadow` is the one that its register would have; the host writes the register as well when the
/// value passes the one in `event_index`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DoorbellBuffers {
    /// Address of the Shadow Doorbell Buffer (PRP1).
    pub shadow: u64,
    /// Address of the EventIdx Buffer (PRP2).
    pub event_index: u64,
}
