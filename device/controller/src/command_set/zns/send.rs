//! Zone Management Send (ZNS 3.4.3).

use nandscape_device_ftl_zoned::zone::ZoneWork;
use nandscape_device_ftl_zoned::zone::table::ZoneAction;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::zns::{SendCdw13, send};

use super::{Zns, status_of};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

/// Zone Send Action, Select All, and the option of the action.
const ACTION: Refusal = Refusal::field(13, 0);
const SELECT_ALL: Refusal = Refusal::field(13, 8);
const OPTION: Refusal = Refusal::field(13, 9);

impl Zns {
    /// Serves the command. It completes after its flash operations, which continue if the command is stopped.
    pub(super) async fn send(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let (entry, fields) = (command.entry, SendCdw13::of(command.entry));
        command.namespace.check_flags(entry)?;
        if fields.option() && (fields.action() != send::OPEN || fields.all() || self.ftl().config().zrwa.size == 0) {
            return Err(OPTION.final_().into());
        }
        let action = match fields.action() {
            send::OPEN if fields.option() => {
                let zone = self.named_zone(command)?;
                return Ok(self.ftl().open_with_zrwa(zone).map_err(status_of)?);
            }
            send::SET_EXTENSION if !fields.all() => return self.set_extension(command, breakdown).await,
            send::FLUSH_RANGE if !fields.all() => return Ok(self.flush_range(command)?),
            send::SET_EXTENSION | send::FLUSH_RANGE => return Err(SELECT_ALL.final_().into()),
            send::CLOSE => ZoneAction::Close,
            send::FINISH => ZoneAction::Finish,
            send::OPEN => ZoneAction::Open,
            send::RESET => ZoneAction::Reset,
            send::OFFLINE => ZoneAction::Offline,
            _ => return Err(ACTION.final_().into()),
        };
        let zones = match fields.all() {
            true => self.ftl().selected(action).map_err(status_of)?,
            false => vec![self.named_zone(command)?],
        };
        let begun = self.sim.now();
        let works = zones.into_iter().map(|zone| self.ftl().act(zone, action));
        let works: Vec<ZoneWork> = works.collect::<Result<_, _>>().map_err(status_of)?;
        let ended = async {
            for work in &works {
                self.ftl().ended(work).await;
            }
        };
        let ended = command.stop.or_stopped(ended).await;
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        Ok(ended?)
    }

    /// Set Zone Descriptor Extension (ZNS 3.4.3.1): an empty zone becomes closed.
    async fn set_extension(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let bytes = self.ftl().config().extension as usize;
        if bytes == 0 {
            return Err(ACTION.final_().into());
        }
        let zone = self.named_zone(command)?;
        command.mem.must_cover(bytes)?;
        command.link.receive(bytes as u64, breakdown).await;
        let mut extension = vec![0; bytes];
        command.mem.read(0, &mut extension);
        // A guest may have unmapped its memory meanwhile.
        if command.mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        Ok(self.ftl().set_extension(zone, &extension).map_err(status_of)?)
    }

    /// Flush Explicit ZRWA Range (ZNS 3.4.3.1), up to the block that the command names.
    fn flush_range(&self, command: &Command<'_>) -> Result<(), Refusal> {
        if self.ftl().config().zrwa.size == 0 {
            return Err(ACTION.final_());
        }
        let last = command.entry.slba();
        if last >= command.namespace.blocks {
            return Err(Refusal::of(Status::LBA_OUT_OF_RANGE, Refusal::field(10, 0).parameter).final_());
        }
        let (zone, last) = self.zone_of(last);
        Ok(self.ftl().flush_zrwa(zone, last).map_err(status_of)?)
    }

    /// The zone whose first block the command names.
    fn named_zone(&self, command: &Command<'_>) -> Result<u32, Refusal> {
        let slba = command.entry.slba();
        if slba >= command.namespace.blocks {
            return Err(Refusal::of(Status::LBA_OUT_OF_RANGE, Refusal::field(10, 0).parameter).final_());
        }
        match self.zone_of(slba) {
            (zone, 0) => Ok(zone),
            _ => Err(Refusal::field(10, 0).final_()),
        }
    }
}
