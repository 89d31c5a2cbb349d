//! Small disks behind a block layer with predictions, and caches over them.

use std::rc::Rc;

use nandscape_device_disk::{Disk, DiskSpec, Seek};
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_host_block::predictor::{DiskProfile, MittNoop, calibrate};
use nandscape_host_block::{BlockLayer, Config as BlockConfig};
use nandscape_layers_cache::{Cache, Config};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

pub(crate) fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

/// A disk of 16 MiB.
pub(crate) fn spec() -> DiskSpec {
    let ms = Span::from_ms;
    let seek = Seek { single: Span::from_us(200), average: ms(4), full: ms(8) };
    DiskSpec { cylinders: 256, heads: 2, sectors: 64, read: seek, write: seek, ..DiskSpec::constellation_2() }
}

/// How long it takes, measured on it.
pub(crate) fn profile(spec: &DiskSpec) -> DiskProfile {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let disk = Disk::new(&sim, spec).expect("a possible disk");
    executor.block_on(calibrate(&sim, &*disk, Seed::new(77), 60)).unwrap().expect("the disk serves")
}

pub(crate) fn config(settings: &[&str]) -> Config {
    let mut config = Config::default();
    settings.iter().for_each(|setting| config.set(setting).expect("a valid setting"));
    config
}

/// A cache over a block layer over a disk, and the layer's drive.
pub(crate) fn cache(sim: &Sim, profile: &DiskProfile, settings: &[&str]) -> (Rc<Cache>, Rc<dyn Drive>) {
    let mut block = BlockConfig::default();
    block.set("block.predictor=noop-disk").expect("a valid setting");
    let predictor = MittNoop::new(profile.clone(), &block);
    let layer = BlockLayer::new(sim, block, Some(predictor));
    let below: Rc<dyn Drive> = layer.over(Disk::new(sim, &spec()).expect("a possible disk"));
    let cache = Cache::over(sim, config(settings), below.clone(), Some(layer)).expect("pages of its blocks");
    (cache, below)
}

/// A read of a page with a deadline in microseconds.
pub(crate) fn read(page: u64, deadline: u32) -> SubmissionEntry {
    let mut read = SubmissionEntry::blocks(IoOpcode::READ, 1, page * 8, 8);
    read.cdw3 = deadline.into();
    read
}

/// Reads pages, one after the other.
pub(crate) async fn warm(sim: &Sim, drive: &dyn Drive, pages: std::ops::Range<u64>) {
    let issuer = Issuer::new(sim);
    for page in pages {
        let ended = issuer.execute(drive, read(page, 0), HostMem::zeroed(4_096)).await;
        assert!(ended.status.is_success());
    }
}
