//! The drive: a read whose pages are in memory ends after a copy. Any other reads the missing pages from the drive
//! below, or is rejected at once.
//!
//! By default, the pages of a rejected read are still loaded, without a deadline. Otherwise a tenant whose pages were
//! evicted would ask other replicas for ever, and never get its pages back.

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::rc::{Rc, Weak};

use nandscape_drive::command::{Command, Extent};
use nandscape_drive::io::Sink;
use nandscape_drive::{
    Breakdown, CommandRef, Completion, Drive, DriveInfo, Expected, Foresight, HostMem, Io, Issuer, Token,
};
use nandscape_host_block::{Accuracy, Busy, Request};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::vendor::{BUSY, FAST_FAIL, PREDICT_ONLY};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::config::Config;
use crate::loads::{Load, Loads};
use crate::pages::{PAGE, Pages};
use crate::predict::{Form, Sought};
use crate::writes::{Writes, noted};

/// The cache's default name in breakdowns.
pub const LAYER: &str = "cache";

/// Why a drive can have no cache.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cache: {0}")]
pub struct CacheError(String);

/// The cache's counters.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Reads with all pages in memory.
    pub hits: u64,
    /// Reads that had to wait for the drive below, or were rejected.
    pub misses: u64,
    /// Pages read from the drive below.
    pub loaded: u64,
    /// Pages evicted for others, or when the limit fell.
    pub evicted: u64,
    /// Reads passed to the drive below unchanged.
    pub passed: u64,
}

/// See the file.
pub struct Cache {
    sim: Sim,
    config: Config,
    below: Rc<dyn Drive>,
    /// What predicts the reads of missing pages.
    foresight: Option<Rc<dyn Foresight>>,
    form: Form,
    /// Of reads of blocks that cannot be read as pages.
    issuer: Issuer,
    pages: RefCell<Pages>,
    loads: RefCell<Loads>,
    writes: RefCell<Writes>,
    flights: RefCell<Slots<Flight>>,
    counters: Cell<Counters>,
    counted: RefCell<Accuracy>,
    me: Weak<Cache>,
}

/// A command of the drive below.
enum Flight {
    Load(Rc<Load>),
    Write { token: Token, pages: Option<RangeInclusive<u64>>, extent: Option<Extent>, mem: HostMem },
}

/// A read that waits for pages.
struct Reading {
    token: Token,
    entry: SubmissionEntry,
    mem: HostMem,
    extent: Extent,
    request: Request,
    /// Whether it is served in any case.
    only: bool,
    /// The predicted latency from submission to completion, and the part of it spent waiting.
    predicted: Option<(Span, Span)>,
}

impl Cache {
    /// An empty cache over a drive. `foresight` is that of the node below: it predicts the reads of missing pages. Without it, deadlines are
    /// passed on, and the drive below may reject.
    ///
    /// # Errors
    /// When the drive's blocks do not fit into pages.
    pub fn over(
        sim: &Sim,
        config: Config,
        below: Rc<dyn Drive>,
        foresight: Option<Rc<dyn Foresight>>,
    ) -> Result<Rc<Cache>, CacheError> {
        let info = below.info();
        let lba_bytes = u64::from(info.lba_bytes);
        let bad = |problem: String| Err(CacheError(problem));
        if info.metadata_bytes > 0 {
            return bad(format!("blocks with {} bytes of metadata; blocks without are possible", info.metadata_bytes));
        }
        if !PAGE.is_multiple_of(lba_bytes) {
            return bad(format!("blocks of {lba_bytes} bytes; sizes that divide a page of {PAGE} bytes are possible"));
        }
        if u64::from(info.max_blocks) * lba_bytes < PAGE {
            return bad(format!(
                "commands of {} blocks at the most; a page of {PAGE} bytes is possible",
                info.max_blocks
            ));
        }
        let pages = Pages::new(config.pages(), config.replacement);
        Ok(Rc::new_cyclic(|me| Cache {
            sim: sim.clone(),
            config,
            below,
            foresight,
            form: Form { blocks: info.blocks, lba_bytes },
            issuer: Issuer::new(sim),
            pages: RefCell::new(pages),
            loads: RefCell::default(),
            writes: RefCell::default(),
            flights: RefCell::default(),
            counters: Cell::default(),
            counted: RefCell::default(),
            me: me.clone(),
        }))
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.counters.get()
    }

    /// How right its predictions were.
    pub fn counted(&self) -> Accuracy {
        self.counted.borrow().clone()
    }

    /// Counts from the beginning.
    pub fn count_anew(&self) {
        self.counted.take();
        self.counters.take();
    }

    /// Pages in memory.
    pub fn pages(&self) -> usize {
        self.pages.borrow().len()
    }

    /// Whether no command is under way below.
    pub fn is_at_rest(&self) -> bool {
        self.flights.borrow().is_empty()
    }

    /// Removes the pages from memory, in eviction order, with their contents if drives keep data.
    pub fn take_pages(&self) -> Vec<(u64, Option<Box<[u8]>>)> {
        self.pages.borrow_mut().take_all()
    }

    /// Inserts a page as if it was just read: its address in pages, and its contents. Pages beyond the end of the
    /// drive, and pages being written, are ignored.
    pub fn put_page(&self, page: u64, contents: Option<Box<[u8]>>) {
        let end = self.form.blocks * self.form.lba_bytes / PAGE;
        if page >= end || self.writes.borrow().has(page) {
            return;
        }
        // Pages saved without data read as zeros.
        let zeros = || vec![0; PAGE as usize].into_boxed_slice();
        let contents = self.below.info().keeps_data.then(|| contents.unwrap_or_else(zeros));
        self.pages.borrow_mut().insert(page, contents);
    }

    /// Sets the memory in bytes, at least a page, when memory is taken for other uses or returned.
    pub fn set_memory(&self, bytes: u64) {
        let gone = self.pages.borrow_mut().set_limit(usize::try_from(bytes / PAGE).unwrap_or(usize::MAX));
        self.count(|counters| counters.evicted += gone);
    }

    /// Whether a read would be in time if it were submitted now (addrcheck, Li 3.1.8). If not, and if the settings
    /// say so, its pages are still loaded, as for a rejected read.
    ///
    /// # Errors
    /// The read would be late.
    pub fn addrcheck(&self, slba: u64, blocks: u32, deadline: Span) -> Result<(), Busy> {
        let is_inside = slba.checked_add(blocks.into()).is_some_and(|end| end <= self.form.blocks);
        if deadline.is_zero() || blocks == 0 || !is_inside {
            return Ok(());
        }
        let extent = Extent { slba, blocks };
        let sought = self.seek(extent);
        let Some((latency, wait)) = self.predict(extent, &sought) else { return Ok(()) };
        if latency <= deadline {
            return Ok(());
        }
        self.load_rejected(extent, 0);
        Err(Busy { wait, latency, deadline })
    }

    fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    fn seek(&self, extent: Extent) -> Sought {
        let most = u64::from(self.below.info().max_blocks) * self.form.lba_bytes / PAGE;
        Sought::of(self.form.pages(extent), most, &self.pages.borrow(), &self.loads.borrow())
    }

    fn predict(&self, extent: Extent, sought: &Sought) -> Option<(Span, Span)> {
        let (latency, wait) = sought.predict(self.foresight.as_deref(), &self.form, self.sim.now())?;
        Some((latency + self.copying(extent), wait))
    }

    fn copying(&self, extent: Extent) -> Span {
        let pages = self.form.pages(extent);
        self.config.hit * (pages.end() - pages.start() + 1)
    }

    fn is_written(&self, extent: Extent) -> bool {
        let writes = self.writes.borrow();
        self.form.pages(extent).any(|page| writes.has(page))
    }

    fn read(&self, io: Io, extent: Extent) {
        let Io { command: entry, mem, token } = io;
        let request = Request::of(&entry, None, self.sim.now());
        let only = self.config.predict_only || entry.cdw2.get() & PREDICT_ONLY != 0;
        let sought = self.seek(extent);
        let predicted = self.predict(extent, &sought);
        let is_late = request.deadline.zip(predicted).is_some_and(|(deadline, (latency, _))| latency > deadline);
        self.judged(&request, is_late, only);
        let is_hit = sought.loading.is_empty() && sought.missing.is_empty();
        self.count(|counters| match is_hit {
            true => counters.hits += 1,
            false => counters.misses += 1,
        });
        if is_late && !only {
            let wait = predicted.map_or(Span::ZERO, |(_, wait)| wait);
            self.load_rejected(extent, entry.cdw2.get());
            return self.reject(token, &request, wait, self.config.reject);
        }
        self.copy_held(extent, &mem);
        let deadline = if only { 0 } else { entry.cdw3.get() };
        let loads = self.load_all(sought, entry.cdw2.get(), deadline);
        let reading = Reading { token, entry, mem, extent, request, only, predicted };
        let me = self.me.upgrade().expect("a cache that is used");
        self.sim.spawn(async move { me.wait_for(reading, loads).await });
    }

    fn judged(&self, request: &Request, is_late: bool, only: bool) {
        let mut counted = self.counted.borrow_mut();
        counted.reads += 1;
        counted.judged += u64::from(request.deadline.is_some());
        counted.rejected += u64::from(is_late && !only);
        counted.attached += u64::from(is_late && only);
    }

    /// Rejects a read after some time.
    fn reject(&self, token: Token, request: &Request, wait: Span, takes: Span) {
        let (sim, began, layer) = (self.sim.clone(), request.arrived, self.config.layer);
        self.sim.spawn(async move {
            sim.sleep(takes).await;
            let us = u32::try_from(wait.ns().div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
            let mut completion = Completion { dw0: us, ..Completion::of(BUSY) };
            completion.breakdown.charge_rest(layer, sim.now() - began);
            token.complete(completion);
        });
    }

    /// Loads the pages of a rejected read for later readers.
    fn load_rejected(&self, extent: Extent, cdw2: u32) {
        if self.config.load_rejected && !self.is_written(extent) {
            let sought = self.seek(extent);
            self.load_all(sought, cdw2 & !(PREDICT_ONLY | FAST_FAIL), 0);
        }
    }

    /// Copies the pages in memory.
    fn copy_held(&self, extent: Extent, mem: &HostMem) {
        let mut held = self.pages.borrow_mut();
        for page in self.form.pages(extent) {
            let Some(contents) = held.use_page(page) else { continue };
            if let Some(bytes) = contents.as_ref().filter(|_| !mem.is_none()) {
                let (from, at, len) = self.form.part(page, extent);
                mem.write(at, &bytes[from..from + len]);
            }
        }
    }

    /// Begins to read the missing pages. Returns all loads of the read's pages.
    fn load_all(&self, sought: Sought, cdw2: u32, deadline_us: u32) -> Vec<Rc<Load>> {
        let mut loads = sought.loading;
        for run in sought.missing {
            loads.push(self.load(run, cdw2, deadline_us));
        }
        loads
    }

    fn load(&self, pages: RangeInclusive<u64>, cdw2: u32, deadline_us: u32) -> Rc<Load> {
        let (extent, info) = (self.form.blocks(pages.clone()), self.below.info());
        let expected = self.foresight.as_ref().and_then(|foresight| foresight.expected(extent.slba, extent.blocks));
        let until = expected.map(|expected| self.sim.now() + expected.latency);
        let bytes = (pages.end() - pages.start() + 1) * PAGE;
        let mem = if info.keeps_data { HostMem::zeroed(bytes as usize) } else { HostMem::none() };
        let load = Load::new(&self.sim, pages, mem.clone(), until, deadline_us > 0);
        // A load of a page that is being written may return old or new data: only its present waiters may use it.
        if !self.is_written(extent) {
            self.loads.borrow_mut().begin(&load);
        }
        let mut entry = SubmissionEntry::blocks(IoOpcode::READ, info.nsid, extent.slba, extent.blocks);
        (entry.cdw2, entry.cdw3) = (cdw2.into(), deadline_us.into());
        let part = if mem.is_none() { mem } else { mem.part(0, extent.blocks as usize * info.lba_bytes as usize) };
        self.send(entry, part, Flight::Load(load.clone()));
        load
    }

    fn send(&self, entry: SubmissionEntry, mem: HostMem, flight: Flight) {
        let key = self.flights.borrow_mut().insert(flight);
        let me: Rc<dyn Sink> = self.me.upgrade().expect("a cache that is used");
        self.below.submit(Io { command: entry, mem, token: Token::new(me, key.to_bits()) });
    }

    /// A load has ended: its pages are in memory from now on, unless they were written meanwhile.
    fn loaded(&self, load: &Rc<Load>, completion: Completion) {
        let own = self.loads.borrow_mut().end(load);
        if completion.status.is_success() {
            let mut gone = 0;
            for page in &own {
                let at = ((page - load.pages.start()) * PAGE) as usize;
                let contents = (!load.mem.is_none()).then(|| load.mem.part(at, PAGE as usize).to_vec().into());
                gone += self.pages.borrow_mut().insert(*page, contents);
            }
            self.count(|counters| {
                counters.evicted += gone;
                counters.loaded += own.len() as u64;
            });
        }
        load.end(completion);
    }

    /// Waits until all pages of a read are loaded.
    async fn wait_for(self: Rc<Self>, reading: Reading, mut loads: Vec<Rc<Load>>) {
        let (mut status, mut below, mut is_of_more) = (Status::SUCCESS, Breakdown::new(), false);
        while let Some(load) = loads.pop() {
            let ended = load.wait().await;
            // Before this read arrived, the load of another read had already taken time.
            if load.began >= reading.request.arrived && ended.breakdown.total() > below.total() {
                below = ended.breakdown;
            }
            match ended.status.meaning() {
                Status::SUCCESS => self.copy_loaded(&load, &reading),
                BUSY if reading.request.deadline.is_some() && !reading.only => {
                    self.counted.borrow_mut().cancelled += 1;
                    self.load_rejected(reading.extent, reading.entry.cdw2.get());
                    let wait = Span::from_us(ended.dw0.into());
                    return self.reject(reading.token, &reading.request, wait, Span::ZERO);
                }
                // Another one's deadline: this one waits.
                BUSY if load.has_deadline => loads.push(self.load(load.pages.clone(), 0, 0)),
                _ => {
                    status = ended.status;
                    let (own, all) = (reading.extent, self.form.blocks(load.pages.clone()));
                    let end = |extent: Extent| extent.slba + u64::from(extent.blocks);
                    is_of_more |= all.slba < own.slba || end(all) > end(own);
                }
            }
        }
        if is_of_more && status.meaning() == Status::UNRECOVERED_READ_ERROR {
            // Another block of the loads may be the one that cannot be read.
            let entry = SubmissionEntry { cdw3: 0.into(), ..reading.entry };
            let ended = self.issuer.execute(&*self.below, entry, reading.mem.clone()).await;
            below += &ended.breakdown;
            status = ended.status;
        }
        let copying = self.copying(reading.extent);
        self.sim.sleep(copying).await;
        self.end(reading, status, below);
    }

    fn copy_loaded(&self, load: &Load, Reading { mem, extent, .. }: &Reading) {
        if mem.is_none() || load.mem.is_none() {
            return;
        }
        let wanted = self.form.pages(*extent);
        for page in load.pages.clone().filter(|page| wanted.contains(page)) {
            let (from, at, len) = self.form.part(page, *extent);
            let begin = ((page - load.pages.start()) * PAGE) as usize + from;
            mem.write(at, &load.mem.part(begin, len).to_vec());
        }
    }

    /// Ends a read; `below` is the breakdown of the longest of its own loads.
    fn end(&self, reading: Reading, mut status: Status, below: Breakdown) {
        let Reading { token, mem, request, predicted, .. } = reading;
        if mem.has_failed() && status.is_success() {
            status = Status::DATA_TRANSFER_ERROR;
        }
        let took = self.sim.now() - request.arrived;
        let mut completion = Completion { breakdown: below, ..Completion::of(status) };
        if let Some((deadline, (latency, wait))) = request.deadline.zip(predicted).filter(|_| status.is_success()) {
            self.counted.borrow_mut().compare(latency, took, deadline);
            if latency > deadline {
                completion.dw0 = u32::try_from(wait.ns().div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
            }
        }
        completion.breakdown.charge_rest(self.config.layer, took);
        token.complete(completion);
    }

    /// The blocks that a command names in a row; `None` if they are not all of the drive.
    fn named(&self, entry: &SubmissionEntry) -> Option<Extent> {
        let (slba, blocks) = (entry.slba(), entry.blocks_in_a_row());
        let is_inside = slba.checked_add(blocks.into()).is_some_and(|end| end <= self.form.blocks);
        (blocks > 0 && is_inside).then_some(Extent { slba, blocks })
    }

    /// A command that may change pages; `extent` is its extent, if it writes exactly one.
    fn write(&self, io: Io, extent: Option<Extent>) {
        let pages = extent.and_then(|extent| noted(self.form.pages(extent)));
        let all = pages.clone().unwrap_or(0..=u64::MAX);
        self.pages.borrow_mut().forget(all.clone());
        self.loads.borrow_mut().forget(all);
        self.writes.borrow_mut().begin(pages.clone());
        let keeps = IoOpcode(io.command.opcode) == IoOpcode::WRITE;
        let flight = Flight::Write { token: io.token, pages, extent: extent.filter(|_| keeps), mem: io.mem.clone() };
        self.send(io.command, io.mem, flight);
    }

    /// Whole pages that a write has written alone are in memory from now on.
    fn written(&self, alone: &[u64], extent: Extent, mem: &HostMem) {
        let keeps_data = self.below.info().keeps_data;
        if keeps_data && mem.is_none() || mem.has_failed() {
            return;
        }
        let mut gone = 0;
        for page in alone {
            let (_, at, len) = self.form.part(*page, extent);
            if len as u64 == PAGE {
                let contents = keeps_data.then(|| mem.part(at, len).to_vec().into());
                gone += self.pages.borrow_mut().insert(*page, contents);
            }
        }
        self.count(|counters| counters.evicted += gone);
    }
}

impl Sink for Cache {
    fn complete(&self, tag: u64, completion: Completion) {
        let flight = self.flights.borrow_mut().remove(Key::from_bits(tag));
        match flight {
            Some(Flight::Load(load)) => self.loaded(&load, completion),
            Some(Flight::Write { token, pages, extent, mem }) => {
                let alone = self.writes.borrow_mut().end(pages);
                if let Some(extent) = extent.filter(|_| completion.status.is_success()) {
                    self.written(&alone, extent, &mem);
                }
                token.complete(completion);
            }
            None => {}
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// Bits of CDW12 other than the number of blocks: a read with any of them, such as FUA, is passed to the drive below.
const SPECIAL: u32 = 0xffff_0000;

impl Foresight for Cache {
    fn expected(&self, slba: u64, blocks: u32) -> Option<Expected> {
        let extent = Extent { slba, blocks };
        if self.is_written(extent) {
            return self.foresight.as_ref()?.expected(slba, blocks);
        }
        let (latency, wait) = self.predict(extent, &self.seek(extent))?;
        Some(Expected { latency, wait })
    }
}

impl Drive for Cache {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let opcode = IoOpcode(io.command.opcode);
        match Command::parse(&io, &self.below.info()) {
            Ok(Command::Read(extent)) if io.command.cdw12.get() & SPECIAL == 0 && !self.is_written(extent) => {
                self.read(io, extent);
            }
            Ok(Command::Write(extent) | Command::Zeroes(extent)) => self.write(io, Some(extent)),
            Ok(Command::Deallocate(_)) => self.write(io, None),
            Err(_) if opcode == IoOpcode::WRITE_UNCORRECTABLE => {
                let extent = self.named(&io.command);
                self.write(io, extent);
            }
            // An unknown command may change any page, and so may a Copy, whose list the host may change meanwhile.
            Err(_) if ![IoOpcode::READ, IoOpcode::COMPARE, IoOpcode::VERIFY, IoOpcode::FLUSH].contains(&opcode) => {
                self.write(io, None);
            }
            _ => {
                self.count(|counters| counters.passed += u64::from(opcode == IoOpcode::READ));
                self.below.submit(io);
            }
        }
    }

    /// Reads that wait for pages are not cancelled: others may wait for the same ones.
    fn cancel(&self, command: CommandRef) -> bool {
        let is_it = |flight: &Flight| matches!(flight, Flight::Write { token, .. } if token.is_of(command));
        let found = self.flights.borrow().find(is_it);
        let Some(key) = found else { return self.below.cancel(command) };
        let me: Rc<dyn Sink> = self.me.upgrade().expect("a cache that is used");
        self.below.cancel(CommandRef::new(&me, key.to_bits()))
    }
}
