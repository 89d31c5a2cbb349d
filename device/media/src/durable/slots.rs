//! The slots of a write buffer that outlasts power. A slot has two copies that are written in turn, so that one is always
//! whole. A write to several slots counts when its last one is written: [`Slots::commit`] says so, and slots that came later are
//! void.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use super::disk::Disk;
use super::superblock::{Reader, Writer};
use crate::fault::MediaError;

const HEAD: usize = 48;
/// Both copies of a slot.
const BOTH: u8 = 0b11;
/// Where the number of the last write lies, before the slots.
const COMMITTED: u64 = 4_096;

/// Bytes of a slot's copy.
pub(crate) fn stride(data: u64) -> u64 {
    (HEAD as u64 + data).next_multiple_of(512)
}

/// Bytes of all slots.
pub(crate) fn region_bytes(slots: u64, stride: u64) -> u64 {
    COMMITTED + slots * 2 * stride
}

/// What a slot holds besides its data.
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

/// See the file.
pub(crate) struct Slots {
    disk: Rc<Disk>,
    /// The copy of each slot that is written next.
    next: RefCell<Vec<u8>>,
    /// The copies of each slot that may hold something, a bit each.
    written: RefCell<Vec<u8>>,
    buffer: RefCell<Vec<u8>>,
    committed: Cell<u64>,
}

impl Slots {
    pub(crate) fn open(disk: &Rc<Disk>, slots: u32) -> io::Result<Slots> {
        let mut bytes = [0; 12];
        disk.read(disk.layout.slots.at, &mut bytes)?;
        let (mut sum, number) = (Reader(&bytes[8..]), &bytes[..8]);
        let committed = if crc32fast::hash(number) == sum.u32() { Reader(number).u64() } else { 0 };
        Ok(Slots {
            disk: disk.clone(),
            next: RefCell::new(vec![0; slots as usize]),
            written: RefCell::new(vec![BOTH; slots as usize]),
            buffer: RefCell::default(),
            committed: Cell::new(committed),
        })
    }

    fn at(&self, slot: u32, copy: u8) -> u64 {
        let layout = &self.disk.layout;
        layout.slots.at + COMMITTED + (u64::from(slot) * 2 + u64::from(copy)) * layout.slot_stride
    }

    /// Writes a slot. Where it `is_alone`, it is a whole write.
    pub(crate) fn save(&self, record: &SlotRecord, data: Option<&[u8]>, is_alone: bool) -> Result<(), MediaError> {
        let (mut next, data) = (self.next.borrow_mut(), data.unwrap_or_default());
        let copy = &mut next[record.slot as usize];
        let mut out = Writer(self.buffer.take());
        out.0.clear();
        [0, record.lpn].into_iter().for_each(|field| out.u32(field));
        [record.sequence, record.mask, record.was_lost].into_iter().for_each(|field| out.u64(field));
        [record.slot, data.len() as u32, is_alone.into(), 0].into_iter().for_each(|field| out.u32(field));
        out.0.extend(data);
        let sum = crc32fast::hash(&out.0[4..]);
        out.0[..4].copy_from_slice(&sum.to_le_bytes());
        let written = self.disk.write(self.at(record.slot, *copy), &out.0);
        *self.buffer.borrow_mut() = out.0;
        self.written.borrow_mut()[record.slot as usize] |= 1 << *copy;
        *copy ^= 1;
        written
    }

    /// All slots up to a number count from now on.
    pub(crate) fn commit(&self, sequence: u64) -> Result<(), MediaError> {
        let number = sequence.to_le_bytes();
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&number);
        bytes[8..].copy_from_slice(&crc32fast::hash(&number).to_le_bytes());
        self.committed.set(sequence);
        self.disk.write(self.disk.layout.slots.at, &bytes)
    }

    /// The number that was committed last.
    pub(crate) fn committed(&self) -> u64 {
        self.committed.get()
    }

    /// Makes a slot void.
    pub(crate) fn clear(&self, slot: u32) -> Result<(), MediaError> {
        let written = std::mem::take(&mut self.written.borrow_mut()[slot as usize]);
        // The older copy first: it must not count when the newer one is gone.
        let older = self.next.borrow()[slot as usize];
        let copies = [older, older ^ 1].into_iter().filter(|copy| written & 1 << copy != 0);
        copies.into_iter().try_for_each(|copy| self.disk.write(self.at(slot, copy), &[0; HEAD]))
    }

    /// Makes all slots void and gives their room back: nothing of their data stays.
    pub(crate) fn wipe(&self) -> Result<(), MediaError> {
        let region = self.disk.layout.slots;
        (0..self.next.borrow().len() as u32).try_for_each(|slot| self.clear(slot))?;
        self.disk.punch(region.at + COMMITTED, region.len - COMMITTED)
    }

    /// The slots that count, each as of its last write. Copies that do not count are made void: a later number must not count
    /// them in.
    pub(crate) fn restore(&self) -> io::Result<Vec<(SlotRecord, Vec<u8>)>> {
        let count = self.next.borrow().len() as u32;
        let mut found = Vec::new();
        for slot in 0..count {
            let mut copies = [self.read(slot, 0)?, self.read(slot, 1)?];
            for (copy, number) in copies.iter_mut().zip([0, 1]) {
                if copy.take_if(|(_, _, counts)| !*counts).is_some() {
                    // Where the file cannot be written, no number is written either.
                    let _ = self.disk.write(self.at(slot, number), &[0; HEAD]);
                }
            }
            let copies = copies.map(|copy| copy.map(|(record, data, _)| (record, data)));
            let newest = copies.into_iter().zip([0, 1]).filter_map(|(copy, number)| Some((copy?, number)));
            if let Some((record, number)) = newest.max_by_key(|((record, _), _)| record.sequence) {
                self.next.borrow_mut()[slot as usize] = 1 - number;
                found.push(record);
            }
        }
        Ok(found)
    }

    /// A copy that is whole, and whether it counts.
    fn read(&self, slot: u32, copy: u8) -> io::Result<Option<(SlotRecord, Vec<u8>, bool)>> {
        let mut bytes = vec![0; self.disk.layout.slot_stride as usize];
        self.disk.read(self.at(slot, copy), &mut bytes)?;
        let mut from = Reader(&bytes);
        let [sum, lpn] = [(); 2].map(|()| from.u32());
        let [sequence, mask, was_lost] = [(); 3].map(|()| from.u64());
        let [number, len, is_alone, _] = [(); 4].map(|()| from.u32());
        let whole = bytes.get(4..HEAD + len as usize).is_some_and(|covered| crc32fast::hash(covered) == sum);
        let counts = is_alone != 0 || sequence <= self.committed.get();
        if !whole || number != slot || sequence == 0 {
            return Ok(None);
        }
        let record = SlotRecord { slot, lpn, sequence, mask, was_lost };
        Ok(Some((record, bytes[HEAD..HEAD + len as usize].to_vec(), counts)))
    }
}
