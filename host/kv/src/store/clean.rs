//! Emptying segments: what is current in the segment with the least of it is written again, and the segment is free.

use nandscape_wire_nvme::Status;

use super::form::{self, Record};
use super::log::Batch;
use super::{Core, PutError};

impl Core {
    /// Empties a segment. What is moved goes to the open segment, and then to a free one, for which one is kept in reserve.
    pub(super) async fn clean(&self) -> Result<(), PutError> {
        let victim = self.victim().ok_or_else(|| self.full(0))?;
        if self.index.borrow().live_in(victim) > 0 {
            self.move_out(victim).await?;
        }
        self.release(victim).await.map_err(PutError::Drive)?;
        self.stats.borrow_mut().cleaned += 1;
        Ok(())
    }

    /// A segment has nothing current: it is free, also for a store that is opened after a crash.
    pub(super) async fn release(&self, segment: u32) -> Result<(), Status> {
        self.write(self.shape.segment_slba(segment), &vec![0; self.shape.lba_bytes as usize]).await?;
        self.free.borrow_mut().push_back(segment);
        Ok(())
    }

    /// The full segment with the least that is current, the lowest number among equals.
    fn victim(&self) -> Option<u32> {
        let open = self.head.borrow().map(|head| head.segment);
        let (free, index) = (self.free.borrow(), self.index.borrow());
        let full = (0..self.shape.segments).filter(|segment| Some(*segment) != open && !free.contains(segment));
        full.min_by_key(|segment| index.live_in(*segment))
    }

    /// Writes what is current in a segment again.
    async fn move_out(&self, victim: u32) -> Result<(), PutError> {
        let bytes = self.read_segment(victim).await.map_err(|(_, status)| PutError::Drive(status))?;
        let lba_bytes = self.shape.lba_bytes as usize;
        let mut batch = Batch::default();
        let rest = match form::segment_of(&bytes, self.shape.id) {
            Some(sequence) => Records { bytes: &bytes, sequence, block: 1, lba_bytes },
            None if self.info.keeps_data => {
                return Err(PutError::Drive(Status::UNRECOVERED_READ_ERROR));
            }
            None => return self.move_untold(victim).await,
        };
        for (block, record) in rest {
            let place = self.index.borrow().get(record.key);
            if place.is_none_or(|place| (place.segment, place.block) != (victim, block)) {
                continue;
            }
            self.move_record(&mut batch, record).await?;
        }
        self.write_batch(batch).await
    }

    async fn move_record(&self, batch: &mut Batch, record: Record<'_>) -> Result<(), PutError> {
        let Record { version, key, value } = record;
        let blocks = self.shape.record_blocks(key.len(), value.len());
        if !self.has_room(batch, blocks) {
            self.write_batch(std::mem::take(batch)).await?;
            if !self.has_room(batch, blocks) && !self.open_segment() {
                return Err(self.full(blocks));
            }
        }
        self.add(batch, key, version, value);
        self.stats.borrow_mut().moved_bytes += u64::from(blocks) * u64::from(self.shape.lba_bytes);
        Ok(())
    }

    /// The same where the drive keeps no data: what lies in the segment is known from the index alone.
    async fn move_untold(&self, victim: u32) -> Result<(), PutError> {
        let keys = self.index.borrow().keys_in(victim);
        let mut batch = Batch::default();
        for (key, place) in keys {
            let value = vec![0; place.value_bytes as usize];
            self.move_record(&mut batch, Record { version: place.version, key: &key, value: &value }).await?;
        }
        self.write_batch(batch).await
    }
}

/// The records of a segment, up to the first that is none.
pub(super) struct Records<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) sequence: u64,
    /// The block of the next.
    pub(super) block: u32,
    pub(super) lba_bytes: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = (u32, Record<'a>);

    fn next(&mut self) -> Option<(u32, Record<'a>)> {
        let block = self.block;
        let record = Record::parse(self.bytes.get(block as usize * self.lba_bytes..)?, self.sequence)?;
        let bytes = form::record_bytes(record.key.len(), record.value.len());
        self.block += bytes.div_ceil(self.lba_bytes) as u32;
        Some((block, record))
    }
}
