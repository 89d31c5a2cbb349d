//! Write: data at the end of a run, all of it or nothing.

use nandscape_device_ftl_zoned::lsm::{Append, RunError};
use nandscape_device_ftl_zoned::zone::Reservation;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::io::Cdw12;

use super::{Runs, status_of};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

impl Runs {
    /// Serves a Write.
    pub(super) async fn write(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let blocks = checked_blocks(command)?;
        let span = u64::from(self.ftl().config().span);
        let (run, at) = ((command.entry.slba() / span) as u32, (command.entry.slba() % span) as u32);
        self.nvm.count_write();
        let begun = self.sim.now();
        let append = command.stop.or_stopped(self.ftl().begin_append(run, at, blocks)).await;
        // The wait is charged to the drive's background work, also on failure.
        breakdown.waits(Stage::Queue).add(cause::GC, self.sim.now() - begun);
        let append = append?.map_err(status_of)?;
        let room = self.room(command, &append, breakdown).await?;
        let bytes = u64::from(blocks) * u64::from(command.namespace.lba_bytes);
        command.link.receive(bytes, breakdown).await;
        // A guest may have unmapped its memory meanwhile.
        let mem = command.mem.part(0, bytes as usize);
        command.stop.check()?;
        mem.cover(bytes as usize)?;
        self.put(command, &append, &mem, room, breakdown).await
    }
}

impl Runs {
    /// Waits for room in the write buffer.
    async fn room(
        &self,
        command: &Command<'_>,
        append: &Append,
        breakdown: &mut Breakdown,
    ) -> Result<Reservation<'_>, Failure> {
        let begun = self.sim.now();
        let room = self.ftl().append_room(append, breakdown.waits(Stage::Queue));
        let room = command.stop.or_stopped(room).await;
        if room.is_err() {
            breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        }
        Ok(room?)
    }

    /// Appends the data to the run. While other runs have all zones that can be active, it waits without buffer room.
    async fn put(
        &self,
        command: &Command<'_>,
        append: &Append,
        data: &HostMem,
        mut room: Reservation<'_>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        loop {
            match self.ftl().append(append, Some(data), room) {
                Err(RunError::Busy) => {}
                ended => return Ok(ended.map_err(status_of)?),
            }
            let begun = self.sim.now();
            let turn = command.stop.or_stopped(self.ftl().append_turn(append)).await;
            breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
            turn?.map_err(status_of)?;
            room = self.room(command, append, breakdown).await?;
        }
    }
}

/// Checks the blocks to be written, apart from the run.
fn checked_blocks(command: &Command<'_>) -> Result<u32, Refusal> {
    let (entry, namespace, mem) = (command.entry, command.namespace, command.mem);
    namespace.check_flags(entry)?;
    namespace.check_directive(entry)?;
    let blocks = u32::from(Cdw12::of(entry).nlb_z()) + 1;
    if blocks > namespace.max_blocks {
        return Err(Refusal::field(12, 0).final_());
    }
    namespace.check_range(entry.slba(), blocks.into())?;
    let bytes = blocks as usize * namespace.lba_bytes as usize;
    mem.fits(bytes)?;
    if namespace.keeps_data && mem.is_none() {
        return Err(Status::DATA_TRANSFER_ERROR.final_().into());
    }
    // Before the run changes: if the host still has to send the data, the command is served again.
    mem.part(0, bytes).cover(bytes)?;
    Ok(blocks)
}
