//! A drive with zones, as the log uses it: each zone is written in order, finished, and reset before it is written again.
//!
//! The first two zones hold the record of the store in turn, each as a single block: the newer one counts. The third zone is for repairs.
//! A power cut may tear the last write of a zone, and a part of a zone may be damaged. The repaired contents are written to the third
//! zone first. Then the record of the store names the damaged zone. Only then is that zone reset and written. A power cut at any step
//! leaves the former contents or the repaired ones.
//!
//! After a power cut during a write, the engine reads what the zone has of it, and keeps it if it is right.

mod record;
mod repair;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_store::{AGAIN, StoreError};
use nandscape_drive::{Drive, HostMem};
use nandscape_host_control::{Error, Zones};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::drives::Member;
use crate::error::EngineError;
use crate::lock::Lock;
use crate::policy::again;
use crate::zones::record::Head;

/// Zones of a drive that hold no segments: two for the record of the store, and one for new contents of others.
pub(crate) const OWN: usize = 3;
/// The zone for new contents.
const ASIDE: usize = 2;
/// Zones that the engine may have active at a time: its own, the one that is written, and one that is rebuilt.
pub(crate) const LEAST_ACTIVE: u64 = OWN as u64 + 2;
/// Bytes that are moved at a time.
const PIECE: u64 = 1 << 20;
/// The least bytes of a block.
const BLOCK: usize = 4_096;

/// See the file.
pub(crate) struct Zoned {
    drive: Zones,
    /// Bytes that each zone takes.
    pub(crate) capacity: u64,
    /// Bytes of each zone that are written.
    written: RefCell<Vec<u64>>,
    head: RefCell<Head>,
    /// The zone that is written.
    open: Cell<Option<usize>>,
    heads: Lock,
    aside: Lock,
    /// A zone is about to lose its contents, or has not got the new ones yet.
    is_renewed: Cell<bool>,
    /// Reads under way.
    reads: Cell<u32>,
    changed: Signal,
}

/// A read under way.
pub(crate) struct Reading<'a>(&'a Zoned);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.reads.set(self.0.reads.get() - 1);
        self.0.changed.notify();
    }
}

/// How an append has ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Appended {
    Whole,
    /// A power cut has left something else in the zone from this byte on.
    Torn(u64),
}

impl Zoned {
    pub(crate) async fn open(sim: &Sim, queues: (Rc<dyn Drive>, Rc<dyn Drive>)) -> Result<Zoned, Error> {
        let drive = Zones::open(sim, queues).await?;
        let zones = drive.all().await?;
        let capacity = zones.iter().map(|zone| zone.capacity).min().unwrap_or(0);
        let written = RefCell::new(zones.iter().map(|zone| zone.written).collect());
        let (heads, aside) = (Lock::new(sim), Lock::new(sim));
        let (head, open, is_renewed) = (RefCell::default(), Cell::new(None), Cell::new(false));
        let (reads, changed) = (Cell::new(0), Signal::new(sim));
        Ok(Zoned { drive, capacity, written, head, open, heads, aside, is_renewed, reads, changed })
    }

    /// Begins a read, once no zone is getting new contents.
    pub(crate) async fn reading(&self) -> Reading<'_> {
        while self.is_renewed.get() {
            self.changed.changed().await;
        }
        self.reads.set(self.reads.get() + 1);
        Reading(self)
    }

    /// Reads wait from now on, and those under way have ended.
    async fn hold_reads(&self) {
        self.is_renewed.set(true);
        while self.reads.get() > 0 {
            self.changed.changed().await;
        }
    }

    fn release_reads(&self) {
        self.is_renewed.set(false);
        self.changed.notify();
    }

    /// Bytes from the start of a zone to the start of the next.
    pub(crate) fn size(&self) -> u64 {
        self.drive.size
    }

    /// Its zones.
    pub(crate) fn count(&self) -> usize {
        self.written.borrow().len()
    }

    /// Zones that may be active at a time; `None` is no limit.
    pub(crate) fn most_active(&self) -> Option<u64> {
        self.drive.most_active
    }

    /// The zone of a byte, and the byte counted from the start of the zone.
    fn place(&self, at: u64) -> (usize, u64) {
        ((at / self.size()) as usize, at % self.size())
    }

    /// Bytes of a zone that are written.
    pub(crate) fn written(&self, zone: usize) -> u64 {
        self.written.borrow().get(zone).copied().unwrap_or(0)
    }

    /// Where the zone of a byte is written next.
    pub(crate) fn pointer(&self, at: u64) -> u64 {
        let (zone, _) = self.place(at);
        zone as u64 * self.size() + self.written(zone)
    }

    fn set_written(&self, zone: usize, written: u64) {
        if let Some(there) = self.written.borrow_mut().get_mut(zone) {
            *there = written;
        }
    }

    /// Whether a zone is written, and takes more.
    fn is_active(&self, zone: usize) -> bool {
        (1..self.capacity).contains(&self.written(zone))
    }
}

/// The work of a drive that has zones. Without them each of these does nothing.
impl Member {
    /// A segment is about to be written from its start on: if that is the start of a zone, the zone before is finished, and this one is
    /// reset.
    pub(crate) async fn begin_zone(&self, start: u64) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let (zone, 0) = zoned.place(start) else { return Ok(()) };
        if let Some(before) = zoned.open.replace(Some(zone)).filter(|before| *before != zone) {
            self.finish(before).await?;
        }
        self.reset(zone).await
    }

    /// The zone of a byte is not written any more.
    pub(crate) async fn end_zone(&self, at: u64) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        self.finish(zoned.place(at).0).await
    }

    /// After recovery: no zone is left active but those of the store's record and `open`. Those with nothing that is kept are reset.
    pub(crate) async fn settle_zones(&self, kept: &[bool], open: Option<u64>) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let open = open.map(|at| zoned.place(at).0);
        zoned.open.set(open);
        for zone in (OWN..zoned.count()).filter(|zone| Some(*zone) != open && zoned.is_active(*zone)) {
            match kept.get(zone - OWN) {
                Some(true) => self.finish(zone).await?,
                _ => self.reset(zone).await?,
            }
        }
        Ok(())
    }

    /// Empties all zones for segments.
    pub(crate) async fn reset_all(&self) -> Result<(), EngineError> {
        for zone in OWN..self.zoned().map_or(0, Zoned::count) {
            self.reset(zone).await?;
        }
        Ok(())
    }

    /// Whether any zone for segments is written.
    pub(crate) fn has_written_zones(&self) -> bool {
        self.zoned().is_some_and(|zoned| (OWN..zoned.count()).any(|zone| zoned.written(zone) > 0))
    }

    async fn reset(&self, zone: usize) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned().filter(|zoned| zoned.written(zone) > 0) else { return Ok(()) };
        self.in_use()?;
        let reset = async || zoned.drive.reset(zone as u64).await;
        again(self.waits(), reset).await.map_err(|error| self.failed(error))?;
        zoned.set_written(zone, 0);
        Ok(())
    }

    async fn finish(&self, zone: usize) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned().filter(|zoned| zoned.is_active(zone)) else { return Ok(()) };
        self.in_use()?;
        let finish = async || zoned.drive.finish(zone as u64).await;
        again(self.waits(), finish).await.map_err(|error| self.failed(error))?;
        zoned.set_written(zone, zoned.capacity);
        Ok(())
    }

    /// Writes whole blocks at a place of a zone that is not written. What lies before is filled with zeros. They are durable afterwards.
    pub(crate) async fn write_in_order(&self, start: u64, bytes: &[u8]) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let (zone, at) = zoned.place(start);
        if at < zoned.written(zone) {
            return Err(self.wrong(StoreError::Drive(Status::ZONE_INVALID_WRITE)));
        }
        while zoned.written(zone) < at {
            let len = (at - zoned.written(zone)).min(PIECE);
            self.append(zone, &vec![0; len as usize]).await?;
        }
        self.append(zone, bytes).await
    }

    async fn append(&self, zone: usize, bytes: &[u8]) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let begun = zoned.written(zone);
        loop {
            let left = &bytes[(zoned.written(zone) - begun) as usize..];
            match self.try_append(zone, left).await? {
                Appended::Whole => return Ok(()),
                Appended::Torn(right) => self.rewrite(zone, (right, &[]), right).await?,
            }
        }
    }

    /// Appends to a zone, a command at a time. Commands that a power cut ended are looked at, and repeated as far as the zone lacks them.
    async fn try_append(&self, zone: usize, bytes: &[u8]) -> Result<Appended, EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(Appended::Whole) };
        let mut done = 0;
        while done < bytes.len() {
            let (disk, at) = (self.in_use()?, zoned.written(zone));
            let lba = u64::from(disk.info.lba_bytes);
            let most = (u64::from(disk.info.max_blocks).min(0x1_0000) * lba) as usize;
            let part = &bytes[done..][..most.min(bytes.len() - done)];
            let slba = (zone as u64 * zoned.size() + at) / lba;
            let blocks = part.len() as u64 / lba;
            let mut entry = SubmissionEntry::blocks(IoOpcode::WRITE, disk.info.nsid, slba, blocks as u32);
            entry.cdw12 = (entry.cdw12.get() | FUA).into();
            disk.written_bytes.set(disk.written_bytes.get() + part.len() as u64);
            match disk.execute_within(vec![(entry, HostMem::from_bytes(part))], Span::ZERO).await {
                Ok(()) => {
                    zoned.set_written(zone, at + part.len() as u64);
                    done += part.len();
                }
                Err(Status::ABORTED_POWER_LOSS) => match self.written_of(zone, part).await? {
                    Some(there) => done += there,
                    None => return Ok(Appended::Torn(at)),
                },
                Err(status) => return Err(self.wrong(StoreError::Drive(status))),
            }
        }
        Ok(Appended::Whole)
    }

    /// Waits until power is back, and looks at how many bytes of a write the zone has; `None` if it has something else.
    async fn written_of(&self, zone: usize, part: &[u8]) -> Result<Option<usize>, EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(None) };
        self.sim().sleep(AGAIN).await;
        let report = async || zoned.drive.zone(zone as u64).await;
        let now = again(self.waits(), report).await.map_err(|error| self.failed(error))?.written;
        let before = zoned.written(zone);
        let there = now.checked_sub(before).filter(|there| *there <= part.len() as u64);
        // What was acknowledged before is there.
        let Some(there) = there else { return Err(self.wrong(StoreError::Drive(Status::ZONE_INVALID_WRITE))) };
        zoned.set_written(zone, now);
        let read = self.read_left_now(zone as u64 * zoned.size() + before, there as usize, BLOCK).await?;
        Ok((read[..] == part[..there as usize]).then_some(there as usize))
    }
}
