//! The records of an array on its drives, for the check of a drive that was briefly offline: whether it still has its
//! last record. A drive that lost its data, or was restored to an earlier state, has not. The check also detects
//! newer records of another array, which has then taken over the drive.
//!
//! Left out: a drive restored to a state after its last record; arrays without records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::form::{self, Record};
use crate::array::Array;

/// See the file. It may be asked on another thread.
#[derive(Clone, Debug)]
pub struct Witness {
    uuid: [u8; 16],
    /// The first blocks of both records.
    places: [u64; 2],
    /// The generation of the last record that the drive has taken; 0 if it has none.
    taken: Arc<AtomicU64>,
    /// That of the last record that was begun.
    begun: Arc<AtomicU64>,
}

/// The identity of a drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// The earlier drive.
    Same,
    /// A drive that lost its content.
    Older,
    /// A drive with records that this array has not written: another array uses it.
    Newer,
}

impl Witness {
    /// The blocks that show it.
    pub fn places(&self) -> [u64; 2] {
        self.places
    }

    /// The identity of the drive that has these blocks.
    pub fn sees(&self, blocks: &[Vec<u8>]) -> Seen {
        let (taken, begun) = (self.taken.load(Ordering::Relaxed), self.begun.load(Ordering::Relaxed));
        let records = blocks.iter().filter_map(|block| form::unsealed::<Record>(block));
        let found = records.filter(|record| record.uuid == self.uuid).map(|record| record.generation.get()).max();
        match found.unwrap_or(0) {
            newer if newer > begun => Seen::Newer,
            older if older < taken => Seen::Older,
            _ => Seen::Same,
        }
    }
}

impl Array {
    /// The record state of a drive, by its number among those the array was made of; `None` if the array has no
    /// records.
    pub fn witness(&self, drive: usize) -> Option<Witness> {
        let core = self.core();
        let journal = core.journal.as_ref()?;
        let (taken, begun) = (core.taken.get(drive)?.clone(), journal.generation.clone());
        Some(Witness { uuid: journal.uuid, places: [0, 1].map(|number| journal.form.record(number)), taken, begun })
    }
}
