//! A file in memory. Drives whose FTL rebuilds its tables keep their flash in one, for as long as the process lives.
//! For tests, a file can be cut off in the middle of any write, be full, and lose unsynced data.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nandscape_sim::{Rng, Seed};

use super::backing::Backing;

/// Bytes of the pieces in which it grows; a truncated write ends between two pieces.
const PIECE: u64 = 4_096;

/// See the file.
#[derive(Default)]
pub struct MemoryFile(Mutex<State>);

#[derive(Clone, Default)]
struct State {
    pieces: BTreeMap<u64, Box<[u8]>>,
    len: u64,
    /// Writes that succeed before one is cut off.
    writes_left: Option<u64>,
    is_cut_off: bool,
    /// The most pieces; beyond them the disk is full.
    room: Option<usize>,
    /// The content of the disk, and the writes since the last sync.
    on_disk: Option<Box<OnDisk>>,
    writes: u64,
}

#[derive(Clone, Default)]
struct OnDisk {
    pieces: BTreeMap<u64, Box<[u8]>>,
    since: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Punch(u64, u64),
}

impl MemoryFile {
    /// An empty file.
    pub fn new() -> MemoryFile {
        MemoryFile::default()
    }

    /// The next `writes` writes succeed. The one after them is cut off after some of its bytes, and everything after it
    /// fails. While syncs are tracked, a sync may come first: it fails, and the data that it was for may be missing.
    pub fn cut_off_after(&self, writes: u64) {
        self.state().writes_left = Some(writes);
    }

    /// From now on at most `bytes` bytes are stored, without holes.
    pub fn limit(&self, bytes: Option<u64>) {
        self.state().room = bytes.map(|bytes| (bytes / PIECE) as usize);
    }

    /// From now on tracks unsynced writes, for [`MemoryFile::after_power_loss`].
    pub fn track_syncs(&self) {
        let mut state = self.state();
        state.on_disk = Some(Box::new(OnDisk { pieces: state.pieces.clone(), since: Vec::new() }));
    }

    /// Writes so far.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Bytes that are stored, holes not counted.
    pub fn stored(&self) -> u64 {
        self.state().pieces.len() as u64 * PIECE
    }

    /// The content for a process that opens the file after this one was killed.
    pub fn survivor(&self) -> MemoryFile {
        let state = self.state();
        MemoryFile(Mutex::new(State { pieces: state.pieces.clone(), len: state.len, ..State::default() }))
    }

    /// The content after the host has lost power: all synced data, and some random pieces of the rest, in any order.
    pub fn after_power_loss(&self, seed: Seed) -> MemoryFile {
        let state = self.state();
        let on_disk = state.on_disk.as_deref().cloned().unwrap_or_default();
        let mut left = State { pieces: on_disk.pieces, len: state.len, ..State::default() };
        let mut rng: Rng = seed.rng();
        for change in on_disk.since {
            match change {
                Change::Write(at, bytes) => {
                    let mut done = 0;
                    while done < bytes.len() {
                        let here = ((PIECE - (at + done as u64) % PIECE) as usize).min(bytes.len() - done);
                        if rng.chance(0.5) {
                            left.put(at + done as u64, &bytes[done..done + here]);
                        }
                        done += here;
                    }
                }
                Change::Punch(at, len) if rng.chance(0.5) => left.clear(at, len),
                Change::Punch(..) => {}
            }
        }
        MemoryFile(Mutex::new(left))
    }

    /// The offsets of the pieces of 4 KiB that hold something.
    pub fn used(&self) -> Vec<u64> {
        self.state().pieces.keys().map(|piece| piece * PIECE).collect()
    }

    /// Inverts a bit.
    pub fn flip(&self, at: u64, bit: u8) {
        let state = &mut *self.state();
        let mut byte = [0];
        state.get(at, &mut byte);
        state.put(at, &[byte[0] ^ 1 << (bit % 8)]);
    }

    /// Truncates the file.
    pub fn truncate(&self, len: u64) {
        let mut state = self.state();
        state.len = state.len.min(len);
        state.pieces.retain(|piece, _| *piece * PIECE < len);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the file as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn get(&self, at: u64, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (piece, skip) = ((at + done as u64) / PIECE, ((at + done as u64) % PIECE) as usize);
            let here = (PIECE as usize - skip).min(bytes.len() - done);
            match self.pieces.get(&piece) {
                Some(piece) => bytes[done..done + here].copy_from_slice(&piece[skip..skip + here]),
                None => bytes[done..done + here].fill(0),
            }
            done += here;
        }
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (piece, skip) = ((at + done as u64) / PIECE, ((at + done as u64) % PIECE) as usize);
            let here = (PIECE as usize - skip).min(bytes.len() - done);
            let piece = self.pieces.entry(piece).or_insert_with(|| vec![0; PIECE as usize].into());
            piece[skip..skip + here].copy_from_slice(&bytes[done..done + here]);
            done += here;
        }
    }

    fn clear(&mut self, at: u64, len: u64) {
        let touched: Vec<u64> =
            self.pieces.range(at / PIECE..(at + len).div_ceil(PIECE)).map(|(piece, _)| *piece).collect();
        for piece in touched {
            let start = piece * PIECE;
            let (from, to) = (at.max(start), (at + len).min(start + PIECE));
            match to - from == PIECE {
                true => _ = self.pieces.remove(&piece),
                false => self.put(from, &vec![0; (to - from) as usize]),
            }
        }
    }

    /// Whether a write finds room for its new bytes.
    fn has_room(&self, at: u64, len: usize) -> bool {
        let Some(room) = self.room else { return true };
        let pieces = at / PIECE..(at + len as u64).div_ceil(PIECE);
        let new = pieces.clone().count() - self.pieces.range(pieces).count();
        self.pieces.len() + new <= room
    }
}

impl Backing for MemoryFile {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        if state.is_cut_off {
            return Err(cut_off());
        }
        if at + bytes.len() as u64 > state.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        state.get(at, bytes);
        Ok(())
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let state = &mut *self.state();
        if state.is_cut_off {
            return Err(cut_off());
        }
        if !state.has_room(at, bytes.len()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.writes += 1;
        let bytes = match &mut state.writes_left {
            Some(0) => {
                state.is_cut_off = true;
                // The part that a killed process may have written: none, or up to the end of some piece.
                let pieces = bytes.len() as u64 / PIECE + 1;
                let end = (at / PIECE + at.wrapping_mul(31) % (pieces + 1)) * PIECE;
                &bytes[..(end.saturating_sub(at) as usize).min(bytes.len())]
            }
            Some(left) => {
                *left -= 1;
                bytes
            }
            None => bytes,
        };
        state.put(at, bytes);
        state.len = state.len.max(at + bytes.len() as u64);
        if let Some(on_disk) = &mut state.on_disk {
            on_disk.since.push(Change::Write(at, bytes.to_vec()));
        }
        if state.is_cut_off { Err(cut_off()) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let state = &mut *self.state();
        if state.is_cut_off {
            return Err(cut_off());
        }
        if state.on_disk.is_some() && state.writes_left == Some(0) {
            state.is_cut_off = true;
            return Err(cut_off());
        }
        if let Some(on_disk) = &mut state.on_disk {
            let mut written = State { pieces: std::mem::take(&mut on_disk.pieces), ..State::default() };
            for change in on_disk.since.drain(..) {
                match change {
                    Change::Write(at, bytes) => written.put(at, &bytes),
                    Change::Punch(at, len) => written.clear(at, len),
                }
            }
            on_disk.pieces = written.pieces;
        }
        Ok(())
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        let state = &mut *self.state();
        if state.is_cut_off {
            return Err(cut_off());
        }
        state.clear(at, len);
        if let Some(on_disk) = &mut state.on_disk {
            on_disk.since.push(Change::Punch(at, len));
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.state().len = len;
        Ok(())
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        let state = &mut *self.state();
        if len == 0 {
            // As the system reports.
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if !state.has_room(at, len as usize) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        for piece in at / PIECE..(at + len).div_ceil(PIECE) {
            state.pieces.entry(piece).or_insert_with(|| vec![0; PIECE as usize].into());
        }
        Ok(())
    }
}

fn cut_off() -> io::Error {
    io::Error::other("the process was killed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_read_as_zeros_and_the_end_is_an_error() {
        let file = MemoryFile::new();
        file.set_len(10_000).unwrap();
        file.write_at(5_000, &[7; 3_000]).unwrap();
        let mut bytes = [1; 10];
        file.read_at(4_995, &mut bytes).unwrap();
        assert_eq!(bytes, [0, 0, 0, 0, 0, 7, 7, 7, 7, 7]);
        assert!(file.read_at(9_995, &mut bytes).is_err());
        file.punch(5_000, 2_000).unwrap();
        file.read_at(6_995, &mut bytes).unwrap();
        assert_eq!(bytes, [0, 0, 0, 0, 0, 7, 7, 7, 7, 7]);
        file.punch(0, 10_000).unwrap();
        file.read_at(6_995, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 10]);
    }

    #[test]
    fn it_fails_as_it_is_told_to() {
        let file = MemoryFile::new();
        file.limit(Some(8_192));
        file.write_at(0, &[1; 8_192]).unwrap();
        assert_eq!(file.write_at(8_192, &[1]).unwrap_err().kind(), io::ErrorKind::StorageFull);
        file.write_at(1, &[2]).unwrap();
        file.cut_off_after(1);
        file.write_at(2, &[3]).unwrap();
        assert!(file.write_at(3, &[4]).is_err() && file.read_at(0, &mut [0]).is_err());
        let mut bytes = [0; 3];
        file.survivor().read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
    }

    #[test]
    fn a_loss_of_power_keeps_what_was_synced() {
        let file = MemoryFile::new();
        file.track_syncs();
        file.write_at(0, &[1; 9_000]).unwrap();
        file.sync().unwrap();
        file.write_at(0, &[2; 9_000]).unwrap();
        let found: Vec<u8> = (0..20)
            .map(|seed| {
                let (left, mut byte) = (file.after_power_loss(Seed::new(seed)), [0]);
                left.read_at(5_000, &mut byte).unwrap();
                byte[0]
            })
            .collect();
        assert!(found.contains(&1) && found.contains(&2) && !found.contains(&0));
    }
}
