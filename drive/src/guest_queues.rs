//! Queues in the memory of a guest: raw entries of 64 and 16 bytes, data where PRPs or an SGL say.
//!
//! Nothing is believed: an address is looked up each time, since the guest may unmap it at any time.
//!
//! Left out: doorbells; the code that watches them passes them to the controller.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::{CompletionEntry, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::controller::QueueId;
use crate::mem::{Access, DataPointer, Dma, HostMem};
use crate::queue_memory::{CompletionMemory, SubmissionMemory};
use crate::ring::{Notify, Posted, Submission};

/// A submission queue by address.
pub struct GuestSubmissions {
    sim: Sim,
    dma: Rc<dyn Dma>,
    id: QueueId,
    base: u64,
    page: u32,
    /// When the doorbell was rung for each entry.
    rung: RefCell<Box<[Time]>>,
}

impl GuestSubmissions {
    /// The queue `id` of `entries` entries at `base`; memory pages have `page` bytes.
    pub fn new(sim: &Sim, dma: &Rc<dyn Dma>, id: QueueId, base: u64, entries: u32, page: u32) -> GuestSubmissions {
        let rung = RefCell::new(vec![Time::ZERO; entries as usize].into());
        GuestSubmissions { sim: sim.clone(), dma: dma.clone(), id, base, page, rung }
    }

    /// The memory of a command, which then has no data pointer any more.
    ///
    /// A pointer that is not allowed stays in the command, whose parser has the status for it: SGLs are not used by
    /// admin commands (PCIe Transport 1.1, 2.2), and PSDT 11b is reserved.
    fn take_data(&self, entry: &mut SubmissionEntry) -> HostMem {
        let sgl = entry.flags & FLAGS_PSDT != 0;
        if Transfer::of(entry.opcode) == Transfer::None || sgl && self.id == QueueId::ADMIN {
            return HostMem::none();
        }
        let Ok(pointer) = DataPointer::new(&self.dma, entry, self.page) else { return HostMem::none() };
        entry.flags &= !FLAGS_PSDT;
        HostMem::over(Rc::new(pointer))
    }
}

impl SubmissionMemory for GuestSubmissions {
    fn entries(&self) -> u32 {
        self.rung.borrow().len() as u32
    }

    fn rung(&self, from: u16, to: u16) {
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
        self.dma.read(address, entry.as_mut_bytes()).ok()?;
        let mem = self.take_data(&mut entry);
        Some(Submission { entry, mem, submitted: self.rung.borrow()[usize::from(head)] })
    }

    /// Reads the first dword alone, which ends with the identifier.
    fn cid(&self, index: u16) -> Option<u16> {
        let mut dword = [0; 4];
        let address = self.base.checked_add(u64::from(index) * size_of::<SubmissionEntry>() as u64)?;
        self.dma.read(address, &mut dword).ok()?;
        Some(u16::from_le_bytes([dword[2], dword[3]]))
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
        address.is_some_and(|at| self.dma.check(at, size_of::<CompletionEntry>(), Access::Write).is_ok())
    }

    /// The dword with the phase tag comes last: a host that sees it sees the whole entry. If the file behind the memory
    /// was truncated after the check, there is no way to report it.
    fn post(&self, tail: u16, posted: Posted) {
        let (Some(address), Some((first, last))) =
            (self.address(tail), posted.entry.as_bytes().split_last_chunk::<4>())
        else {
            return;
        };
        if self.dma.write(address, first).is_ok() {
            let _ = self.dma.store(address + first.len() as u64, u32::from_le_bytes(*last));
        }
    }

    fn notify(&self) {
        if let Some(notify) = &self.notify {
            notify();
        }
    }
}
