//! The journal: entries that an FTL appends, in order, and reads back when it starts. A snapshot makes all of them void, for it
//! begins a new epoch, which each entry names. There is room for two epochs: what is carried over is written before the
//! snapshot counts.

use std::cell::Cell;
use std::rc::Rc;

use smallvec::SmallVec;

use super::disk::Disk;
use super::layout::Region;
use crate::fault::MediaError;

/// Bytes of an entry as the FTL sees it.
pub const ENTRY: usize = 24;
/// Bytes of an entry in the file: checksum, epoch, entry.
const RECORD: usize = ENTRY + 8;
/// Entries after which a snapshot is due, beside those that it would have to write again.
const MANY: u64 = (16 << 20) / RECORD as u64;
/// Records that are read at a time.
const BATCH: usize = 2_048;

/// Room for two entries of every unit, beside the many.
pub(crate) fn region_bytes(logical_units: u32) -> u64 {
    (2 * MANY + 2 * u64::from(logical_units)) * RECORD as u64
}

/// See the file.
pub(crate) struct Journal {
    disk: Rc<Disk>,
    epoch: Rc<Cell<u32>>,
    /// That of the snapshot before: entries of an attempt at another snapshot do not count.
    nonce: Cell<u64>,
    next: Cell<u64>,
    /// Entries that the last snapshot has written again.
    carried: Cell<u64>,
}

impl Journal {
    /// That of the current epoch.
    pub(crate) fn open(disk: &Rc<Disk>, epoch: &Rc<Cell<u32>>, nonce: u64) -> std::io::Result<Journal> {
        let (next, carried, nonce) = (Cell::new(0), Cell::new(0), Cell::new(nonce));
        let journal = Journal { disk: disk.clone(), epoch: epoch.clone(), nonce, next, carried };
        let mut entries = 0;
        journal.scan(u64::MAX, |_| entries += 1)?;
        journal.next.set(entries);
        Ok(journal)
    }

    /// All entries of the epoch, in order.
    pub(crate) fn read(&self, each: impl FnMut(&[u8; ENTRY])) -> std::io::Result<()> {
        self.scan(self.next.get(), each)
    }

    fn scan(&self, most: u64, mut each: impl FnMut(&[u8; ENTRY])) -> std::io::Result<()> {
        let region = self.region(self.epoch.get());
        let most = most.min(region.len / RECORD as u64);
        let mut bytes = vec![0; BATCH * RECORD];
        for first in (0..most).step_by(BATCH) {
            let here = (most - first).min(BATCH as u64) as usize;
            self.disk.read(region.at + first * RECORD as u64, &mut bytes[..here * RECORD])?;
            for (number, record) in (first..).zip(bytes[..here * RECORD].chunks_exact(RECORD)) {
                match self.decode(number, record) {
                    Some(entry) => each(entry),
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    fn region(&self, epoch: u32) -> Region {
        self.disk.layout.journals[epoch as usize % 2]
    }

    fn decode<'a>(&self, number: u64, record: &'a [u8]) -> Option<&'a [u8; ENTRY]> {
        let (sum, rest) = record.split_first_chunk()?;
        let (epoch, entry) = rest.split_first_chunk()?;
        let is_valid = u32::from_le_bytes(*epoch) == self.epoch.get()
            && u32::from_le_bytes(*sum) == checksum(self.nonce.get(), number, rest);
        is_valid.then(|| entry.first_chunk().expect("a record is as long"))
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn append(&self, entry: &[u8; ENTRY]) -> Result<(), MediaError> {
        self.put((self.epoch.get(), self.nonce.get()), self.next.get(), entry)?;
        self.next.set(self.next.get() + 1);
        Ok(())
    }

    /// Appends several entries at once. A kill may leave the first of them only.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn append_all(&self, entries: &[[u8; ENTRY]]) -> Result<(), MediaError> {
        let (epoch, next) = (self.epoch.get(), self.next.get());
        let place = (epoch, self.nonce.get());
        let bytes: SmallVec<[u8; 4 * RECORD]> =
            (next..).zip(entries).flat_map(|(number, entry)| record(place, number, entry)).collect();
        self.write(epoch, next, &bytes)?;
        self.next.set(next + entries.len() as u64);
        Ok(())
    }

    fn put(&self, (epoch, nonce): (u32, u64), number: u64, entry: &[u8; ENTRY]) -> Result<(), MediaError> {
        self.write(epoch, number, &record((epoch, nonce), number, entry))
    }

    /// Writes records from the `first`th on.
    fn write(&self, epoch: u32, first: u64, records: &[u8]) -> Result<(), MediaError> {
        let (region, at) = (self.region(epoch), first * RECORD as u64);
        if at + records.len() as u64 > region.len {
            return Err(MediaError::Store);
        }
        self.disk.write(region.at + at, records)
    }

    /// Writes the first entries of the next epoch, after a snapshot with this nonce.
    pub(crate) fn carry_over(&self, nonce: u64, entries: &[[u8; ENTRY]]) -> Result<(), MediaError> {
        let next = (self.epoch.get() + 1, nonce);
        (0..).zip(entries).try_for_each(|(number, entry)| self.put(next, number, entry))
    }

    /// Whether a snapshot is due.
    pub(crate) fn is_long(&self) -> bool {
        self.next.get() >= MANY + 2 * self.carried.get()
    }

    pub(crate) fn len(&self) -> u64 {
        self.next.get()
    }

    /// A new epoch has begun, whose first `carried` entries were written before.
    pub(crate) fn begin_epoch(&self, nonce: u64, carried: u64) {
        self.nonce.set(nonce);
        self.next.set(carried);
        self.carried.set(carried);
    }
}

/// An entry as it is in the file.
fn record((epoch, nonce): (u32, u64), number: u64, entry: &[u8; ENTRY]) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[4..8].copy_from_slice(&epoch.to_le_bytes());
    record[8..].copy_from_slice(entry);
    let sum = checksum(nonce, number, &record[4..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
    record
}

fn checksum(nonce: u64, number: u64, rest: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&nonce.to_le_bytes());
    sum.update(&number.to_le_bytes());
    sum.update(rest);
    sum.finalize()
}
