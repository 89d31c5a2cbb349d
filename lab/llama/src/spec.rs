//! A tree, its store and its host.

use std::rc::Rc;

use nandscape_device_ssd::Resolved;
use nandscape_drive::Drive;
use nandscape_host_llama::{AnyStore, BwTree, Config, Costs, EleosStore, Host, LogConfig, LogStore, OpenError};
#[cfg(target_os = "linux")]
use nandscape_host_store::Disk;

use crate::load::Load;

/// A form of the store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// The conventional one.
    Log(LogConfig),
    /// The offloaded one.
    Eleos,
}

impl Form {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Form::Log(_) => "conventional",
            Form::Eleos => "offloaded",
        }
    }

    /// Whether a drive has a tree of this form.
    #[cfg(target_os = "linux")]
    pub(crate) async fn is_there(
        &self,
        host: &Host,
        drive: Rc<dyn Drive>,
        admin: &dyn Drive,
    ) -> Result<bool, OpenError> {
        Ok(match self {
            Form::Log(_) => LogStore::is_there(host, drive).await?,
            Form::Eleos => BwTree::is_in(&EleosStore::open(host, drive, admin).await?).await?,
        })
    }

    /// Gives up whatever a drive holds.
    #[cfg(target_os = "linux")]
    pub(crate) async fn clear(&self, host: &Host, drive: Rc<dyn Drive>) -> Result<(), OpenError> {
        let cleared = match self {
            Form::Log(_) => LogStore::clear(host, drive).await,
            // Pages that were never written are none, and zeros are some.
            Form::Eleos => Disk::new(host, drive).clear(0).await,
        };
        Ok(cleared?)
    }

    /// Opens the tree on a drive.
    pub(crate) async fn open(
        &self,
        host: &Host,
        drive: Rc<dyn Drive>,
        admin: &dyn Drive,
        tree: Config,
    ) -> Result<BwTree<AnyStore>, OpenError> {
        let store = match *self {
            Form::Log(config) => AnyStore::Log(Box::new(LogStore::open(host, drive, config).await?)),
            Form::Eleos => AnyStore::Eleos(EleosStore::open(host, drive, admin).await?),
        };
        BwTree::open(host, store, tree).await
    }
}

/// A run in virtual time.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The drive.
    pub drive: Resolved,
    /// The form of the store.
    pub form: Form,
    /// The tree.
    pub tree: Config,
    /// Processors of the host.
    pub cores: usize,
    /// Processor time of the host's work.
    pub costs: Costs,
    /// The load.
    pub load: Load,
    /// Seed of everything random.
    pub seed: u64,
}
