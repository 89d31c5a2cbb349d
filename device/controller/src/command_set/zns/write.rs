//! Write and Zone Append (ZNS 3.3.2, 3.4.1).
//!
//! A command takes its blocks of the zone after firmware processing, in the order of fetching. A command that fails later
//! leaves zeros there.

use nandscape_device_ftl_zoned::zone::{Reservation, Ticket};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::Span;
use nandscape_sim::account::{Class, Who};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::io::Cdw12;

use super::{Zns, status_of};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

impl Zns {
    /// Serves a Write.
    pub(super) async fn write(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let blocks = checked_blocks(command)?;
        let (zone, at) = self.zone_of(command.entry.slba());
        self.nvm.count_write();
        self.process(command, self.ftl().config().write, breakdown).await?;
        let ticket = self.ftl().begin_write(zone, Some(at), blocks).map_err(status_of)?;
        self.transfer(command, ticket, blocks, breakdown).await
    }

    /// Serves a Zone Append. Returns the first block that it wrote.
    pub(super) async fn append(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<u64, Failure> {
        let slba = command.entry.slba();
        let blocks = checked_blocks(command)?;
        let (zone, 0) = self.zone_of(slba) else { return Err(Refusal::field(10, 0).final_().into()) };
        self.nvm.count_write();
        self.process(command, self.ftl().config().append, breakdown).await?;
        let ticket = self.ftl().begin_write(zone, None, blocks).map_err(status_of)?;
        let first = slba + u64::from(ticket.first);
        self.transfer(command, ticket, blocks, breakdown).await?;
        Ok(first)
    }

    /// Firmware's work on a write to a zone, in the order in which commands get here.
    pub(super) async fn process(
        &self,
        command: &Command<'_>,
        time: Span,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        if time.is_zero() {
            return Ok(());
        }
        let who = Who::new(cause::HOST_WRITE, Class::new(0));
        self.processor.occupy(time, who, breakdown.waits(Stage::Queue)).await;
        breakdown.spend(Stage::Firmware, time);
        command.stop.check()
    }

    /// Takes room in the write buffer, and moves the data over the link into it.
    async fn transfer(
        &self,
        command: &Command<'_>,
        ticket: Ticket,
        blocks: u32,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let bytes = u64::from(blocks) * u64::from(command.namespace.lba_bytes);
        let (ticket, reservation) = self.room(command, ticket, blocks, breakdown).await?;
        command.link.receive(bytes, breakdown).await;
        // A guest may have unmapped its memory meanwhile.
        let mem = command.mem.part(0, bytes as usize);
        if let Err(status) = command.stop.check().and_then(|()| mem.cover(bytes as usize)) {
            self.ftl().abandon(ticket);
            return Err(status.into());
        }
        self.deliver(ticket, &mem, reservation)
    }

    /// Takes room in the write buffer, and moves data of the drive into it.
    pub(super) async fn store(
        &self,
        command: &Command<'_>,
        (ticket, blocks): (Ticket, u32),
        data: &HostMem,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let (ticket, reservation) = self.room(command, ticket, blocks, breakdown).await?;
        self.deliver(ticket, data, reservation)
    }

    /// Waits for room in the write buffer. A command that is to end early gives up its blocks.
    async fn room(
        &self,
        command: &Command<'_>,
        ticket: Ticket,
        blocks: u32,
        breakdown: &mut Breakdown,
    ) -> Result<(Ticket, Reservation<'_>), Status> {
        let begun = self.sim.now();
        let room = self.ftl().reserve_units(ticket.zone, blocks, breakdown.waits(Stage::Queue));
        match command.stop.or_stopped(room).await {
            Ok(reservation) => Ok((ticket, reservation)),
            Err(status) => {
                breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
                self.ftl().abandon(ticket);
                Err(status)
            }
        }
    }

    fn deliver(&self, ticket: Ticket, data: &HostMem, reservation: Reservation<'_>) -> Result<(), Failure> {
        match self.ftl().deliver(ticket, Some(data), reservation) {
            true => Ok(()),
            // The zone was reset meanwhile.
            false => Err(Status::ZONE_INVALID_WRITE.into()),
        }
    }
}

/// Checks the blocks to be written, apart from the zone.
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
    // Before the zone changes: if the host still has to send the data, the command is served again.
    mem.part(0, bytes).cover(bytes)?;
    Ok(blocks)
}
