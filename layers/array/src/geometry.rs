//! The location of an array's blocks: stripes, chunks, and the parts of a command in them.

use smallvec::SmallVec;

use crate::level::Level;

/// Sizes of an array.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes of a logical block.
    pub lba_bytes: u32,
    /// Logical blocks of a chunk.
    pub chunk_blocks: u32,
    /// Data chunks of a stripe.
    pub data: usize,
    /// Stripes.
    pub stripes: u64,
    /// Logical blocks of a mapping unit of the members.
    pub unit_blocks: u32,
}

/// A part of a command within one data chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    /// The data chunk.
    pub(crate) index: usize,
    /// Its first block in the chunk.
    pub(crate) start: u32,
    pub(crate) blocks: u32,
    /// Its first byte in the memory of the command.
    pub(crate) at: usize,
}

/// Blocks of a chunk, the same in each chunk of a stripe.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    pub(crate) start: u32,
    pub(crate) blocks: u32,
}

pub(crate) type Segments = SmallVec<[Segment; 4]>;

impl Reach {
    pub(crate) fn end(self) -> u32 {
        self.start + self.blocks
    }

    pub(crate) fn covers(self, other: Reach) -> bool {
        self.start <= other.start && self.end() >= other.end()
    }
}

impl Segment {
    pub(crate) fn span(&self) -> Reach {
        Reach { start: self.start, blocks: self.blocks }
    }
}

/// The smallest span that covers all segments.
pub(crate) fn union(segments: &[Segment]) -> Reach {
    let start = segments.iter().map(|segment| segment.start).min().unwrap_or(0);
    let end = segments.iter().map(|segment| segment.start + segment.blocks).max().unwrap_or(0);
    Reach { start, blocks: end - start }
}

impl Geometry {
    pub(crate) fn new(level: &dyn Level, lba_bytes: u32, chunk_blocks: u32, unit_blocks: u32, blocks: u64) -> Geometry {
        let stripes = blocks / u64::from(chunk_blocks);
        Geometry { lba_bytes, chunk_blocks, data: level.data(), stripes, unit_blocks }
    }

    /// Logical blocks of the array.
    pub fn blocks(&self) -> u64 {
        self.stripes * self.stripe_blocks()
    }

    /// Logical blocks of data in a stripe.
    pub fn stripe_blocks(&self) -> u64 {
        self.data as u64 * u64::from(self.chunk_blocks)
    }

    pub(crate) fn bytes(&self, blocks: u32) -> usize {
        blocks as usize * self.lba_bytes as usize
    }

    /// The stripe and the part of a command that is within one chunk.
    pub(crate) fn within_chunk(&self, slba: u64, blocks: u32) -> Option<(u64, Segment)> {
        let chunk = u64::from(self.chunk_blocks);
        let (number, start) = (slba / chunk, slba % chunk);
        let index = (number % self.data as u64) as usize;
        let segment = Segment { index, start: start as u32, blocks, at: 0 };
        (start + u64::from(blocks) <= chunk).then_some((number / self.data as u64, segment))
    }

    /// The parts of a command in each stripe.
    pub(crate) fn pieces(&self, slba: u64, blocks: u32) -> SmallVec<[(u64, Segments); 1]> {
        let (chunk, end) = (u64::from(self.chunk_blocks), slba + u64::from(blocks));
        let mut pieces: SmallVec<[(u64, Segments); 1]> = SmallVec::new();
        let mut at = slba;
        while at < end {
            let (number, start) = (at / chunk, at % chunk);
            let (stripe, index) = (number / self.data as u64, (number % self.data as u64) as usize);
            let count = (chunk - start).min(end - at);
            let at_byte = (at - slba) as usize * self.lba_bytes as usize;
            let segment = Segment { index, start: start as u32, blocks: count as u32, at: at_byte };
            match pieces.last_mut() {
                Some((last, segments)) if *last == stripe => segments.push(segment),
                _ => pieces.push((stripe, SmallVec::from_iter([segment]))),
            }
            at += count;
        }
        pieces
    }

    /// Whether segments cover all data of a stripe.
    pub(crate) fn is_full(&self, segments: &[Segment]) -> bool {
        segments.len() == self.data && segments.iter().all(|segment| segment.blocks == self.chunk_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_cover_each_block_once_in_order(slba in 0u64..500, blocks in 1u32..200, chunk in 1u32..20, data in 1usize..6) {
            let geometry = Geometry { lba_bytes: 512, chunk_blocks: chunk, data, stripes: 1_000, unit_blocks: 8 };
            let pieces = geometry.pieces(slba, blocks);
            let single = (pieces.len() == 1 && pieces[0].1.len() == 1).then(|| (pieces[0].0, pieces[0].1[0]));
            prop_assert_eq!(geometry.within_chunk(slba, blocks), single);
            let (mut next, mut at) = (slba, 0);
            for (stripe, segments) in pieces {
                for segment in segments {
                    let first = (stripe * data as u64 + segment.index as u64) * u64::from(chunk) + u64::from(segment.start);
                    prop_assert_eq!((first, segment.at), (next, at));
                    prop_assert!(segment.start + segment.blocks <= chunk && segment.blocks > 0);
                    next += u64::from(segment.blocks);
                    at += segment.blocks as usize * 512;
                }
            }
            prop_assert_eq!(next, slba + u64::from(blocks));
        }
    }
}
