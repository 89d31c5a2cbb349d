//! Memory that a command describes by PRPs or by an SGL. The description is walked when the length of the command's
//! data is known. Each copy looks the addresses up again, so it never reaches memory that was unmapped meanwhile.
//! Memory that only the host reaches passes through a `Stage`.
//!
//! Left out: the meaning of an address, which the [`Dma`] knows.

use std::cell::{Cell, Ref, RefCell};
use std::rc::{Rc, Weak};

use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::io::is_only_stored;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use smallvec::SmallVec;
use zerocopy::IntoBytes;

use super::dma::{Access, Ask, Dma, DmaFault, Purpose};
use super::kept::Kept;
use super::remote::{Need, Stage};
use super::{HostMem, Memory, Settled, prp, sgl};

/// The data pointer of one command.
pub struct DataPointer {
    dma: Rc<dyn Dma>,
    description: Description,
    access: Access,
    purpose: Purpose,
    /// The pieces of the requested first bytes.
    segments: RefCell<Segments>,
    failed: Cell<bool>,
    /// Staged data of memory that only the host reaches; `None` if the command has none.
    remote: RefCell<Option<Rc<RefCell<Remote>>>>,
    /// The list that keeps it for a later command, if one does.
    kept: Cell<Weak<Kept>>,
}

/// Staged remote memory, and the requests for it.
#[derive(Default)]
struct Remote {
    stage: Stage,
    /// Transfers that the host has not answered.
    asked: u32,
    /// Is called when all are.
    settled: Option<Settled>,
}

/// Concurrent transfers requested from a host for one command.
const ASKS_AT_A_TIME: u32 = 16;

/// How the data is described.
pub(super) enum Description {
    /// Two PRP entries, and the bytes of a memory page (CC.MPS).
    Prp { prp1: u64, prp2: u64, page: u32 },
    Sgl {
        first: SglDescriptor,
        /// The metadata pointer leads to a descriptor (PSDT 10b), rather than to a buffer.
        describes_metadata: bool,
    },
}

/// A piece of a command's data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    /// The address; `None` for a bit bucket, which discards bytes.
    pub(super) address: Option<u64>,
    pub(super) len: u32,
}

/// Pieces in order; adjacent ones are one.
#[derive(Default, Debug)]
pub(super) struct Segments {
    list: SmallVec<[Segment; 2]>,
    len: u64,
}

/// Room for pieces that is kept for the next command at most: 256 KiB in pages of 4 KiB.
const KEPT_SEGMENTS: usize = 64;

impl Segments {
    /// Removes all pieces and keeps the usual capacity.
    fn clear(&mut self) {
        self.len = 0;
        match self.list.capacity() > KEPT_SEGMENTS {
            true => self.list = SmallVec::new(),
            false => self.list.clear(),
        }
    }

    pub(super) fn add(&mut self, segment: Segment) {
        if segment.len == 0 {
            return;
        }
        self.len += u64::from(segment.len);
        let Some(last) = self.list.last_mut() else { return self.list.push(segment) };
        let end = last.address.and_then(|address| address.checked_add(u64::from(last.len)));
        match last.len.checked_add(segment.len) {
            Some(len) if end.is_some() && end == segment.address => last.len = len,
            _ => self.list.push(segment),
        }
    }
}

impl DataPointer {
    /// The data of a command whose opcode determines the direction. `page` is the size of a memory page in bytes.
    ///
    /// # Errors
    /// Invalid Field when the command's flags select neither PRPs nor an SGL.
    ///
    /// # Panics
    /// When `page` is not a power of two, or is smaller than 4 KiB.
    pub fn new(dma: &Rc<dyn Dma>, entry: &SubmissionEntry, page: u32) -> Result<DataPointer, Status> {
        let (description, access) = describe(entry, page)?;
        Ok(DataPointer::over(dma, description, access, purpose(entry)))
    }

    pub(super) fn over(dma: &Rc<dyn Dma>, description: Description, access: Access, purpose: Purpose) -> DataPointer {
        let (segments, remote) = (RefCell::default(), RefCell::new(None));
        let (failed, kept) = (Cell::new(false), Cell::default());
        DataPointer { dma: dma.clone(), description, access, purpose, segments, failed, remote, kept }
    }

    /// From now on `kept` keeps it for later commands, until it holds data of remote memory.
    pub(super) fn kept_in(self, kept: &Rc<Kept>) -> DataPointer {
        self.kept.set(Rc::downgrade(kept));
        self
    }

    /// The data of another command; the one before has ended.
    #[inline]
    pub(super) fn renew(&mut self, description: Description, access: Access, purpose: Purpose) {
        (self.description, self.access, self.purpose) = (description, access, purpose);
        self.segments.get_mut().clear();
        self.failed.set(false);
    }

    /// The pieces of the first `bytes`.
    fn walked(&self, bytes: usize) -> Result<Ref<'_, Segments>, Status> {
        if (bytes as u64) > self.segments.borrow().len {
            let (dma, len) = (&Lists(self), bytes as u64);
            let segments = &mut *self.segments.borrow_mut();
            segments.clear();
            let outcome = match &self.description {
                Description::Prp { prp1, prp2, page } => prp::walk(dma, *prp1, *prp2, u64::from(*page), len, segments),
                Description::Sgl { first, .. } => sgl::walk(dma, first, self.access, len, segments),
            };
            if outcome.is_err() {
                segments.clear();
            }
            outcome?;
        }
        Ok(self.segments.borrow())
    }

    /// Calls `each(address, bytes before, length)` for the pieces of a range that have an address; whether all succeeded.
    fn pieces(
        &self,
        start: usize,
        len: usize,
        mut each: impl FnMut(u64, usize, usize) -> Result<(), DmaFault>,
    ) -> bool {
        let Ok(segments) = self.walked(start + len) else { return false };
        let (mut skip, mut done) = (start, 0);
        for segment in &segments.list {
            let here = segment.len as usize;
            if skip >= here {
                skip -= here;
                continue;
            }
            let piece = (len - done).min(here - skip);
            // A list may name addresses up to the very end.
            if let Some(address) = segment.address
                && each(address.wrapping_add(skip as u64), done, piece).is_err()
            {
                return false;
            }
            (skip, done) = (0, done + piece);
            if done == len {
                break;
            }
        }
        true
    }

    fn note(&self, succeeded: bool) {
        self.failed.set(self.failed.get() || !succeeded);
    }
}

/// How the data of a command is described, and its direction.
///
/// # Errors
/// Invalid Field when the command's flags name neither PRPs nor an SGL.
///
/// # Panics
/// When `page` is no power of two, or smaller than 4 KiB.
#[inline]
pub(super) fn describe(entry: &SubmissionEntry, page: u32) -> Result<(Description, Access), Status> {
    assert!(page.is_power_of_two() && page >= 4_096, "memory pages of {page} bytes");
    let description = match (entry.flags & FLAGS_PSDT) >> 6 {
        0b00 => Description::Prp { prp1: entry.prp1.get(), prp2: entry.prp2.get(), page },
        psdt @ (0b01 | 0b10) => Description::Sgl { first: entry.sgl1(), describes_metadata: psdt == 0b10 },
        _ => return Err(Status::INVALID_FIELD.final_()),
    };
    let access = match Transfer::of(entry.opcode) {
        Transfer::ToHost => Access::Write,
        _ => Access::Read,
    };
    Ok((description, access))
}

/// The purpose for which the data of an I/O command is read.
#[inline]
pub(super) fn purpose(entry: &SubmissionEntry) -> Purpose {
    match IoOpcode(entry.opcode) {
        IoOpcode::WRITE if is_only_stored(entry) => Purpose::Stored,
        IoOpcode::DATASET_MANAGEMENT => Purpose::Ranges,
        _ => Purpose::Other,
    }
}

impl Memory for DataPointer {
    /// PRPs have no length: they describe as many bytes as the command transfers. The length of an SGL is known once
    /// it is walked.
    fn max_len(&self) -> usize {
        u32::MAX as usize
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        let copied = self.pieces(start, bytes.len(), |at, done, len| {
            let bytes = &mut bytes[done..done + len];
            self.dma.read_for(self.purpose, at, bytes).or_else(|fault| self.read_remote(fault, bytes))
        });
        if !copied {
            bytes.fill(0);
        }
        self.note(copied);
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        self.note(self.pieces(start, bytes.len(), |at, done, len| self.put(at, &bytes[done..done + len])));
    }

    fn clear(&self, start: usize, len: usize) {
        const ZEROS: [u8; 4_096] = [0; 4_096];
        let clear = |at: u64, _, len: usize| {
            (0..len)
                .step_by(ZEROS.len())
                .try_for_each(|done| self.put(at.wrapping_add(done as u64), &ZEROS[..ZEROS.len().min(len - done)]))
        };
        self.note(self.pieces(start, len, clear));
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        drop(self.walked(bytes)?);
        let check = |at, _, len| self.dma.check(at, len, self.access).or_else(|fault| self.check_remote(fault, len));
        match self.pieces(0, bytes, check) && !self.lacks() {
            true => Ok(()),
            false => Err(Status::DATA_TRANSFER_ERROR),
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// A contiguous buffer or, with PSDT 10b, an SGL whose first descriptor is at the pointer (Base 4.1, MPTR).
    fn metadata(&self, pointer: u64) -> Result<Option<HostMem>, Status> {
        let is_described = matches!(self.description, Description::Sgl { describes_metadata: true, .. });
        if !pointer.is_multiple_of(if is_described { 8 } else { 4 }) {
            return Err(Status::INVALID_FIELD.final_());
        }
        let mut first = SglDescriptor::new(SglType::DATA_BLOCK, pointer, u32::MAX);
        if is_described {
            Lists(self).read(pointer, first.as_mut_bytes())?;
        }
        let description = Description::Sgl { first, describes_metadata: false };
        let metadata = DataPointer::over(&self.dma, description, self.access, Purpose::Other);
        // The command settles data and metadata at once.
        metadata.remote.replace(Some(self.remote()));
        Ok(Some(HostMem::over(Rc::new(metadata))))
    }

    /// A buffer in one piece.
    fn list(&self, pointer: u64) -> Result<Option<HostMem>, Status> {
        if !pointer.is_multiple_of(8) {
            return Err(Status::INVALID_FIELD.final_());
        }
        let first = SglDescriptor::new(SglType::DATA_BLOCK, pointer, u32::MAX);
        let description = Description::Sgl { first, describes_metadata: false };
        let list = DataPointer::over(&self.dma, description, Access::Read, Purpose::Other);
        list.remote.replace(Some(self.remote()));
        Ok(Some(HostMem::over(Rc::new(list))))
    }

    fn is_settled(&self) -> bool {
        !self.failed.get() && self.need() == Need::Nothing
    }

    fn need(&self) -> Need {
        self.remote.borrow().as_ref().map_or(Need::Nothing, |remote| remote.borrow().stage.need())
    }

    fn settle(self: Rc<Self>, settled: Settled) {
        {
            let remote = self.remote();
            let mut remote = remote.borrow_mut();
            remote.stage.admit();
            remote.settled = Some(settled);
        }
        self.ask();
    }

    fn give_up(&self) {
        let remote = self.remote();
        let mut remote = remote.borrow_mut();
        remote.stage.give_up();
        remote.settled = None;
    }
}

/// Memory that only the host reaches.
impl DataPointer {
    /// The stage of remote memory. Its data is dropped when the command ends, never kept for another.
    #[cold]
    fn remote(&self) -> Rc<RefCell<Remote>> {
        if let Some(kept) = self.kept.take().upgrade() {
            kept.forget(self);
        }
        self.remote.borrow_mut().get_or_insert_default().clone()
    }

    /// Whether something has to be read first.
    #[inline]
    fn lacks(&self) -> bool {
        self.need() == Need::Fetch
    }

    /// Works on the stage, if the host can be asked after a fault.
    #[cold]
    fn with_stage<R>(&self, fault: DmaFault, work: impl FnOnce(&mut Stage) -> R) -> Result<R, DmaFault> {
        match fault.is_remote {
            true => Ok(work(&mut self.remote().borrow_mut().stage)),
            false => Err(fault),
        }
    }

    /// Copies data out of the stage.
    fn read_remote(&self, fault: DmaFault, bytes: &mut [u8]) -> Result<(), DmaFault> {
        let copied = self.with_stage(fault, |stage| stage.copy(fault.address, bytes))?;
        if copied { Ok(()) } else { Err(fault) }
    }

    /// Copies data in, or stages it for remote memory.
    fn put(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.dma.write(address, bytes).or_else(|fault| self.with_stage(fault, |stage| stage.put(address, bytes)))
    }

    /// Whether a range can be used. Notes all bytes that must be read first.
    fn check_remote(&self, fault: DmaFault, len: usize) -> Result<(), DmaFault> {
        let reads = self.access == Access::Read;
        let (has, lacks) = self.with_stage(fault, |stage| {
            let has = stage.has(fault.address, len, reads);
            (has, stage.need() == Need::Fetch)
        })?;
        if has || lacks { Ok(()) } else { Err(fault) }
    }

    /// Requests the rest from the host, a few transfers at a time, and reports when all are answered.
    fn ask(self: Rc<Self>) {
        let shared = self.remote();
        loop {
            let next = {
                let mut remote = shared.borrow_mut();
                let next = if remote.asked < ASKS_AT_A_TIME { remote.stage.next() } else { None };
                remote.asked += u32::from(next.is_some());
                next
            };
            let Some(ask) = next else { break };
            let (address, reads) = match &ask {
                Ask::Read { address, .. } => (*address, true),
                Ask::Write { address, .. } => (*address, false),
            };
            let this = self.clone();
            self.dma.ask(ask, Box::new(move |answer| this.answered(address, reads, answer)));
        }
        let settled = {
            let mut remote = shared.borrow_mut();
            if remote.asked == 0 { remote.settled.take() } else { None }
        };
        if let Some(settled) = settled {
            settled();
        }
    }

    /// The host has answered.
    fn answered(self: Rc<Self>, address: u64, reads: bool, answer: Option<Vec<u8>>) {
        {
            let remote = self.remote();
            let mut remote = remote.borrow_mut();
            remote.asked -= 1;
            match reads {
                true => remote.stage.was_read(address, answer),
                false => self.note(answer.is_some()),
            }
        }
        self.ask();
    }
}

/// The memory of a command's lists: bytes that were read before are not read again.
struct Lists<'a>(&'a DataPointer);

impl Dma for Lists<'_> {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        let Lists(pointer) = self;
        let fault = match pointer.dma.read(address, bytes) {
            Ok(()) => return Ok(()),
            Err(fault) => fault,
        };
        let has = pointer.with_stage(fault, |stage| stage.has(address, bytes.len(), true))?;
        if has { pointer.read_remote(fault, bytes) } else { Err(fault) }
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.0.dma.write(address, bytes)
    }

    fn store(&self, address: u64, value: u32) -> Result<(), DmaFault> {
        self.0.dma.store(address, value)
    }

    fn check(&self, address: u64, len: usize, access: Access) -> Result<(), DmaFault> {
        self.0.dma.check(address, len, access)
    }
}
