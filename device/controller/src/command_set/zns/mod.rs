//! The Zoned Namespace command set over a zone FTL: one namespace of sequential write required zones (ZNS 2.1).
//!
//! | file | what |
//! |---|---|
//! | `write` | Write and Zone Append |
//! | `copy` | Copy |
//! | `send` | Zone Management Send |
//! | `report` | Zone Management Receive |
//! | `identify` | Identify and the Commands Supported and Effects log |
//!
//! Read, Compare, Verify and Flush are those of the NVM command set. Reads may cross zones; unwritten blocks read as zeros.
//!
//! Left out, and not offered: Write Zeroes, Dataset Management, Write Uncorrectable, several namespaces, Format and Sanitize.

mod copy;
mod identify;
mod report;
mod send;
mod write;

use std::rc::Rc;

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_core::address::SECTOR;
use nandscape_device_ftl_zoned::ZoneFtl;
use nandscape_device_ftl_zoned::zone::table::ZoneError;
use nandscape_device_media::Media;
use nandscape_drive::Breakdown;
use nandscape_sim::Sim;
use nandscape_sim::resource::Resource;
use nandscape_wire_nvme::identify::{Controller as IdentifyController, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::log::CommandsAndEffects;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry, zns};

use super::nvm::Nvm;
use super::{Command, CommandSet, Later, Reply, SetInfo, Storage};
use crate::config::ControllerConfig;
use crate::namespace::Namespace;

/// See the file.
pub struct Zns {
    sim: Sim,
    nvm: Nvm<ZoneFtl>,
    /// The firmware's processing of zone writes, one command at a time.
    processor: Resource,
}

/// The status for the reason why a zone rejects a command (ZNS 3.1).
fn status_of(error: ZoneError) -> Status {
    let status = match error {
        ZoneError::Boundary => Status::ZONE_BOUNDARY_ERROR,
        ZoneError::Full => Status::ZONE_IS_FULL,
        ZoneError::ReadOnly => Status::ZONE_IS_READ_ONLY,
        ZoneError::Offline => Status::ZONE_IS_OFFLINE,
        ZoneError::InvalidWrite => Status::ZONE_INVALID_WRITE,
        ZoneError::InvalidTransition => Status::INVALID_ZONE_STATE_TRANSITION,
        ZoneError::InvalidOperation => Status::INVALID_ZONE_OPERATION,
        ZoneError::Unaligned => Status::INVALID_FIELD,
        // A retry may succeed after the host has changed other zones.
        ZoneError::TooManyActive => return Status::TOO_MANY_ACTIVE_ZONES,
        ZoneError::TooManyOpen => return Status::TOO_MANY_OPEN_ZONES,
        ZoneError::NoZrwa => return Status::ZRWA_RESOURCES_UNAVAILABLE,
    };
    status.final_()
}

impl Zns {
    /// The commands of a drive over `ftl`, which uses `media`. A logical block is a unit of the FTL.
    ///
    /// # Panics
    /// When it is not, or when a command may write more than the buffer always takes.
    pub fn new(sim: &Sim, media: Rc<Media>, ftl: Rc<ZoneFtl>, config: &ControllerConfig) -> Zns {
        assert_eq!(config.lba_bytes, media.geometry().unit_size(), "a logical block is a unit");
        let most = u64::from(ftl.max_reserve()) * u64::from(SECTOR);
        assert!(u64::from(config.max_transfer) <= most, "the buffer takes {most} bytes of a command");
        Zns { sim: sim.clone(), nvm: Nvm::new(sim, media, ftl, config), processor: Resource::new(sim) }
    }

    fn ftl(&self) -> &Rc<ZoneFtl> {
        self.nvm.ftl()
    }

    /// The zone that a logical block is in, and its number there.
    fn zone_of(&self, slba: u64) -> (u32, u32) {
        let size = u64::from(self.ftl().config().size);
        ((slba / size) as u32, (slba % size) as u32)
    }

    /// Checks that the zones of a read are readable. Other errors are found when it is served.
    fn check_readable(&self, command: &Command<'_>) -> Result<(), Status> {
        let (slba, blocks) = (command.entry.slba(), u64::from(Cdw12::of(command.entry).nlb_z()) + 1);
        if command.namespace.check_range(slba, blocks).is_err() {
            return Ok(());
        }
        self.check_zones_readable(slba, blocks)
    }

    /// Checks that the zones of existing blocks are readable.
    fn check_zones_readable(&self, slba: u64, blocks: u64) -> Result<(), Status> {
        let (first, last) = (self.zone_of(slba).0, self.zone_of(slba + blocks - 1).0);
        match (first..=last).all(|zone| self.ftl().is_readable(zone)) {
            true => Ok(()),
            false => Err(Status::ZONE_IS_OFFLINE.final_()),
        }
    }
}

impl Zns {
    /// Calls `changed` with the first block of a zone whenever the drive itself has changed the zone.
    pub(crate) fn on_zone_change(&self, changed: Box<dyn Fn(u64)>) {
        let size = u64::from(self.ftl().config().size);
        self.ftl().on_change(Box::new(move |zone| changed(u64::from(zone) * size)));
    }
}

impl CommandSet for Zns {
    fn info(&self) -> SetInfo {
        SetInfo { keeps_metadata: false, sanitizes: false, ..self.nvm.info() }
    }

    fn identifier(&self) -> u8 {
        zns::CSI
    }

    fn prefetch(&self, _: &Namespace, _: &SubmissionEntry) {}

    fn traced(&self, entry: &SubmissionEntry) -> (&'static str, u64) {
        let name = match IoOpcode(entry.opcode) {
            IoOpcode::READ => "read",
            IoOpcode::WRITE => "write",
            IoOpcode::ZONE_APPEND => "append",
            _ => "other",
        };
        (name, entry.slba() << 16 | u64::from(Cdw12::of(entry).nlb_z()))
    }

    fn storage(&self) -> &dyn Storage {
        &self.nvm
    }

    fn serve<'a>(&'a self, command: &'a Command<'a>, breakdown: &'a mut Breakdown) -> Later<'a, Reply> {
        Box::pin(async move {
            match IoOpcode(command.entry.opcode) {
                IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY => match self.check_readable(command) {
                    Ok(()) => self.nvm.serve_directly(command, breakdown).await,
                    Err(status) => Err(status).into(),
                },
                IoOpcode::FLUSH => self.nvm.serve_directly(command, breakdown).await,
                IoOpcode::WRITE => self.write(command, breakdown).await.into(),
                IoOpcode::ZONE_APPEND => match self.append(command, breakdown).await {
                    Ok(lba) => Reply { dw1: (lba >> 32) as u32, ..Reply::value(lba as u32) },
                    Err(failure) => Err(failure).into(),
                },
                IoOpcode::COPY => self.copy(command, breakdown).await.into(),
                IoOpcode::ZONE_MANAGEMENT_SEND => self.send(command, breakdown).await.into(),
                IoOpcode::ZONE_MANAGEMENT_RECEIVE => self.report(command, breakdown).await.into(),
                _ => Err(Status::INVALID_OPCODE.final_()).into(),
            }
        })
    }

    fn identify_controller(&self, data: &mut IdentifyController) {
        self.nvm.identify_controller(data);
        self.fill_in_controller(data);
    }

    fn identify_namespace(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
        self.namespace_data(namespace)
    }

    fn identify_specific(&self, namespace: Option<&Namespace>, set: u8) -> Vec<u8> {
        self.specific_data(namespace, set)
    }

    fn effects(&self, effects: &mut CommandsAndEffects) {
        self.fill_in_effects(effects);
    }

    fn zones(&self) -> Option<&Zns> {
        Some(self)
    }
}
