//! When the lives of drives ended that other drives have had under the same number.
//!
//! What is known of a drive is that of its last life. The life before ended where the last one begins. Where earlier ones ended is here: a life ends
//! where the next one begins. There is room for some. Of a drive for which that was too little, the oldest are forgotten. A drive of a forgotten
//! life is rejected, because it may have been used alone after its life ended.

use nandscape_apps_store::bytes::{Put as _, Reader};

use crate::shape::KNOWN;

/// Lives that are kept, of all drives together.
const MOST: usize = 13;
/// Bytes of them.
pub(crate) const LIVES: usize = 8 + MOST * (1 + KNOWN);

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Lives {
    /// Drives of which some are forgotten, a bit each.
    forgotten: u64,
    /// A drive and the beginning of a life, in order. Those that begin with 0 are none: nothing ends before a first life.
    begun: [(u8, u32); MOST],
}

impl Lives {
    /// A drive has had a life that began there, and begins another one.
    pub(crate) fn add(&mut self, drive: usize, life: u32) {
        let one = (drive as u8, life);
        if life == 0 || self.begun.contains(&one) {
            return;
        }
        // In the place of none, or else of the life that is longest ago.
        let oldest = self.begun.iter_mut().min_by_key(|(_, life)| *life);
        let gone = match oldest {
            Some(oldest) if oldest.1 < life => std::mem::replace(oldest, one),
            _ => one,
        };
        if gone.1 > 0 {
            self.forgotten |= 1 << gone.0;
        }
        self.begun.sort_unstable();
    }

    /// Adds those of another record.
    pub(crate) fn add_all(&mut self, other: &Lives) {
        self.forgotten |= other.forgotten;
        other.begun.into_iter().for_each(|(drive, life)| self.add(drive.into(), life));
    }

    /// The lives of a drive that are kept.
    fn of(&self, drive: usize) -> impl Iterator<Item = u32> {
        let all = self.begun.iter().filter(move |(one, life)| usize::from(*one) == drive && *life > 0);
        all.map(|(_, life)| *life)
    }

    /// Where a life of a drive ended: the next one began there. `last` is where the last one began.
    pub(crate) fn end(&self, drive: usize, life: u32, last: u32) -> u32 {
        self.of(drive).filter(|next| *next > life).min().unwrap_or(last)
    }

    /// Whether the end of a life of a drive may be forgotten: it is followed by one that is not kept.
    pub(crate) fn has_forgotten(&self, drive: usize, life: u32) -> bool {
        self.forgotten >> drive & 1 == 1 && self.of(drive).all(|kept| kept > life)
    }

    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.u64(self.forgotten);
        for (drive, life) in self.begun {
            bytes.push(drive);
            bytes.extend(&life.to_le_bytes()[..KNOWN]);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Lives> {
        let mut lives = Lives { forgotten: reader.u64()?, ..Lives::default() };
        for one in &mut lives.begun {
            let bytes = reader.take(1 + KNOWN)?;
            *one = (bytes[0], u32::from_le_bytes([bytes[1], bytes[2], bytes[3], 0]));
        }
        Some(lives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_ends_where_the_next_one_begins() {
        let mut lives = Lives::default();
        [(1, 0), (1, 5), (2, 7), (1, 9), (1, 5)].into_iter().for_each(|(drive, life)| lives.add(drive, life));
        let ends = [0, 4, 5, 8, 9, 12].map(|life| lives.end(1, life, 12));
        assert_eq!(ends, [5, 5, 9, 9, 12, 12]);
        assert_eq!((lives.end(2, 0, 20), lives.end(2, 7, 20), lives.end(3, 0, 0)), (7, 20, 0));
        let mut bytes = Vec::new();
        lives.put(&mut bytes);
        assert_eq!((bytes.len(), Lives::read(&mut Reader(&bytes))), (LIVES, Some(lives)));
    }

    #[test]
    fn the_oldest_lives_are_forgotten_and_known_to_be() {
        let mut lives = Lives::default();
        lives.add(2, 1_000);
        (1..=MOST as u32 + 3).for_each(|life| lives.add(1, life * 10));
        // 10, 20, 30 and 40 are not kept.
        let forgotten = [0, 10, 39, 40, 50, 60].map(|life| lives.has_forgotten(1, life));
        assert_eq!(forgotten, [true, true, true, true, false, false]);
        assert!(!lives.has_forgotten(2, 0) && !lives.has_forgotten(2, 1_000) && !lives.has_forgotten(3, 0));
        let mut other = Lives::default();
        other.add_all(&lives);
        assert_eq!(other, lives);
    }
}
