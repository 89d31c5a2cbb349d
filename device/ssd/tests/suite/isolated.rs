//! Persistent isolation over a saved state: no block ever holds data of two handles, including data that collections move
//! after the start.

use std::collections::BTreeMap;

use nandscape_device_media::{BlockId, StoreKind};
use nandscape_device_ssd::{Profile, Resolved, SavedDrive, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Rng, Seed};
use nandscape_wire_nvme::fdp::DTYPE_PLACEMENT;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

/// Blocks of 512 bytes of a mapping unit.
const UNIT: u64 = 8;
const HANDLES: u64 = 3;

fn profile() -> Resolved {
    let mut profile = Profile::load("default").unwrap();
    profile
        .set_all([
            "capacity=64MiB",
            "geometry.channels=2",
            "geometry.dies_per_channel=1",
            "geometry.pages_per_block=24",
            "buffer.size=1MiB",
            "ftl.fdp.handles=3",
            "ftl.fdp.isolation=persistent",
        ])
        .unwrap();
    profile.resolve().unwrap()
}

/// Each handle writes its third of the drive at random; then the drive comes to rest.
fn work(rng: &mut Rng, saved: Option<SavedDrive>) -> SavedDrive {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), profile());
    let ssd = match saved {
        Some(saved) => Ssd::restore(&sim, &profile, StoreKind::None, Seed::new(2), saved).unwrap(),
        None => Ssd::new(&sim, &profile, StoreKind::None, Seed::new(2)).unwrap(),
    };
    let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 32).unwrap();
    let third = (64 << 20) / 512 / UNIT / HANDLES;
    let writes = async {
        let issuer = Issuer::new(&sim);
        for _ in 0..4_000 {
            let under_way: Vec<_> = (0..8)
                .map(|_| {
                    let (handle, unit) = (rng.below(HANDLES), rng.below(third));
                    let write =
                        SubmissionEntry::blocks(IoOpcode::WRITE, 1, (handle * third + unit) * UNIT, UNIT as u32);
                    let cdw12 = write.cdw12.get() | u32::from(DTYPE_PLACEMENT) << 20;
                    let write = SubmissionEntry { cdw12: cdw12.into(), cdw13: ((handle as u32) << 16).into(), ..write };
                    issuer.execute(&*drive, write, HostMem::none())
                })
                .collect();
            for write in under_way {
                assert!(write.await.status.is_success());
            }
        }
        ssd.come_to_rest().await;
    };
    executor.block_on(writes).unwrap();
    ssd.check().unwrap();
    let report = ssd.parts()[0].placement().expect("it has handles");
    assert_eq!(report.mixed_moved, 0);
    assert!(report.handles.iter().all(|handle| handle.moved > 1 << 20), "{report:?}");
    check_blocks(&ssd, third);
    ssd.take_saved().unwrap()
}

fn check_blocks(ssd: &Ssd, third: u64) {
    let (media, mut blocks) = (ssd.media(), BTreeMap::<u64, u32>::new());
    let geometry = media.geometry();
    for block in (0..geometry.blocks()).map(BlockId) {
        let mut owner = None;
        for page in 0..media.pages_programmed(block) {
            let page = geometry.page_at(block, page);
            let tags = (0..geometry.units_per_page()).map(|unit| u64::from(media.tag(geometry.unit_at(page, unit))));
            for handle in tags.map(|tag| tag / third).filter(|handle| *handle < HANDLES) {
                assert_eq!(*owner.get_or_insert(handle), handle, "{block:?}");
            }
        }
        owner.into_iter().for_each(|owner| *blocks.entry(owner).or_default() += 1);
    }
    assert_eq!(blocks.len() as u64, HANDLES, "{blocks:?}");
}

#[test]
fn no_block_holds_data_of_two_handles_over_saved_states() {
    let mut rng = Seed::new(4).rng();
    let mut saved = None;
    for _ in 0..3 {
        saved = Some(work(&mut rng, saved.take()));
    }
}
