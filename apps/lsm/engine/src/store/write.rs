//! Changes: into the memtable and the log at one instant. Chunks of the log are written one after the other, each
//! with all changes so far, so that durable changes share them.

use std::rc::Rc;

use nandscape_apps_store::StoreError;

use super::{Change, Log, Memtable, Shared, weight};
use crate::error::Error;
use crate::record::{MAX_KEY, MAX_RECORD};
use crate::storage::{BLOCK, Edit, LOG, Storage};

impl<S: Storage> Shared<S> {
    /// Makes changes. They reach the log when its buffer is full, or a client requests it.
    pub(super) async fn apply(self: &Rc<Self>, changes: &[Change]) -> Result<(), Error> {
        self.check_changes(changes)?;
        self.host.operation().await;
        self.wait_for_room().await?;
        let (came, is_due) = self.change(changes);
        if is_due { Ok(self.write_log(came).await?) } else { Ok(()) }
    }

    /// Puts changes into memtable and log. Returns their number, and whether the log's buffer is full.
    fn change(&self, changes: &[Change]) -> (u64, bool) {
        let (mut memtable, mut log) = (self.memtable.borrow_mut(), self.log.borrow_mut());
        for change in changes {
            let (key, value) = change.parts();
            self.count(|stats| stats.put_bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64);
            memtable.bytes += weight(key, value);
            memtable.records.insert(key.into(), value.map(Rc::from));
            log.pending.put(key, value);
        }
        log.came += 1;
        (log.came, log.pending.len() >= self.config.log_buffer)
    }

    fn check_changes(&self, changes: &[Change]) -> Result<(), Error> {
        let mut bytes = 0;
        for change in changes {
            let (key, value) = change.parts();
            let (key, value) = (key.len(), value.map_or(0, <[u8]>::len));
            if key == 0 || key > MAX_KEY || key + value > MAX_RECORD {
                return Err(Error::Length { key, value, max_key: MAX_KEY, most: MAX_RECORD });
            }
            bytes += weight(change.parts().0, change.parts().1);
        }
        // A chunk of the log has them all, and as much again as may have been waiting.
        let most = self.config.memtable / 2;
        if bytes > most { Err(Error::Batch { bytes, most }) } else { Ok(()) }
    }

    /// Waits until the memtable takes changes.
    async fn wait_for_room(self: &Rc<Self>) -> Result<(), StoreError> {
        let begun = self.host.sim().now();
        loop {
            self.check()?;
            let is_full = self.memtable.borrow().bytes >= self.config.memtable;
            let is_stopped = {
                let (levels, config) = (self.levels.borrow(), &self.config);
                // The last of these is checked when a memtable is full: the check visits all runs.
                levels.runs[0].len() >= config.stop || is_full && levels.debt(&config.levels) > config.levels.debt
            };
            if is_full && !is_stopped && self.full.borrow().is_none() && !self.is_rotating.replace(true) {
                let rotated = self.rotate().await;
                self.is_rotating.set(false);
                self.ended(rotated);
            } else if is_full || is_stopped {
                self.changed.changed().await;
            } else {
                break;
            }
        }
        let waited = self.host.sim().now() - begun;
        if !waited.is_zero() {
            self.count(|stats| stats.stalled += waited);
        }
        Ok(())
    }

    /// The memtable begins to become a run, and another one takes its place, with a separate log.
    async fn rotate(self: &Rc<Self>) -> Result<(), StoreError> {
        self.hold_log().await;
        let made = self.new_log(1).await;
        if made.is_ok() {
            let mut memtable = self.memtable.borrow_mut();
            // Changes that wait for the log go to the new log. This does no harm: they are the oldest there.
            let new = memtable.logs.pop().into_iter().collect();
            let full = std::mem::replace(&mut *memtable, Memtable { logs: new, ..Memtable::default() });
            self.full.replace(Some(Rc::new(full)));
        }
        self.release_log();
        made?;
        self.flush_full();
        Ok(())
    }

    /// Writes the log until the change of a number, and all before it, are durable.
    pub(super) async fn write_log(&self, came: u64) -> Result<(), StoreError> {
        while self.log.borrow().durable < came {
            self.check()?;
            if self.log.borrow().is_busy {
                self.changed.changed().await;
                continue;
            }
            self.log.borrow_mut().is_busy = true;
            let written = self.write_chunk().await;
            self.release_log();
            self.ended(written);
        }
        self.check()
    }

    async fn hold_log(&self) {
        while self.log.borrow().is_busy {
            self.changed.changed().await;
        }
        self.log.borrow_mut().is_busy = true;
    }

    fn release_log(&self) {
        self.log.borrow_mut().is_busy = false;
        self.changed.notify();
    }

    async fn write_chunk(&self) -> Result<(), StoreError> {
        let (needed, left) = {
            let log = self.log.borrow();
            (log.pending.blocks(), log.blocks - log.at)
        };
        if needed > left {
            self.new_log(needed).await?;
        }
        let (id, at, chunk, came) = {
            let mut log = self.log.borrow_mut();
            // More changes may have arrived while a log was made.
            if log.pending.blocks() > log.blocks - log.at {
                return Ok(());
            }
            let (id, at, came) = (log.id, log.at, log.came);
            let chunk = log.pending.take(id);
            log.at += (chunk.len() / BLOCK) as u32;
            (id, at, chunk, came)
        };
        self.count(|stats| stats.log_bytes += chunk.len() as u64);
        self.storage.append(id, at, chunk).await?;
        self.log.borrow_mut().durable = came;
        Ok(())
    }

    /// Continues with a new log of at least a number of blocks.
    pub(super) async fn new_log(&self, needed: u32) -> Result<(), StoreError> {
        let usual = ((self.config.memtable * 5 / 4) / BLOCK) as u32;
        let blocks = usual.max(needed).next_multiple_of(self.storage.grain()).min(self.storage.max_blocks());
        let id = self.storage.create(LOG, blocks).await?;
        self.storage.commit(&[Edit::Publish(id)]).await?;
        let mut log = self.log.borrow_mut();
        *log = Log { id, blocks, at: 0, ..std::mem::take(&mut *log) };
        self.memtable.borrow_mut().logs.push(id);
        Ok(())
    }
}
