//! The slots of a write buffer that outlasts power. A slot has two copies that are written in turn, so that one is always
//! whole. A write to several slots counts when its last one is written: [`Slots::commit`] says so, and slots that came later are
//! void.
//!
//! A copy has a head before its data and the same head behind it, in a sector of its own. A kill leaves the first part of what
//! was being written, so the heads tell what has happened:
//!
//! | head before | head behind | data | the copy |
//! |---|---|---|---|
//! | void | any | any | holds nothing |
//! | whole | any | whole | is whole |
//! | whole | the same | damaged | is damaged: the unit is lost |
//! | whole | another, or none | damaged | was being written when the process was killed: void |
//! | damaged | whole | any | is damaged, and may have been void: the unit is lost |
//! | damaged, or none | damaged, or none | any | holds nothing |

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use super::disk::Disk;
use super::superblock::{Reader, Writer};
use crate::fault::MediaError;

const HEAD: usize = 48;
const SECTOR: u64 = 512;
/// Both copies of a slot.
const BOTH: u8 = 0b11;
/// Bytes before the slots, where the number of the last write lies, twice.
const COMMITTED: u64 = 4_096;
/// Bytes of that number with its checksum.
const NUMBER: usize = 12;
/// What a head says of its slot, a bit each: it is a whole write; it holds nothing.
const ALONE: u32 = 1;
const VOID: u32 = 2;

/// Bytes of a slot's copy.
pub(crate) fn stride(data: u64) -> u64 {
    (HEAD as u64 + data).next_multiple_of(SECTOR) + SECTOR
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

/// A slot that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundSlot {
    /// What it holds.
    pub record: SlotRecord,
    /// Its data; `None` where that is damaged.
    pub data: Option<Vec<u8>>,
}

/// The head of a copy.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Head {
    record: SlotRecord,
    len: u32,
    flags: u32,
    data_sum: u32,
}

impl Head {
    fn encode(&self) -> [u8; HEAD] {
        let SlotRecord { slot, lpn, sequence, mask, was_lost } = self.record;
        let mut out = Writer(Vec::with_capacity(HEAD));
        [0, lpn].into_iter().for_each(|field| out.u32(field));
        [sequence, mask, was_lost].into_iter().for_each(|field| out.u64(field));
        [slot, self.len, self.flags, self.data_sum].into_iter().for_each(|field| out.u32(field));
        let sum = crc32fast::hash(&out.0[4..]);
        out.0[..4].copy_from_slice(&sum.to_le_bytes());
        out.0.try_into().expect("the fields are as long")
    }

    /// That of a slot; `None` where there is none, or it is damaged.
    fn decode(slot: u32, bytes: &[u8]) -> Option<Head> {
        if bytes[..HEAD] == [0; HEAD] {
            return None;
        }
        let mut from = Reader(bytes);
        let [sum, lpn] = [(); 2].map(|()| from.u32());
        let [sequence, mask, was_lost] = [(); 3].map(|()| from.u64());
        let [number, len, flags, data_sum] = [(); 4].map(|()| from.u32());
        let is_whole = crc32fast::hash(&bytes[4..HEAD]) == sum && number == slot;
        let record = SlotRecord { slot, lpn, sequence, mask, was_lost };
        is_whole.then_some(Head { record, len, flags, data_sum })
    }

    /// Where the head behind the data lies.
    fn behind(&self) -> usize {
        (HEAD + self.len as usize).next_multiple_of(SECTOR as usize)
    }
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
        let mut committed = [None; 2];
        for (number, committed) in (0..).zip(&mut committed) {
            let at = disk.layout.slots.at + number * SECTOR;
            let mut bytes = [0; NUMBER];
            disk.read(at, &mut bytes)?;
            let (number, mut sum) = (&bytes[..8], Reader(&bytes[8..]));
            *committed = (crc32fast::hash(number) == sum.u32()).then(|| Reader(number).u64());
        }
        if committed.iter().flatten().count() == 1 {
            let at = disk.layout.slots.at;
            disk.note_damage(format!("the number of the last write at byte {at}: its other copy is whole"));
        }
        Ok(Slots {
            disk: disk.clone(),
            next: RefCell::new(vec![0; slots as usize]),
            written: RefCell::new(vec![BOTH; slots as usize]),
            buffer: RefCell::default(),
            committed: Cell::new(committed.into_iter().flatten().max().unwrap_or(0)),
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
        let (flags, data_sum) = (if is_alone { ALONE } else { 0 }, crc32fast::hash(data));
        let head = Head { record: *record, len: data.len() as u32, flags, data_sum };
        let (bytes, mut out) = (head.encode(), self.buffer.take());
        out.clear();
        out.extend(bytes);
        out.extend(data);
        out.resize(head.behind(), 0);
        out.extend(bytes);
        let written = self.disk.write(self.at(record.slot, *copy), &out);
        *self.buffer.borrow_mut() = out;
        self.written.borrow_mut()[record.slot as usize] |= 1 << *copy;
        *copy ^= 1;
        written
    }

    /// All slots up to a number count from now on.
    pub(crate) fn commit(&self, sequence: u64) -> Result<(), MediaError> {
        let number = sequence.to_le_bytes();
        let mut bytes = [0; SECTOR as usize + NUMBER];
        for at in [0, SECTOR as usize] {
            bytes[at..at + 8].copy_from_slice(&number);
            bytes[at + 8..at + NUMBER].copy_from_slice(&crc32fast::hash(&number).to_le_bytes());
        }
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
        copies.into_iter().try_for_each(|copy| self.clear_copy(slot, copy))
    }

    fn clear_copy(&self, slot: u32, copy: u8) -> Result<(), MediaError> {
        let record = SlotRecord { slot, lpn: 0, sequence: 0, mask: 0, was_lost: 0 };
        let head = Head { record, len: 0, flags: VOID, data_sum: 0 };
        self.disk.write(self.at(slot, copy), &head.encode())
    }

    /// Makes all slots void and gives their room back: nothing of their data stays.
    pub(crate) fn wipe(&self) -> Result<(), MediaError> {
        let region = self.disk.layout.slots;
        (0..self.next.borrow().len() as u32).try_for_each(|slot| self.clear(slot))?;
        self.disk.punch(region.at + COMMITTED, region.len - COMMITTED)
    }

    /// The slots that count, each as of its last write. Copies that do not count are made void: a later number must not count
    /// them in.
    pub(crate) fn restore(&self) -> io::Result<Vec<FoundSlot>> {
        let count = self.next.borrow().len() as u32;
        let mut found = Vec::new();
        for slot in 0..count {
            let mut copies = [self.read(slot, 0)?, self.read(slot, 1)?];
            for (copy, number) in copies.iter_mut().zip([0, 1]) {
                if copy.take_if(|(_, counts)| !*counts).is_some() {
                    // Where the file cannot be written, no number is written either.
                    let _ = self.clear_copy(slot, number);
                }
            }
            let newest = copies.into_iter().zip([0, 1]).filter_map(|(copy, number)| Some((copy?.0, number)));
            if let Some((newest, number)) = newest.max_by_key(|(found, _)| found.record.sequence) {
                self.next.borrow_mut()[slot as usize] = 1 - number;
                if newest.data.is_none() {
                    let (at, lpn) = (self.at(slot, number), newest.record.lpn);
                    self.disk
                        .note_damage(format!("slot {slot} of the write buffer at byte {at}, with logical unit {lpn}"));
                }
                found.push(newest);
            }
        }
        Ok(found)
    }

    /// A copy that holds something, and whether it counts.
    fn read(&self, slot: u32, copy: u8) -> io::Result<Option<(FoundSlot, bool)>> {
        let mut bytes = vec![0; self.disk.layout.slot_stride as usize];
        self.disk.read(self.at(slot, copy), &mut bytes)?;
        let before = Head::decode(slot, &bytes);
        let behind = |at: usize| bytes.get(at..at + HEAD).and_then(|bytes| Head::decode(slot, bytes));
        let (head, data) = match before {
            Some(head) if head.flags & VOID != 0 => return Ok(None),
            Some(head) => {
                let data = bytes.get(HEAD..HEAD + head.len as usize);
                let data = data.filter(|data| crc32fast::hash(data) == head.data_sum).map(<[u8]>::to_vec);
                if data.is_none() && behind(head.behind()) != Some(head) {
                    return Ok(None);
                }
                (head, data)
            }
            None => {
                let sectors = (SECTOR as usize..bytes.len()).step_by(SECTOR as usize);
                let found = sectors.filter_map(|at| behind(at).filter(|head| head.behind() == at)).next_back();
                let Some(head) = found else { return Ok(None) };
                (head, None)
            }
        };
        let counts = head.flags & ALONE != 0 || head.record.sequence <= self.committed.get();
        Ok(Some((FoundSlot { record: head.record, data }, counts)))
    }
}
