//! Write and Zone Append (ZNS 3.3.2, 3.4.1).
//!
//! A command takes its blocks of the zone when firmware has handled it, in the order in which commands are fetched. Its data is fetched
//! as the write buffer has room for it, by the strip, as in US patent 11,599,304 of the maker of wd-zn540. A command that fails later leaves
//! zeros from there on.

use nandscape_device_ftl::zone::{Reservation, Room, Ticket};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::Span;
use nandscape_sim::account::{Class, Who};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::io::Cdw12;

use super::{Zns, status_of};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

/// Where the data of a write is.
pub(super) enum Data<'a> {
    /// In the memory of the host.
    InHost,
    /// In the drive.
    InDrive(&'a HostMem),
}

impl Zns {
    /// Serves a Write.
    pub(super) async fn write(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let blocks = checked_blocks(command)?;
        let (zone, at) = self.zone_of(command.entry.slba());
        self.nvm.count_write();
        self.process(command, self.ftl().config().write, breakdown).await?;
        let ticket = self.ftl().begin_write(zone, Some(at), blocks).map_err(status_of)?;
        self.fill(command, (ticket, blocks), Data::InHost, breakdown).await
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
        self.fill(command, (ticket, blocks), Data::InHost, breakdown).await?;
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

    /// Brings the data of a ticket into the write buffer, as far as there is room each time. A command that ends early gives the rest of
    /// its blocks up.
    pub(super) async fn fill(
        &self,
        command: &Command<'_>,
        (mut ticket, blocks): (Ticket, u32),
        data: Data<'_>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let (mut room, mut at) = (self.ftl().room_for(&ticket), 0);
        let bytes = |blocks: u32| blocks as usize * command.namespace.lba_bytes as usize;
        while at < blocks {
            let part = async {
                let reservation = self.room(command, &mut room, breakdown).await?;
                let (from, len) = (bytes(at), bytes(reservation.units()));
                let mem = match data {
                    Data::InDrive(data) => data.part(from, len),
                    Data::InHost => {
                        command.link.receive(len as u64, breakdown).await;
                        // A guest may have unmapped its memory meanwhile.
                        let mem = command.mem.part(from, len);
                        command.stop.check().and_then(|()| mem.cover(len))?;
                        mem
                    }
                };
                Ok::<_, Status>((mem, reservation))
            };
            match part.await {
                Ok((mem, reservation)) => {
                    at += reservation.units();
                    self.deliver(ticket.split(reservation.units()), &mem, reservation)?;
                }
                Err(status) => {
                    self.ftl().abandon(ticket);
                    return Err(status.into());
                }
            }
        }
        Ok(())
    }

    /// Waits for room in the write buffer.
    async fn room<'a>(
        &self,
        command: &Command<'_>,
        room: &mut Room<'a>,
        breakdown: &mut Breakdown,
    ) -> Result<Reservation<'a>, Status> {
        let begun = self.sim.now();
        let granted = command.stop.or_stopped(room.more(breakdown.waits(Stage::Queue))).await;
        if granted.is_err() {
            breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        }
        granted
    }

    fn deliver(&self, ticket: Ticket, data: &HostMem, reservation: Reservation<'_>) -> Result<(), Failure> {
        match self.ftl().deliver(ticket, Some(data), reservation) {
            true => Ok(()),
            // The zone was reset meanwhile.
            false => Err(Status::ZONE_INVALID_WRITE.into()),
        }
    }
}

/// Checks what does not depend on zones: the blocks that are written.
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
    // Before the zone changes: a host that is asked for its data later has the command served again.
    mem.part(0, bytes).cover(bytes)?;
    Ok(blocks)
}
