//! The record of a sync in the log: its number, and writes and punches in order, with a checksum over the whole record.

use std::io;

use super::mistakes::{Mistake, is_made};
use crate::durable::backing::Backing;
use crate::durable::superblock::{Reader, Writer};

const MAGIC: [u8; 8] = *b"NANDREDO";
/// Bytes of the head: magic, checksum, number of changes, number, bytes of the changes.
const HEAD: usize = 32;
/// Bytes of a change without its data: place, and length with the kind in its highest bit.
pub(super) const OVERHEAD: usize = 16;
const PUNCH: u64 = 1 << 63;

/// A change of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// Bytes at a place.
    Write(u64, Box<[u8]>),
    /// Room at a place, of a length, that is returned.
    Punch(u64, u64),
}

impl Change {
    /// Bytes of its data.
    pub(super) fn len(&self) -> u64 {
        match self {
            Change::Write(_, bytes) => bytes.len() as u64,
            Change::Punch(..) => 0,
        }
    }
}

/// See the file.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Record {
    /// Counts records, from 1. The count also determines the record's region.
    pub(super) number: u64,
    pub(super) changes: Vec<Change>,
    len: u64,
}

impl Record {
    pub(super) fn new(number: u64) -> Record {
        Record { number, changes: Vec::new(), len: HEAD as u64 }
    }

    pub(super) fn add(&mut self, change: Change) {
        self.len += OVERHEAD as u64 + change.len();
        self.changes.push(change);
    }

    /// Bytes of it in the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Makes its changes in the file.
    pub(super) fn apply(&self, file: &dyn Backing) -> io::Result<()> {
        self.changes.iter().try_for_each(|change| match change {
            Change::Write(at, bytes) => file.write_at(*at, bytes),
            Change::Punch(at, len) => file.punch(*at, *len),
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(self.len as usize));
        out.0.extend(MAGIC);
        // The checksum's place.
        out.u32(0);
        out.u32(self.changes.len() as u32);
        out.u64(self.number);
        out.u64(self.len - HEAD as u64);
        for change in &self.changes {
            match change {
                Change::Write(at, bytes) => {
                    out.u64(*at);
                    out.u64(bytes.len() as u64);
                    out.0.extend_from_slice(bytes);
                }
                Change::Punch(at, len) => {
                    out.u64(*at);
                    out.u64(len | PUNCH);
                }
            }
        }
        let sum = crc32fast::hash(&out.0[12..]);
        out.0[8..12].copy_from_slice(&sum.to_le_bytes());
        out.0
    }

    /// Reads the record of a region that has `longest` bytes; `None` where none is whole. Its changes lie before `end`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn read(file: &dyn Backing, at: u64, (longest, end): (u64, u64)) -> io::Result<Option<Record>> {
        let mut bytes = vec![0; HEAD];
        file.read_at(at, &mut bytes)?;
        let Some(len) = length(&bytes).filter(|len| HEAD as u64 + len <= longest) else { return Ok(None) };
        bytes.resize(HEAD + len as usize, 0);
        file.read_at(at + HEAD as u64, &mut bytes[HEAD..])?;
        Ok(Record::decode(&bytes).filter(|record| record.is_possible(end)))
    }

    /// Whether it is plausible: its number has a successor, and its changes have bytes and lie before `end`.
    fn is_possible(&self, end: u64) -> bool {
        self.number < u64::MAX && self.changes.iter().all(|change| change.is_before(end))
    }

    /// The record in bytes of its length.
    fn decode(bytes: &[u8]) -> Option<Record> {
        let mut from = Reader(&bytes[8..HEAD]);
        let (sum, count, number) = (from.u32(), from.u32(), from.u64());
        if crc32fast::hash(&bytes[12..]) != sum && !is_made(Mistake::NoChecksum) {
            return None;
        }
        let (mut record, mut rest) = (Record::new(number), &bytes[HEAD..]);
        for _ in 0..count {
            let (place, behind) = rest.split_at_checked(OVERHEAD)?;
            let mut from = Reader(place);
            let (at, len) = (from.u64(), from.u64());
            let (change, behind) = match len & PUNCH {
                0 => {
                    let (data, behind) = behind.split_at_checked(usize::try_from(len).ok()?)?;
                    (Change::Write(at, data.into()), behind)
                }
                _ => (Change::Punch(at, len & !PUNCH), behind),
            };
            record.add(change);
            rest = behind;
        }
        rest.is_empty().then_some(record)
    }
}

impl Change {
    fn is_before(&self, end: u64) -> bool {
        let (at, len) = match self {
            Change::Write(at, bytes) => (*at, bytes.len() as u64),
            Change::Punch(at, len) => (*at, *len),
        };
        len > 0 && at.checked_add(len).is_some_and(|last| last <= end)
    }
}

/// The bytes of the changes, by the head.
fn length(head: &[u8]) -> Option<u64> {
    head.starts_with(&MAGIC).then(|| Reader(&head[24..]).u64()).filter(|len| *len < u64::from(u32::MAX))
}
