//! The NVM command set over an FTL for LSM-trees: Write appends to runs, and three vendor commands open, commit and report
//! runs ([`runs`](nandscape_wire_nvme::runs)).
//!
//! | file | what |
//! |---|---|
//! | `write` | Write: an append |
//! | `manage` | open, commit, report |
//! | `identify` | Identify and the Commands Supported and Effects log |
//!
//! Read, Compare, Verify and Flush are those of the NVM command set. Blocks outside runs read as zeros.
//!
//! Left out, and not offered: Write Zeroes, Dataset Management, Write Uncorrectable, Copy, several namespaces, Format and Sanitize.

mod identify;
mod manage;
mod write;

use std::rc::Rc;

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_core::address::SECTOR;
use nandscape_device_ftl_zoned::LsmFtl;
use nandscape_device_ftl_zoned::lsm::RunError;
use nandscape_device_media::Media;
use nandscape_drive::Breakdown;
use nandscape_sim::Sim;
use nandscape_wire_nvme::identify::{Controller as IdentifyController, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::log::CommandsAndEffects;
use nandscape_wire_nvme::vendor::{RUN_COMMIT, RUN_OPEN, RUN_REPORT};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::nvm::Nvm;
use super::{Command, CommandSet, Later, Reply, SetInfo, Storage};
use crate::config::ControllerConfig;
use crate::namespace::Namespace;

/// See the file.
pub struct Runs {
    sim: Sim,
    nvm: Nvm<LsmFtl>,
}

/// The status for the reason why a run rejects a command. The statuses of zones fit.
fn status_of(error: RunError) -> Status {
    match error {
        RunError::NoRun | RunError::NoLevel => Status::INVALID_FIELD.final_(),
        RunError::NotAtEnd => Status::ZONE_INVALID_WRITE.final_(),
        RunError::TooLong => Status::ZONE_BOUNDARY_ERROR.final_(),
        RunError::Sealed => Status::ZONE_IS_FULL.final_(),
        // A retry may succeed.
        RunError::Busy => Status::COMMAND_SEQUENCE_ERROR,
        RunError::Full | RunError::NoPlace => Status::CAPACITY_EXCEEDED,
        RunError::PowerLost => Status::ABORTED_POWER_LOSS,
    }
}

impl Runs {
    /// The commands of a drive over `ftl`, which uses `media`. A logical block is a unit of the FTL.
    ///
    /// # Panics
    /// When it is not, or when a command may write more than the buffer always takes.
    pub fn new(sim: &Sim, media: Rc<Media>, ftl: Rc<LsmFtl>, config: &ControllerConfig) -> Runs {
        assert_eq!(config.lba_bytes, media.geometry().unit_size(), "a logical block is a unit");
        let most = u64::from(ftl.max_reserve()) * u64::from(SECTOR);
        assert!(u64::from(config.max_transfer) <= most, "the buffer takes {most} bytes of a command");
        Runs { sim: sim.clone(), nvm: Nvm::new(sim, media, ftl, config) }
    }

    fn ftl(&self) -> &Rc<LsmFtl> {
        self.nvm.ftl()
    }
}

impl CommandSet for Runs {
    fn info(&self) -> SetInfo {
        SetInfo { keeps_metadata: false, sanitizes: false, ..self.nvm.info() }
    }

    fn prefetch(&self, _: &Namespace, _: &SubmissionEntry) {}

    fn traced(&self, entry: &SubmissionEntry) -> (&'static str, u64) {
        let name = match IoOpcode(entry.opcode) {
            IoOpcode::READ => "read",
            IoOpcode::WRITE => "write",
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
                IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY | IoOpcode::FLUSH => {
                    self.nvm.serve_directly(command, breakdown).await
                }
                IoOpcode::WRITE => self.write(command, breakdown).await.into(),
                RUN_OPEN => match self.open(command) {
                    Ok(run) => Reply::value(run),
                    Err(failure) => Err(failure).into(),
                },
                RUN_COMMIT => self.commit(command, breakdown).await.into(),
                RUN_REPORT => self.report(command, breakdown).await.into(),
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

    fn effects(&self, effects: &mut CommandsAndEffects) {
        self.fill_in_effects(effects);
    }
}
