//! Zone Management Send (ZNS 3.4.3).

use nandscape_device_ftl::zone::ZoneWork;
use nandscape_device_ftl::zone::table::ZoneAction;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::zns::{SendCdw13, send};

use super::{Zns, status_of};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

/// Zone Send Action, and its option.
const ACTION: Refusal = Refusal::field(13, 0);
const OPTION: Refusal = Refusal::field(13, 9);

impl Zns {
    /// Serves the command. It ends when flash has done its part, which goes on if the command is stopped.
    pub(super) async fn send(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let (entry, fields) = (command.entry, SendCdw13::of(command.entry));
        command.namespace.check_flags(entry)?;
        // There are no zone descriptor extensions and no zone random write areas.
        let action = match fields.action() {
            send::CLOSE => ZoneAction::Close,
            send::FINISH => ZoneAction::Finish,
            send::OPEN => ZoneAction::Open,
            send::RESET => ZoneAction::Reset,
            send::OFFLINE => ZoneAction::Offline,
            _ => return Err(ACTION.final_().into()),
        };
        if fields.option() {
            return Err(OPTION.final_().into());
        }
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
