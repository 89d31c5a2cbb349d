//! Versions of blocks that wait for their drives: the newest of each block, and the order in which each drive takes them.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use nandscape_sim::Time;

/// See the file.
pub(super) struct Waiting {
    /// The newest version of each block that a drive lacks.
    newest: BTreeMap<u64, Version>,
    /// Blocks that are to be written, by drive.
    queues: Vec<VecDeque<u64>>,
    replicas: usize,
    /// Writes that a newer version made void.
    cancelled: u64,
    last: u64,
}

struct Version {
    number: u64,
    bytes: Rc<[u8]>,
    /// Drives that lack it.
    left: usize,
    /// When the oldest version was put that no drive has replaced since.
    since: Time,
}

/// A version on its way to a drive.
pub(super) struct Write {
    pub(super) block: u64,
    pub(super) bytes: Rc<[u8]>,
    number: u64,
}

impl Waiting {
    pub(super) fn new(drives: usize, replicas: usize) -> Waiting {
        let queues = (0..drives).map(|_| VecDeque::new()).collect();
        Waiting { newest: BTreeMap::new(), queues, replicas, cancelled: 0, last: 0 }
    }

    /// The newest version of a block, unless its drives have it.
    pub(super) fn newest(&self, block: u64) -> Option<&Rc<[u8]>> {
        self.newest.get(&block).map(|version| &version.bytes)
    }

    /// Blocks that wait.
    pub(super) fn blocks(&self) -> u64 {
        self.newest.len() as u64
    }

    /// Writes to a drive that a newer version made void before they began.
    pub(super) fn cancelled(&self) -> u64 {
        self.cancelled
    }

    /// A new version of a block of a group. Writes of an older one that have begun continue; each drive gets the new one after them.
    pub(super) fn put(&mut self, block: u64, group: usize, bytes: Rc<[u8]>, now: Time) {
        self.last += 1;
        let left = self.replicas;
        // A block that is overwritten again and again is still written in time.
        let since = self.newest.get(&block).map_or(now, |older| older.since);
        let is_newer = self.newest.insert(block, Version { number: self.last, bytes, left, since }).is_some();
        for queue in &mut self.queues[group * left..][..left] {
            let place = queue.iter().position(|other| is_newer && *other == block);
            if let Some(place) = place {
                queue.remove(place);
                self.cancelled += 1;
            }
            queue.push_back(block);
        }
    }

    /// Blocks that wait for a drive.
    pub(super) fn len(&self, drive: usize) -> usize {
        self.queues[drive].len()
    }

    /// The next write of a drive, which has begun.
    pub(super) fn take(&mut self, drive: usize) -> Option<Write> {
        let block = self.queues[drive].pop_front()?;
        let version = self.newest.get(&block).expect("a queued block has a version");
        Some(Write { block, bytes: version.bytes.clone(), number: version.number })
    }

    /// A drive has a version.
    pub(super) fn written(&mut self, write: &Write) {
        if let Some(version) = self.newest.get_mut(&write.block).filter(|version| version.number == write.number) {
            version.left -= 1;
            if version.left == 0 {
                self.newest.remove(&write.block);
            }
        }
    }

    /// Whether a drive lacks a version that others of its group have.
    pub(super) fn lacks(&self, drive: usize) -> bool {
        self.queues[drive].iter().any(|block| self.newest[block].left < self.replicas)
    }

    /// When the oldest waiting version was put.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.newest.values().map(|version| version.since).min()
    }
}
