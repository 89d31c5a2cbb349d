//! The slots of a write buffer that outlasts power. A slot has two copies that are written in turn, so that one is always
//! whole. A write to several slots counts when its last slot is written: [`Slots::commit`] records this, and later
//! slots are void.
//!
//! | file | what |
//! |---|---|
//! | `head` | the header before and after a copy's data |
//! | `copy` | the state of a copy: whole, cut off, damaged |
//! | `committed` | the number of the last whole write |
//!
//! Writes to slots are numbered. Each head, also a void one, records the number up to which all writes were whole when
//! it was written. A broken copy with a higher number may have been cut off; one with a lower number is damaged. Only
//! one write is under way at a time, so all writes before it were whole.
//!
//! Left out: damage to both heads of a copy by zeros. The copy looks as if it was never written.

mod committed;
mod copy;
mod head;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use super::disk::Disk;
use crate::fault::MediaError;
use committed::Committed;
use copy::{Found, Numbers, look};
use head::{HEAD, Head, flags};

const SECTOR: u64 = 512;
/// Both copies of a slot.
const BOTH: u8 = 0b11;

/// Bytes of a slot's copy.
pub(crate) fn stride(data: u64) -> u64 {
    (HEAD as u64 + data).next_multiple_of(SECTOR) + SECTOR
}

/// Bytes of all slots.
pub(crate) fn region_bytes(slots: u64, stride: u64) -> u64 {
    committed::BYTES + slots * 2 * stride
}

/// The metadata of a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotRecord {
    /// Its number.
    pub slot: u32,
    /// The logical unit.
    pub lpn: u32,
    /// The number of its last write.
    pub sequence: u64,
    /// The sectors that it holds, a bit each.
    pub mask: u64,
    /// Sectors that were lost on flash before.
    pub was_lost: u64,
}

/// A found slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundSlot {
    /// Its content.
    pub record: SlotRecord,
    /// Its data; `None` where that is damaged.
    pub data: Option<Vec<u8>>,
}

/// See the file.
pub(crate) struct Slots {
    disk: Rc<Disk>,
    /// The copy of each slot that is written next.
    next: RefCell<Vec<u8>>,
    /// The copies of each slot that may hold something, a bit each.
    written: RefCell<Vec<u8>>,
    buffer: RefCell<Vec<u8>>,
    committed: Committed,
    /// The number of the last write to a slot.
    number: Cell<u64>,
}

impl Slots {
    /// The slots of a file. If a write `may_be_torn`, a copy may be missing.
    pub(crate) fn open(disk: &Rc<Disk>, slots: u32, may_be_torn: bool) -> io::Result<Slots> {
        Ok(Slots {
            disk: disk.clone(),
            next: RefCell::new(vec![0; slots as usize]),
            written: RefCell::new(vec![BOTH; slots as usize]),
            buffer: RefCell::default(),
            committed: Committed::open(disk, disk.layout.slots.at, may_be_torn)?,
            number: Cell::new(0),
        })
    }

    fn at(&self, slot: u32, copy: u8) -> u64 {
        let layout = &self.disk.layout;
        layout.slots.at + committed::BYTES + (u64::from(slot) * 2 + u64::from(copy)) * layout.slot_stride
    }

    /// Writes a slot. Where it `is_alone`, it is a whole write.
    pub(crate) fn save(&self, record: &SlotRecord, data: Option<&[u8]>, is_alone: bool) -> Result<(), MediaError> {
        let (mut next, data) = (self.next.borrow_mut(), data.unwrap_or_default());
        let copy = &mut next[record.slot as usize];
        let (whole, behind) = (self.number.get(), (self.disk.layout.slot_stride - SECTOR) as usize);
        assert!(HEAD + data.len() <= behind, "{} bytes do not fit into a slot", data.len());
        self.number.set(self.number.get().wrapping_add(1));
        let flags = if is_alone { flags::ALONE } else { 0 };
        let (len, data_sum) = (data.len() as u32, crc32fast::hash(data));
        let bytes = Head { record: *record, len, flags, data_sum, number: self.number.get(), whole }.encode();
        let mut out = self.buffer.take();
        out.clear();
        out.extend(bytes);
        out.extend(data);
        out.resize(behind, 0);
        out.extend(bytes);
        let written = self.disk.write(self.at(record.slot, *copy), &out);
        *self.buffer.borrow_mut() = out;
        self.written.borrow_mut()[record.slot as usize] |= 1 << *copy;
        *copy ^= 1;
        written
    }

    /// Makes all slots up to a number count.
    pub(crate) fn commit(&self, sequence: u64) -> Result<(), MediaError> {
        self.committed.write(&self.disk, sequence, self.number.get())
    }

    /// The last committed number.
    pub(crate) fn committed(&self) -> u64 {
        self.committed.sequence()
    }

    /// Makes a slot void.
    pub(crate) fn clear(&self, slot: u32) -> Result<(), MediaError> {
        let written = std::mem::take(&mut self.written.borrow_mut()[slot as usize]);
        // The older copy first: it must not count when the newer one is gone.
        let older = self.next.borrow()[slot as usize];
        let copies = [older, older ^ 1].into_iter().filter(|copy| written & 1 << copy != 0);
        copies.into_iter().try_for_each(|copy| self.clear_copy(slot, copy))
    }

    fn clear_copy(&self, slot: u32, copy: u8) -> Result<(), MediaError> {
        let record = SlotRecord { slot, lpn: 0, sequence: 0, mask: 0, was_lost: 0 };
        let number = self.number.get();
        let head = Head { record, len: 0, flags: flags::VOID, data_sum: 0, number, whole: number };
        self.disk.write(self.at(slot, copy), &head.encode())
    }

    /// Makes all slots void and returns their room: no data stays.
    pub(crate) fn wipe(&self) -> Result<(), MediaError> {
        let region = self.disk.layout.slots;
        (0..self.next.borrow().len() as u32).try_for_each(|slot| self.clear(slot))?;
        self.disk.punch(region.at + committed::BYTES, region.len - committed::BYTES)
    }

    /// The valid slots, each as of its last write. Other copies are made void: once the number of the last whole write
    /// exceeds theirs, they would be mistaken for valid copies.
    pub(crate) fn restore(&self) -> io::Result<Vec<FoundSlot>> {
        let count = self.next.borrow().len() as u32;
        let mut numbers = Numbers::default();
        self.committed.see(&mut numbers);
        let mut found = Vec::with_capacity(count as usize);
        for slot in 0..count {
            found.push(self.read(slot, &mut numbers)?);
        }
        // A copy made void here records only what was found.
        self.number.set(numbers.whole);
        let slots = (0..).zip(found).filter_map(|(slot, copies)| self.choose(slot, copies, numbers.whole)).collect();
        self.number.set(numbers.last);
        // As in `choose`.
        let _ = self.committed.mend(&self.disk, self.number.get());
        Ok(slots)
    }

    /// The copies of a slot. Where both are whole, the older one is left out.
    fn read(&self, slot: u32, numbers: &mut Numbers) -> io::Result<[Found; 2]> {
        let mut bytes = vec![0; self.disk.layout.slot_stride as usize];
        let mut copies = [Found::Void, Found::Void];
        for (copy, found) in (0..).zip(&mut copies) {
            self.disk.read(self.at(slot, copy), &mut bytes)?;
            *found = look(slot, &bytes, numbers);
            if *found == Found::Unknown {
                let at = self.at(slot, copy);
                let what = format!("slot {slot} of the write buffer is damaged at byte {at}: both of its heads");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        Ok(copies)
    }

    /// The copy of a slot that counts.
    fn choose(&self, slot: u32, copies: [Found; 2], whole: u64) -> Option<FoundSlot> {
        let mut newest: Option<(FoundSlot, u8)> = None;
        for (copy, found) in (0..).zip(copies) {
            let was_cut_off = matches!(found, Found::CutOff(_));
            let Some((head, found)) = found.settle(whole).slot() else {
                if was_cut_off {
                    // If the file cannot be written, no number is written either.
                    let _ = self.clear_copy(slot, copy);
                }
                continue;
            };
            if !head.is(flags::ALONE) && head.record.sequence > self.committed.sequence() {
                // As above.
                let _ = self.clear_copy(slot, copy);
            } else if newest.as_ref().is_none_or(|(other, _)| found.record.sequence > other.record.sequence) {
                newest = Some((found, copy));
            }
        }
        let (found, copy) = newest?;
        self.next.borrow_mut()[slot as usize] = 1 - copy;
        if found.data.is_none() {
            let (at, lpn) = (self.at(slot, copy), found.record.lpn);
            self.disk.note_damage(format!("slot {slot} of the write buffer at byte {at}, with logical unit {lpn}"));
        }
        Some(found)
    }
}
