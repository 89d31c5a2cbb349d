//! Drives of other hosts: whether one is empty, and whether one that was out of reach is as the engine left it.
//!
//! A drive that reconnects must have the record of the store that the engine has written last. One that lost its contents has none, and
//! another engine that opened the store meanwhile has recorded a newer one.
//!
//! Left out: a drive that is as it was at a time after its last record; drives with zones.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nandscape_apps_store::{Disk, Host, Range, StoreError};
use nandscape_drive::Drive;

use crate::config::SEGMENT;
use crate::engine::Engine;
use crate::record::CHUNK_HEADER;
use crate::shape::{Format, SUPER, Super};

/// Generations of the record on a drive, plus one; 0 is none.
#[derive(Default, Debug)]
pub(crate) struct Recorded {
    /// The last one that it has taken.
    taken: AtomicU64,
    /// The last one that was begun.
    begun: AtomicU64,
}

impl Recorded {
    /// A record is being written.
    pub(crate) fn begins(&self, generation: u64) {
        self.begun.store(generation + 1, Ordering::Relaxed);
    }

    /// The drive has this one already.
    pub(crate) fn is_found(&self, generation: u64) {
        self.begins(generation);
        self.has(generation);
    }

    /// The drive has it.
    pub(crate) fn has(&self, generation: u64) {
        self.taken.store(generation + 1, Ordering::Relaxed);
    }
}

/// What a drive must have. It may be asked on another thread.
#[derive(Clone, Debug)]
pub struct Witness {
    id: u64,
    number: u32,
    recorded: Arc<Recorded>,
}

impl Witness {
    /// Looks at the first block of the drive.
    ///
    /// # Errors
    /// Why the drive is not the one that the engine used.
    pub fn look(&self, block: &[u8]) -> Result<(), &'static str> {
        let found = Super::of(block).filter(|found| (found.id, found.number) == (self.id, self.number));
        let generation = found.map_or(0, |found| found.generation + 1);
        match (self.recorded.taken.load(Ordering::Relaxed), self.recorded.begun.load(Ordering::Relaxed)) {
            (0, _) => Err("it has no record of the store yet, which would show whether it kept its data"),
            (_, begun) if generation > begun => Err("another memcached server has opened its store since"),
            (taken, _) if generation < taken => Err(
                "the last writes of the store are missing: the drive has lost data, or was restored to an earlier state",
            ),
            _ => Ok(()),
        }
    }
}

impl Engine {
    /// What a drive must have when it reconnects.
    pub fn witness(&self, drive: usize) -> Witness {
        Witness { id: self.id, number: drive as u32, recorded: self.member(drive).recorded.clone() }
    }
}

/// The format of the store that a drive is of; `None` if it is of none.
///
/// # Errors
/// When it does not answer.
pub async fn format_on(disk: &Disk) -> Result<Option<Format>, StoreError> {
    let blocks = (SUPER as u64).div_ceil(disk.info.lba_bytes.into());
    let block = disk.read(&[Range { slba: 0, blocks }]).await?.concat();
    Ok(Format::of(&block).filter(|format| *format != Format::OWN || Super::of(&block).is_some()))
}

/// Discards all data of a drive, so that a store can be made on it.
///
/// # Errors
/// When it does not answer.
pub async fn clear(host: &Host, drive: Rc<dyn Drive>) -> Result<(), StoreError> {
    // The record, and the first chunk, behind the longest segment.
    Disk::new(host, drive).clear(SEGMENT[1] + CHUNK_HEADER as u64).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lives::Lives;
    use crate::shape::{Known, MOST_DRIVES};

    #[test]
    fn a_drive_has_the_record_that_was_written_last() {
        let (replicas, generation, lost, known) = (2, 4, 0, [Known::default(); MOST_DRIVES]);
        let lives = Lives::default();
        let shape =
            Super { id: 7, segment: 1, slots: 1, drives: 2, number: 1, replicas, generation, lost, known, lives };
        let block = |shape: Super| shape.to_bytes();
        let witness = Witness { id: 7, number: 1, recorded: Arc::default() };
        assert!(witness.look(&block(shape)).is_err_and(|why| why.contains("no record")));
        witness.recorded.is_found(4);
        assert_eq!(witness.look(&block(shape)), Ok(()));
        witness.recorded.begins(5);
        let of = |generation| witness.look(&block(Super { generation, ..shape }));
        assert!(of(4).is_ok() && of(5).is_ok(), "it may have been written");
        assert!(of(3).is_err_and(|why| why.contains("has lost data")));
        assert!(of(6).is_err_and(|why| why.contains("another memcached server")));
        let lost = [Super { id: 8, ..shape }, Super { number: 0, ..shape }].map(block);
        for block in lost.into_iter().chain([vec![0; 512], Vec::new()]) {
            assert!(witness.look(&block).is_err_and(|why| why.contains("has lost data")));
        }
    }
}
