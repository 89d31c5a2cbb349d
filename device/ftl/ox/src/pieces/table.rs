//! The table: the pieces of each page, and where they lie.

use std::collections::BTreeMap;

use super::area::Place;
use super::frames::Frames;
use super::pack::{Entry, Kind};
use super::{MOST_PAGE_BYTES, MOST_PIECES};

/// A piece of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its bytes.
    pub bytes: u32,
    /// Where they lie, in order.
    pub places: Vec<Place>,
}

/// A change of a page, as a buffer has it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The page.
    pub lpid: u64,
    /// Whether the piece is put before the existing pieces; otherwise it replaces them.
    pub is_delta: bool,
    /// Bytes of the piece; a base of none gives the page up.
    pub bytes: u32,
}

/// Why a change of a page is invalid.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// Its number is too large.
    Beyond,
    /// A delta without bytes.
    Empty,
    /// A delta to a page that does not exist.
    NoBase,
    /// The page would have too many pieces.
    Pieces,
    /// The page would have too many bytes.
    Bytes,
}

/// See the module.
#[derive(Default)]
pub(super) struct Table {
    pages: BTreeMap<u64, Vec<Piece>>,
    pieces: usize,
    places: usize,
}

impl Table {
    /// The pieces of a page, the base first; none of one that is not there.
    pub(super) fn page(&self, lpid: u64) -> &[Piece] {
        self.pages.get(&lpid).map_or(&[], Vec::as_slice)
    }

    /// All pages.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u64, &[Piece])> {
        self.pages.iter().map(|(lpid, pieces)| (*lpid, pieces.as_slice()))
    }

    /// The number of pages.
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Bytes of memory, about.
    pub(super) fn memory(&self) -> usize {
        self.pages.len() * (size_of::<u64>() + size_of::<Vec<Piece>>())
            + self.pieces * size_of::<Piece>()
            + self.places * size_of::<Place>()
    }

    /// Checks changes, one after the other, as if they were made. Returns by how much the bytes of pieces grow.
    pub(super) fn admit(&self, changes: &[Change], lpids: u64) -> Result<i64, Misfit> {
        // Pieces and bytes of the pages that change.
        let mut now: BTreeMap<u64, (usize, u32)> = BTreeMap::new();
        let mut growth = 0;
        for change in changes {
            if change.lpid >= lpids {
                return Err(Misfit::Beyond);
            }
            let before = now.get(&change.lpid).copied().unwrap_or_else(|| {
                let pieces = self.page(change.lpid);
                (pieces.len(), pieces.iter().map(|piece| piece.bytes).sum())
            });
            let after = match change.is_delta {
                true if change.bytes == 0 => return Err(Misfit::Empty),
                true if before.0 == 0 => return Err(Misfit::NoBase),
                true if before.0 == MOST_PIECES => return Err(Misfit::Pieces),
                true => (before.0 + 1, before.1.saturating_add(change.bytes)),
                false => (usize::from(change.bytes > 0), change.bytes),
            };
            if after.1 > MOST_PAGE_BYTES {
                return Err(Misfit::Bytes);
            }
            growth += i64::from(after.1) - i64::from(before.1);
            now.insert(change.lpid, after);
        }
        Ok(growth)
    }

    fn put(&mut self, lpid: u64, piece: Piece, frames: &mut Frames) {
        piece.places.iter().for_each(|place| frames.add(lpid, *place));
        self.pieces += 1;
        self.places += piece.places.len();
        self.pages.entry(lpid).or_default().push(piece);
    }

    fn drop_page(&mut self, lpid: u64, frames: &mut Frames) {
        for piece in self.pages.remove(&lpid).into_iter().flatten() {
            self.pieces -= 1;
            self.places -= piece.places.len();
            piece.places.iter().for_each(|place| frames.remove(lpid, *place));
        }
    }

    /// Makes a change whose bytes lie at `places`. Returns whether it fits the table.
    pub(super) fn apply(&mut self, entry: &Entry, places: Vec<Place>, frames: &mut Frames) -> bool {
        let Entry { lpid, bytes, .. } = *entry;
        match entry.kind {
            Kind::Base => {
                self.drop_page(lpid, frames);
                if bytes > 0 {
                    self.put(lpid, Piece { bytes, places }, frames);
                }
                true
            }
            Kind::Delta => {
                let has_base = (1..MOST_PIECES).contains(&self.page(lpid).len()) && bytes > 0;
                if has_base {
                    self.put(lpid, Piece { bytes, places }, frames);
                }
                has_base
            }
            Kind::Moved { ordinal, at } => {
                let pieces = self.pages.get_mut(&lpid);
                let piece = pieces.and_then(|pieces| pieces.get_mut(usize::from(ordinal)));
                let Some(piece) = piece.filter(|piece| at.checked_add(bytes).is_some_and(|end| end <= piece.bytes))
                else {
                    return false;
                };
                let size = frames.size;
                let mut new = cut(&piece.places, 0, at, size);
                new.extend(places);
                new.extend(cut(&piece.places, at + bytes, piece.bytes - at - bytes, size));
                join(&mut new, size);
                self.places = self.places + new.len() - piece.places.len();
                // First the present pieces: no frame is free in between that is not free afterwards.
                new.iter().for_each(|place| frames.add(lpid, *place));
                piece.places.iter().for_each(|place| frames.remove(lpid, *place));
                piece.places = new;
                true
            }
        }
    }

    /// Puts a page of a checkpoint.
    pub(super) fn load(&mut self, lpid: u64, pieces: Vec<Piece>, frames: &mut Frames) {
        pieces.into_iter().for_each(|piece| self.put(lpid, piece, frames));
    }
}

/// A range of bytes at places.
pub(super) fn cut(places: &[Place], mut skip: u32, mut bytes: u32, size: u32) -> Vec<Place> {
    let mut found = Vec::new();
    for place in places {
        if skip < place.bytes && bytes > 0 {
            let now = bytes.min(place.bytes - skip);
            found.push(place.part(skip, now, size));
            (skip, bytes) = (0, bytes - now);
        } else {
            skip = skip.saturating_sub(place.bytes);
        }
    }
    found
}

/// Joins adjacent places in one frame. Frames are not joined: they may not be contiguous.
fn join(places: &mut Vec<Place>, size: u32) {
    places.dedup_by(|next, last| {
        let end = last.offset + last.bytes;
        let follows = last.frame == next.frame && end == next.offset && end < size;
        last.bytes += if follows { next.bytes } else { 0 };
        follows
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(frame: u32, offset: u32, bytes: u32) -> Place {
        Place { frame, offset, bytes }
    }

    fn entry(lpid: u64, kind: Kind, bytes: u32) -> Entry {
        Entry { lpid, kind, bytes }
    }

    #[test]
    fn a_base_takes_the_place_of_a_chain_and_frees_its_frames() {
        let (mut table, mut frames) = (Table::default(), Frames::new(8, 4_096));
        assert!(!table.apply(&entry(7, Kind::Delta, 5), vec![place(0, 0, 5)], &mut frames));
        assert!(table.apply(&entry(7, Kind::Base, 5_000), vec![place(0, 0, 5_000)], &mut frames));
        assert!(table.apply(&entry(7, Kind::Delta, 96), vec![place(2, 0, 96)], &mut frames));
        assert_eq!((table.page(7).len(), frames.free(), frames.live()), (2, 5, 5_096));
        assert!(table.apply(&entry(7, Kind::Base, 10), vec![place(3, 0, 10)], &mut frames));
        assert_eq!((table.page(7).len(), frames.free(), frames.live()), (1, 7, 10));
        assert!(table.apply(&entry(7, Kind::Base, 0), Vec::new(), &mut frames));
        assert_eq!((table.len(), frames.free(), frames.live(), table.places, table.pieces), (0, 8, 0, 0, 0));
    }

    #[test]
    fn a_part_of_a_piece_moves() {
        let (mut table, mut frames) = (Table::default(), Frames::new(8, 4_096));
        table.apply(&entry(1, Kind::Base, 6_000), vec![place(0, 1_000, 6_000)], &mut frames);
        let moved = Kind::Moved { ordinal: 0, at: 3_096 };
        assert!(table.apply(&entry(1, moved, 2_904), vec![place(5, 0, 2_904)], &mut frames));
        assert_eq!(table.page(1)[0].places, [place(0, 1_000, 3_096), place(5, 0, 2_904)]);
        assert_eq!((frames.free(), frames.live(), frames.live_in(1)), (6, 6_000, 0));
        assert!(!table.apply(&entry(1, moved, 2_905), vec![place(5, 0, 2_905)], &mut frames));
        let other = Kind::Moved { ordinal: 1, at: 0 };
        assert!(!table.apply(&entry(1, other, 1), vec![place(5, 0, 1)], &mut frames));
        let rest = Kind::Moved { ordinal: 0, at: 0 };
        assert!(table.apply(&entry(1, rest, 3_096), vec![place(4, 100, 3_096)], &mut frames));
        assert_eq!(table.page(1)[0].places, [place(4, 100, 3_096), place(5, 0, 2_904)]);
    }

    #[test]
    fn changes_are_admitted_one_after_the_other() {
        let change = |lpid, is_delta, bytes| Change { lpid, is_delta, bytes };
        let (mut table, mut frames) = (Table::default(), Frames::new(8, 4_096));
        table.apply(&entry(1, Kind::Base, 50), vec![place(0, 0, 50)], &mut frames);
        assert_eq!(table.admit(&[change(1, true, 5), change(2, false, 7), change(2, true, 1)], 9), Ok(13));
        assert_eq!(table.admit(&[change(1, false, 0)], 9), Ok(-50));
        for (changes, why) in [
            (vec![change(9, false, 1)], Misfit::Beyond),
            (vec![change(1, true, 0)], Misfit::Empty),
            (vec![change(2, true, 1)], Misfit::NoBase),
            (vec![change(1, false, 0), change(1, true, 1)], Misfit::NoBase),
            (vec![change(1, true, MOST_PAGE_BYTES - 49)], Misfit::Bytes),
            (vec![change(2, false, u32::MAX)], Misfit::Bytes),
            (vec![change(1, true, 1); MOST_PIECES], Misfit::Pieces),
        ] {
            assert_eq!(table.admit(&changes, 9), Err(why), "{changes:?}");
        }
        assert!(table.admit(&vec![change(1, true, 1); MOST_PIECES - 1], 9).is_ok());
    }
}
