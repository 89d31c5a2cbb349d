//! The cache passes the checks of every drive, with little memory and with much, and with every eviction policy.

use nandscape_device_disk::Disk;
use nandscape_drive::conformance::{self, Subject};
use nandscape_layers_cache::{Cache, CacheError};
use nandscape_sim::{Executor, Sim};

use crate::rig::{cache, config, profile, seed, spec};

#[test]
fn over_a_block_layer() {
    let profile = profile(&spec());
    for settings in [
        &["cache.memory=64KiB"][..],
        &["cache.memory=1MiB", "cache.replacement=clock", "cache.hit=0", "cache.reject=0"],
        &["cache.memory=4KiB", "cache.predict_only=true"],
        &["cache.memory=64MiB", "cache.load_rejected=false"],
    ] {
        let make = |sim: &Sim| Subject::new(cache(sim, &profile, settings).0);
        conformance::all(&make, seed()).unwrap_or_else(|what| panic!("{settings:?}: {what}"));
    }
}

#[test]
fn over_a_disk_without_predictions() {
    let make = |sim: &Sim| {
        let disk = Disk::new(sim, &spec()).expect("a possible disk");
        Subject::new(Cache::over(sim, config(&["cache.memory=256KiB"]), disk, None).expect("pages of its blocks"))
    };
    conformance::all(&make, seed()).unwrap_or_else(|what| panic!("{what}"));
}

#[test]
fn drives_whose_blocks_are_no_part_of_a_page_are_refused() {
    use nandscape_drive::{Drive, DriveInfo, Io};
    struct Odd(DriveInfo);
    impl Drive for Odd {
        fn info(&self) -> DriveInfo {
            self.0
        }
        fn submit(&self, _: Io) {}
    }
    let sim = Executor::new().sim();
    let info = nandscape_drive::testing::INFO;
    for (info, problem) in [
        (DriveInfo { metadata_bytes: 8, ..info }, "8 bytes of metadata"),
        (DriveInfo { lba_bytes: 520, ..info }, "520 bytes"),
        (DriveInfo { max_blocks: 4, lba_bytes: 512, ..info }, "4 blocks at the most"),
    ] {
        let refused = Cache::over(&sim, config(&[]), std::rc::Rc::new(Odd(info)), None);
        let error: CacheError = refused.err().expect("refused");
        assert!(error.to_string().contains(problem), "{error}");
    }
}
