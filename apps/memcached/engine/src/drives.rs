//! The drives of an engine: tokens, and reads under way.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use nandscape_apps_store::{Disk, Host, Range, StoreError};
use nandscape_drive::Drive;
use nandscape_host_control::{Control, Placement};
use nandscape_sim::signal::Signal;
use nandscape_sim::trace::{Event, Track};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::vendor::Attributes;

use crate::error::EngineError;
use crate::hedge::Pace;
use crate::offer::Offer;
use crate::policy::{Need, Windows, again};
use crate::reach::Reach;
use crate::witness::Recorded;
use crate::zones::{Reading, Zoned};

/// A drive as it is given to an engine.
pub struct Given {
    /// Its queue pair.
    pub io: Rc<dyn Drive>,
    /// Its admin queue, for policies that need more than reads and writes.
    pub admin: Option<Rc<dyn Drive>>,
}

/// A drive of an engine.
pub struct Member {
    number: usize,
    sim: Sim,
    /// `None` if it is missing.
    disk: Option<Disk>,
    offer: Offer,
    part: Cell<Use>,
    token: Cell<bool>,
    reads: Cell<u32>,
    /// Reads that began while it had a token that keeps reads away. It stays 0.
    reads_at_token: Cell<u64>,
    /// A read has ended, or a token has gone.
    changed: Signal,
    timeline: Timeline,
    /// How long it may be without power, or out of reach, if its data is needed.
    pub(crate) patience: Span,
    pub(crate) pace: Pace,
    pub(crate) reach: Reach,
    /// The record of the store on it.
    pub(crate) recorded: Arc<Recorded>,
}

/// What a drive is used for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Use {
    /// It is read and written.
    Whole,
    /// It is written, and lacks segments.
    Rebuilt,
    /// It is missing or has failed: it is not used any more.
    Lost,
}

/// The lines of a drive in the event trace: what its token is used for, and when it is read.
struct Timeline {
    token: Track,
    reads: Track,
    token_since: Cell<Time>,
    reads_since: Cell<Time>,
    /// Reads since then.
    count: Cell<u64>,
}

impl Timeline {
    fn new(sim: &Sim, number: usize) -> Timeline {
        let track = |what: &str| sim.trace().track(format!("engine drive {number} {what}"));
        let [token_since, reads_since] = [const { Cell::new(Time::ZERO) }; 2];
        Timeline { token: track("token"), reads: track("reads"), token_since, reads_since, count: Cell::new(0) }
    }
}

impl Member {
    /// A drive; `None` is one that is missing.
    pub(crate) async fn new(
        host: &Host,
        number: usize,
        given: Option<Given>,
        (need, patience): (Need, Span),
    ) -> Result<Member, EngineError> {
        let failed = |error| EngineError::Control { drive: number, error };
        let part = Cell::new(if given.is_some() { Use::Whole } else { Use::Lost });
        let offer = match &given {
            Some(given) => {
                let offer = again((host.sim(), patience), async || Offer::open(host.sim(), given, need).await);
                offer.await.map_err(failed)?
            }
            None => Offer::Nothing,
        };
        let (sim, disk) = (host.sim().clone(), given.map(|given| Disk::new(host, given.io)));
        let (token, reads, reads_at_token) = (Cell::new(false), Cell::new(0), Cell::new(0));
        let (changed, timeline) = (Signal::new(&sim), Timeline::new(&sim, number));
        let member = Member {
            number,
            sim,
            disk,
            offer,
            part,
            token,
            reads,
            reads_at_token,
            changed,
            timeline,
            patience,
            pace: Pace::default(),
            reach: Reach::default(),
            recorded: Arc::default(),
        };
        member.open_zones().await?;
        Ok(member)
    }

    /// The control of its garbage collection, if the policy needs it.
    pub fn control(&self) -> Option<&Control> {
        if let Offer::Orders(control) = &self.offer { Some(control) } else { None }
    }

    /// Its windows, if the policy needs them.
    pub(crate) fn windows(&self) -> Option<&Windows> {
        if let Offer::Windows(windows) = &self.offer { Some(windows) } else { None }
    }

    /// Its reclaim unit handles, if the policy needs them.
    pub(crate) fn placement(&self) -> Option<&Placement> {
        if let Offer::Placement(placement) = &self.offer { Some(placement) } else { None }
    }

    /// Its zones, if the policy needs them.
    pub(crate) fn zoned(&self) -> Option<&Zoned> {
        if let Offer::Zones(zoned) = &self.offer { Some(zoned) } else { None }
    }

    /// Bytes of a unit of its mapping.
    pub(crate) fn unit_bytes(&self) -> u64 {
        self.disk().map_or(0, |disk| disk.info.unit_bytes.into())
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its clock.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Its clock, and how long work is done again that ends because it has no power.
    pub(crate) fn waits(&self) -> (&Sim, Span) {
        (&self.sim, self.patience)
    }

    /// Whether it has a token.
    pub fn has_token(&self) -> bool {
        self.token.get()
    }

    /// It, unless it is missing.
    pub(crate) fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// It, if it is in use.
    pub(crate) fn in_use(&self) -> Result<&Disk, EngineError> {
        let lost = EngineError::Lost { drive: self.number };
        self.disk.as_ref().filter(|_| !self.is_gone()).ok_or(lost)
    }

    /// Whether it is missing, has failed, or lacks segments until it is rebuilt.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.part.get() != Use::Whole
    }

    /// Whether it is missing or has failed.
    pub(crate) fn is_gone(&self) -> bool {
        self.part.get() == Use::Lost
    }

    /// It lacks segments from now on.
    pub(crate) fn begin_rebuild(&self) {
        self.part.set(Use::Rebuilt);
    }

    /// It lacks none any more.
    pub(crate) fn end_rebuild(&self) {
        self.part.set(Use::Whole);
    }

    /// It has failed.
    pub(crate) fn lose(&self) {
        self.part.set(Use::Lost);
        self.leave_token();
    }

    pub(crate) fn failed(&self, error: nandscape_host_control::Error) -> EngineError {
        EngineError::Control { drive: self.number, error }
    }

    pub(crate) fn is_not_ready(&self, waited: Span) -> EngineError {
        EngineError::Busy { drive: self.number, waited }
    }

    pub(crate) fn wrong(&self, error: StoreError) -> EngineError {
        let drive = self.number;
        match error {
            StoreError::Drive(Status::ZONE_INVALID_WRITE | Status::ZONE_BOUNDARY_ERROR) if self.zoned().is_none() => {
                EngineError::HasZones { drive }
            }
            error => EngineError::Drive { drive, error },
        }
    }

    /// A read that is begun now: none is under way while a zone gets new contents.
    async fn reading(&self) -> Option<Reading<'_>> {
        match self.zoned() {
            Some(zoned) => Some(zoned.reading().await),
            None => None,
        }
    }

    pub(crate) fn reads(&self) -> u32 {
        self.reads.get()
    }

    pub(crate) fn reads_at_token(&self) -> u64 {
        self.reads_at_token.get()
    }

    /// Gives it a token. Once it has one, no read begins; those under way are awaited where the policy keeps reads apart.
    pub(crate) async fn take_token(&self, keeps_reads_apart: bool) {
        self.token.set(true);
        self.timeline.token_since.set(self.sim.now());
        while keeps_reads_apart && self.reads.get() > 0 {
            self.changed.changed().await;
        }
    }

    pub(crate) fn leave_token(&self) {
        if self.token.replace(false) {
            self.show("token", self.timeline.token_since.get(), 0);
        }
        self.changed.notify();
    }

    /// Puts work with the token, which ends now, into the event trace.
    pub(crate) fn show(&self, name: &'static str, start: Time, detail: u64) {
        self.sim.trace_event(|end| Event { track: self.timeline.token, name, start, end, detail });
    }

    /// Waits until it has no token, if that matters.
    pub(crate) async fn token_left_if(&self, matters: bool) {
        while matters && self.token.get() {
            self.changed.changed().await;
        }
    }

    /// Blocks that hold these bytes, and where the bytes begin in them.
    fn blocks(disk: &Disk, start: u64, len: usize) -> (Range, usize) {
        let lba = u64::from(disk.info.lba_bytes);
        let (first, end) = (start / lba, (start + len as u64).div_ceil(lba));
        (Range { slba: first, blocks: end - first }, (start % lba) as usize)
    }

    /// Reads bytes for a client. `apart` is that the policy allows no read at a token. A drive without power is waited for `patience` long.
    pub(crate) async fn read(
        &self,
        place: (u64, usize),
        apart: bool,
        attributes: Attributes,
        patience: Span,
    ) -> Result<Vec<u8>, EngineError> {
        self.begin_read(apart)?;
        self.read_begun(place, attributes, patience).await
    }

    /// A read for a client begins: a token waits for its end from now on. [`Member::read_begun`] is to follow, also in another task.
    ///
    /// # Errors
    /// When the drive is not read.
    pub(crate) fn begin_read(&self, apart: bool) -> Result<(), EngineError> {
        if self.is_incomplete() {
            return Err(EngineError::Lost { drive: self.number });
        }
        if apart && self.token.get() {
            self.reads_at_token.set(self.reads_at_token.get() + 1);
            debug_assert!(false, "a read at drive {}, which has a token", self.number);
        }
        let timeline = &self.timeline;
        if self.reads.get() == 0 {
            timeline.reads_since.set(self.sim.now());
            timeline.count.set(0);
        }
        self.reads.set(self.reads.get() + 1);
        timeline.count.set(timeline.count.get() + 1);
        Ok(())
    }

    /// Reads what [`Member::begin_read`] has begun.
    pub(crate) async fn read_begun(
        &self,
        place: (u64, usize),
        attributes: Attributes,
        patience: Span,
    ) -> Result<Vec<u8>, EngineError> {
        let (begun, bound) = (self.sim.now(), self.pace.bound(self.patience));
        let read = self.read_within(place, attributes, patience).await;
        self.pace.ended(self.sim.now() - begun, bound);
        self.reads.set(self.reads.get() - 1);
        if self.reads.get() == 0 {
            self.show_reads();
        }
        self.changed.notify();
        read
    }

    /// Puts the time with reads, which ends now, into the event trace.
    fn show_reads(&self) {
        let (track, start, detail) = (self.timeline.reads, self.timeline.reads_since.get(), self.timeline.count.get());
        self.sim.trace_event(|end| Event { track, name: "reads", start, end, detail });
    }

    /// Puts what is under way into the event trace, as if it ended now: reads, and the time with a token.
    pub(crate) fn trace_open(&self) {
        if self.reads.get() > 0 {
            self.show_reads();
            self.timeline.reads_since.set(self.sim.now());
        }
        if self.token.get() {
            self.show("token", self.timeline.token_since.replace(self.sim.now()), 0);
        }
    }

    async fn read_within(
        &self,
        place: (u64, usize),
        attributes: Attributes,
        patience: Span,
    ) -> Result<Vec<u8>, EngineError> {
        let _reading = self.reading().await;
        self.read_now(place, attributes, patience).await
    }

    async fn read_now(
        &self,
        (start, len): (u64, usize),
        attributes: Attributes,
        patience: Span,
    ) -> Result<Vec<u8>, EngineError> {
        let disk = self.in_use()?;
        let (range, skip) = Member::blocks(disk, start, len);
        let read = disk.read_as_within(&[range], attributes, patience).await;
        let mut bytes = read.map_err(|error| self.wrong(error))?.swap_remove(0);
        bytes.truncate(skip + len);
        Ok(bytes.split_off(skip))
    }

    /// The same for the engine itself.
    pub(crate) async fn read_background(&self, start: u64, len: usize) -> Result<Vec<u8>, EngineError> {
        self.read_within((start, len), Attributes::default(), self.patience).await
    }

    /// The same of bytes that may be damaged, from the beginning of a block: damaged pieces of `block` bytes are zeros.
    pub(crate) async fn read_what_is_left(&self, start: u64, len: usize, block: usize) -> Result<Vec<u8>, EngineError> {
        let _reading = self.reading().await;
        self.read_left_now(start, len, block).await
    }

    /// The same while zones may be getting new contents.
    pub(crate) async fn read_left_now(&self, start: u64, len: usize, block: usize) -> Result<Vec<u8>, EngineError> {
        let read =
            async |start: u64, len: usize| self.read_now((start, len), Attributes::default(), self.patience).await;
        match read(start, len).await {
            Err(error) if error.is_damage() => {}
            read => return read,
        }
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let piece = block.min(len - bytes.len());
            match read(start + bytes.len() as u64, piece).await {
                Ok(read) => bytes.extend(read),
                Err(error) if error.is_damage() => bytes.resize(bytes.len() + piece, 0),
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// The first bytes of several places that begin with a block, at once; `None` of a place that is damaged.
    pub(crate) async fn read_all(&self, starts: &[u64], len: usize) -> Result<Vec<Option<Vec<u8>>>, EngineError> {
        let disk = self.in_use()?;
        let ranges: Vec<Range> = starts.iter().map(|start| Member::blocks(disk, *start, len).0).collect();
        match disk.read_within(&ranges, self.patience).await {
            Err(StoreError::Drive(Status::UNRECOVERED_READ_ERROR)) => {}
            read => return read.map(|all| all.into_iter().map(Some).collect()).map_err(|error| self.wrong(error)),
        }
        let mut heads = Vec::new();
        for start in starts {
            heads.push(match self.read_background(*start, len).await {
                Err(error) if error.is_damage() => None,
                read => Some(read?),
            });
        }
        Ok(heads)
    }

    /// Writes whole blocks; on a drive with zones in the order of each of them. They are durable afterwards.
    pub(crate) async fn write(&self, start: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.write_by(start, bytes, None).await
    }

    /// The same by a reclaim unit handle.
    pub(crate) async fn write_by(&self, start: u64, bytes: &[u8], handle: Option<u16>) -> Result<(), EngineError> {
        let disk = self.in_use()?;
        if self.zoned().is_some() {
            return self.write_in_order(start, bytes).await;
        }
        let slba = start / u64::from(disk.info.lba_bytes);
        disk.write_placed_within(slba, bytes, handle, self.patience).await.map_err(|error| self.wrong(error))
    }

    /// Has the drive forget whole blocks.
    pub(crate) async fn deallocate(&self, start: u64, bytes: u64) -> Result<(), EngineError> {
        let disk = self.in_use()?;
        let lba = u64::from(disk.info.lba_bytes);
        let range = Range { slba: start / lba, blocks: bytes / lba };
        disk.deallocate_within(&[range], self.patience).await.map_err(|error| self.wrong(error))
    }
}

/// The drive of a group to read: one without a token if the policy keeps reads apart, else that with fewer reads under way. `bad` is a drive that
/// has not returned what was read; `turn`, the place of the one that is next where nothing else decides.
pub(crate) fn least_busy(group: &[Rc<Member>], apart: bool, bad: Option<usize>, turn: usize) -> Option<&Rc<Member>> {
    let order = |one: &&Rc<Member>| {
        let is_bad = bad == Some(one.number());
        let is_next = one.number() % group.len() == turn;
        (apart && one.has_token(), is_bad, one.pace.is_silent(), one.reads(), !is_next)
    };
    group.iter().filter(|one| !one.is_incomplete()).min_by_key(order)
}
