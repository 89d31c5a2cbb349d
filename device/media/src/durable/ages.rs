//! The ages of a drive's data: when each block was written on the drive's clock, its reads since then, and what the
//! drive did in a life before its first start. The clock counts the time with power, over all starts.
//!
//! A head, and blocks in chunks of 4 KiB. Each is a [`Notes`]: two copies with a checksum, written one after the other.
//! Only changed chunks are written, and the head after them. The head therefore gives the time at which all chunks were
//! complete: a block erased or programmed since its chunk was written changed after that time. A chunk also has the
//! time of its own write, because a kill may come before the head is written.
//!
//! Left out: time without power, which a drive cannot measure.

use std::io;
use std::rc::Rc;

use super::disk::Disk;
use super::layout::Region;
use super::notes::{HEAD, Notes};
use crate::aging::Past;
use crate::fault::MediaError;
use crate::geometry::BlockId;
use crate::plain::{Malformed, Reader, Writer};
use nandscape_sim::Time;

/// Bytes of a chunk's copy, and of the head's.
const CHUNK: u64 = 4_096;
/// Bytes of a block in a chunk, and of the header before the first: the clock and the number of that block.
const BLOCK: u64 = 20;
const BEFORE: u64 = 12;
/// Blocks of a chunk.
pub(crate) const BLOCKS: u32 = ((CHUNK - HEAD as u64 - BEFORE) / BLOCK) as u32;

/// Bytes of a whole copy.
pub(crate) fn region_bytes(blocks: u32) -> u64 {
    (1 + u64::from(blocks.div_ceil(BLOCKS))) * CHUNK
}

/// A block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Aged {
    /// The time of its first program on the drive's clock, in nanoseconds; negative before the first start.
    pub(crate) written: i64,
    /// Reads since then.
    pub(crate) reads: u32,
    /// Erases and programmed pages at the time of this write, which show whether it still holds.
    pub(crate) erases: u32,
    pub(crate) pages: u32,
}

/// The ages found.
pub(crate) struct KeptAges {
    /// The latest time that is known, in nanoseconds of the drive's clock.
    pub(crate) clock: i64,
    /// The time at which all chunks were written.
    pub(crate) complete: i64,
    /// The drive's totals of a life before its first start.
    pub(crate) past: Past,
    /// The blocks; `None` for blocks that were never written.
    pub(crate) blocks: Vec<Option<Aged>>,
}

/// See the file.
pub(crate) struct Ages {
    head: Notes,
    chunks: Vec<Notes>,
    blocks: u32,
}

impl Ages {
    /// Whether a file has any.
    pub(crate) fn are_in(disk: &Disk) -> io::Result<bool> {
        Notes::are_in(disk, chunk_at(disk, 0))
    }

    /// The ages of a file that has room for them.
    pub(crate) fn open(disk: &Rc<Disk>, blocks: u32, may_be_torn: bool) -> io::Result<Ages> {
        let notes = |number: u32| {
            let name = match number {
                0 => "the head of the ages of data".to_owned(),
                chunk => format!("the ages of the data of blocks from {} on", (chunk - 1) * BLOCKS),
            };
            Notes::open(disk, chunk_at(disk, number), &name, may_be_torn)
        };
        let chunks = (1..=blocks.div_ceil(BLOCKS)).map(notes).collect::<io::Result<_>>()?;
        Ok(Ages { head: notes(0)?, chunks, blocks })
    }

    /// The number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Makes both copies alike.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn mend(&self) -> Result<(), MediaError> {
        self.chunks.iter().chain([&self.head]).try_for_each(Notes::mend)
    }

    /// The last head written; `None` if it never was.
    pub(crate) fn read(&self) -> io::Result<Option<KeptAges>> {
        let wrong = |problem: Malformed| {
            let what = format!("the ages of data are none: {problem}");
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let Some(head) = self.head.read()? else { return Ok(None) };
        let (complete, past) = read_head(&head).map_err(wrong)?;
        let mut kept = KeptAges { clock: complete, complete, past, blocks: vec![None; self.blocks as usize] };
        for (first, (notes, blocks)) in
            (0..).step_by(BLOCKS as usize).zip(self.chunks.iter().zip(kept.blocks.chunks_mut(BLOCKS as usize)))
        {
            if let Some(chunk) = notes.read()? {
                kept.clock = kept.clock.max(read_chunk(&chunk, first, blocks).map_err(wrong)?);
            }
        }
        Ok(Some(kept))
    }

    /// Writes some chunks as of a time, and then the head.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn write(
        &self,
        (clock, past): (i64, &Past),
        chunks: impl IntoIterator<Item = usize>,
        block: impl Fn(BlockId) -> Aged,
    ) -> Result<(), MediaError> {
        for chunk in chunks {
            let first = chunk as u32 * BLOCKS;
            let mut to = Writer::default();
            to.long(clock as u64);
            to.word(first);
            for Aged { written, reads, erases, pages } in
                (first..self.blocks.min(first + BLOCKS)).map(|number| block(BlockId(number)))
            {
                to.long(written as u64);
                [reads, erases, pages].iter().for_each(|number| to.word(*number));
            }
            self.chunks[chunk].write(&to.finish())?;
        }
        let mut to = Writer::default();
        to.long(clock as u64);
        past.save(Time::ZERO, &mut to);
        self.head.write(&to.finish())
    }
}

/// Where a chunk lies in both copies; the head is the one before the first.
fn chunk_at(disk: &Disk, number: u32) -> [Region; 2] {
    disk.layout.ages.map(|region| Region { at: region.at + u64::from(number) * CHUNK, len: CHUNK })
}

fn read_head(bytes: &[u8]) -> Result<(i64, Past), Malformed> {
    let mut from = Reader::new(bytes);
    Ok((from.long()? as i64, Past::restore(Time::ZERO, &mut from)?))
}

/// The blocks of a chunk that begins with the block `first`, and the time at which it was written.
fn read_chunk(bytes: &[u8], first: u32, blocks: &mut [Option<Aged>]) -> Result<i64, Malformed> {
    let mut from = Reader::new(bytes);
    let (clock, begins) = (from.long()? as i64, from.word()?);
    if begins != first {
        return Err(from.malformed(format!("blocks from {begins} on stand in the place of those from {first} on")));
    }
    for block in blocks {
        let written = from.long()? as i64;
        *block = Some(Aged { written, reads: from.word()?, erases: from.word()?, pages: from.word()? });
    }
    Ok(clock)
}
