//! Checkpoints: the mapping table, in one of two places in turn, so that the other one stays whole if this one is
//! torn.

use nandscape_apps_store::StoreError;

use super::LogStore;
use super::form;

impl LogStore {
    /// Writes a checkpoint. Segments that were emptied before are free afterwards.
    pub(super) async fn checkpoint(&self) -> Result<(), StoreError> {
        let (bytes, number, pages) = {
            let state = self.state.borrow();
            (form::checkpoint(self.layout.id, &state), state.next_checkpoint, state.chains().count())
        };
        self.disk.host.entries(pages).await;
        self.disk.host.bytes(bytes.len()).await;
        let start = self.layout.checkpoint_start(number % 2);
        self.disk.write(start / u64::from(self.layout.lba_bytes), &bytes).await?;
        let emptied = {
            let mut state = self.state.borrow_mut();
            state.next_checkpoint += 1;
            std::mem::take(&mut state.pending)
        };
        if self.config.trim {
            let ranges = emptied.iter().map(|segment| self.range(*segment, 0, self.layout.segment_bytes.into()).0);
            self.disk.deallocate(&ranges.collect::<Vec<_>>()).await?;
        }
        self.state.borrow_mut().free.extend(emptied);
        self.checked.set(self.disk.host.sim().now());
        self.count(|stats| {
            stats.checkpoints += 1;
            stats.checkpoint_bytes += bytes.len() as u64;
        });
        Ok(())
    }
}
