//! A tree, its store and its host.

use std::rc::Rc;

use nandscape_apps_llama_engine::{
    AnyStore, BwTree, ChainConfig, ChainStore, Config, Costs, EleosStore, Host, LogConfig, LogStore, OpenError,
};
#[cfg(target_os = "linux")]
use nandscape_apps_store::Disk;
use nandscape_device_ssd::Resolved;
use nandscape_drive::Drive;
use nandscape_lab_run::Below;
use nandscape_sim::units::Bytes;

use crate::load::Load;

/// A form of the store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// The conventional one.
    Log(LogConfig),
    /// The offloaded one, with pages of 4 KiB.
    Eleos,
    /// The offloaded one, with pages of any length.
    Chains(ChainConfig),
}

impl Form {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Form::Log(_) => "conventional",
            Form::Eleos => "offloaded",
            Form::Chains(ChainConfig { pieces: 1, .. }) => "offloaded, variable",
            Form::Chains(_) => "offloaded, deltas",
        }
    }

    /// It with its keys, for reports.
    pub(crate) fn described(&self) -> String {
        let pages = |bytes: u32, pieces| format!("page={} pieces={pieces}", Bytes(bytes.into()));
        match self {
            Form::Log(LogConfig { page_bytes, segment_bytes, pieces, checkpoint, trim, .. }) => {
                let checkpoint = checkpoint.map_or_else(|| "none".to_owned(), |every| every.to_string());
                let segment = Bytes(u64::from(*segment_bytes));
                let pages = pages(*page_bytes, pieces);
                format!("form=conventional {pages} segment={segment} checkpoint={checkpoint} trim={trim}")
            }
            Form::Eleos => "form=offloaded".to_owned(),
            Form::Chains(ChainConfig { page_bytes, pieces }) => format!("form=chains {}", pages(*page_bytes, pieces)),
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
        Ok(match *self {
            Form::Log(_) => LogStore::is_there(host, drive).await?,
            Form::Eleos => BwTree::is_in(&EleosStore::open(host, drive, admin).await?).await?,
            Form::Chains(config) => match ChainStore::open(host, drive, admin, config).await {
                // A namespace of blocks: its blocks show whether it is in use.
                Err(OpenError::NoPieces) => false,
                Err(error) => return Err(error),
                // A namespace without pages holds no data to lose.
                Ok(store) => BwTree::is_in(&store).await? || store.is_empty(admin).await?,
            },
        })
    }

    /// Gives up whatever a drive holds.
    #[cfg(target_os = "linux")]
    pub(crate) async fn clear(&self, host: &Host, drive: Rc<dyn Drive>, admin: &dyn Drive) -> Result<(), OpenError> {
        let cleared = match self {
            Form::Log(_) => LogStore::clear(host, drive.clone()).await,
            // Pages that were never written are none, and zeros are some.
            Form::Eleos => Disk::new(host, drive.clone()).clear(0).await,
            Form::Chains(_) => return ChainStore::format(host, &drive, admin).await,
        };
        match cleared.map_err(OpenError::of_blocks) {
            // After a format it has empty blocks.
            Err(OpenError::HasPieces) => ChainStore::format_for_blocks(host, &drive, admin).await,
            cleared => cleared,
        }
    }

    /// Opens the tree on a drive. With `Form::Chains`, a namespace of another format is formatted for pages of any
    /// length.
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
            Form::Chains(config) => AnyStore::Chains(open_chains(host, drive, admin, config).await?),
        };
        BwTree::open(host, store, tree).await
    }
}

async fn open_chains(
    host: &Host,
    drive: Rc<dyn Drive>,
    admin: &dyn Drive,
    config: ChainConfig,
) -> Result<ChainStore, OpenError> {
    match ChainStore::open(host, drive.clone(), admin, config).await {
        Err(OpenError::NoPieces) => {
            ChainStore::format(host, &drive, admin).await?;
            ChainStore::open(host, drive, admin, config).await
        }
        opened => opened,
    }
}

/// A run in simulated time.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The drive.
    pub drive: Resolved,
    /// Layers of the host over as many such drives as they need, and what else is below.
    pub below: Below,
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
