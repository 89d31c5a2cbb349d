//! Where runs are: the two forms of a storage, and opening it.

use std::rc::Rc;

use nandscape_drive::Drive;
use nandscape_host_lsm::{AnyStorage, BlockConfig, BlockStorage, OpenError, RunStorage};
use nandscape_host_store::Host;

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

    /// Whether a drive has a store of this form, or can have nothing else.
    #[cfg(target_os = "linux")]
    pub(crate) async fn is_there(&self, host: &Host, drive: Rc<dyn Drive>) -> Result<bool, OpenError> {
        match self {
            Form::Block(config) => BlockStorage::is_there(host, drive, config).await,
            Form::Runs => Ok(true),
        }
    }

    /// Gives up whatever a drive holds.
    #[cfg(target_os = "linux")]
    pub(crate) async fn clear(&self, host: &Host, drive: Rc<dyn Drive>) -> Result<(), OpenError> {
        match self {
            Form::Block(config) => BlockStorage::clear(host, drive, config).await,
            Form::Runs => RunStorage::clear(host, drive).await,
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
