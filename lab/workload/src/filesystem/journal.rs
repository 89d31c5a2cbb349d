//! The journal of a file system: the changed blocks of metadata, and their way to the drive.
//!
//! With a journal, changed blocks (whole, as in ext4) accumulate in a running transaction. A commit writes a
//! descriptor, the blocks and a commit record to the ring in one sequential write, and makes it durable. Commits
//! requested while one is in progress share the next. Before the ring is full, its blocks are written in place
//! (checkpoint), which empties it. Without a journal a commit writes the changed blocks in place.
//!
//! Left out: ordered data (data writes complete before the commit anyway), revoke records, replay.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use nandscape_sim::signal::Signal;

use super::layout::BLOCK;
use super::space::Extent;
use crate::client::{Client, Over};
use crate::record::Direction;
use crate::request::Request;

/// Changed metadata, and its way to the drive.
pub(crate) struct Journal {
    client: Rc<Client>,
    /// The ring; empty for a file system without a journal.
    ring: Range<u64>,
    /// The position of the next commit, and the number of used blocks in the ring.
    head: Cell<u64>,
    used: Cell<u64>,
    /// Blocks changed since the last commit began, and the number of their transaction.
    running: RefCell<BTreeSet<u64>>,
    number: Cell<u64>,
    /// The last durable transaction, and whether a commit is in progress.
    durable: Cell<u64>,
    committing: Cell<bool>,
    /// Blocks in the ring that are not yet written in place.
    to_place: RefCell<BTreeSet<u64>>,
    changed: Signal,
}

impl Journal {
    pub(crate) fn new(client: &Rc<Client>, ring: Range<u64>) -> Journal {
        Journal {
            client: client.clone(),
            head: Cell::new(ring.start),
            ring,
            used: Cell::new(0),
            running: RefCell::default(),
            number: Cell::new(1),
            durable: Cell::new(0),
            committing: Cell::new(false),
            to_place: RefCell::default(),
            changed: Signal::new(client.sim()),
        }
    }

    /// Blocks of metadata have changed.
    pub(crate) fn touch(&self, blocks: impl IntoIterator<Item = u64>) {
        self.running.borrow_mut().extend(blocks);
    }

    /// Whether blocks have changed since the last commit began.
    pub(crate) fn has_changes(&self) -> bool {
        !self.running.borrow().is_empty()
    }

    /// Marks all changes as being on the drive.
    pub(crate) fn forget(&self) {
        self.running.borrow_mut().clear();
    }

    /// Whether enough blocks have changed to commit now.
    pub(crate) fn is_large(&self) -> bool {
        let most = if self.ring.is_empty() { 1_024 } else { (self.ring.end - self.ring.start) / 4 };
        self.running.borrow().len() as u64 >= most
    }

    /// Makes everything that has changed so far durable.
    pub(crate) async fn commit(&self) -> Result<(), Over> {
        let nothing_new = self.running.borrow().is_empty();
        let wanted = self.number.get() - u64::from(nothing_new);
        while self.durable.get() < wanted {
            if self.committing.replace(true) {
                self.changed.changed().await;
                continue;
            }
            let (number, blocks) = (self.number.get(), self.running.take());
            self.number.set(number + 1);
            let written = self.write(&blocks).await;
            if written.is_ok() {
                self.durable.set(number);
            }
            self.committing.set(false);
            self.changed.notify();
            written?;
        }
        // A commit that began earlier makes only earlier writes durable, so wait for the next.
        match nothing_new {
            true => self.barrier().await,
            false => Ok(()),
        }
    }

    async fn write(&self, blocks: &BTreeSet<u64>) -> Result<(), Over> {
        if self.ring.is_empty() {
            self.place(blocks).await?;
            return self.barrier().await;
        }
        // A descriptor and a commit record take a block each. A transaction larger than the ring is split.
        let (size, mut left) = (self.ring.end - self.ring.start, blocks.len() as u64);
        while left > 0 {
            let part = left.min(size - 2);
            if self.used.get() + part + 2 > size {
                let placed = self.to_place.take();
                self.place(&placed).await?;
                self.barrier().await?;
                self.used.set(0);
            }
            self.append(part + 2).await?;
            left -= part;
        }
        self.barrier().await?;
        self.to_place.borrow_mut().extend(blocks);
        Ok(())
    }

    /// Writes a number of blocks to the ring.
    async fn append(&self, blocks: u64) -> Result<(), Over> {
        let head = self.head.get();
        let first = blocks.min(self.ring.end - head);
        let parts = [Extent { start: head, blocks: first }, Extent { start: self.ring.start, blocks: blocks - first }];
        let requests = parts.into_iter().filter(|extent| extent.blocks > 0).map(write_of);
        self.client.issue(requests)?.await;
        let size = self.ring.end - self.ring.start;
        self.head.set(self.ring.start + (head - self.ring.start + blocks) % size);
        self.used.set(self.used.get() + blocks);
        Ok(())
    }

    /// Writes blocks in place; adjacent blocks form one request.
    async fn place(&self, blocks: &BTreeSet<u64>) -> Result<(), Over> {
        let mut extents: Vec<Extent> = Vec::new();
        for block in blocks {
            match extents.last_mut() {
                Some(last) if last.end() == *block => last.blocks += 1,
                _ => extents.push(Extent { start: *block, blocks: 1 }),
            }
        }
        self.client.issue(extents.into_iter().map(write_of))?.await;
        Ok(())
    }

    /// Makes completed writes durable. Drives without a volatile cache get no Flush, as with Linux.
    pub(crate) async fn barrier(&self) -> Result<(), Over> {
        match self.client.info().volatile_cache {
            true => self.client.flush().await,
            false => Ok(()),
        }
    }
}

fn write_of(extent: Extent) -> Request {
    Request { direction: Direction::Write, offset: extent.start * BLOCK, bytes: extent.blocks * BLOCK }
}
