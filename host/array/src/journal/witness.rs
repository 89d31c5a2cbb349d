//! What a drive of an array has on it, for a look at a drive that was away for a moment: whether it still has the record that it had taken.
//! One that lost its data, or was put back as it was at an earlier time, has not.
//!
//! Left out: a drive that was put back as it was since its last record was written; arrays without records.

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
    generation: Arc<AtomicU64>,
}

impl Witness {
    /// The blocks that tell it.
    pub fn places(&self) -> [u64; 2] {
        self.places
    }

    /// Whether these blocks are of a drive that has what it had.
    pub fn is_of(&self, blocks: &[Vec<u8>]) -> bool {
        let wanted = self.generation.load(Ordering::Relaxed);
        let records = blocks.iter().filter_map(|block| form::unsealed::<Record>(block));
        let found = records.filter(|record| record.uuid == self.uuid).map(|record| record.generation.get()).max();
        wanted == 0 || found.is_some_and(|found| found >= wanted)
    }
}

impl Array {
    /// What is on a drive, by its number among those the array was made of; `None` where the array has no records.
    pub fn witness(&self, drive: usize) -> Option<Witness> {
        let core = self.core();
        let journal = core.journal.as_ref()?;
        let generation = core.taken.get(drive)?.clone();
        Some(Witness { uuid: journal.uuid, places: [0, 1].map(|number| journal.form.record(number)), generation })
    }
}
