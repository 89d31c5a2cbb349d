//! Frames, and room for them. Appends are sequential: only the tree's flushes append.

use nandscape_apps_store::StoreError;

use super::form::{ALIGN, FrameId, frame, frame_bytes};
use super::state::{Item, Place};
use super::{LOW, LogStore};

impl LogStore {
    /// Writes a frame of new pieces.
    pub(super) async fn append(&self, items: &[Item]) -> Result<(), StoreError> {
        self.make_room().await?;
        self.write_frame(items).await
    }

    /// Cleans until enough segments are free.
    async fn make_room(&self) -> Result<(), StoreError> {
        let mut rounds = 4 * self.layout.segments;
        loop {
            let (free, pending) = {
                let state = self.state.borrow();
                (state.free.len(), state.pending.len())
            };
            if free >= LOW {
                return Ok(());
            }
            rounds = rounds.checked_sub(1).ok_or(StoreError::Full)?;
            // Cleaned segments are free after a checkpoint: one for several segments.
            let is_worth_it = free + pending >= LOW + 2 || free <= 1;
            if pending > 0 && is_worth_it {
                self.checkpoint().await?;
            } else {
                self.clean().await?;
            }
        }
    }

    /// Writes a frame to the end of the log, and enters its pieces into the mapping table when it is durable.
    pub(super) async fn write_frame(&self, items: &[Item]) -> Result<(), StoreError> {
        let len = frame_bytes(items).next_multiple_of(ALIGN as usize) as u32;
        let (segment, at) = self.place(len)?;
        let (id, number) = (self.layout.id, self.state.borrow().next_frame);
        let (bytes, offsets) = frame(FrameId { id, epoch: self.state.borrow().epoch, number }, items);
        self.disk.host.bytes(bytes.len()).await;
        self.disk.write(self.range(segment, at.into(), len.into()).0.slba, &bytes).await?;
        self.disk.host.entries(items.len()).await;
        let mut state = self.state.borrow_mut();
        for (item, offset) in items.iter().zip(offsets) {
            let place = Place { segment, offset: at + offset, bytes: item.bytes.len() as u32, serial: item.serial };
            state.add(item.lpid, item.says, place);
        }
        state.next_frame += 1;
        state.head = Some((segment, at + len));
        Ok(())
    }

    /// Room for a frame in the open segment, or in a free one.
    fn place(&self, len: u32) -> Result<(u32, u32), StoreError> {
        let mut state = self.state.borrow_mut();
        match state.head {
            Some((segment, used)) if used + len <= self.layout.segment_bytes => Ok((segment, used)),
            _ => {
                let segment = state.free.pop_front().ok_or(StoreError::Full)?;
                state.head = Some((segment, 0));
                Ok((segment, 0))
            }
        }
    }
}
