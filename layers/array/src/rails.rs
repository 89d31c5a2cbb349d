//! Flash on Rails (Li 3.4.2): two drives with the same data, one of which is read while the other is written. After a
//! time the drives change roles. The host's memory keeps the writes that the read drive has missed until then. They
//! are then written to it during new writes, in the idle class.
//!
//! A write ends when the written drive has it. Blocks that the read drive has missed are read from the host's memory.
//! Reads therefore meet no writes on a drive, except those under way at its change of role, and collections that it
//! has begun.
//!
//! Left out: failures of a drive, which fail the command, and a full memory: its maximum is reported.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use nandscape_drive::command::{Command, Extent};
use nandscape_drive::{Breakdown, Completion, Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::array::ArrayError;
use crate::flight::{Flight, Sent, all, longer};
use crate::serve::{BACKGROUND, PASSED};

/// The most blocks of missed writes that one command carries over.
const RUN: u64 = 64;
/// Such commands at a time. Few make a change of roles take longer than the turn under a load of large writes, for each waits for
/// the collections in its way.
const DEPTH: usize = 64;

/// The time after which one that failed is tried again.
const RETRY: Span = Span::from_ms(10);

/// The data of a block in memory; none where drives keep none.
type Block = Option<Rc<[u8]>>;

struct Core {
    sim: Sim,
    info: DriveInfo,
    issuer: Issuer,
    paths: [Rc<dyn Drive>; 2],
    /// Its name as a layer in breakdowns.
    layer: &'static str,
    /// The drive that is read.
    reader: Cell<usize>,
    /// Writes that each drive has missed, by block.
    missed: [RefCell<BTreeMap<u64, Block>>; 2],
    /// Extents of writes under way: overlapping writes are executed one after the other.
    writing: RefCell<Vec<(u64, u64)>>,
    ended: Signal,
    swaps: Cell<u64>,
    most: Cell<u64>,
}

/// See the file.
pub struct Rails {
    core: Rc<Core>,
    paths: [Rc<dyn Drive>; 2],
}

impl Rails {
    /// Two drives of the same kind, which change roles every `swap`. In breakdowns the layer is called `layer`.
    ///
    /// # Errors
    /// When they differ.
    pub fn new(sim: &Sim, layer: &'static str, swap: Span, paths: [Rc<dyn Drive>; 2]) -> Result<Rc<Rails>, ArrayError> {
        let info = paths[0].info();
        if paths[1].info() != info {
            return Err(ArrayError("rails: the two drives differ; drives of one profile are valid".to_owned()));
        }
        let core = Core {
            sim: sim.clone(),
            info,
            issuer: Issuer::new(sim),
            paths: paths.clone(),
            layer,
            reader: Cell::new(0),
            missed: Default::default(),
            writing: RefCell::default(),
            ended: Signal::new(sim),
            swaps: Cell::new(0),
            most: Cell::new(0),
        };
        let core = Rc::new(core);
        sim.spawn(Core::swap_every(Rc::downgrade(&core), sim.clone(), swap));
        Ok(Rc::new(Rails { core, paths }))
    }

    /// The same through other queue pairs.
    pub fn over(&self, paths: [Rc<dyn Drive>; 2]) -> Rc<Rails> {
        Rc::new(Rails { core: self.core.clone(), paths })
    }

    /// Changes of roles so far.
    pub fn swaps(&self) -> u64 {
        self.core.swaps.get()
    }

    /// Whether no write is under way, and both drives have all.
    pub fn is_at_rest(&self) -> bool {
        let has_all = self.core.missed.iter().all(|missed| missed.borrow().is_empty());
        has_all && self.core.writing.borrow().is_empty()
    }

    /// The most bytes of missed writes of both drives in the host's memory.
    pub fn most_missed(&self) -> u64 {
        self.core.most.get() * u64::from(self.core.info.lba_bytes)
    }
}

impl Drive for Rails {
    fn info(&self) -> DriveInfo {
        self.core.info
    }

    fn submit(&self, io: Io) {
        let (core, paths, begun) = (self.core.clone(), self.paths.clone(), self.core.sim.now());
        self.core.sim.spawn(async move {
            let ended = match Command::parse(&io, &core.info) {
                Ok(command) => core.execute(&paths, command, &io).await,
                Err(status) => Err(status),
            };
            let mut completion = match ended {
                Ok(breakdown) => Completion { breakdown, ..Completion::of(Status::SUCCESS) },
                Err(status) => Completion::of(status),
            };
            let taken = core.sim.now() - begun;
            if !taken.is_zero() {
                completion.breakdown.charge_rest(core.layer, taken);
            }
            io.token.complete(completion);
        });
    }
}

type Ended = Result<Breakdown, Status>;

impl Core {
    async fn execute(&self, paths: &[Rc<dyn Drive>; 2], command: Command, io: &Io) -> Ended {
        let bytes = |extent: Extent| extent.blocks as usize * self.info.lba_bytes as usize;
        let attributes = io.command.cdw2.get() & PASSED;
        match command {
            Command::Read(extent) => self.read(paths, extent, &io.mem, attributes).await,
            Command::Verify(extent) => {
                let mut sum = Breakdown::new();
                for at in (0..extent.blocks).step_by(self.info.max_blocks as usize) {
                    let blocks = (extent.blocks - at).min(self.info.max_blocks);
                    let part = Extent { slba: extent.slba + u64::from(at), blocks };
                    sum += &self.read(paths, part, &self.memory(bytes(part)), attributes).await?;
                }
                Ok(sum)
            }
            Command::Compare(extent) => {
                let found = self.memory(bytes(extent));
                let read = self.read(paths, extent, &found, attributes).await?;
                let is_same = io.mem.part(0, bytes(extent)).to_vec() == found.to_vec();
                if is_same { Ok(read) } else { Err(Status::COMPARE_FAILURE) }
            }
            Command::Write(extent) => self.write(paths, extent, &io.command, &io.mem.part(0, self.len(extent))).await,
            Command::Zeroes(extent) => self.write(paths, extent, &io.command, &HostMem::none()).await,
            // Copies must agree, so a deallocated range would have to be zeros: it keeps its data.
            Command::Deallocate(_) | Command::Hints => Ok(Breakdown::new()),
            Command::Flush => {
                let mut entry = SubmissionEntry::io(IoOpcode::FLUSH, self.info.nsid);
                entry.cdw2 = attributes.into();
                self.both(paths, entry, &HostMem::none(), [true, true]).await
            }
        }
    }

    fn memory(&self, bytes: usize) -> HostMem {
        if self.info.keeps_data { HostMem::zeroed(bytes) } else { HostMem::none() }
    }

    fn len(&self, extent: Extent) -> usize {
        if self.info.keeps_data { extent.blocks as usize * self.info.lba_bytes as usize } else { 0 }
    }

    /// Reads missed blocks from memory, and the rest from the drive that is read.
    async fn read(&self, paths: &[Rc<dyn Drive>; 2], extent: Extent, mem: &HostMem, attributes: u32) -> Ended {
        let (end, lba) = (extent.slba + u64::from(extent.blocks), self.info.lba_bytes as usize);
        let offset = |block: u64| (block - extent.slba) as usize * lba;
        let mut flight = Flight::new(&self.sim, &self.issuer);
        let reader = self.reader.get();
        let kept: Vec<(u64, Block)> =
            self.missed[reader].borrow().range(extent.slba..end).map(|(block, data)| (*block, data.clone())).collect();
        let mut at = extent.slba;
        for next in kept.iter().map(|(block, _)| *block).chain([end]) {
            if next > at {
                let blocks = (next - at) as u32;
                let part = if mem.is_none() { HostMem::none() } else { mem.part(offset(at), blocks as usize * lba) };
                let mut entry = SubmissionEntry::blocks(IoOpcode::READ, self.info.nsid, at, blocks);
                entry.cdw2 = attributes.into();
                flight.send(Sent { member: reader, drive: reader }, &*paths[reader], entry, part);
            }
            at = next + 1;
        }
        for (block, data) in kept {
            if !mem.is_none() {
                match data {
                    Some(data) => mem.write(offset(block), &data),
                    None => mem.clear(offset(block), lba),
                }
            }
        }
        finish(flight).await
    }

    async fn write(
        &self,
        paths: &[Rc<dyn Drive>; 2],
        extent: Extent,
        command: &SubmissionEntry,
        mem: &HostMem,
    ) -> Ended {
        let (start, end) = (extent.slba, extent.slba + u64::from(extent.blocks));
        self.begin_write(start, end).await;
        let entry = SubmissionEntry {
            cdw12: command.cdw12,
            cdw2: (command.cdw2.get() & PASSED).into(),
            ..SubmissionEntry::blocks(IoOpcode(command.opcode), self.info.nsid, start, extent.blocks)
        };
        let writer = 1 - self.reader.get();
        let mut to = [false; 2];
        to[writer] = true;
        let ended = self.both(paths, entry, mem, to).await;
        if ended.is_ok() {
            let lba = self.info.lba_bytes as usize;
            let [mut has, mut lacks] = [writer, 1 - writer].map(|drive| self.missed[drive].borrow_mut());
            for block in start..end {
                let part = mem.part((block - start) as usize * lba, lba);
                has.remove(&block);
                lacks.insert(block, (!part.is_none()).then(|| Rc::from(part.to_vec())));
            }
            self.most.set(self.most.get().max((has.len() + lacks.len()) as u64));
        }
        self.end_write(start, end);
        ended
    }

    /// Waits until no write that overlaps is under way.
    async fn begin_write(&self, start: u64, end: u64) {
        loop {
            let overlaps = |(from, to): &(u64, u64)| start < *to && *from < end;
            if !self.writing.borrow().iter().any(overlaps) {
                self.writing.borrow_mut().push((start, end));
                return;
            }
            self.ended.changed().await;
        }
    }

    fn end_write(&self, start: u64, end: u64) {
        let mut writing = self.writing.borrow_mut();
        if let Some(at) = writing.iter().position(|of| *of == (start, end)) {
            writing.swap_remove(at);
        }
        drop(writing);
        self.ended.notify();
    }

    async fn both(&self, paths: &[Rc<dyn Drive>; 2], entry: SubmissionEntry, mem: &HostMem, to: [bool; 2]) -> Ended {
        let mut flight = Flight::new(&self.sim, &self.issuer);
        for (number, drive) in paths.iter().enumerate().filter(|(number, _)| to[*number]) {
            flight.send(Sent { member: number, drive: number }, &**drive, entry, mem.clone());
        }
        finish(flight).await
    }

    async fn swap_every(core: Weak<Core>, sim: Sim, swap: Span) {
        loop {
            sim.sleep(swap).await;
            let Some(core) = core.upgrade() else { return };
            core.swap().await;
        }
    }

    /// Changes roles, and carries over the writes that the read drive has missed.
    async fn swap(&self) {
        let writer = self.reader.get();
        self.reader.set(1 - writer);
        self.swaps.set(self.swaps.get() + 1);
        loop {
            let runs = self.runs(writer);
            if runs.is_empty() {
                break;
            }
            all(runs.into_iter().map(|(start, end)| self.carry_over(writer, start, end)).collect()).await;
        }
    }

    /// Blocks in a row that a drive has missed.
    fn runs(&self, drive: usize) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (block, _) in self.missed[drive].borrow().iter() {
            let is_full = runs.len() == DEPTH;
            match runs.last_mut() {
                Some((start, end)) if *end == *block && *end - *start < RUN => *end += 1,
                _ if is_full => break,
                _ => runs.push((*block, *block + 1)),
            }
        }
        runs
    }

    async fn carry_over(&self, drive: usize, start: u64, end: u64) {
        self.begin_write(start, end).await;
        // A new write may have taken blocks out meanwhile: the rest is carried over block by block.
        let kept: Vec<(u64, Block)> =
            self.missed[drive].borrow().range(start..end).map(|(block, data)| (*block, data.clone())).collect();
        if kept.len() as u64 == end - start {
            let lba = self.info.lba_bytes as usize;
            let mut bytes = Vec::new();
            for (_, data) in kept.iter().filter(|_| self.info.keeps_data) {
                match data {
                    Some(data) => bytes.extend_from_slice(data),
                    None => bytes.resize(bytes.len() + lba, 0),
                }
            }
            let mem = if self.info.keeps_data { HostMem::from_bytes(&bytes) } else { HostMem::none() };
            let blocks = (end - start) as u32;
            let mut entry = SubmissionEntry::blocks(IoOpcode::WRITE, self.info.nsid, start, blocks);
            entry.cdw2 = BACKGROUND.into();
            let mut to = [false; 2];
            to[drive] = true;
            // A failed write is retried with the next runs.
            match self.both(&self.paths, entry, &mem, to).await {
                Ok(_) => (start..end).for_each(|block| drop(self.missed[drive].borrow_mut().remove(&block))),
                Err(_) => self.sim.sleep(RETRY).await,
            }
        }
        self.end_write(start, end);
    }
}

/// Waits for all commands: the longest, or the first failure.
async fn finish(mut flight: Flight<'_>) -> Ended {
    let (mut sum, mut failure) = (Breakdown::new(), None);
    while !flight.is_empty() {
        let Some((_, ended)) = flight.next(None).await else { continue };
        match ended.status.is_success() {
            true => sum = longer(sum, ended.breakdown),
            false => failure = failure.or(Some(ended.status)),
        }
    }
    failure.map_or(Ok(sum), Err)
}
