//! The two forms of a storage of runs, and opening it.

use std::rc::Rc;

use nandscape_apps_lsm_engine::{AnyStorage, BlockConfig, BlockStorage, OpenError, RunStorage};
use nandscape_apps_store::Host;
#[cfg(target_os = "linux")]
use nandscape_apps_store::{Disk, StoreError};
use nandscape_drive::Drive;
#[cfg(target_os = "linux")]
use nandscape_host_eleos::format_for_pieces;
use nandscape_sim::units::Bytes;
#[cfg(target_os = "linux")]
use nandscape_wire_nvme::Status;

/// Where runs are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// In extents of a conventional drive.
    Block(BlockConfig),
    /// On a drive that knows runs.
    Runs,
}

impl Form {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Form::Block(_) => "generic",
            Form::Runs => "lsm",
        }
    }

    /// It with its keys, for reports.
    pub(crate) fn described(&self) -> String {
        match self {
            Form::Block(BlockConfig { chunk, run, trim, .. }) => {
                format!("form=generic chunk={} longest_run={} trim={trim}", Bytes(*chunk), Bytes(*run))
            }
            Form::Runs => "form=lsm".to_owned(),
        }
    }

    /// Whether a drive has a store of this form, or cannot hold anything else.
    #[cfg(target_os = "linux")]
    pub(crate) async fn is_there(&self, host: &Host, drive: Rc<dyn Drive>) -> Result<bool, OpenError> {
        match self {
            Form::Block(config) => BlockStorage::is_there(host, drive, config).await,
            Form::Runs => Ok(true),
        }
    }

    /// Gives up whatever a drive holds.
    #[cfg(target_os = "linux")]
    pub(crate) async fn clear(&self, host: &Host, drive: Rc<dyn Drive>, admin: &dyn Drive) -> Result<(), OpenError> {
        let Form::Block(config) = self else { return RunStorage::clear(host, drive).await };
        match BlockStorage::clear(host, drive.clone(), config).await {
            // A namespace whose pages are chains of pieces has no blocks (OX-ELEOS). After a format it has empty
            // blocks.
            Err(OpenError::Store(StoreError::Drive(status))) if status.meaning() == Status::INVALID_NAMESPACE => {
                let disk = Disk::new(host, drive);
                let formatted = format_for_pieces(&disk.issuer, admin, &disk.info, false).await;
                formatted.map_err(|_| OpenError::Store(StoreError::Drive(status)))
            }
            cleared => cleared,
        }
    }

    /// The storage on a drive.
    pub(crate) async fn storage(&self, host: &Host, drive: Rc<dyn Drive>) -> Result<AnyStorage, OpenError> {
        Ok(match *self {
            Form::Block(config) => AnyStorage::Block(Box::new(BlockStorage::open(host, drive, config).await?)),
            Form::Runs => AnyStorage::Runs(Box::new(RunStorage::open(host, drive).await?)),
        })
    }
}
