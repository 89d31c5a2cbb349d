//! Memory that a command describes by PRPs or by an SGL. It is walked when the length of the command's data is known,
//! and each copy finds the addresses again: what is unmapped in between is not reached.
//!
//! Left out: what an address is, which the [`Dma`] knows.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

use nandscape_wire_nvme::command::FLAGS_PSDT;
use nandscape_wire_nvme::opcode::Transfer;
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::{Status, SubmissionEntry};
use smallvec::SmallVec;
use zerocopy::IntoBytes;

use super::dma::{Access, Dma, DmaFault};
use super::{HostMem, Memory, prp, sgl};

/// The data pointer of one command.
pub struct DataPointer {
    dma: Rc<dyn Dma>,
    description: Description,
    access: Access,
    /// The pieces of the first bytes, as many as were asked for.
    segments: RefCell<Segments>,
    failed: Cell<bool>,
}

/// How the data is described.
enum Description {
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
    /// Where it lies; `None` for a bit bucket, which takes bytes and keeps none.
    pub(super) address: Option<u64>,
    pub(super) len: u32,
}

/// Pieces in order; adjacent ones are one.
#[derive(Clone, Default, Debug)]
pub(super) struct Segments {
    list: SmallVec<[Segment; 2]>,
    len: u64,
}

impl Segments {
    pub(super) fn new() -> Segments {
        Segments::default()
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
    /// The data of a command whose opcode tells the direction. `page` is the size of a memory page in bytes.
    ///
    /// # Errors
    /// Invalid Field when the command's flags name neither PRPs nor an SGL.
    ///
    /// # Panics
    /// When `page` is no power of two, or smaller than 4 KiB.
    pub fn new(dma: &Rc<dyn Dma>, entry: &SubmissionEntry, page: u32) -> Result<DataPointer, Status> {
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
        Ok(DataPointer::over(dma, description, access))
    }

    fn over(dma: &Rc<dyn Dma>, description: Description, access: Access) -> DataPointer {
        DataPointer { dma: dma.clone(), description, access, segments: RefCell::default(), failed: Cell::new(false) }
    }

    /// The pieces of the first `bytes`.
    fn walked(&self, bytes: usize) -> Result<Ref<'_, Segments>, Status> {
        if (bytes as u64) > self.segments.borrow().len {
            let (dma, len) = (&*self.dma, bytes as u64);
            let segments = match &self.description {
                Description::Prp { prp1, prp2, page } => prp::walk(dma, *prp1, *prp2, u64::from(*page), len)?,
                Description::Sgl { first, .. } => sgl::walk(dma, first, self.access, len)?,
            };
            self.segments.replace(segments);
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

impl Memory for DataPointer {
    /// PRPs have no length: they are as long as the command says. What an SGL has is found out when it is walked.
    fn max_len(&self) -> usize {
        u32::MAX as usize
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        let copied = self.pieces(start, bytes.len(), |at, done, len| self.dma.read(at, &mut bytes[done..done + len]));
        if !copied {
            bytes.fill(0);
        }
        self.note(copied);
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        self.note(self.pieces(start, bytes.len(), |at, done, len| self.dma.write(at, &bytes[done..done + len])));
    }

    fn clear(&self, start: usize, len: usize) {
        const ZEROS: [u8; 4_096] = [0; 4_096];
        let clear = |at: u64, _, len: usize| {
            (0..len).step_by(ZEROS.len()).try_for_each(|done| {
                self.dma.write(at.wrapping_add(done as u64), &ZEROS[..ZEROS.len().min(len - done)])
            })
        };
        self.note(self.pieces(start, len, clear));
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        drop(self.walked(bytes)?);
        let check = |at, _, len| self.dma.check(at, len, self.access);
        if self.pieces(0, bytes, check) { Ok(()) } else { Err(Status::DATA_TRANSFER_ERROR) }
    }

    fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// A buffer in one piece, or, with PSDT 10b, an SGL whose first descriptor stands at the pointer (Base 4.1, MPTR).
    fn metadata(&self, pointer: u64) -> Result<Option<HostMem>, Status> {
        let is_described = matches!(self.description, Description::Sgl { describes_metadata: true, .. });
        if !pointer.is_multiple_of(if is_described { 8 } else { 4 }) {
            return Err(Status::INVALID_FIELD.final_());
        }
        let mut first = SglDescriptor::new(SglType::DATA_BLOCK, pointer, u32::MAX);
        if is_described {
            self.dma.read(pointer, first.as_mut_bytes())?;
        }
        let description = Description::Sgl { first, describes_metadata: false };
        Ok(Some(HostMem::over(Rc::new(DataPointer::over(&self.dma, description, self.access)))))
    }
}
