//! Writing the log: one task takes puts in order of arrival, and batches all that have arrived during the previous
//! write.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::form::{self, Record};
use super::index::Place;
use super::{AGAIN, Core, PutError, RESERVE};

/// The segment that is being written.
#[derive(Copy, Clone, Debug)]
pub(super) struct Head {
    pub(super) segment: u32,
    pub(super) sequence: u64,
    /// Blocks written; 0: its first block is still to be written.
    pub(super) used: u32,
}

/// A put that waits.
pub(super) struct Waiting {
    key: Box<[u8]>,
    version: u64,
    value: Box<[u8]>,
    done: Rc<Done>,
}

/// Its end.
struct Done {
    result: RefCell<Option<Result<(), PutError>>>,
    ended: Signal,
}

impl Done {
    fn end(&self, result: Result<(), PutError>) {
        self.result.replace(Some(result));
        self.ended.notify();
    }
}

/// Records to be written together.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    places: Vec<(Box<[u8]>, Place)>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl Core {
    /// Has a put written.
    pub(super) async fn enqueue(&self, key: &[u8], version: u64, value: &[u8]) -> Result<(), PutError> {
        let done = Rc::new(Done { result: RefCell::new(None), ended: Signal::new(&self.sim) });
        let waiting = Waiting { key: key.into(), version, value: value.into(), done: done.clone() };
        self.queue.borrow_mut().push_back(waiting);
        self.came.notify();
        loop {
            if let Some(result) = done.result.take() {
                return result;
            }
            done.ended.changed().await;
        }
    }

    /// Writes puts until the store is closed.
    pub(super) async fn write_puts(self: Rc<Self>) {
        while !self.is_closed.get() {
            let Some(first) = self.queue.borrow_mut().pop_front() else {
                self.came.changed().await;
                continue;
            };
            match self.admit(&first).await {
                Ok(true) => self.write_with(first).await,
                Ok(false) => first.done.end(Ok(())),
                Err(error) => first.done.end(Err(error)),
            }
        }
        self.queue.take().into_iter().for_each(|waiting| waiting.done.end(Err(PutError::Closed)));
    }

    /// Whether a put is to be written; waits until there is room. A put older than the current value is not written.
    async fn admit(&self, put: &Waiting) -> Result<bool, PutError> {
        let blocks = self.shape.record_blocks(put.key.len(), put.value.len());
        let old = self.index.borrow().get(&put.key);
        if old.is_some_and(|old| old.version >= put.version) {
            return Ok(false);
        }
        self.check_fits(old.map_or(0, |old| old.blocks), blocks)?;
        self.make_room(blocks).await?;
        Ok(true)
    }

    fn check_fits(&self, old: u32, new: u32) -> Result<(), PutError> {
        let (live, limit) = (self.index.borrow().live_blocks(), self.shape.live_limit());
        let fits = live + u64::from(new) <= limit + u64::from(old);
        if fits { Ok(()) } else { Err(self.full(new)) }
    }

    /// The error that this number of blocks does not fit.
    pub(super) fn full(&self, needed: u32) -> PutError {
        let bytes = |blocks: u64| blocks * u64::from(self.shape.lba_bytes);
        let (live, limit) = (self.index.borrow().live_blocks(), self.shape.live_limit());
        PutError::Full { live: bytes(live), limit: bytes(limit), needed: bytes(needed.into()) }
    }

    /// Writes a put, and those queued behind it that fit into the same write.
    async fn write_with(&self, first: Waiting) {
        let (mut batch, mut ends) = (Batch::default(), Vec::new());
        let mut next = Some(first);
        while let Some(put) = next.take() {
            self.add(&mut batch, &put.key, put.version, &put.value);
            ends.push(put.done);
            let mut queue = self.queue.borrow_mut();
            if queue.front().is_some_and(|put| self.may_join(&batch, put)) {
                next = queue.pop_front();
            }
        }
        let count = ends.len() as u64;
        let result = self.write_batch(batch).await;
        if result.is_ok() {
            self.stats.borrow_mut().puts += count;
        }
        ends.iter().for_each(|done| done.end(result));
    }

    fn may_join(&self, batch: &Batch, put: &Waiting) -> bool {
        let blocks = self.shape.record_blocks(put.key.len(), put.value.len());
        let old = self.index.borrow().get(&put.key);
        let batched: u32 = batch.places.iter().map(|(_, place)| place.blocks).sum();
        // A second put of a key waits for the next write, so that its room is not counted twice.
        let is_new = old.is_none_or(|old| old.version < put.version);
        is_new
            && batch.places.iter().all(|(key, _)| *key != put.key)
            && self.has_room(batch, blocks)
            && self.check_fits(0, batched + blocks).is_ok()
    }

    /// Whether a record of this number of blocks fits into the open segment and into a command, after those of a
    /// batch.
    pub(super) fn has_room(&self, batch: &Batch, blocks: u32) -> bool {
        let Some(head) = *self.head.borrow() else { return false };
        let batched = batch.bytes.len() as u32 / self.shape.lba_bytes;
        let first = u32::from(batched == 0 && head.used == 0);
        let command = batched + first + blocks;
        head.used + command <= self.shape.segment_blocks && (batched == 0 || command <= self.info.max_blocks)
    }

    /// Adds a record for which there is room.
    pub(super) fn add(&self, batch: &mut Batch, key: &[u8], version: u64, value: &[u8]) {
        let head = self.head.borrow().expect("there is room in it");
        let lba_bytes = self.shape.lba_bytes;
        if batch.bytes.is_empty() && head.used == 0 {
            batch.bytes = form::segment_block(self.shape.id, head.sequence, lba_bytes);
        }
        let block = head.used + batch.bytes.len() as u32 / lba_bytes;
        Record { version, key, value }.append(head.sequence, lba_bytes, &mut batch.bytes);
        let place = Place {
            segment: head.segment,
            sequence: head.sequence,
            block,
            blocks: self.shape.record_blocks(key.len(), value.len()),
            value_bytes: value.len() as u32,
            version,
        };
        batch.places.push((key.into(), place));
    }

    /// Writes a batch durably, and makes its records current. After a failure the segment is closed: its further
    /// contents are unknown.
    pub(super) async fn write_batch(&self, batch: Batch) -> Result<(), PutError> {
        if batch.is_empty() {
            return Ok(());
        }
        let Batch { bytes, places } = batch;
        let head = self.head.borrow().expect("a batch is for the open segment");
        let blocks = bytes.len() as u32 / self.shape.lba_bytes;
        let slba = self.shape.segment_slba(head.segment) + u64::from(head.used);
        self.stats.borrow_mut().batches += 1;
        if let Err(status) = self.write(slba, &bytes).await {
            self.head.replace(None);
            return Err(PutError::Drive(status));
        }
        self.head.replace(Some(Head { used: head.used + blocks, ..head }));
        let mut index = self.index.borrow_mut();
        places.iter().for_each(|(key, place)| index.add(key, *place));
        Ok(())
    }

    /// Writes whole blocks durably, in one command or in several, one after the other.
    pub(super) async fn write(&self, slba: u64, bytes: &[u8]) -> Result<(), Status> {
        let (lba_bytes, most) = (self.shape.lba_bytes as usize, self.info.max_blocks as usize);
        for (number, part) in bytes.chunks(most * lba_bytes).enumerate() {
            let (at, blocks) = (slba + (number * most) as u64, part.len() / lba_bytes);
            loop {
                let mut entry = SubmissionEntry::blocks(IoOpcode::WRITE, self.info.nsid, at, blocks as u32);
                if self.info.volatile_cache {
                    entry.cdw12 = (entry.cdw12.get() | FUA).into();
                }
                let ended = self.issuer.execute(&*self.drive, entry, HostMem::from_bytes(part)).await;
                match ended.status.meaning() {
                    Status::SUCCESS => break,
                    // Power will return, and writing the same bytes again is harmless.
                    Status::ABORTED_POWER_LOSS if !self.is_closed.get() => self.sim.sleep(AGAIN).await,
                    status => return Err(status),
                }
            }
        }
        Ok(())
    }

    /// Makes room in the open segment for a record of this number of blocks.
    async fn make_room(&self, blocks: u32) -> Result<(), PutError> {
        for _ in 0..4 * self.shape.segments {
            if self.has_room(&Batch::default(), blocks) {
                return Ok(());
            }
            let is_short = self.free.borrow().len() <= RESERVE;
            if !is_short {
                self.open_segment();
            } else {
                self.clean().await?;
            }
        }
        // The limit on live blocks leaves garbage in some segment, unless writes have failed.
        Err(self.full(blocks))
    }

    /// Opens a free segment; returns whether there was one.
    pub(super) fn open_segment(&self) -> bool {
        let Some(segment) = self.free.borrow_mut().pop_front() else { return false };
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        self.head.replace(Some(Head { segment, sequence, used: 0 }));
        true
    }
}
