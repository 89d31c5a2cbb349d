//! The memory of a page cache. The values are in memory; now and then another tenant takes most of it, and gives it back. The
//! evicted values then come from a disk.

use std::rc::Rc;

use nandscape_apps_kv_engine::{Server, ServerConfig};
use nandscape_apps_kv_run::Load;
use nandscape_apps_store::Cpu;
use nandscape_device_disk::{Disk, DiskSpec};
use nandscape_drive::Drive;
use nandscape_host_block::predictor::{DiskProfile, MittNoop};
use nandscape_host_block::{BlockLayer, Config as BlockConfig, PredictorKind};
use nandscape_layers_cache::{Cache, Config};
use nandscape_sim::{Seed, Sim, Span};

use crate::cluster::{Replica, Replicas, RunError};
use crate::disks;
use crate::keys::{Change, KeyError};
use crate::noise::Spells;
use crate::spec::Spec;

/// See the file.
#[derive(Clone, Debug)]
pub struct CacheSpec {
    /// The cache.
    pub cache: Config,
    /// When the tenant has the memory.
    pub noise: Spells,
    /// The share of the memory that it leaves.
    pub left: f64,
}

impl Default for CacheSpec {
    /// 16 MiB of memory; every 5 s the tenant takes all but a tenth of it for a second.
    fn default() -> CacheSpec {
        CacheSpec {
            cache: Config { memory: 16 << 20, ..Config::default() },
            noise: Spells { on: Span::from_s(1), off: Span::from_s(5) },
            left: 0.1,
        }
    }
}

/// Bytes of a store.
const STORE: u64 = 256 << 20;
/// Processors of a server.
const CORES: usize = 8;

const NOISE: [(&str, &str); 3] = [
    ("noise.on", "the mean time for which the tenant has the memory, such as 1s"),
    ("noise.off", "the mean time between, such as 5s"),
    ("noise.left", "the share of the memory that it leaves, such as 10%"),
];

impl CacheSpec {
    pub(crate) fn keys() -> Vec<(&'static str, &'static str)> {
        let own = Config::KEYS.into_iter().filter(|(key, _)| *key != "cache.predict_only");
        own.chain(NOISE).collect()
    }

    pub(crate) fn set(&mut self, change: &Change<'_>, text: &str) -> Result<(), KeyError> {
        match change.key {
            "noise.on" => self.noise.on = change.time()?,
            "noise.off" => self.noise.off = change.time()?,
            "noise.left" => self.left = change.share()?,
            key if CacheSpec::keys().iter().any(|(known, _)| *known == key) => {
                let refused = |error: nandscape_layers_cache::ConfigError| {
                    change.wrong(error.to_string().split_once(": ").map_or("", |(_, problem)| problem))
                };
                self.cache.set(text).map_err(refused)?;
            }
            _ => return Err(change.unknown(&CacheSpec::keys())),
        }
        Ok(())
    }

    /// 4,000 values of 1 KB, some 6 MiB of pages.
    pub(crate) fn usual_load() -> Load {
        Load { clients: 3, think: Span::from_ms(4), records: 4_000, requests: 50_000, ..Load::default() }
    }

    /// Servers with a store each; `noisy` of them share with a tenant.
    pub(crate) async fn build(&self, sim: &Sim, spec: &Spec, profile: &DiskProfile) -> Result<Replicas, RunError> {
        let mut replicas = Replicas::default();
        for number in 0..spec.servers {
            let cache = self.cache(sim, spec, profile)?;
            let drive: Rc<dyn Drive> = cache.clone();
            let store = disks::store(sim, number, &drive, STORE).await?;
            let cpu = Rc::new(Cpu::new(sim, CORES));
            let server = Rc::new(Server::new(sim, store.clone(), cpu, ServerConfig::default()));
            replicas.stores.push(store);
            replicas.all.push(self.replica(sim, server, cache));
        }
        Ok(replicas)
    }

    fn replica(&self, sim: &Sim, server: Rc<Server>, cache: Rc<Cache>) -> Replica {
        let (noise, left, sim, memory) = (self.noise, self.left, sim.clone(), self.cache.memory);
        let (anew, counted) = (cache.clone(), cache.clone());
        Replica {
            server,
            count_anew: Box::new(move || anew.count_anew()),
            counted: Box::new(move || counted.counted()),
            disturb: Box::new(move |seed: Seed| {
                let spells = noise.run(sim.clone(), seed, move |_, _| {
                    cache.set_memory((memory as f64 * left) as u64);
                    let cache = cache.clone();
                    move || cache.set_memory(memory)
                });
                sim.spawn(spells);
            }),
        }
    }

    fn cache(&self, sim: &Sim, spec: &Spec, profile: &DiskProfile) -> Result<Rc<Cache>, RunError> {
        let block = BlockConfig { predictor: PredictorKind::NoopDisk, ..BlockConfig::default() };
        let predictor = MittNoop::new(profile.clone(), &block);
        let layer = BlockLayer::new(sim, block, Some(predictor));
        let below = layer.over(disk(sim)?);
        let config = Config { predict_only: spec.predict_only, ..self.cache.clone() };
        Cache::over(sim, config, below, Some(layer)).map_err(|error| RunError::Build(error.to_string()))
    }
}

/// The disk of a server.
pub(crate) fn disk(sim: &Sim) -> Result<Rc<dyn Drive>, RunError> {
    let spec = DiskSpec { keeps_data: false, ..DiskSpec::constellation_2() };
    let disk = Disk::new(sim, &spec).map_err(|error| RunError::Build(error.to_string()))?;
    Ok(disk)
}
