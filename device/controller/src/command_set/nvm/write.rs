//! Write, Write Zeroes, Write Uncorrectable (NVM 3.3.6 to 3.3.8).

use std::marker::PhantomData;
use std::rc::Rc;

use nandscape_device_ftl_core::ftl::{Milestone, Settled, Settling, Unwritable};
use nandscape_device_ftl_core::offers::{RandomWrites, Reserved};
use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::Span;
use nandscape_wire_nvme::Status;

use super::Nvm;
use super::turns::{PART, Work};
use crate::admin::Settings;
use crate::command_set::Command;
use crate::config::BufferMode;

/// The data of a write.
pub(super) trait Source {
    /// Whether it crosses the link.
    const CROSSES: bool;

    /// Whether the data comes from inside the drive, for a command without a transfer: it is written in parts that take
    /// turns.
    fn is_inside(&self) -> bool {
        !Self::CROSSES
    }

    /// Hands a part of the data to the FTL's random writes: its extent, and its first byte in the data.
    ///
    /// # Errors
    /// The status of a command whose memory is gone.
    fn accept<F: Ftl>(
        &self,
        ftl: &F,
        writes: &F::RandomWrites,
        part: (Extent, usize),
        reservation: Reserved<'_, F>,
        watch: Option<Milestone>,
    ) -> Result<Option<Rc<Settling>>, Status>;
}

/// Data in host memory, across the link. `Caller` is a type for the caller alone, as in
/// [`Media::read_for`](nandscape_device_media::Media::read_for).
pub(super) struct FromHost<'a, Caller>(&'a HostMem, PhantomData<Caller>);

impl<'a, Caller> FromHost<'a, Caller> {
    /// The data in `mem`.
    pub(super) fn of(mem: &'a HostMem) -> FromHost<'a, Caller> {
        FromHost(mem, PhantomData)
    }
}

/// Data in controller memory.
pub(super) struct FromController<'a>(pub(super) &'a HostMem);

/// Zeros.
pub(super) struct Zeros;

impl<Caller> Source for FromHost<'_, Caller> {
    const CROSSES: bool = true;

    #[inline(always)]
    fn accept<F: Ftl>(
        &self,
        _: &F,
        writes: &F::RandomWrites,
        (part, at): (Extent, usize),
        reservation: Reserved<'_, F>,
        watch: Option<Milestone>,
    ) -> Result<Option<Rc<Settling>>, Status> {
        let mem = self.0.part(at, part.bytes() as usize);
        // A guest may have unmapped the memory since: better no data than zeros.
        mem.cover(part.bytes() as usize)?;
        Ok(writes.accept(part, Some(&mem), reservation, watch))
    }
}

impl Source for FromController<'_> {
    const CROSSES: bool = false;

    fn accept<F: Ftl>(
        &self,
        _: &F,
        writes: &F::RandomWrites,
        (part, at): (Extent, usize),
        reservation: Reserved<'_, F>,
        watch: Option<Milestone>,
    ) -> Result<Option<Rc<Settling>>, Status> {
        Ok(writes.accept(part, Some(&self.0.part(at, part.bytes() as usize)), reservation, watch))
    }
}

impl Source for Zeros {
    const CROSSES: bool = false;

    fn accept<F: Ftl>(
        &self,
        _: &F,
        writes: &F::RandomWrites,
        (part, _): (Extent, usize),
        reservation: Reserved<'_, F>,
        watch: Option<Milestone>,
    ) -> Result<Option<Rc<Settling>>, Status> {
        Ok(writes.accept(part, None, reservation, watch))
    }
}

impl<F: Ftl> Nvm<F> {
    /// The FTL's random writes.
    ///
    /// # Errors
    /// Invalid Command Opcode if the drive has no random writes.
    #[inline(always)]
    pub(super) fn random_writes(&self) -> Result<&F::RandomWrites, Status> {
        self.ftl.random_writes().ok_or(Status::INVALID_OPCODE.final_())
    }

    /// Takes room in the write buffer, and moves the data over the link into it: in parts if the command is larger than the
    /// buffer. If the buffer does not make a write durable, waits for the flash.
    pub(super) async fn write<S: Source>(
        &self,
        command: &Command<'_>,
        extent: Extent,
        data: S,
        fua: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        let watch = self.write_waits_for(fua, command.settings);
        let mut settling = Vec::new();
        let most = self.ftl.max_reserve();
        let most = if data.is_inside() { most.min(PART * self.ftl.unit().sectors()) } else { most };
        let mut done = 0;
        while done < extent.sectors {
            let part = Extent { start: extent.start + u64::from(done), sectors: most.min(extent.sectors - done) };
            if data.is_inside() {
                self.take_turn(command, (Work::Write, part.sectors.into()), breakdown).await?;
            }
            let begun = self.sim.now();
            let room = self.random_writes()?.reserve(part, breakdown.waits(Stage::Queue));
            let reservation = match command.stop.or_stopped(room).await {
                Ok(reservation) => reservation,
                Err(status) => {
                    breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
                    return Err(status);
                }
            };
            // Several parts may have waited for room and got it at the same time.
            let in_turn = data.is_inside() && self.sim.now() > begun;
            if S::CROSSES {
                command.link.receive(part.bytes(), breakdown).await;
            }
            if in_turn || self.exclusive.is_held() {
                Box::pin(self.wait_with_room(command, (part, in_turn), breakdown)).await?;
            }
            // A stopped command writes no further parts.
            command.stop.check()?;
            self.check_writable()?;
            let place = (part, done as usize * 512);
            if let Some(part) = data.accept(&*self.ftl, self.random_writes()?, place, reservation, watch)? {
                settling.push(part);
            }
            done += part.sectors;
        }
        // Most writes end in the buffer, and pass no further future.
        if settling.is_empty() {
            return Ok(());
        }
        self.settle(command, settling, breakdown).await
    }

    /// Waits with room in the write buffer: for the turn of a part that had to wait for its room, and for exclusive commands.
    async fn wait_with_room(
        &self,
        command: &Command<'_>,
        (part, in_turn): (Extent, bool),
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        if in_turn {
            self.take_turn(command, (Work::Write, part.sectors.into()), breakdown).await?;
        }
        if self.exclusive.is_held() {
            self.wait_for_exclusive(command, part, breakdown).await?;
        }
        Ok(())
    }

    /// Writes data that is in memory of the controller: nothing crosses the link.
    pub(super) async fn write_inside(
        &self,
        command: &Command<'_>,
        extent: Extent,
        data: &HostMem,
        fua: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        self.write(command, extent, FromController(data), fua, breakdown).await
    }

    /// Declares blocks unreadable (Write Uncorrectable).
    pub(super) async fn write_uncorrectable(
        &self,
        command: &Command<'_>,
        extent: Extent,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        let first = extent.steps(PART * self.ftl.unit().sectors()).next().unwrap_or(extent);
        self.take_turn(command, (Work::Mark, first.sectors.into()), breakdown).await?;
        let begun = self.sim.now();
        // An accepted transaction that reads do not see yet would hide the mark.
        let held = Box::pin(command.stop.or_stopped(self.hold_settled(extent))).await;
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        let _held = held?;
        self.check_writable()?;
        self.random_writes()?.spoil(extent, breakdown).await;
        // Durable memory may have failed to store the mark.
        self.check_writable()
    }

    /// The maximum of sectors written at once: other commands see all of them or none.
    pub(super) fn atomic_sectors(&self) -> u32 {
        self.ftl.max_reserve()
    }

    /// Rejects writes on a drive with too few good blocks left.
    pub(super) fn check_writable(&self) -> Result<(), Status> {
        match self.ftl.read_only() {
            Some(_) => Err(Status::READ_ONLY_RANGE.final_()),
            None => Ok(()),
        }
    }

    /// The stage that a write must reach before it completes; `None` is the write buffer.
    pub(in crate::command_set) fn write_waits_for(&self, fua: bool, settings: &Settings) -> Option<Milestone> {
        let must_be_durable = fua || !settings.write_cache_enabled();
        match self.buffer {
            BufferMode::Volatile | BufferMode::Register | BufferMode::Programmed if must_be_durable => {
                Some(Milestone::Flash)
            }
            BufferMode::Capacitor | BufferMode::Volatile => None,
            BufferMode::Register => Some(Milestone::Register),
            BufferMode::Programmed => Some(Milestone::Programmed),
            BufferMode::Through => Some(Milestone::Flash),
        }
    }

    /// Waits until all parts of a write are on flash.
    pub(super) async fn settle(
        &self,
        command: &Command<'_>,
        settling: Vec<Rc<Settling>>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        if settling.is_empty() {
            return Ok(());
        }
        let begun = self.sim.now();
        let settled = command.stop.or_stopped(all_settled(&settling)).await;
        let waited = self.sim.now() - begun;
        match settled {
            // The breakdown of the last part's program applies if it covers all of the time.
            Ok(Ok(Settled { waited: until_issued, breakdown: program }))
                if until_issued.total() + program.total() == waited && waited > Span::ZERO =>
            {
                *breakdown.waits(Stage::Queue) += until_issued;
                *breakdown += &program;
                Ok(())
            }
            Ok(Ok(Settled { waited: until_issued, .. })) => {
                breakdown.waits(Stage::Queue).add(until_issued.main_cause(), waited);
                Ok(())
            }
            Ok(Err(why)) => {
                breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, waited);
                Err(refused(why))
            }
            Err(status) => {
                breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, waited);
                Err(status)
            }
        }
    }
}

/// How the last of several parts reached the flash, or why the first failed part did not.
async fn all_settled(parts: &[Rc<Settling>]) -> Result<Settled, Unwritable> {
    let mut last = None;
    for part in parts {
        last = match (last, part.settled().await) {
            (Some(Err(why)), _) => Some(Err(why)),
            (_, settled) => Some(settled),
        };
    }
    last.expect("there is a part")
}

/// The status of a command whose data does not reach the flash (NVM 3.1.2.3).
pub(super) fn refused(why: Unwritable) -> Status {
    match why {
        Unwritable::ReadOnly | Unwritable::Lost => Status::WRITE_FAULT,
        Unwritable::PowerLost => Status::ABORTED_POWER_LOSS,
    }
}
