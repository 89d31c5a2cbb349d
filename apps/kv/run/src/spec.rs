//! A cluster, its noise and its load.

use nandscape_apps_kv_engine::ServerConfig;
use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::noise::Pattern;
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_device_ssd::Resolved;
use nandscape_host_block::Config as BlockConfig;
use nandscape_host_network::simulated::Times;
use nandscape_host_path::Profile;
use nandscape_lab_run::chain::BlockOver;
use nandscape_lab_run::{MemberLayers, Precondition};
use nandscape_sim::Span;

use crate::load::Load;

/// Whose processors do the work.
#[derive(Clone, Debug)]
pub enum Processors {
    /// Each server has this number, and clients have enough.
    Each(usize),
    /// All servers and clients are on one machine with this number.
    Shared(usize),
    /// Each server has a machine like this, on which messages and I/Os cost processor time. Clients have enough.
    Machines(Box<Profile>),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Servers, each with a drive.
    pub servers: usize,
    /// Replicas of a key.
    pub replicas: usize,
    /// The load.
    pub load: Load,
    /// The drives of every server, those that have no profile of their own.
    pub drive: Resolved,
    /// The layers of every server's host over its drives.
    pub over: MemberLayers,
    /// The state of the drives.
    pub precondition: Precondition,
    /// The noise on the drive of each server, from the first on; those beyond have none.
    pub noise: Vec<Option<Pattern>>,
    /// The policy's name.
    pub policy: String,
    /// Its settings.
    pub tuning: Tuning,
    /// The choice of the replica that is asked first.
    pub order: Order,
    /// The network.
    pub network: Times,
    /// Handlers and work of a server.
    pub server: ServerConfig,
    /// A processor's work for each message of a client.
    pub client_work: Span,
    /// The processors.
    pub processors: Processors,
    /// Seed of everything random.
    pub seed: u64,
}

impl Spec {
    /// Three servers with a drive and 20,000 values of 1 KB, one client, and no noise.
    pub fn new(drive: Resolved) -> Spec {
        Spec {
            servers: 3,
            replicas: 3,
            load: Load::default(),
            drive,
            over: Spec::behind_block_layers(BlockConfig::default()),
            precondition: Precondition::None,
            noise: Vec::new(),
            policy: "base".to_owned(),
            tuning: Tuning { deadline: Span::from_ms(2), busy_share: None, hedge: None, clients: 1 },
            order: Order::Primary,
            network: Times::default(),
            server: ServerConfig::default(),
            client_work: Span::ZERO,
            processors: Processors::Each(8),
            seed: 1,
        }
    }
    /// A drive for each server, behind the block layer of its host.
    pub fn behind_block_layers(config: BlockConfig) -> MemberLayers {
        MemberLayers { layers: vec![BlockOver { config, is_chosen: true }.into()], profiles: Vec::new() }
    }
}
