//! A shingled disk. Another tenant writes to a part of it now and then; the disk's media cache fills, and the disk cleans bands:
//! when it is idle, and when a write finds no room.

use std::rc::Rc;

use nandscape_apps_kv_engine::{Server, ServerConfig};
use nandscape_apps_kv_run::Load;
use nandscape_apps_store::Cpu;
use nandscape_device_disk::{DiskSpec, Shingled, ShingledSpec};
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_host_block::predictor::{DiskProfile, MittSmr};
use nandscape_host_block::{BlockLayer, Config as BlockConfig, PredictorKind};
use nandscape_sim::{Rng, Seed, Sim, Span, Time};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::cluster::{Replica, Replicas, RunError};
use crate::disks;
use crate::keys::{Change, KeyError};
use crate::noise::Spells;
use crate::spec::Spec;

/// See the file.
#[derive(Clone, Debug)]
pub struct SmrSpec {
    /// Tracks of a band.
    pub band: u32,
    /// Tracks of the media cache.
    pub cache: u32,
    /// How long the disk is idle before it cleans.
    pub idle: Span,
    /// When the tenant writes.
    pub noise: Spells,
    /// Bytes of the part of the disk that it writes to.
    pub area: u64,
}

impl Default for SmrSpec {
    /// The usual disk, and a tenant that writes for two seconds, every 10 s, to 256 MiB of it.
    fn default() -> SmrSpec {
        let ShingledSpec { band, cache, idle, .. } = ShingledSpec::usual();
        let noise = Spells { on: Span::from_s(2), off: Span::from_s(10) };
        SmrSpec { band, cache, idle, noise, area: 256 << 20 }
    }
}

const KEYS: [(&str, &str); 6] = [
    ("smr.band", "tracks of a band, of 0.7 MiB"),
    ("smr.cache", "tracks of the media cache"),
    ("smr.idle", "how long the disk is idle before it cleans, such as 500ms"),
    ("noise.on", "the mean time for which the tenant writes, such as 2s"),
    ("noise.off", "the mean time between, such as 10s"),
    ("noise.area", "the part of the disk that the tenant writes to, such as 256MiB"),
];

/// Bytes of a store; what the tenant writes to begins there.
const STORE: u64 = 256 << 20;
/// Processors of a server.
const CORES: usize = 8;
/// Blocks of a write of the tenant.
const WRITE: u32 = 128;

impl SmrSpec {
    pub(crate) fn keys() -> Vec<(&'static str, &'static str)> {
        KEYS.to_vec()
    }

    pub(crate) fn set(&mut self, change: &Change<'_>) -> Result<(), KeyError> {
        match change.key {
            "smr.band" => self.band = change.number(1..=10_000)? as u32,
            "smr.cache" => self.cache = change.number(6..=100_000)? as u32,
            "smr.idle" => self.idle = change.time()?,
            "noise.on" => self.noise.on = change.time()?,
            "noise.off" => self.noise.off = change.time()?,
            "noise.area" => self.area = change.size(1 << 20..=1 << 38)?,
            _ => return Err(change.unknown(&KEYS)),
        }
        Ok(())
    }

    /// Few gets: a disk that is never idle cleans only when it must.
    pub(crate) fn usual_load() -> Load {
        Load { clients: 2, think: Span::from_ms(60), records: 4_000, requests: 10_000, ..Load::default() }
    }

    /// Servers with a store each.
    pub(crate) async fn build(&self, sim: &Sim, spec: &Spec, profile: &DiskProfile) -> Result<Replicas, RunError> {
        let mut replicas = Replicas::default();
        for number in 0..spec.servers {
            let (layer, drive) = self.drive(sim, spec, profile)?;
            let store = disks::store(sim, number, &drive, STORE).await?;
            let cpu = Rc::new(Cpu::new(sim, CORES));
            let server = Rc::new(Server::new(sim, store.clone(), cpu, ServerConfig::default()));
            let (anew, counted) = (layer.clone(), layer);
            let (noise, of_noise, area) = (self.noise, sim.clone(), self.area);
            replicas.stores.push(store);
            replicas.all.push(Replica {
                server,
                count_anew: Box::new(move || anew.count_anew()),
                counted: Box::new(move || counted.counted()),
                disturb: Box::new(move |seed: Seed| {
                    let (sim, writer) = (of_noise.clone(), Writer { sim: of_noise, drive, area });
                    let writer = Rc::new(writer);
                    sim.spawn(noise.run(sim.clone(), seed, move |rng, length| writer.clone().begin(rng, length)));
                }),
            });
        }
        Ok(replicas)
    }

    fn drive(
        &self,
        sim: &Sim,
        spec: &Spec,
        profile: &DiskProfile,
    ) -> Result<(Rc<BlockLayer>, Rc<dyn Drive>), RunError> {
        let disk = DiskSpec { keeps_data: false, ..DiskSpec::constellation_2() };
        let shingled = ShingledSpec { disk, band: self.band, cache: self.cache, idle: self.idle };
        let disk = Shingled::new(sim, &shingled).map_err(|error| RunError::Build(error.to_string()))?;
        let block = BlockConfig {
            predictor: PredictorKind::SmrDisk,
            predict_only: spec.predict_only,
            ..BlockConfig::default()
        };
        let predictor = MittSmr::new(sim, profile.clone(), disk.clone(), &block);
        disk.watch(predictor.clone());
        let layer = BlockLayer::new(sim, block, Some(predictor));
        Ok((layer.clone(), layer.over(disk)))
    }
}

/// The tenant: writes one after the other, at random places.
struct Writer {
    sim: Sim,
    drive: Rc<dyn Drive>,
    area: u64,
}

impl Writer {
    fn begin(self: Rc<Self>, rng: &mut Rng, length: Span) -> impl FnOnce() + use<> {
        let (until, rng) = (self.sim.now() + length, Seed::new(rng.bits()).rng());
        self.sim.clone().spawn(async move { self.write(until, rng).await });
        || ()
    }

    async fn write(&self, until: Time, mut rng: Rng) {
        let (info, issuer) = (self.drive.info(), Issuer::new(&self.sim));
        let first = STORE / u64::from(info.lba_bytes);
        let places = (self.area / u64::from(info.lba_bytes)).min(info.blocks.saturating_sub(first)) / u64::from(WRITE);
        while self.sim.now() < until && places > 0 {
            let slba = first + rng.below(places) * u64::from(WRITE);
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, info.nsid, slba, WRITE);
            issuer.execute(&*self.drive, entry, HostMem::none()).await;
        }
    }
}
