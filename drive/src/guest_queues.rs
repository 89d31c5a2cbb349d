//! Queues in the memory of a guest: raw entries of 64 and 16 bytes, with data at PRPs or an SGL.
//!
//! The guest is not trusted: each access looks its address up again, since the guest may unmap it at any time. If
//! only the guest's process can reach the entries, the controller's fetch requests several of them from it. They are
//! fetched once the guest has sent them.
//!
//! Left out: doorbells; the code that watches them passes them to the controller.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_FUSED_FIRST, FLAGS_PSDT};
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::open_channel::VECTOR_RESET;
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::controller::QueueId;
use crate::mem::{Access, Ask, DataPointers, Dma, DmaFault, HostMem};
use crate::queue_memory::{CompletionMemory, Peeked, SubmissionMemory};
use crate::ring::{Notify, Posted, Submission};

/// A submission queue by address.
pub struct GuestSubmissions {
    sim: Sim,
    dma: Rc<dyn Dma>,
    id: QueueId,
    base: u64,
    pointers: DataPointers,
    /// When the doorbell was rung for each entry.
    rung: RefCell<Box<[Time]>>,
    remote: Rc<Coming>,
}

/// Entries requested from the guest.
struct Coming {
    /// Received entries, from `next` on.
    entries: RefCell<VecDeque<SubmissionEntry>>,
    next: Cell<u16>,
    /// The tail that was rung last.
    tail: Cell<u16>,
    is_asked: Cell<bool>,
    /// The guest has refused to read the next one.
    is_refused: Cell<bool>,
    /// Called when the queue can be fetched from again.
    came: Option<Came>,
}

impl Coming {
    fn new(came: Option<Came>) -> Coming {
        let (entries, next, tail) = (RefCell::default(), Cell::default(), Cell::default());
        Coming { entries, next, tail, is_asked: Cell::new(false), is_refused: Cell::new(false), came }
    }
}

/// Called with the number of a queue whose requested entries were received, and its tail: the controller is to fetch
/// from it again.
pub type Came = Rc<dyn Fn(QueueId, u16)>;

/// Bytes of an entry that [`Peeked`] shows: CDW0 to CDW3.
const PEEKED: usize = 16;
/// Entries that are requested at once.
const ENTRIES_AN_ASK: u16 = 64;

impl GuestSubmissions {
    /// The queue `id` of `entries` entries at `base`; memory pages have `page` bytes.
    pub fn new(sim: &Sim, dma: &Rc<dyn Dma>, id: QueueId, base: u64, entries: u32, page: u32) -> GuestSubmissions {
        let rung = RefCell::new(vec![Time::ZERO; entries as usize].into());
        GuestSubmissions {
            sim: sim.clone(),
            dma: dma.clone(),
            id,
            base,
            pointers: DataPointers::new(dma, page, entries as usize),
            rung,
            remote: Rc::new(Coming::new(None)),
        }
    }

    /// Calls `came` when requested entries have been received from the guest.
    #[must_use]
    pub fn tells(self, came: Came) -> GuestSubmissions {
        GuestSubmissions { remote: Rc::new(Coming::new(Some(came))), ..self }
    }

    /// The entry at `head`, in memory that only the guest reaches; `None` until it is received.
    #[cold]
    fn fetch_remote(&self, head: u16) -> Option<SubmissionEntry> {
        let remote = &self.remote;
        if remote.next.get() != head {
            remote.next.set(head);
            remote.entries.borrow_mut().clear();
        }
        let whole = {
            let entries = remote.entries.borrow();
            let is_half = |entry: &SubmissionEntry| entry.flags & FLAGS_FUSED == FLAGS_FUSED_FIRST;
            // Both halves of a fused operation are fetched at once.
            let halved =
                entries.len() == 1 && entries.front().is_some_and(is_half) && self.after(head) != remote.tail.get();
            !entries.is_empty() && !halved
        };
        if !whole {
            self.ask();
            return None;
        }
        remote.next.set(self.after(head));
        remote.entries.borrow_mut().pop_front()
    }

    /// The entry at an index, if it was received.
    fn came(&self, index: u16) -> Option<SubmissionEntry> {
        let next = u32::from(self.remote.next.get());
        let distance = (u32::from(index) + self.entries() - next) % self.entries();
        self.remote.entries.borrow().get(distance as usize).copied()
    }

    fn after(&self, index: u16) -> u16 {
        if u32::from(index) + 1 == self.entries() { 0 } else { index + 1 }
    }

    /// Requests the entries after the received ones: up to the tail, or to the end of the ring.
    fn ask(&self) {
        let remote = self.remote.clone();
        if remote.is_asked.get() || remote.is_refused.get() {
            return;
        }
        let (entries, tail) = (self.entries(), remote.tail.get());
        let from = (u32::from(remote.next.get()) + remote.entries.borrow().len() as u32) % entries;
        let end = if from <= u32::from(tail) { u32::from(tail) } else { entries };
        let count = (end - from).min(ENTRIES_AN_ASK.into()) as usize;
        const BYTES: usize = size_of::<SubmissionEntry>();
        let Some(address) = self.base.checked_add(u64::from(from) * BYTES as u64).filter(|_| count > 0) else {
            return remote.is_refused.set(true);
        };
        remote.is_asked.set(true);
        let (id, from) = (self.id, remote.next.get());
        let ask = Ask::Read { address, len: count * BYTES };
        let coming = Rc::downgrade(&remote);
        let answered = move |answer: Option<Vec<u8>>| {
            // The queue may have been deleted.
            let Some(coming) = coming.upgrade() else { return };
            coming.is_asked.set(false);
            match answer {
                Some(bytes) if coming.next.get() == from => {
                    let entries =
                        bytes.chunks_exact(BYTES).filter_map(|bytes| SubmissionEntry::read_from_bytes(bytes).ok());
                    coming.entries.borrow_mut().extend(entries);
                }
                Some(_) => {}
                None => coming.is_refused.set(true),
            }
            if let Some(came) = &coming.came {
                came(id, coming.tail.get());
            }
        };
        self.dma.ask(ask, Box::new(answered));
    }

    /// The data memory of a command; the pointer is removed from its entry.
    ///
    /// An invalid pointer stays in the entry, and the parser returns its status: admin commands do not use SGLs (PCIe
    /// Transport 1.1, 2.2), and PSDT 11b is reserved.
    fn take_data(&self, entry: &mut SubmissionEntry) -> HostMem {
        let sgl = entry.flags & FLAGS_PSDT != 0;
        // It has no data, but a list of addresses.
        let has_list = self.id != QueueId::ADMIN && IoOpcode(entry.opcode) == VECTOR_RESET;
        if Transfer::of(entry.opcode) == Transfer::None && !has_list || sgl && self.id == QueueId::ADMIN {
            return HostMem::none();
        }
        let Ok(mem) = self.pointers.of(entry) else { return HostMem::none() };
        entry.flags &= !FLAGS_PSDT;
        mem
    }
}

impl SubmissionMemory for GuestSubmissions {
    fn entries(&self) -> u32 {
        self.rung.borrow().len() as u32
    }

    fn rung(&self, from: u16, to: u16) {
        self.remote.tail.set(to);
        let (now, mut rung) = (self.sim.now(), self.rung.borrow_mut());
        let (from, to) = (usize::from(from), usize::from(to));
        if from <= to {
            rung[from..to].fill(now);
        } else {
            rung[from..].fill(now);
            rung[..to].fill(now);
        }
    }

    fn fetch(&self, head: u16) -> Option<Submission> {
        let mut entry = SubmissionEntry::default();
        let address = self.base.checked_add(u64::from(head) * size_of::<SubmissionEntry>() as u64)?;
        match self.dma.read(address, entry.as_mut_bytes()) {
            Ok(()) => {}
            Err(DmaFault { is_remote: true, .. }) => entry = self.fetch_remote(head)?,
            Err(_) => return None,
        }
        let mem = self.take_data(&mut entry);
        Some(Submission { entry, mem, submitted: self.rung.borrow()[usize::from(head)] })
    }

    fn is_coming(&self) -> bool {
        self.remote.is_asked.get()
    }

    /// Reads the first four dwords alone.
    fn peek(&self, index: u16) -> Option<Peeked> {
        let mut entry = SubmissionEntry::default();
        let address = self.base.checked_add(u64::from(index) * size_of::<SubmissionEntry>() as u64)?;
        let submitted = self.rung.borrow()[usize::from(index)];
        match self.dma.read(address, &mut entry.as_mut_bytes()[..PEEKED]) {
            Ok(()) => Some(Peeked::of(&entry, submitted)),
            Err(_) => self.came(index).map(|entry| Peeked::of(&entry, submitted)),
        }
    }
}

/// A completion queue by address.
pub struct GuestCompletions {
    dma: Rc<dyn Dma>,
    base: u64,
    entries: u32,
    notify: Option<Notify>,
}

impl GuestCompletions {
    /// The queue of `entries` entries at `base`. Without `notify`, the host polls.
    pub fn new(dma: &Rc<dyn Dma>, base: u64, entries: u32, notify: Option<Notify>) -> GuestCompletions {
        GuestCompletions { dma: dma.clone(), base, entries, notify }
    }

    fn address(&self, tail: u16) -> Option<u64> {
        self.base.checked_add(u64::from(tail) * size_of::<CompletionEntry>() as u64)
    }
}

impl CompletionMemory for GuestCompletions {
    fn entries(&self) -> u32 {
        self.entries
    }

    fn is_reachable(&self, tail: u16) -> bool {
        let address = self.address(tail);
        address.is_some_and(|at| match self.dma.check(at, size_of::<CompletionEntry>(), Access::Write) {
            Ok(()) => true,
            Err(fault) => fault.is_remote,
        })
    }

    /// Writes the dword with the phase tag last: a host that sees it sees the whole entry. If the file behind the
    /// memory was truncated after the check, the error cannot be reported.
    fn post(&self, tail: u16, posted: Posted) {
        let (Some(address), Some((first, last))) =
            (self.address(tail), posted.entry.as_bytes().split_last_chunk::<4>())
        else {
            return;
        };
        let behind = address + first.len() as u64;
        match self.dma.write(address, first) {
            Ok(()) => _ = self.dma.store(behind, u32::from_le_bytes(*last)),
            Err(DmaFault { is_remote: true, .. }) => {
                for (address, bytes) in [(address, first), (behind, &last[..])] {
                    self.dma.ask(Ask::Write { address, bytes: bytes.to_vec() }, Box::new(drop));
                }
            }
            Err(_) => {}
        }
    }

    fn notify(&self) {
        if let Some(notify) = &self.notify {
            notify();
        }
    }
}
