//! The media cache: writes go to the end of a log, which wraps around its tracks, and a map has the place of the newest
//! copy of each sector. The room of a write is free again when none of its sectors is the newest copy any more.

use std::collections::BTreeMap;
use std::ops::Range;

/// Consecutive sectors whose newest copy is in the log.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The first logical block.
    pub(super) slba: u64,
    /// Blocks.
    pub(super) blocks: u64,
    /// The place of the copy: the distance from the first write ever.
    at: u64,
    /// Its write, by place.
    of: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.slba + self.blocks
    }

    /// The part of it in a range, which it touches.
    fn within(&self, range: &Range<u64>) -> Piece {
        let (slba, end) = (self.slba.max(range.start), self.end().min(range.end));
        Piece { slba, blocks: end - slba, at: self.at + (slba - self.slba), of: self.of }
    }
}

/// A write.
#[derive(Copy, Clone)]
struct Write {
    slba: u64,
    blocks: u64,
    /// Its blocks that are the newest copies.
    live: u64,
}

/// See the file.
pub(super) struct Log {
    capacity: u64,
    head: u64,
    tail: u64,
    /// By the first logical block; they do not overlap.
    pieces: BTreeMap<u64, Piece>,
    /// By their place.
    writes: BTreeMap<u64, Write>,
}

impl Log {
    pub(super) fn new(capacity: u64) -> Log {
        Log { capacity, head: 0, tail: 0, pieces: BTreeMap::new(), writes: BTreeMap::new() }
    }

    /// Where the next write would begin, given its length in blocks: not across the end of the tracks.
    fn begin(&self, blocks: u64) -> u64 {
        let left = self.capacity - self.head % self.capacity;
        if left < blocks { self.head + left } else { self.head }
    }

    /// Whether a write fits.
    pub(super) fn has_room(&self, blocks: u64) -> bool {
        self.begin(blocks) + blocks - self.tail <= self.capacity
    }

    /// The sector in the cache at which the next write begins.
    pub(super) fn next(&self) -> u64 {
        self.head % self.capacity
    }

    /// Whether it holds no newest copy.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes blocks, which must fit. Returns the sector in the cache.
    pub(super) fn append(&mut self, slba: u64, blocks: u64) -> u64 {
        let at = self.begin(blocks);
        self.remove(slba..slba + blocks);
        self.head = at + blocks;
        self.pieces.insert(slba, Piece { slba, blocks, at, of: at });
        self.writes.insert(at, Write { slba, blocks, live: blocks });
        self.advance();
        at % self.capacity
    }

    /// The pieces in a range, each with the sector in the cache, by logical block.
    pub(super) fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = (Piece, u64)> {
        let first = self.pieces.range(..range.start).next_back().filter(|(_, piece)| piece.end() > range.start);
        let pieces = first.into_iter().chain(self.pieces.range(range.clone()));
        pieces.map(move |(_, piece)| {
            let piece = piece.within(&range);
            (piece, piece.at % self.capacity)
        })
    }

    /// The newest copies of a range's blocks are elsewhere now.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        let touched: Vec<Piece> = {
            let first = self.pieces.range(..range.start).next_back().filter(|(_, piece)| piece.end() > range.start);
            first.into_iter().chain(self.pieces.range(range.clone())).map(|(_, piece)| *piece).collect()
        };
        for piece in touched {
            self.pieces.remove(&piece.slba);
            let gone = piece.within(&range);
            if let Some(write) = self.writes.get_mut(&piece.of) {
                write.live -= gone.blocks;
            }
            for rest in [piece.slba..gone.slba, gone.end()..piece.end()] {
                if !rest.is_empty() {
                    let rest = piece.within(&rest);
                    self.pieces.insert(rest.slba, rest);
                }
            }
        }
        self.advance();
    }

    /// Frees the room of the oldest writes.
    fn advance(&mut self) {
        while let Some((at, write)) = self.writes.first_key_value() {
            if write.live > 0 {
                self.tail = *at;
                return;
            }
            self.writes.pop_first();
        }
        self.tail = self.head;
    }

    /// The first logical block of the oldest write with a newest copy.
    pub(super) fn oldest(&self) -> Option<u64> {
        let (at, write) = self.writes.first_key_value()?;
        let mut of_write = self.pieces(write.slba..write.slba + write.blocks).filter(|(piece, _)| piece.of == *at);
        of_write.next().map(|(piece, _)| piece.slba)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    #[test]
    fn overwritten_sectors_free_room_and_pieces_are_split() {
        let mut log = Log::new(100);
        assert_eq!((log.append(1_000, 40), log.append(2_000, 40)), (0, 40));
        assert!(!log.has_room(40) && log.has_room(20));
        assert_eq!(log.append(1_010, 10), 80);
        let pieces: Vec<_> = log.pieces(1_005..1_025).map(|(piece, at)| (piece.slba, piece.blocks, at)).collect();
        assert_eq!(pieces, [(1_005, 5, 5), (1_010, 10, 80), (1_020, 5, 20)]);
        assert_eq!(log.oldest(), Some(1_000));
        log.remove(1_000..1_100);
        assert_eq!(log.oldest(), Some(2_000));
        // The tail is at 40, the head at 90, and a write of 20 does not cross the end.
        assert_eq!((log.has_room(20), log.append(3_000, 20)), (true, 0));
        log.remove(0..10_000);
        assert!(log.is_empty() && log.has_room(80));
    }

    /// Against a map of every block.
    #[test]
    fn each_block_has_its_newest_copy_and_copies_do_not_overlap() {
        for seed in 1..30 {
            let (mut log, mut rng) = (Log::new(64), Seed::new(seed).rng());
            let mut newest = vec![None; 200];
            for step in 0..400 {
                let (slba, blocks) = (rng.below(180), 1 + rng.below(12));
                if rng.chance(0.7) && log.has_room(blocks) {
                    let at = log.append(slba, blocks);
                    (0..blocks).for_each(|block| newest[(slba + block) as usize] = Some(at + block));
                } else {
                    let from = log.oldest().unwrap_or(slba) / 20 * 20;
                    log.remove(from..from + 20);
                    newest[from as usize..][..20].fill(None);
                }
                let mut found = vec![None; 200];
                for (piece, at) in log.pieces(0..200) {
                    (0..piece.blocks).for_each(|block| found[(piece.slba + block) as usize] = Some(at + block));
                }
                assert_eq!(found, newest, "seed {seed}, step {step}");
                let mut places: Vec<u64> = found.iter().flatten().copied().collect();
                let all = places.len();
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), all, "seed {seed}, step {step}: copies overlap");
            }
        }
    }
}
