//! Features of one dword, set, saved, read and reset in any order, against maps of set and saved values.
//! `NANDSCAPE_TEST_SEED` sets the first seed; failures print their seed.

use std::collections::BTreeMap;

use crate::common::{config, with};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_drive::conformance::Host;
use nandscape_drive::{Controller, HostMem, QueueDrive, QueueId};
use nandscape_sim::{Rng, Seed, Span};
use nandscape_wire_nvme::feature::{self, SAVE};
use nandscape_wire_nvme::register::{CC, CC_EN};
use nandscape_wire_nvme::{NSID_ALL, Status, SubmissionEntry};

const SEEDS: u64 = 40;
const STEPS: u32 = 200;

/// A feature, the bits of CDW11 that name one of several values, its namespace, and the bits that it keeps.
#[derive(Copy, Clone, Debug)]
struct Feature {
    id: u8,
    selector: u32,
    nsid: u32,
    kept: u32,
    default: u32,
    is_saveable: bool,
}

const fn feature(id: u8, kept: u32, default: u32) -> Feature {
    Feature { id, selector: 0, nsid: 0, kept, default, is_saveable: true }
}

const UNDER: u32 = 1 << 20;

const FEATURES: [Feature; 12] = [
    feature(feature::ARBITRATION, u32::MAX, 3),
    // The power state itself can only be 0.
    feature(feature::POWER_MANAGEMENT, u32::MAX << 5, 0),
    feature(feature::TEMPERATURE_THRESHOLD, 0xffff, 343),
    Feature { selector: UNDER, ..feature(feature::TEMPERATURE_THRESHOLD, 0xffff, 0) },
    Feature { nsid: 1, ..feature(feature::ERROR_RECOVERY, u32::MAX, 0) },
    Feature { nsid: NSID_ALL, ..feature(feature::ERROR_RECOVERY, u32::MAX, 0) },
    feature(feature::VOLATILE_WRITE_CACHE, u32::MAX, 1),
    feature(feature::INTERRUPT_COALESCING, u32::MAX, 0),
    feature(feature::WRITE_ATOMICITY, u32::MAX, 0),
    feature(feature::ASYNC_EVENT_CONFIG, u32::MAX, 0),
    Feature { selector: 0, is_saveable: false, ..feature(feature::INTERRUPT_VECTOR, 1 << 16, 0) },
    Feature { selector: 2, is_saveable: false, ..feature(feature::INTERRUPT_VECTOR, 1 << 16, 0) },
];

type Values = BTreeMap<(u8, u32, u32), u32>;

impl Feature {
    fn name(&self) -> (u8, u32, u32) {
        (self.id, self.selector, self.nsid)
    }

    /// Sets the value; a value for all namespaces replaces those of single ones.
    fn set(&self, values: &mut Values, value: u32) {
        if self.nsid == NSID_ALL {
            values.retain(|(id, ..), _| *id != self.id);
        }
        values.insert(self.name(), value);
    }

    fn get(&self, values: &Values) -> u32 {
        let of_all = || values.get(&(self.id, self.selector, NSID_ALL));
        values.get(&self.name()).or_else(of_all).copied().unwrap_or(self.default)
    }
}

#[test]
fn values_are_those_that_were_set_and_saved() {
    let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("it is a number"));
    for seed in first..first + SEEDS {
        let ended = std::panic::catch_unwind(|| run(&mut Seed::new(seed).rng()));
        assert!(ended.is_ok(), "NANDSCAPE_TEST_SEED={seed} shows it at once");
    }
}

fn run(rng: &mut Rng) {
    with(ControllerConfig { buffer: BufferMode::Volatile, ..config() }, async |sim, drive| {
        let host = || Host::new(sim, QueueDrive::new(sim, drive.clone(), QueueId::ADMIN, 32).unwrap());
        let (mut admin, mut current, mut saved) = (host(), Values::new(), Values::new());
        for _ in 0..STEPS {
            let feature = FEATURES[rng.below(FEATURES.len() as u64) as usize];
            match rng.below(12) {
                0 => {
                    drop(admin);
                    let cc = drive.register(CC);
                    drive.set_register(CC, cc & !CC_EN);
                    sim.sleep(Span::from_ms(1)).await;
                    drive.set_register(CC, cc | CC_EN);
                    (admin, current) = (host(), saved.clone());
                }
                1..6 => {
                    let (value, saves) = (rng.bits() as u32 & feature.kept, rng.chance(0.5));
                    let entry = SubmissionEntry::set_features(feature.id, value | feature.selector);
                    let cdw10 = entry.cdw10.get() | if saves { SAVE } else { 0 };
                    let entry = SubmissionEntry { cdw10: cdw10.into(), nsid: feature.nsid.into(), ..entry };
                    let status = admin.execute(entry, HostMem::none()).await.unwrap().status.meaning();
                    if saves && !feature.is_saveable {
                        assert_eq!(status, Status::FEATURE_NOT_SAVEABLE, "{feature:?}");
                        continue;
                    }
                    assert_eq!(status, Status::SUCCESS, "{feature:?}");
                    feature.set(&mut current, value);
                    if saves {
                        feature.set(&mut saved, value);
                    }
                }
                _ if feature.nsid == NSID_ALL => {}
                select => {
                    let select = select as u32 % 3;
                    let entry = SubmissionEntry::get_features(feature.id);
                    let cdw10 = entry.cdw10.get() | select << 8;
                    let (cdw11, nsid) = (feature.selector.into(), feature.nsid.into());
                    let entry = SubmissionEntry { cdw10: cdw10.into(), cdw11, nsid, ..entry };
                    let ended = admin.execute(entry, HostMem::none()).await.unwrap();
                    assert_eq!(ended.status, Status::SUCCESS, "{feature:?}");
                    let right = match select {
                        0 => feature.get(&current),
                        1 => feature.default,
                        _ => feature.get(&saved),
                    };
                    // The vector is returned next to its value.
                    let beside = if feature.id == feature::INTERRUPT_VECTOR { feature.selector } else { 0 };
                    assert_eq!(ended.dw0, right | beside, "{feature:?}, select {select}");
                }
            }
        }
    });
}
