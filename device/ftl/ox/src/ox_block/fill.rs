//! Sectors that a write did not cover, from flash: the "read" of a read-modify-write.

use nandscape_device_ftl_core::address::{Lpn, SlotId};
use nandscape_device_ftl_core::component::{BlockMetadata, Entry, Log, Stopped};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::core::Core;

impl Core {
    /// Reads the sectors that a slot lacks.
    pub(super) async fn fill(&self, id: SlotId) -> Result<(), Stopped> {
        let lpn = Lpn(self.state.borrow().cache.slot(id).lpn);
        let entry = self.look_up(lpn).await?;
        let mut lost = u64::from(entry.lost());
        let mut base = None;
        if let Some(unit) = entry.unit() {
            let (page, block) = {
                let mut state = self.state.borrow_mut();
                let page = state.geometry.page_of(unit);
                let block = state.geometry.block_of(page);
                state.chunks.pin(block);
                (page, block)
            };
            let who = self.config.priority.who(cause::READ_MODIFY_WRITE);
            let read = self.media.read(page, self.media.geometry().unit_size(), who, &mut Breakdown::new()).await;
            self.still_running()?;
            match read {
                Ok(()) => base = self.media.data(unit),
                Err(_) => lost = u64::MAX,
            }
            if self.media.take_read_failure() {
                lost = u64::MAX;
            }
            self.state.borrow_mut().chunks.unpin(block);
            self.unpinned.notify();
        }
        if self.filled(id, &entry, base.as_deref(), lost) {
            // A transaction may have waited for it.
            self.commit_complete().await;
        }
        self.pump();
        Ok(())
    }

    /// The missing sectors of a slot were read. Returns whether the slot was dropped meanwhile, and is free.
    fn filled(&self, id: SlotId, entry: &Entry, base: Option<&[u8]>, lost: u64) -> bool {
        let mut state = self.state.borrow_mut();
        state.counters.read_modify_writes += 1;
        let missing = !state.cache.slot(id).mask & state.unit.mask();
        state.counters.lost_units += u64::from(base.is_none() && entry.unit().is_some() && lost & missing != 0);
        let lost = lost & state.unit.mask();
        state.cache.fill(id, base, lost);
        let is_idle_and_dropped = state.cache.slot(id).dropped && state.cache.slot(id).transaction == 0;
        let mut told = Vec::new();
        match is_idle_and_dropped {
            true => state.cache.remove(id, &mut told),
            false => state.cache.requeue(id),
        }
        let position = state.log.last();
        drop(state);
        if is_idle_and_dropped {
            self.shared.free_slots.give(1);
            self.settle_when_durable(told, position);
        }
        is_idle_and_dropped
    }
}
