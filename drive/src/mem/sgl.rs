//! Walking scatter gather lists (Base 4.3.2): descriptors of data, in segments that point to one another.
//!
//! Segments may form a cycle, and descriptors may have no length: the number of descriptors walked is limited.
//!
//! Left out: keyed descriptors and those of transports, which belong to Fabrics.

use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use zerocopy::IntoBytes;

use super::data_pointer::{Segment, Segments};
use super::dma::{Access, Dma};

/// Each costs an access to host memory in the step that moves the data. Other hosts of a live drive wait for that
/// step; Linux uses some hundred.
pub(super) const MAX_DESCRIPTORS: u32 = 1_024;
/// Descriptors that are read at a time.
const BATCH: usize = 32;
/// Bytes of a descriptor.
const DESCRIPTOR: u32 = size_of::<SglDescriptor>() as u32;

/// The pieces found so far, and the length still wanted.
struct Walk<'a> {
    segments: &'a mut Segments,
    rest: u64,
    access: Access,
    descriptors: u32,
}

/// Adds the segments of the first `len` bytes. `access` is the direction of the command's data.
pub(super) fn walk(
    dma: &dyn Dma,
    first: &SglDescriptor,
    access: Access,
    len: u64,
    segments: &mut Segments,
) -> Result<(), Status> {
    let mut walk = Walk { segments, rest: len, access, descriptors: 0 };
    let mut next = walk.take(first, true)?;
    while let Some(segment) = next {
        next = walk.segment(dma, &segment)?;
    }
    match walk.rest {
        0 => Ok(()),
        _ => Err(Status::DATA_SGL_LENGTH_INVALID.final_()),
    }
}

impl Walk<'_> {
    /// Takes the descriptors of a segment; the segment after it.
    fn segment(&mut self, dma: &dyn Dma, segment: &SglDescriptor) -> Result<Option<SglDescriptor>, Status> {
        let (mut at, bytes) = (segment.address.get(), segment.len.get());
        if bytes == 0 || !bytes.is_multiple_of(DESCRIPTOR) {
            return Err(Status::INVALID_SGL_SEGMENT.final_());
        }
        let mut left = bytes / DESCRIPTOR;
        while left > 0 && self.rest > 0 {
            let mut descriptors = [SglDescriptor::default(); BATCH];
            let now = (left as usize).min(BATCH);
            dma.read(at, descriptors[..now].as_mut_bytes())?;
            at = at.wrapping_add(u64::from(DESCRIPTOR) * now as u64);
            for descriptor in &descriptors[..now] {
                left -= 1;
                let next = self.take(descriptor, left == 0)?;
                if next.is_some() && segment.kind() == SglType::LAST_SEGMENT {
                    return Err(Status::INVALID_SGL_SEGMENT.final_());
                }
                if next.is_some() {
                    return Ok(next);
                }
            }
        }
        Ok(None)
    }

    /// Takes a descriptor, which is the last of its segment or not; a segment if it names one that is wanted.
    fn take(&mut self, descriptor: &SglDescriptor, last: bool) -> Result<Option<SglDescriptor>, Status> {
        self.descriptors += 1;
        if self.descriptors > MAX_DESCRIPTORS {
            return Err(Status::INVALID_SGL_COUNT.final_());
        }
        if descriptor.sub_type() != 0 {
            return Err(Status::SGL_TYPE_INVALID.final_());
        }
        let len = u64::from(descriptor.len.get()).min(self.rest) as u32;
        match descriptor.kind() {
            SglType::DATA_BLOCK => self.add(Segment { address: Some(descriptor.address.get()), len }),
            // A bit bucket discards data to the host; for data from the host it has no effect.
            SglType::BIT_BUCKET if self.access == Access::Write => self.add(Segment { address: None, len }),
            SglType::BIT_BUCKET => {}
            SglType::SEGMENT | SglType::LAST_SEGMENT if !last => return Err(Status::INVALID_SGL_COUNT.final_()),
            SglType::SEGMENT | SglType::LAST_SEGMENT => return Ok((self.rest > 0).then_some(*descriptor)),
            _ => return Err(Status::SGL_TYPE_INVALID.final_()),
        }
        Ok(None)
    }

    fn add(&mut self, segment: Segment) {
        self.rest -= u64::from(segment.len);
        self.segments.add(segment);
    }
}
