//! Flushes, one at a time: each takes all pages with changes in their state of one instant.

use std::rc::Rc;

use super::Core;
use crate::codec::encode;
use crate::error::Error;
use crate::pages::{PageStore, Piece};

impl<P: PageStore> Core<P> {
    /// Flushes whenever a client requires it, until the tree is closed or the store fails.
    pub(super) async fn flush_changes(self: Rc<Self>) {
        while !self.is_closed.get() && self.failed.borrow().is_none() {
            if self.wanted.get() <= self.durable.get() {
                self.came.changed().await;
                continue;
            }
            self.flush().await;
            self.ended.notify();
        }
    }

    async fn flush(&self) {
        let changes = self.changes.get();
        let pieces = self.take();
        // Changes that waited for room have it now.
        self.ended.notify();
        let bytes = pieces.iter().map(|piece| piece.bytes.len()).sum();
        self.host.bytes(bytes).await;
        match self.store.flush(pieces).await {
            Ok(()) => {
                self.cache.borrow_mut().flushed();
                self.durable.set(changes);
                self.trim();
            }
            Err(error) => drop(self.failed.replace(Some(error))),
        }
    }

    /// The pieces of all pages with changes.
    fn take(&self) -> Vec<Piece> {
        // Deltas take room in addition to the data that they replace: where room is short, pages are written as a
        // whole.
        let is_short = self.store.room() < 4 * self.capacity() as u64;
        let (pieces, page_bytes) = (if is_short { 1 } else { self.shape.pieces }, self.shape.page_bytes);
        self.cache.borrow_mut().flush(|lpid, page| encode(lpid, page, pieces, page_bytes))
    }

    /// See [`BwTree::commit`](super::BwTree::commit).
    pub(super) async fn commit(&self) -> Result<(), Error> {
        self.wait_for(self.changes.get()).await
    }

    /// Waits until a flush begins or ends; begins one if none is under way.
    pub(super) async fn flush_some(&self) -> Result<(), Error> {
        self.want(self.changes.get());
        self.ended.changed().await;
        self.check()
    }

    fn want(&self, changes: u64) {
        if self.wanted.get() < changes {
            self.wanted.set(changes);
            self.came.notify();
        }
    }

    async fn wait_for(&self, changes: u64) -> Result<(), Error> {
        self.want(changes);
        while self.durable.get() < changes {
            self.check()?;
            self.ended.changed().await;
        }
        Ok(())
    }
}
