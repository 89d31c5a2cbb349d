//! A file that is read and never written: changes are kept in memory next to it. A drive can therefore be started on it as on
//! any other file, to inspect the result of a start.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::backing::Backing;

/// Bytes of the pieces that are kept.
const PIECE: u64 = 4_096;

/// See the file.
pub(super) struct Overlay {
    below: Arc<dyn Backing>,
    changed: Mutex<BTreeMap<u64, Box<[u8]>>>,
}

impl Overlay {
    pub(super) fn new(below: Arc<dyn Backing>) -> Overlay {
        Overlay { below, changed: Mutex::default() }
    }
}

/// The parts of a range that lie in one piece: the piece, the first byte in it, and the range of the whole.
fn parts(at: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let here = at + done as u64;
        let (piece, skip) = (here / PIECE, (here % PIECE) as usize);
        let range = done..len.min(done + PIECE as usize - skip);
        done = range.end;
        (!range.is_empty()).then_some((piece, skip, range))
    })
}

impl Backing for Overlay {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.below.read_at(at, bytes)?;
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.is_empty() {
            return Ok(());
        }
        for (piece, skip, range) in parts(at, bytes.len()) {
            if let Some(piece) = changed.get(&piece) {
                let len = range.len();
                bytes[range].copy_from_slice(&piece[skip..skip + len]);
            }
        }
        Ok(())
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        for (piece, skip, range) in parts(at, bytes.len()) {
            let kept = match changed.entry(piece) {
                std::collections::btree_map::Entry::Occupied(kept) => kept.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => {
                    let mut below = vec![0; PIECE as usize];
                    // The last piece of the file may be partial.
                    let len = PIECE.min(self.below.len()?.saturating_sub(piece * PIECE)) as usize;
                    self.below.read_at(piece * PIECE, &mut below[..len])?;
                    place.insert(below.into())
                }
            };
            kept[skip..skip + range.len()].copy_from_slice(&bytes[range]);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::MemoryFile;

    #[test]
    fn changes_are_seen_and_the_file_stays() {
        let below = Arc::new(MemoryFile::new());
        below.set_len(10_000).unwrap();
        below.write_at(4_000, &[1; 200]).unwrap();
        let overlay = Overlay::new(below.clone());
        overlay.write_at(4_090, &[2; 20]).unwrap();
        overlay.write_at(9_990, &[3; 10]).unwrap();
        let mut bytes = [0; 6_000];
        overlay.read_at(4_000, &mut bytes).unwrap();
        assert_eq!((bytes[89], bytes[90], bytes[109], bytes[110], bytes[199], bytes[200]), (1, 2, 2, 1, 1, 0));
        assert_eq!((bytes[5_989], bytes[5_990]), (0, 3));
        below.read_at(4_000, &mut bytes).unwrap();
        assert_eq!((bytes[90], bytes[5_990]), (1, 0));
        assert!(overlay.read_at(9_999, &mut [0; 2]).is_err());
    }
}
