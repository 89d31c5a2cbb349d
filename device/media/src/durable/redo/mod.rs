//! A redo log between a store and its file, for stores that outlast the host's power. The file changes atomically from one
//! sync to the next. A loss of power, like a kill, keeps all writes up to some point of time, and no later ones.
//!
//! | file | what |
//! |---|---|
//! | `record` | the log record of a sync |
//! | `mistakes` | deliberate mistakes for the tests |
//!
//! Writes are kept in memory, where reads find them. A sync writes all of them into one of two regions behind the stores, as one
//! [`Record`], and syncs the file. Then it writes each in its place. The next record goes into the other region, and
//! the sync after it also makes the earlier writes in their places durable. One of the two regions therefore always has
//! whatever may be missing in place.
//!
//! A process that opens the file repeats the records of the regions. An incomplete record was never acknowledged.
//!
//! Left out: damage to a record, which looks like a record that was cut off. It only matters for a store that was not
//! stopped. The content of the other region is then repeated, over newer writes in the same places that the damaged
//! record had made.

mod mistakes;
mod record;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::backing::Backing;
use mistakes::{Mistake, is_made};
use record::{Change, OVERHEAD, Record};

/// Bytes of a region, and of the longest record.
const REGION: u64 = 1 << 20;
/// Bytes of both regions.
pub(crate) const BYTES: u64 = 2 * REGION;
/// Bytes of a write that are recorded together.
const LONGEST: usize = 256 << 10;
/// The unit by which reads find writes.
const PIECE: u64 = 4_096;

/// See the file.
pub(crate) struct Redo {
    file: Arc<dyn Backing>,
    /// Where the regions lie.
    at: u64,
    state: Mutex<State>,
}

struct State {
    /// The next record, under its number.
    record: Record,
    /// The changes that touch each piece of the file, in order.
    touched: BTreeMap<u64, SmallVec<[u32; 2]>>,
    /// A record or its writes could not be written. Later records could refer to missing data.
    has_failed: bool,
}

impl Redo {
    /// Repeats in a file the records of its regions at `at`. Afterwards, no part of them needs to be repeated.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(crate) fn recover(file: Arc<dyn Backing>, at: u64) -> io::Result<Redo> {
        let found = [0, 1].map(|region| Record::read(&*file, at + region * REGION, (REGION, at)));
        let mut found: Vec<Record> = found.into_iter().collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect();
        found.sort_by_key(|record| record.number);
        let number = found.last().map_or(1, |last| last.number + 1);
        let redo = Redo { file, at, state: Mutex::new(State::after(number)) };
        if is_made(Mistake::NewestOnly) {
            found.drain(..found.len().saturating_sub(1));
        }
        if found.iter().any(|record| !record.changes.is_empty()) {
            found.iter().try_for_each(|record| record.apply(&*redo.file))?;
            redo.file.sync()?;
            // A store that is not synced changes the file in its places, and must not find old records later. The older one is
            // replaced first.
            for _ in 0..if is_made(Mistake::NotReplaced) { 0 } else { 2 } {
                redo.put(&mut redo.state())?;
            }
        }
        Ok(redo)
    }

    /// Reserves the room of both regions, so that no record meets a full disk.
    ///
    /// # Errors
    /// If there is no room.
    pub(crate) fn reserve_regions(&self) -> io::Result<()> {
        self.file.reserve(self.at, BYTES)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves it as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the next record, and then its changes in their places.
    fn commit(&self, state: &mut State) -> io::Result<()> {
        if state.has_failed {
            return Err(io::Error::other("an earlier write has failed"));
        }
        if state.record.changes.is_empty() {
            return Ok(());
        }
        state.has_failed = true;
        self.put(state)?;
        state.has_failed = false;
        Ok(())
    }

    fn put(&self, state: &mut State) -> io::Result<()> {
        let region = if is_made(Mistake::OneRegion) { 0 } else { state.record.number % 2 };
        if is_made(Mistake::PlacesFirst) {
            state.record.apply(&*self.file)?;
        }
        self.file.write_at(self.at + region * REGION, &state.record.encode())?;
        if !is_made(Mistake::RecordNotSynced) {
            self.file.sync()?;
        }
        state.record.apply(&*self.file)?;
        *state = State::after(state.record.number + 1);
        Ok(())
    }

    fn add(&self, change: Change) -> io::Result<()> {
        let mut state = self.state();
        if state.record.len() + change.len() + OVERHEAD as u64 > REGION {
            self.commit(&mut state)?;
        }
        state.add(change);
        Ok(())
    }
}

impl State {
    fn after(number: u64) -> State {
        State { record: Record::new(number), touched: BTreeMap::new(), has_failed: false }
    }

    fn add(&mut self, change: Change) {
        let index = self.record.changes.len() as u32;
        if let Change::Write(at, bytes) = &change {
            for piece in pieces(*at, bytes.len()) {
                self.touched.entry(piece).or_default().push(index);
            }
        }
        self.record.add(change);
    }

    /// Overlays pending writes on the data read at `at`.
    fn lay_over(&self, at: u64, bytes: &mut [u8]) {
        let touched = pieces(at, bytes.len()).filter_map(|piece| self.touched.get(&piece)).flatten();
        let mut touched: SmallVec<[u32; 8]> = touched.copied().collect();
        touched.sort_unstable();
        touched.dedup();
        for index in touched {
            let Change::Write(from, written) = &self.record.changes[index as usize] else { continue };
            let (start, end) = (at.max(*from), (at + bytes.len() as u64).min(from + written.len() as u64));
            if start < end {
                let of_write = (start - from) as usize..(end - from) as usize;
                bytes[(start - at) as usize..(end - at) as usize].copy_from_slice(&written[of_write]);
            }
        }
    }
}

fn pieces(at: u64, len: usize) -> std::ops::Range<u64> {
    at / PIECE..(at + len as u64).div_ceil(PIECE)
}

impl Backing for Redo {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_at(at, bytes)?;
        self.state().lay_over(at, bytes);
        Ok(())
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // Report a full disk now: recorded data must find its place.
        self.file.reserve(at, bytes.len() as u64)?;
        let mut parts = (at..).step_by(LONGEST).zip(bytes.chunks(LONGEST));
        parts.try_for_each(|(at, part)| self.add(Change::Write(at, part.into())))
    }

    fn sync(&self) -> io::Result<()> {
        self.commit(&mut self.state())
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        self.add(Change::Punch(at, len))
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn has_name(&self) -> io::Result<bool> {
        self.file.has_name()
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        self.file.reserve(at, len)
    }
}

#[cfg(test)]
mod tests;
