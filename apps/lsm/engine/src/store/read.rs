//! One key: memtables, and then at most one block of each run that may have it, from newest to
//! oldest.

use std::rc::Rc;

use nandscape_apps_store::StoreError;

use super::Shared;
use crate::bloom::hash;
use crate::levels::Levels;
use crate::record::Bytes;
use crate::run::Moved;
use crate::storage::Storage;

impl<S: Storage> Shared<S> {
    pub(super) async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.host.operation().await;
        loop {
            self.check()?;
            if let Some(value) = self.in_memory(key) {
                return Ok(value.map(|value| value.to_vec()));
            }
            let levels = self.levels.borrow().clone();
            if let Ok(found) = self.find(&levels, key).await? {
                return Ok(found.map(|value| value.to_vec()));
            }
        }
    }

    /// The memtables' record of a key.
    fn in_memory(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let found = self.memtable.borrow().records.get(key).cloned();
        found.or_else(|| self.full.borrow().as_ref().and_then(|full| full.records.get(key).cloned()))
    }

    async fn find(&self, levels: &Rc<Levels>, key: &[u8]) -> Result<Result<Option<Bytes>, Moved>, StoreError> {
        let hash = hash(key);
        for run in levels.may_have(key) {
            let Some(block) = run.block_for(key, hash) else { continue };
            self.count(|stats| stats.blocks_read += 1);
            let Some(records) = run.read(&self.storage, block, 1).await? else { return Ok(Err(Moved)) };
            if let Ok(at) = records.binary_search_by(|(other, _)| (**other).cmp(key)) {
                return Ok(Ok(records[at].1.clone()));
            }
        }
        Ok(Ok(None))
    }
}
