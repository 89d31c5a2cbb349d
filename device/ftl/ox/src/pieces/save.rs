//! The first root, and checkpoints: the table is written to free frames, and then the root names it. Both are in the
//! order of the FTL's transactions, so an existing root has its checkpoint.

use nandscape_device_ftl_core::ftl::{Ftl, Milestone, Unwritable};
use nandscape_device_ftl_core::offers::RandomWrites;
use nandscape_device_media::MediaError;
use nandscape_drive::Breakdown;

use super::checkpoint::{ROOT, Root};
use super::{PieceError, Turn};

use super::area::Stream;

/// Frames of a checkpoint that are written at once.
const TOGETHER: usize = 8;

impl<F: Ftl> Turn<'_, F> {
    /// Begins the log of a namespace that was never written. An interrupted format may have left data, which must not
    /// be mistaken for packs of this log.
    pub(super) async fn begin(&mut self, watch: Option<Milestone>) -> Result<(), PieceError> {
        let store = self.store;
        self.is_writing = true;
        let Some(writes) = store.ftl.random_writes() else {
            return Err(PieceError::Refused(Unwritable::ReadOnly));
        };
        for extent in store.area.extents() {
            let ended = writes.deallocate(extent, &mut Breakdown::new()).await;
            ended.map_err(|error| match error {
                MediaError::PowerLost => PieceError::Stale,
                _ => PieceError::Refused(Unwritable::ReadOnly),
            })?;
        }
        if let Some(tables) = store.ftl.offers().stored_tables {
            tables.settle_deallocations().await;
        }
        store.write(&[store.area.extent(ROOT, 1)], Root::NEW.encode(&store.area), watch).await?;
        self.is_writing = false;
        store.is_new.set(false);
        Ok(())
    }

    /// Takes a checkpoint.
    pub(super) async fn save(&mut self, watch: Option<Milestone>) -> Result<(), PieceError> {
        let store = self.store;
        debug_assert_eq!(store.check(), Ok(()));
        let (root, frames, data) = store.with(|state| state.plan_checkpoint()).ok_or(PieceError::Full)?;
        self.is_writing = true;
        let size = store.area.frame_bytes() as usize;
        for (some, data) in frames.chunks(TOGETHER).zip(data.chunks(TOGETHER)) {
            let mut bytes = Vec::with_capacity(some.len() * size);
            for (number, frame) in data.iter().enumerate() {
                bytes.resize(number * size, 0);
                bytes.extend_from_slice(frame);
            }
            store.write(&Stream::of(some, &store.area).extents(&store.area), bytes, None).await?;
        }
        store.write(&[store.area.extent(ROOT, 1)], root.encode(&store.area), watch).await?;
        self.is_writing = false;
        store.with(|state| state.checkpointed(&root, frames));
        store.count(|counts| {
            counts.checkpoints += 1;
            counts.checkpoint_bytes += root.bytes;
        });
        Ok(())
    }
}
