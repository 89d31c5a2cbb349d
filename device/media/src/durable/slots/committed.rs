//! The number of the last write that counts as a whole. It is stored twice, in different pieces of 4 KiB, and both
//! copies are written at once. A kill may leave only the first of them, so the higher number counts.

use std::cell::Cell;
use std::io;

use super::copy::Numbers;
use crate::durable::disk::Disk;
use crate::durable::superblock::Reader;
use crate::fault::MediaError;

/// Bytes before the slots.
pub(super) const BYTES: u64 = 8_192;
/// Where the two lie: in different pieces, and further from each other than a sector is long.
const PLACES: [u64; 2] = [3_072, 4_096];
/// Bytes of an entry: the number, the last number up to which writes to slots were whole, checksum.
const ENTRY: usize = 20;
const NEVER_WRITTEN: (u64, u64) = (0, 0);

/// See the file.
pub(super) struct Committed {
    at: u64,
    sequence: Cell<u64>,
    /// All writes to slots up to this one were whole then.
    whole: u64,
    /// Whether the two copies differ.
    differ: bool,
}

impl Committed {
    /// Reads it from a region. Where a write `may_be_torn`, one of the two may never have been written.
    ///
    /// # Errors
    /// When both are damaged, or cannot be read.
    pub(super) fn open(disk: &Disk, at: u64, may_be_torn: bool) -> io::Result<Committed> {
        let mut found = [None; 2];
        for (place, found) in PLACES.into_iter().zip(&mut found) {
            let mut bytes = [0; ENTRY];
            disk.read(at + place, &mut bytes)?;
            *found = decode(&bytes);
        }
        let Some((sequence, whole)) = found.into_iter().flatten().max() else {
            let what = format!("the number of the last write is damaged at byte {at}: both copies");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let is_missing =
            |found: Option<_>| found.is_none_or(|found| found == NEVER_WRITTEN && sequence != 0 && !may_be_torn);
        if let Some((_, place)) = found.into_iter().zip(PLACES).find(|(found, _)| is_missing(*found)) {
            disk.note_damage(format!("the number of the last write at byte {}: its other copy is whole", at + place));
        }
        Ok(Committed { at, sequence: Cell::new(sequence), whole, differ: found[0] != found[1] })
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    pub(super) fn see(&self, numbers: &mut Numbers) {
        numbers.see(0, self.whole);
    }

    pub(super) fn write(&self, disk: &Disk, sequence: u64, whole: u64) -> Result<(), MediaError> {
        let mut bytes = [0; (PLACES[1] - PLACES[0]) as usize + ENTRY];
        let entry = encode(sequence, whole);
        bytes[..ENTRY].copy_from_slice(&entry);
        bytes[(PLACES[1] - PLACES[0]) as usize..].copy_from_slice(&entry);
        self.sequence.set(sequence);
        disk.write(self.at + PLACES[0], &bytes)
    }

    /// Makes both copies equal.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(super) fn mend(&self, disk: &Disk, whole: u64) -> Result<(), MediaError> {
        if self.differ { self.write(disk, self.sequence.get(), whole) } else { Ok(()) }
    }
}

fn encode(sequence: u64, whole: u64) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    entry[..8].copy_from_slice(&sequence.to_le_bytes());
    entry[8..16].copy_from_slice(&whole.to_le_bytes());
    let sum = crc32fast::hash(&entry[..16]);
    entry[16..].copy_from_slice(&sum.to_le_bytes());
    entry
}

/// Zeros were never written; `None` is damage.
fn decode(entry: &[u8; ENTRY]) -> Option<(u64, u64)> {
    if *entry == [0; ENTRY] {
        return Some(NEVER_WRITTEN);
    }
    let mut from = Reader(entry);
    let (sequence, whole, sum) = (from.u64(), from.u64(), from.u32());
    (crc32fast::hash(&entry[..16]) == sum).then_some((sequence, whole))
}
