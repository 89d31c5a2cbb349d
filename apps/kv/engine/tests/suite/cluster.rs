//! Servers over drives in memory, and clients of them, on one executor.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_kv_engine::policy::{Policy, Tuning, named};
use nandscape_apps_kv_engine::store::{Extent, Layout};
use nandscape_apps_kv_engine::{Client, ClientConfig, Server, ServerConfig, Store};
use nandscape_apps_store::Cpu;
use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_host_network::Network;
use nandscape_host_network::simulated::{Joined, SimulatedNetwork, Times as NetTimes};
use nandscape_sim::{Rng, Seed, Sim, Span};

/// Blocks of a store; the noise's extent follows them.
const BLOCKS: u64 = 4_096;

pub(crate) struct Cluster {
    pub(crate) sim: Sim,
    pub(crate) net: Rc<SimulatedNetwork>,
    disks: Vec<Rc<Disk>>,
    pub(crate) drives: RefCell<Vec<Rc<QueueingDrive>>>,
    config: ServerConfig,
}

impl Cluster {
    pub(crate) async fn new(sim: &Sim, servers: usize) -> Cluster {
        Cluster::with(sim, servers, ServerConfig::default()).await
    }

    pub(crate) async fn with(sim: &Sim, servers: usize, config: ServerConfig) -> Cluster {
        let net = SimulatedNetwork::new(sim, servers, NetTimes::default());
        let disks: Vec<_> = (0..servers).map(|_| Disk::new(BLOCKS as usize * 512 * 2)).collect();
        let drives = RefCell::new(disks.iter().map(|disk| QueueingDrive::new(sim, disk, Times::FLASH)).collect());
        let cluster = Cluster { sim: sim.clone(), net, disks, drives, config };
        for number in 0..servers {
            cluster.start(number).await;
        }
        cluster
    }

    /// Starts a server on its disk.
    pub(crate) async fn start(&self, number: usize) {
        let drive = QueueingDrive::new(&self.sim, &self.disks[number], Times::FLASH);
        self.drives.borrow_mut()[number] = drive.clone();
        let layout = Layout { extent: Extent { slba: 0, blocks: BLOCKS }, segment_bytes: 64 << 10 };
        let store = Store::open(&self.sim, drive, layout, 1 + number as u64).await.expect("a store");
        let cpu = Rc::new(Cpu::new(&self.sim, 8));
        let server = Server::new(&self.sim, Rc::new(store), cpu, self.config);
        self.net.start(number, Rc::new(server));
    }

    /// Kills a server while its drive loses power.
    pub(crate) fn kill(&self, number: usize, rng: &mut Rng) {
        self.net.kill(number);
        self.drives.borrow()[number].tear(rng);
    }

    pub(crate) fn client(&self, policy: Rc<dyn Policy>, config: ClientConfig) -> Client {
        let network: Rc<dyn Network> = Rc::new(Joined(self.net.clone()));
        let cpu = Rc::new(Cpu::elsewhere(&self.sim));
        Client::new(&self.sim, &network, self.disks.len(), policy, (config, cpu), Seed::new(3))
    }

    /// Writes 64 KiB blocks to a server's drive, this number at a time.
    pub(crate) fn disturb(&self, number: usize, depth: u32) {
        use nandscape_apps_kv_engine::noise::{Noise, Pattern};
        let extent = Extent { slba: BLOCKS, blocks: BLOCKS };
        let noise = Noise::new(&self.sim, self.drives.borrow()[number].clone(), extent);
        self.sim.spawn(noise.run(Pattern::Steady { depth }, Seed::new(9)));
    }
}

pub(crate) fn tuning() -> Tuning {
    Tuning { deadline: Span::from_us(500), busy_share: None, hedge: Some(Span::from_us(800)), clients: 1 }
}

pub(crate) fn policy(name: &str) -> Rc<dyn Policy> {
    named(name, &tuning()).expect("a policy")
}

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("user{number:06}").into_bytes()
}

pub(crate) fn value(number: u64, version: u64) -> Vec<u8> {
    let len = 500 + nandscape_sim::rng::mix(number ^ version << 32) % 1_000;
    (0..len).map(|place| (place ^ number ^ (version * 5)) as u8).collect()
}
