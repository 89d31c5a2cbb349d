//! The journal of a file system: which blocks of metadata have changed, and how they reach the drive.
//!
//! With a journal, changed blocks (whole, as ext4 does) collect in a running transaction. A commit writes a descriptor,
//! the blocks and a commit record to the ring in one sequential write, and makes it durable. Who asks for a commit while
//! one is under way shares the next. Before the ring is full, the blocks that it holds are written to their places
//! (checkpoint), and it is empty again. Without a journal a commit writes the changed blocks to their places.
//!
//! Left out: ordered data (writes of data are awaited before), revoke records, replay.

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
    /// Where the next commit goes, and how many blocks of the ring are in use.
    head: Cell<u64>,
    used: Cell<u64>,
    /// Blocks changed since the last commit began, and which transaction they are in.
    running: RefCell<BTreeSet<u64>>,
    number: Cell<u64>,
    /// The last transaction that is durable, and whether another is on its way.
    durable: Cell<u64>,
    committing: Cell<bool>,
    /// Blocks that the ring holds and their places do not.
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

    /// What has changed counts as on the drive.
    pub(crate) fn forget(&self) {
        self.running.borrow_mut().clear();
    }

    /// Whether so many blocks have changed that they should not wait any longer.
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
        // A commit that began earlier may have made durable what was written before it, not what was written since.
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
        // A descriptor and a commit record each take a block. What is larger than the ring goes in parts.
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

    /// Writes so many blocks to the ring.
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

    /// Writes blocks to their places; neighbours are one request.
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

    /// Makes completed writes durable. Drives that lose nothing get no Flush, as Linux sends them none.
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
