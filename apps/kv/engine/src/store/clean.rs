//! Cleaning segments: the current records of the segment with the fewest are rewritten, and the segment is free.

use nandscape_wire_nvme::Status;

use super::form::Record;
use super::log::Batch;
use super::{Core, PutError};

impl Core {
    /// Cleans a segment. Its records move to the open segment, and then to a free one, for which one is kept in
    /// reserve.
    pub(super) async fn clean(&self) -> Result<(), PutError> {
        let victim = self.victim().ok_or_else(|| self.full(0))?;
        if self.index.borrow().live_in(victim) > 0 {
            self.move_out(victim).await?;
        }
        if self.index.borrow().live_in(victim) > 0 {
            // The rest cannot be read here. It is kept, and gets of it return an error, until it is put again.
            self.damaged.borrow_mut().insert(victim);
            return Ok(());
        }
        self.damaged.borrow_mut().remove(&victim);
        self.release(victim).await.map_err(PutError::Drive)?;
        self.stats.borrow_mut().cleaned += 1;
        Ok(())
    }

    /// A segment has no current records: it is free, also for a store that is opened after a crash.
    pub(super) async fn release(&self, segment: u32) -> Result<(), Status> {
        self.write(self.shape.segment_slba(segment), &vec![0; self.shape.lba_bytes as usize]).await?;
        self.free.borrow_mut().push_back(segment);
        Ok(())
    }

    /// The full segment with the least that is current, the lowest number among equals. One with current records that cannot be read is
    /// none.
    fn victim(&self) -> Option<u32> {
        let open = self.head.borrow().map(|head| head.segment);
        let (free, index, damaged) = (self.free.borrow(), self.index.borrow(), self.damaged.borrow());
        let full = (0..self.shape.segments).filter(|segment| Some(*segment) != open && !free.contains(segment));
        let can_move = full.filter(|segment| !damaged.contains(segment) || index.live_in(*segment) == 0);
        can_move.min_by_key(|segment| index.live_in(*segment))
    }

    /// Rewrites the readable current records of a segment.
    async fn move_out(&self, victim: u32) -> Result<(), PutError> {
        if !self.info.keeps_data {
            return self.move_untold(victim).await;
        }
        let salvage = self.salvage(victim).await.map_err(|(_, status)| PutError::Drive(status))?;
        let lba_bytes = self.shape.lba_bytes as usize;
        let keys = self.index.borrow().keys_in(victim);
        let mut batch = Batch::default();
        for (key, place) in keys {
            let record = Record::parse(salvage.from(place.block, lba_bytes), place.sequence);
            if let Some(record) = record.filter(|record| *record.key == *key) {
                self.move_record(&mut batch, record).await?;
            }
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

    /// The same for a drive that keeps no data: the records of the segment are known from the index alone.
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
