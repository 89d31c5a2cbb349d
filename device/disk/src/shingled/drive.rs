//! The drive: commands one at a time, in order of arrival. A write goes to the media cache; if the cache is full, bands are
//! cleaned first. After some idle time, bands are cleaned until a command arrives or the cache holds no newest copy.
//!
//! Every access to the platters has the overhead of the controller. In a command's [`Breakdown`], `queue` is the time behind
//! other commands, and behind cleanings ([`cause::GC`]), including one that the command's own write needs.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::command::{Command, Extent};
use nandscape_drive::shingle::{CleaningStep, CleaningWatch, ShingleMap};
use nandscape_drive::{Breakdown, CommandRef, Completion, Drive, DriveInfo, HostMem, Io, Stage};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::Status;

use super::log::Log;
use super::spec::{MOST, ShingledSpec};
use crate::data::Data;
use crate::mechanics::Mechanics;
use crate::spec::{SECTOR, SpecError};

/// Counters of cleaning.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Cleanings {
    /// Rewritten bands.
    pub bands: u64,
    /// Of those, the cleanings that a write had to wait for.
    pub forced: u64,
    /// Time that they took.
    pub took: Span,
}

/// See the file.
pub struct Shingled {
    sim: Sim,
    spec: ShingledSpec,
    mechanics: RefCell<Mechanics>,
    data: RefCell<Data>,
    log: RefCell<Log>,
    queue: RefCell<VecDeque<Waiting>>,
    came: Signal,
    /// When the last command ended.
    idle_since: Cell<Time>,
    watch: RefCell<Option<Rc<dyn CleaningWatch>>>,
    cleanings: Cell<Cleanings>,
    /// Since when a band is being cleaned.
    cleans_since: Cell<Option<Time>>,
}

struct Waiting {
    io: Io,
    arrived: Time,
    /// Time that cleanings had taken up to that point.
    cleaned: Span,
}

impl Shingled {
    /// An empty disk, which serves from now on.
    ///
    /// # Errors
    /// If the data sheet is invalid.
    pub fn new(sim: &Sim, spec: &ShingledSpec) -> Result<Rc<Shingled>, SpecError> {
        spec.check()?;
        let disk = Rc::new(Shingled {
            sim: sim.clone(),
            mechanics: RefCell::new(Mechanics::new(spec.disk.clone())),
            data: RefCell::default(),
            log: RefCell::new(Log::new(spec.cache_sectors())),
            queue: RefCell::default(),
            came: Signal::new(sim),
            idle_since: Cell::new(sim.now()),
            watch: RefCell::default(),
            cleanings: Cell::default(),
            cleans_since: Cell::new(None),
            spec: spec.clone(),
        });
        sim.spawn(disk.clone().serve_in_turn());
        Ok(disk)
    }

    /// Its data sheet.
    pub fn spec(&self) -> &ShingledSpec {
        &self.spec
    }

    /// The counters of cleaning.
    pub fn cleanings(&self) -> Cleanings {
        self.cleanings.get()
    }

    /// Reports cleanings from now on.
    pub fn watch(&self, watch: Rc<dyn CleaningWatch>) {
        self.watch.replace(Some(watch));
    }

    async fn serve_in_turn(self: Rc<Self>) {
        loop {
            let next = self.queue.borrow_mut().pop_front();
            match next {
                Some(waiting) => {
                    self.serve(waiting).await;
                    self.idle_since.set(self.sim.now());
                }
                None if self.log.borrow().is_empty() => self.came.changed().await,
                None => self.idle().await,
            }
        }
    }

    /// Waits for a command, or cleans a band when no command has arrived for long enough.
    async fn idle(self: &Rc<Self>) {
        let begins = self.idle_since.get() + self.spec.idle;
        if self.sim.now() >= begins {
            self.clean(false).await;
            return;
        }
        let (disk, left) = (self.clone(), begins.since(self.sim.now()));
        self.sim.spawn(async move {
            disk.sim.sleep_in_background(left).await;
            disk.came.notify();
        });
        self.came.changed().await;
    }

    async fn serve(&self, Waiting { io, arrived, cleaned }: Waiting) {
        let mut breakdown = Breakdown::new();
        let command = Command::parse(&io, &self.info());
        if let Ok(Command::Write(extent)) = &command {
            self.make_room(extent.blocks.into()).await;
        }
        self.waited(arrived, cleaned, &mut breakdown);
        let mut status = match command {
            Ok(command) => self.execute(command, &io.mem, &mut breakdown).await,
            Err(status) => {
                self.overhead(&mut breakdown).await;
                status
            }
        };
        if io.mem.has_failed() && status.is_success() {
            status = Status::DATA_TRANSFER_ERROR;
        }
        io.token.complete(Completion { breakdown, ..Completion::of(status) });
    }

    /// Time that cleanings have taken so far.
    fn cleaned(&self) -> Span {
        let under_way = self.cleans_since.get().map_or(Span::ZERO, |since| self.sim.now() - since);
        self.cleanings.get().took + under_way
    }

    /// Accounts the wait of a command, for cleanings and for other commands.
    fn waited(&self, arrived: Time, cleaned: Span, breakdown: &mut Breakdown) {
        let (waited, by_cleanings) = (self.sim.now() - arrived, self.cleaned() - cleaned);
        for (cause, span) in [(cause::GC, by_cleanings), (cause::HOST_READ, waited.saturating_sub(by_cleanings))] {
            if !span.is_zero() {
                breakdown.waits(Stage::Queue).add(cause, span);
            }
        }
    }

    async fn overhead(&self, breakdown: &mut Breakdown) {
        breakdown.spend(Stage::Firmware, self.spec.disk.overhead);
        self.sim.sleep(self.spec.disk.overhead).await;
    }

    async fn execute(&self, command: Command, mem: &HostMem, breakdown: &mut Breakdown) -> Status {
        match command {
            Command::Read(extent) => {
                self.read(extent, breakdown).await;
                if self.spec.disk.keeps_data && !mem.is_none() {
                    self.data.borrow().read(extent, mem);
                }
            }
            Command::Verify(extent) => self.read(extent, breakdown).await,
            Command::Compare(extent) => {
                self.read(extent, breakdown).await;
                if !self.data.borrow().is_same(extent, mem) {
                    return Status::COMPARE_FAILURE;
                }
            }
            Command::Write(extent) => self.write(extent, mem, breakdown).await,
            Command::Zeroes(extent) => self.zero(extent, breakdown).await,
            Command::Deallocate(_) | Command::Hints | Command::Flush => self.overhead(breakdown).await,
        }
        Status::SUCCESS
    }

    async fn read(&self, extent: Extent, breakdown: &mut Breakdown) {
        let mut pieces = Vec::new();
        self.pieces(extent.slba, extent.blocks, &mut |place, sectors| pieces.push((place, sectors)));
        for (place, sectors) in pieces {
            self.access(Extent { slba: place, blocks: sectors }, false, breakdown).await;
        }
    }

    async fn write(&self, extent: Extent, mem: &HostMem, breakdown: &mut Breakdown) {
        let place = self.log.borrow_mut().append(extent.slba, extent.blocks.into());
        self.access(Extent { slba: place, blocks: extent.blocks }, true, breakdown).await;
        if self.spec.disk.keeps_data {
            self.data.borrow_mut().write(extent, mem);
        }
    }

    /// Zeros of any length, in parts that have room in the cache.
    async fn zero(&self, extent: Extent, breakdown: &mut Breakdown) {
        let end = extent.slba + u64::from(extent.blocks);
        for slba in (extent.slba..end).step_by(MOST as usize) {
            let blocks = u64::from(MOST).min(end - slba);
            let (begun, cleaned) = (self.sim.now(), self.cleaned());
            self.make_room(blocks).await;
            self.waited(begun, cleaned, breakdown);
            self.write(Extent { slba, blocks: blocks as u32 }, &HostMem::none(), breakdown).await;
        }
    }

    async fn make_room(&self, blocks: u64) {
        loop {
            // Not across the await.
            let has_room = self.log.borrow().has_room(blocks);
            if has_room {
                return;
            }
            self.clean(true).await;
        }
    }

    /// One access to the platters.
    async fn access(&self, extent: Extent, is_write: bool, breakdown: &mut Breakdown) {
        self.overhead(breakdown).await;
        let access = self.mechanics.borrow_mut().access(extent, is_write, self.sim.now());
        breakdown.spend(Stage::Array, access.seek + access.rotation);
        breakdown.spend(Stage::Transfer, access.transfer);
        self.sim.sleep(access.seek + access.rotation + access.transfer).await;
    }

    /// Cleans the band of the oldest write.
    async fn clean(&self, is_forced: bool) {
        let Some(oldest) = self.log.borrow().oldest() else { return };
        let band = oldest / self.spec.band_sectors();
        let steps = self.steps(band);
        let (begun, watch) = (self.sim.now(), self.watch.borrow().clone());
        self.cleans_since.set(Some(begun));
        if let Some(watch) = &watch {
            watch.began(&steps);
        }
        for step in steps {
            let extent = Extent { slba: step.place, blocks: step.sectors };
            self.access(extent, step.is_write, &mut Breakdown::new()).await;
            if let Some(watch) = &watch {
                watch.step_ended();
            }
        }
        self.log.borrow_mut().remove(self.range(band));
        self.cleans_since.set(None);
        let mut cleanings = self.cleanings.get();
        cleanings.bands += 1;
        cleanings.forced += u64::from(is_forced);
        cleanings.took += self.sim.now() - begun;
        self.cleanings.set(cleanings);
    }

    /// The logical blocks of a band.
    fn range(&self, band: u64) -> std::ops::Range<u64> {
        band * self.spec.band_sectors()..(band + 1) * self.spec.band_sectors()
    }

    /// The band is read, then its data in the cache, by place, and the band is written.
    fn steps(&self, band: u64) -> Vec<CleaningStep> {
        let place = self.spec.cache_sectors() + self.range(band).start;
        let whole = |is_write| CleaningStep { is_write, place, sectors: self.spec.band_sectors() as u32 };
        let log = self.log.borrow();
        let cached = log.pieces(self.range(band));
        let mut steps: Vec<CleaningStep> = cached
            .map(|(piece, place)| CleaningStep { is_write: false, place, sectors: piece.blocks as u32 })
            .collect();
        steps.sort_by_key(|step| step.place);
        steps.insert(0, whole(false));
        steps.push(whole(true));
        steps
    }
}

impl ShingleMap for Shingled {
    fn pieces(&self, slba: u64, blocks: u32, told: &mut dyn FnMut(u64, u32)) {
        let end = slba.saturating_add(blocks.into()).min(self.spec.blocks());
        let (mut at, bands) = (slba, self.spec.cache_sectors());
        for (piece, place) in self.log.borrow().pieces(slba.min(end)..end) {
            if at < piece.slba {
                told(bands + at, (piece.slba - at) as u32);
            }
            told(place, piece.blocks as u32);
            at = piece.slba + piece.blocks;
        }
        if at < end {
            told(bands + at, (end - at) as u32);
        }
    }

    fn next_write(&self) -> u64 {
        self.log.borrow().next()
    }
}

impl Drive for Shingled {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            nsid: 1,
            blocks: self.spec.blocks(),
            lba_bytes: SECTOR,
            metadata_bytes: 0,
            max_blocks: MOST,
            unit_bytes: 4_096,
            volatile_cache: false,
            keeps_data: self.spec.disk.keeps_data,
        }
    }

    fn submit(&self, io: Io) {
        self.queue.borrow_mut().push_back(Waiting { io, arrived: self.sim.now(), cleaned: self.cleaned() });
        self.came.notify();
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let mut queue = self.queue.borrow_mut();
        let found = queue.iter().position(|waiting| waiting.io.token.is_of(command));
        let Some(Waiting { io, arrived, cleaned }) = found.and_then(|at| queue.remove(at)) else { return false };
        drop(queue);
        let mut completion = Completion::of(Status::ABORT_REQUESTED);
        self.waited(arrived, cleaned, &mut completion.breakdown);
        io.token.complete(completion);
        true
    }
}
