//! The journal: entries that an FTL appends, in order, and reads back when it starts. It is a ring: each entry has a number, and
//! a place that follows from it. A snapshot names the first entry that still counts.
//!
//! There are two copies, so damage to one of them loses nothing. An entry also names the start of the drive that wrote
//! it. Starts never decrease from one entry to the next, so entries that an earlier start left behind the end do not
//! count.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use smallvec::SmallVec;

use super::disk::Disk;
use crate::fault::MediaError;

/// Bytes of an entry as the FTL sees it.
pub const ENTRY: usize = 24;
/// Bytes of an entry in the file: checksum, start, entry.
const RECORD: usize = ENTRY + 8;
/// Entries after which a snapshot is due, in addition to those that the snapshot would carry over.
const MANY: u64 = (16 << 20) / RECORD as u64;
/// Records that are read at a time.
const BATCH: usize = 2_048;
/// Entries checked behind the end: a valid one among them shows that the end is damage.
const BEYOND: u64 = 128;
/// The unit in which room is returned to the system.
const PIECE: u64 = 4_096;

/// Room for four entries of every unit, in addition to the many.
pub(crate) fn region_bytes(logical_units: u32) -> u64 {
    (4 * MANY + 4 * u64::from(logical_units)) * RECORD as u64
}

/// See the file.
pub(crate) struct Journal {
    disk: Rc<Disk>,
    /// The start of the drive, counted from 1; its lower half.
    start: u32,
    /// The first entry that counts.
    from: Cell<u64>,
    next: Cell<u64>,
    /// Entries that the last snapshot carried over.
    carried: Cell<u64>,
    /// Entries that one of the copies lacks, with their place: written before the journal continues.
    missing: RefCell<Vec<(u64, [u8; RECORD])>>,
}

/// A found entry, and the copies that have it.
struct Found {
    start: u32,
    entry: [u8; ENTRY],
    is_in: [bool; 2],
}

impl Journal {
    /// The journal whose entries count from `from` on.
    pub(crate) fn open(disk: &Rc<Disk>, start: u64, from: u64) -> io::Result<Journal> {
        let (next, carried, missing) = (Cell::new(from), Cell::new(0), RefCell::default());
        let journal =
            Journal { disk: disk.clone(), start: start as u32, from: Cell::new(from), next, carried, missing };
        let mut last = [from; 2];
        let mut single = Vec::new();
        let end = journal.scan(u64::MAX, |number, found| {
            for (copy, last) in last.iter_mut().enumerate() {
                match found.is_in[copy] {
                    true => *last = number + 1,
                    false => single.push((number, copy, record(found.start, number, &found.entry))),
                }
            }
        })?;
        journal.next.set(end);
        journal.check_end(end)?;
        // The last entries may have been in progress.
        for (number, copy, _) in single.iter().filter(|(number, copy, _)| *number < last[*copy]) {
            let at = journal.at(*number, *copy);
            disk.note_damage(format!("entry {number} of the journal at byte {at}: its other copy is whole"));
        }
        let single = single.into_iter().map(|(number, copy, record)| (journal.at(number, copy), record));
        journal.missing.borrow_mut().extend(single);
        Ok(journal)
    }

    fn capacity(&self) -> u64 {
        self.disk.layout.journals[0].len / RECORD as u64
    }

    fn at(&self, number: u64, copy: usize) -> u64 {
        self.disk.layout.journals[copy].at + number % self.capacity() * RECORD as u64
    }

    /// All entries that count, in order.
    pub(crate) fn read(&self, mut each: impl FnMut(&[u8; ENTRY])) -> io::Result<()> {
        self.scan(self.next.get(), |_, found| each(&found.entry)).map(drop)
    }

    /// Reads entries up to a number, or to the end. Returns the number at which it ended.
    fn scan(&self, most: u64, mut each: impl FnMut(u64, &Found)) -> io::Result<u64> {
        let (from, mut start) = (self.from.get(), 0);
        let most = most.min(from.saturating_add(self.capacity()));
        let mut number = from;
        while number < most {
            // Up to the wrap of the ring.
            let whole = self.capacity() - number % self.capacity();
            let count = (most - number).min(BATCH as u64).min(whole);
            let batch = self.batch(number, count)?;
            for found in batch {
                let Some(found) = found.filter(|found| found.start >= start) else { return Ok(number) };
                start = found.start;
                each(number, &found);
                number += 1;
            }
        }
        Ok(number)
    }

    /// Entries of both copies from a number on.
    fn batch(&self, first: u64, count: u64) -> io::Result<impl Iterator<Item = Option<Found>>> {
        let mut copies = [vec![0; count as usize * RECORD], vec![0; count as usize * RECORD]];
        for (copy, bytes) in copies.iter_mut().enumerate() {
            self.disk.read(self.at(first, copy), bytes)?;
        }
        Ok((0..count as usize).map(move |index| {
            let found = copies.each_ref().map(|bytes| decode(first + index as u64, &bytes[index * RECORD..][..RECORD]));
            // If both are whole and differ, the one of the later start is newer.
            let newest = found.into_iter().flatten().max_by_key(|(start, _)| *start)?;
            Some(Found { start: newest.0, entry: newest.1, is_in: found.map(|copy| copy == Some(newest)) })
        }))
    }

    /// Checks that nothing follows the end.
    fn check_end(&self, end: u64) -> io::Result<()> {
        let last = self.last_start(end)?;
        let mut number = end + 1;
        while number < end + BEYOND {
            let whole = self.capacity() - number % self.capacity();
            let count = (end + BEYOND - number).min(whole);
            if self.batch(number, count)?.flatten().any(|found| found.start >= last) {
                let at = self.at(end, 0);
                let what =
                    format!("the journal is damaged: entry {end} at byte {at} is missing, and later ones are there");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            number += count;
        }
        Ok(())
    }

    /// The start that wrote the last entry; the previous start if there is none.
    fn last_start(&self, end: u64) -> io::Result<u32> {
        if end == self.from.get() {
            return Ok(self.start.wrapping_sub(1));
        }
        let last = self.batch(end - 1, 1)?.flatten().next();
        Ok(last.map_or(u32::MAX, |found| found.start))
    }

    /// Makes both copies equal: a kill may have left only one copy of the last entries.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn mend(&self) -> Result<(), MediaError> {
        self.missing.take().iter().try_for_each(|(at, record)| self.disk.write(*at, record))
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn append(&self, entry: &[u8; ENTRY]) -> Result<(), MediaError> {
        self.append_all(std::slice::from_ref(entry))
    }

    /// Appends several entries at once. A kill may leave only the first of them.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn append_all(&self, entries: &[[u8; ENTRY]]) -> Result<(), MediaError> {
        let mut next = self.next.get();
        if next + entries.len() as u64 - self.from.get() > self.capacity() {
            return Err(MediaError::Store);
        }
        let mut left = entries;
        while !left.is_empty() {
            let whole = self.capacity() - next % self.capacity();
            let (here, rest) = left.split_at(left.len().min(whole.min(BATCH as u64) as usize));
            let bytes: SmallVec<[u8; 4 * RECORD]> =
                (next..).zip(here).flat_map(|(number, entry)| record(self.start, number, entry)).collect();
            let at = self.at(next, 0) - self.disk.layout.journals[0].at;
            self.disk.write_twice(self.disk.layout.journals, at, &bytes)?;
            next += here.len() as u64;
            left = rest;
        }
        self.next.set(next);
        Ok(())
    }

    /// Whether a snapshot is due.
    pub(crate) fn is_long(&self) -> bool {
        self.len() >= MANY + 2 * self.carried.get()
    }

    pub(crate) fn len(&self) -> u64 {
        self.next.get() - self.from.get()
    }

    /// The number of the next entry.
    pub(crate) fn next(&self) -> u64 {
        self.next.get()
    }

    /// A snapshot counts from now on, and entries before `from` do not. Their room is returned.
    pub(crate) fn cut(&self, from: u64, carried: u64) -> Result<(), MediaError> {
        let before = self.from.replace(from);
        self.carried.set(carried);
        let pieces = self.capacity() * RECORD as u64 / PIECE * PIECE;
        let place = |number: u64| number % self.capacity() * RECORD as u64;
        let (first, end) = (place(before) / PIECE * PIECE, place(from) / PIECE * PIECE);
        let ranges = if first <= end { [first..end, 0..0] } else { [first..pieces, 0..end] };
        for region in self.disk.layout.journals {
            for range in ranges.iter().filter(|range| !range.is_empty()) {
                self.disk.punch(region.at + range.start, range.end - range.start)?;
            }
        }
        Ok(())
    }
}

/// An entry as stored in the file.
fn record(start: u32, number: u64, entry: &[u8; ENTRY]) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[4..8].copy_from_slice(&start.to_le_bytes());
    record[8..].copy_from_slice(entry);
    let sum = checksum(number, &record[4..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
    record
}

/// The start that wrote an entry, and the entry.
fn decode(number: u64, record: &[u8]) -> Option<(u32, [u8; ENTRY])> {
    let (sum, rest) = record.split_first_chunk()?;
    let (start, entry) = rest.split_first_chunk()?;
    let is_whole = u32::from_le_bytes(*sum) == checksum(number, rest);
    is_whole.then(|| (u32::from_le_bytes(*start), *entry.first_chunk().expect("a record is as long")))
}

fn checksum(number: u64, rest: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&number.to_le_bytes());
    sum.update(rest);
    sum.finalize()
}
