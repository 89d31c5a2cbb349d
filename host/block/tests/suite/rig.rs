//! Small modelled drives, and block layers over them that know their flash.

use std::rc::Rc;

use nandscape_device_media::{Priority, StoreKind};
use nandscape_device_ssd::{ManagedFlash, Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_host_block::predictor::{Flash, MittSsd, Order, Predictor};
use nandscape_host_block::{BlockLayer, Config};
use nandscape_sim::{Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

pub(crate) const SMALL: [&str; 7] = [
    "capacity=32MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=2",
    "geometry.planes_per_die=1",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=8",
];

pub(crate) fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

pub(crate) fn ssd(sim: &Sim, changes: &[&str]) -> Rc<Ssd> {
    let mut profile = Profile::load("default").expect("a built-in profile");
    SMALL.iter().chain(changes).for_each(|change| profile.set(change).expect("a valid change"));
    let profile = profile.resolve().expect("a possible drive");
    Rc::new(Ssd::new(sim, &profile, StoreKind::Ram, Seed::new(5)).expect("memory"))
}

pub(crate) fn queue(sim: &Sim, ssd: &Ssd, id: u16) -> Rc<dyn Drive> {
    QueueDrive::new(sim, ssd.controller(), QueueId(id), 1_025).expect("a free queue pair")
}

pub(crate) fn config(settings: &[&str]) -> Config {
    let mut config = Config::default();
    settings.iter().for_each(|setting| config.set(setting).expect("a valid setting"));
    config
}

/// A predictor that knows a drive's flash as its vendor specifies it.
pub(crate) fn mitt(sim: &Sim, ssd: &Rc<Ssd>, config: &Config, priority: Priority) -> Rc<MittSsd> {
    let map = ManagedFlash::of(ssd).expect("one FTL with a map");
    let order = if priority == Priority::Fifo { Order::Fifo } else { Order::ReadsFirst };
    let flash = Flash { sheet: map.sheet(), order, map: Box::new(map) };
    let mitt = MittSsd::new(sim, flash, config);
    assert!(ssd.media().watch(mitt.clone()), "the only watch");
    mitt
}

/// A layer with that predictor.
pub(crate) fn layer(sim: &Sim, ssd: &Rc<Ssd>, settings: &[&str], priority: Priority) -> (Rc<BlockLayer>, Rc<MittSsd>) {
    let config = config(settings);
    let mitt = mitt(sim, ssd, &config, priority);
    (BlockLayer::new(sim, config, Some(mitt.clone() as Rc<dyn Predictor>)), mitt)
}

/// Writes all blocks below a number, and waits until they are on flash.
pub(crate) async fn fill(sim: &Sim, drive: &dyn Drive, blocks: u64) {
    let issuer = Issuer::new(sim);
    for slba in (0..blocks).step_by(256) {
        let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 256);
        let mem = HostMem::from_bytes(&[9; 256 * 512]);
        assert!(issuer.execute(drive, write, mem).await.status.is_success());
    }
    sim.sleep(Span::from_ms(200)).await;
}

/// A read of 4 KiB with a deadline in microseconds.
pub(crate) fn read(slba: u64, deadline: u32) -> SubmissionEntry {
    let mut read = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 8);
    read.cdw3 = deadline.into();
    read
}
