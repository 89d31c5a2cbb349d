//! A memtable becomes a run of level 0. Its logs are dropped with the same commit.

use std::rc::Rc;

use nandscape_apps_store::StoreError;

use super::{Memtable, Shared};
use crate::run::Builder;
use crate::storage::{Edit, Storage};

impl<S: Storage> Shared<S> {
    /// Begins with the memtable that is full.
    pub(super) fn flush_full(self: &Rc<Self>) {
        let Some(full) = self.full.borrow().clone() else { return };
        let shared = self.clone();
        self.host.sim().spawn(async move {
            let flushed = shared.flush(full).await;
            shared.ended(flushed);
            shared.merge_if_due();
        });
    }

    pub(super) async fn flush(&self, memtable: Rc<Memtable>) -> Result<(), StoreError> {
        let id = self.storage.create(0, self.storage.max_blocks().min(most_blocks(&memtable))).await?;
        let mut builder = Builder::new(id, self.config.bits_a_key);
        for (key, value) in &memtable.records {
            builder.add(&self.storage, key, value.as_deref()).await?;
        }
        let run = builder.finish(&self.storage).await?;
        self.count(|stats| {
            stats.flushes += 1;
            stats.flush_bytes += run.bytes();
        });
        // In memory first: a reader that begins now finds the run, which exists.
        let mut levels = (**self.levels.borrow()).clone();
        levels.runs[0].insert(0, run.clone());
        self.levels.replace(Rc::new(levels));
        self.full.replace(None);
        let drops = memtable.logs.iter().map(|log| Edit::Drop(*log));
        let edits: Vec<Edit> = [Edit::Seal(id)].into_iter().chain(drops).collect();
        self.storage.commit(&edits).await?;
        run.is_committed.set(true);
        Ok(())
    }
}

/// The most blocks of a memtable's run: a block may be left half empty by a record that does not fit.
fn most_blocks(memtable: &Memtable) -> u32 {
    let keys: usize = memtable.records.keys().map(|key| key.len() + 10).sum();
    (2 * memtable.bytes + keys).div_ceil(crate::storage::BLOCK) as u32 + 4
}
