//! The requests of an operation.
//!
//! A read reads the record's page. An update writes a field: the page is read, unless it is in the cache, and written.
//! An insert does the same, but does not read an empty page. A scan reads all its pages at once. A read-modify-write
//! reads the page and then writes it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use nandscape_sim::{Rng, Seed};

use super::choice::Chooser;
use super::mix::Operation;
use super::table::Table;
use super::{Phase, Ycsb};
use crate::cache::PageCache;
use crate::client::{Client, Over};
use crate::record::Direction;
use crate::request::Request;

/// State shared by all clients.
pub(super) struct Setting {
    spec: Ycsb,
    client: Rc<Client>,
    table: Table,
    cache: RefCell<PageCache>,
    /// Records that the load phase inserts.
    records: u64,
    /// The most records in the table during the run.
    space: u64,
    /// The number of the next record.
    next: Cell<u64>,
    /// All records below this number have been inserted; the set holds the inserted ones above it.
    inserted: Cell<u64>,
    beyond: RefCell<BTreeSet<u64>>,
}

impl Setting {
    pub(super) fn new(spec: &Ycsb, client: &Rc<Client>, table: Table, records: u64) -> Setting {
        let loaded = if spec.phase == Phase::Run { records } else { 0 };
        Setting {
            cache: RefCell::new(PageCache::new(spec.cache / spec.page_size)),
            spec: spec.clone(),
            client: client.clone(),
            space: if spec.mix.insert > 0.0 { table.slots() } else { records },
            table,
            records,
            next: Cell::new(loaded),
            inserted: Cell::new(loaded),
            beyond: RefCell::default(),
        }
    }

    /// A record has been inserted. Clients may choose it once all records before it have been inserted.
    fn inserted(&self, record: u64) {
        let mut beyond = self.beyond.borrow_mut();
        beyond.insert(record);
        while beyond.remove(&self.inserted.get()) {
            self.inserted.set(self.inserted.get() + 1);
        }
    }

    fn request(&self, direction: Direction, pages: Range<u64>) -> Request {
        let page_size = self.spec.page_size;
        Request { direction, offset: pages.start * page_size, bytes: (pages.end - pages.start) * page_size }
    }

    /// Reads pages that the cache does not hold.
    async fn read(&self, pages: Range<u64>) -> Result<(), Over> {
        let mut missing: Vec<Range<u64>> = Vec::new();
        for page in pages {
            if self.cache.borrow_mut().hit(page) {
                continue;
            }
            match missing.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => missing.push(page..page + 1),
            }
        }
        if missing.is_empty() {
            self.client.served_from_memory().await;
            return Ok(());
        }
        self.client.issue(missing.iter().map(|pages| self.request(Direction::Read, pages.clone())))?.await;
        let mut cache = self.cache.borrow_mut();
        missing.into_iter().flatten().for_each(|page| cache.insert(page));
        Ok(())
    }

    async fn write(&self, pages: Range<u64>) -> Result<(), Over> {
        // Readers find the new data in the cache during the write.
        pages.clone().for_each(|page| self.cache.borrow_mut().insert(page));
        self.client.issue([self.request(Direction::Write, pages)])?.await;
        match self.spec.sync && self.client.info().volatile_cache {
            true => self.client.flush().await,
            false => Ok(()),
        }
    }

    /// Inserts the next record.
    async fn insert(&self) -> Result<(), Over> {
        let record = self.next.get();
        self.next.set(record + 1);
        let slot = self.table.slot(record);
        if self.table.shares_page(slot, record) {
            self.read(self.table.pages(slot)).await?;
        }
        self.write(self.table.pages(slot)).await?;
        self.inserted(record);
        Ok(())
    }
}

/// One client.
pub(super) struct Thread {
    setting: Rc<Setting>,
    chooser: Chooser,
    rng: Rng,
}

impl Thread {
    pub(super) fn new(setting: &Rc<Setting>, seed: Seed) -> Thread {
        Thread { setting: setting.clone(), chooser: Chooser::new(setting.spec.choice), rng: seed.rng() }
    }

    /// Runs operations until none is left.
    pub(super) async fn work(mut self) -> Result<(), Over> {
        loop {
            let operation = match self.setting.spec.phase {
                Phase::Run => self.setting.spec.mix.draw(&mut self.rng),
                Phase::Load if self.setting.next.get() < self.setting.records => Operation::Insert,
                Phase::Load => return Ok(()),
            };
            let begun = self.setting.client.sim().now();
            self.perform(operation).await?;
            self.setting.client.operation(operation.name(), begun);
        }
    }

    async fn perform(&mut self, operation: Operation) -> Result<(), Over> {
        if operation == Operation::Insert {
            return self.setting.insert().await;
        }
        let setting = &*self.setting;
        let record = self.chooser.next(&mut self.rng, setting.inserted.get(), setting.space);
        let slot = setting.table.slot(record);
        match operation {
            Operation::Scan => {
                let records = 1 + self.rng.below(setting.spec.max_scan);
                setting.read(setting.table.scan(slot, records, setting.inserted.get())).await
            }
            Operation::Read => setting.read(setting.table.pages(slot)).await,
            _ => {
                setting.read(setting.table.pages(slot)).await?;
                setting.write(setting.table.pages(slot)).await
            }
        }
    }
}
