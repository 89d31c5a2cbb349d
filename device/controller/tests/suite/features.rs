//! Get and Set Features: current, default and saved values, capabilities, selectors, and the rejections of each.

use crate::common::{Drive, config, host, with};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_drive::{Controller, HostMem, QueueId};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::feature::{self, SAVE};
use nandscape_wire_nvme::identify::Namespace;
use nandscape_wire_nvme::manage::{self, ControllerList};
use nandscape_wire_nvme::register::{CC, CC_EN};
use nandscape_wire_nvme::{AdminOpcode, NSID_ALL, Status, SubmissionEntry, vendor};
use zerocopy::IntoBytes;

/// Gets a value: SEL in bits 10:8, and CDW11.
async fn get(sim: &Sim, drive: &Drive, (id, select, cdw11, nsid): (u8, u32, u32, u32)) -> Result<u32, Status> {
    let entry = SubmissionEntry::get_features(id);
    let cdw10 = entry.cdw10.get() | select << 8;
    let entry = SubmissionEntry { cdw10: cdw10.into(), cdw11: cdw11.into(), nsid: nsid.into(), ..entry };
    let ended = host(sim, drive, QueueId::ADMIN).execute(entry, HostMem::zeroed(512)).await.unwrap();
    if ended.status.is_success() { Ok(ended.dw0) } else { Err(ended.status.meaning()) }
}

async fn current(sim: &Sim, drive: &Drive, id: u8) -> Result<u32, Status> {
    get(sim, drive, (id, 0, 0, 1)).await
}

/// Sets a value, and saves it if requested by `flags`.
async fn set(sim: &Sim, drive: &Drive, (id, flags, value, nsid): (u8, u32, u32, u32)) -> Status {
    let entry = SubmissionEntry::set_features(id, value);
    let cdw10 = entry.cdw10.get() | flags;
    let entry = SubmissionEntry { cdw10: cdw10.into(), nsid: nsid.into(), ..entry };
    host(sim, drive, QueueId::ADMIN).execute(entry, HostMem::zeroed(512)).await.unwrap().status.meaning()
}

/// Resets the controller, and waits until it is ready again.
async fn reset(sim: &Sim, drive: &Drive) {
    let cc = drive.register(CC);
    drive.set_register(CC, cc & !CC_EN);
    sim.sleep(Span::from_ms(1)).await;
    drive.set_register(CC, cc | CC_EN);
}

#[test]
fn a_saved_value_outlasts_a_reset_and_others_do_not() {
    with(config(), async |sim, drive| {
        let arbitration = feature::ARBITRATION;
        assert_eq!(set(sim, drive, (arbitration, 0, 1, 0)).await, Status::SUCCESS);
        assert_eq!(get(sim, drive, (arbitration, 2, 0, 0)).await, Ok(3), "nothing was saved: the default");
        reset(sim, drive).await;
        assert_eq!(current(sim, drive, arbitration).await, Ok(3));
        assert_eq!(set(sim, drive, (arbitration, SAVE, 2, 0)).await, Status::SUCCESS);
        assert_eq!(set(sim, drive, (arbitration, 0, 4, 0)).await, Status::SUCCESS);
        let values = [0, 1, 2].map(async |select| get(sim, drive, (arbitration, select, 0, 0)).await);
        for (value, right) in values.into_iter().zip([4, 3, 2]) {
            assert_eq!(value.await, Ok(right));
        }
        reset(sim, drive).await;
        assert_eq!(current(sim, drive, arbitration).await, Ok(2));
    });
}

/// Capabilities: bit 0 saveable, bit 1 of a namespace, bit 2 changeable.
#[test]
fn each_feature_has_its_capabilities() {
    let rows = [
        (feature::ARBITRATION, 0b101),
        (feature::POWER_MANAGEMENT, 0b101),
        (feature::TEMPERATURE_THRESHOLD, 0b101),
        (feature::ERROR_RECOVERY, 0b111),
        (feature::VOLATILE_WRITE_CACHE, 0b101),
        (feature::NUMBER_OF_QUEUES, 0b100),
        (feature::INTERRUPT_COALESCING, 0b101),
        (feature::INTERRUPT_VECTOR, 0b100),
        (feature::WRITE_ATOMICITY, 0b101),
        (feature::ASYNC_EVENT_CONFIG, 0b101),
        (feature::TIMESTAMP, 0b100),
        (feature::KEEP_ALIVE_TIMER, 0b100),
        (feature::HOST_BEHAVIOR, 0b100),
        (feature::HOST_IDENTIFIER, 0b100),
        (feature::RESERVATION_MASK, 0b110),
        (feature::RESERVATION_PERSISTENCE, 0b110),
        (feature::WRITE_PROTECTION, 0b110),
        (vendor::ARBITER, 0b101),
    ];
    with(ControllerConfig { buffer: BufferMode::Volatile, ..config() }, async |sim, drive| {
        for (id, capabilities) in rows {
            assert_eq!(get(sim, drive, (id, 3, 0, 1)).await, Ok(capabilities), "feature {id:02x}h");
            let saved = set(sim, drive, (id, SAVE, 0, NSID_ALL)).await;
            let right = if capabilities & 1 != 0 { Status::SUCCESS } else { Status::FEATURE_NOT_SAVEABLE };
            assert_eq!(saved, right, "feature {id:02x}h is saved");
        }
        for id in (0..=u8::MAX).filter(|id| rows.iter().all(|(row, _)| row != id)) {
            assert_eq!(get(sim, drive, (id, 0, 0, 1)).await, Err(Status::INVALID_FIELD), "feature {id:02x}h");
            assert_eq!(set(sim, drive, (id, 0, 0, 1)).await, Status::INVALID_FIELD, "feature {id:02x}h");
        }
    });
}

#[test]
fn thresholds_of_temperature_have_selectors() {
    with(config(), async |sim, drive| {
        let temperature = feature::TEMPERATURE_THRESHOLD;
        let under = 1 << 20;
        assert_eq!(set(sim, drive, (temperature, 0, 350, 0)).await, Status::SUCCESS);
        assert_eq!(set(sim, drive, (temperature, 0, under | 0xf << 16 | 200, 0)).await, Status::SUCCESS, "all sensors");
        assert_eq!(get(sim, drive, (temperature, 0, 0, 0)).await, Ok(350));
        assert_eq!(get(sim, drive, (temperature, 0, under, 0)).await, Ok(200));
        assert_eq!(get(sim, drive, (temperature, 1, under, 0)).await, Ok(0));
        for bad in [1 << 16, 2 << 20, 3 << 20, 9 << 16] {
            assert_eq!(get(sim, drive, (temperature, 0, bad, 0)).await, Err(Status::INVALID_FIELD), "{bad:x}h");
            assert_eq!(set(sim, drive, (temperature, 0, bad, 0)).await, Status::INVALID_FIELD, "{bad:x}h");
        }
    });
}

#[test]
fn namespaces_of_features() {
    with(config(), async |sim, drive| {
        let recovery = feature::ERROR_RECOVERY;
        assert_eq!(set(sim, drive, (recovery, 0, 1 << 16, 1)).await, Status::SUCCESS);
        assert_eq!(current(sim, drive, recovery).await, Ok(1 << 16));
        assert_eq!(set(sim, drive, (recovery, 0, 5, NSID_ALL)).await, Status::SUCCESS);
        assert_eq!(current(sim, drive, recovery).await, Ok(5), "all of them");
        for nsid in [0, 65, 0xffff_fffe] {
            assert_eq!(set(sim, drive, (recovery, 0, 0, nsid)).await, Status::INVALID_NAMESPACE);
            assert_eq!(get(sim, drive, (recovery, 0, 0, nsid)).await, Err(Status::INVALID_NAMESPACE));
        }
        // A valid number without a namespace.
        assert_eq!(set(sim, drive, (recovery, 0, 0, 2)).await, Status::INVALID_FIELD);
        assert_eq!(get(sim, drive, (recovery, 0, 0, 2)).await, Err(Status::INVALID_FIELD));
        assert_eq!(get(sim, drive, (recovery, 0, 0, NSID_ALL)).await, Err(Status::INVALID_NAMESPACE));
        let arbitration = feature::ARBITRATION;
        assert_eq!(set(sim, drive, (arbitration, 0, 0, 1)).await, Status::FEATURE_NOT_NAMESPACE_SPECIFIC);
        assert_eq!(set(sim, drive, (arbitration, 0, 0, 70)).await, Status::INVALID_NAMESPACE);
        assert_eq!(set(sim, drive, (arbitration, 0, 0, NSID_ALL)).await, Status::SUCCESS);
    });
}

#[test]
fn values_that_are_refused_or_rounded() {
    with(config(), async |sim, drive| {
        assert_eq!(set(sim, drive, (feature::POWER_MANAGEMENT, 0, 1, 0)).await, Status::INVALID_FIELD);
        assert_eq!(set(sim, drive, (feature::NUMBER_OF_QUEUES, 0, 0xffff, 0)).await, Status::INVALID_FIELD);
        assert_eq!(get(sim, drive, (feature::ARBITRATION, 4, 0, 0)).await, Err(Status::INVALID_FIELD), "SEL 100b");
        let vector = feature::INTERRUPT_VECTOR;
        assert_eq!(set(sim, drive, (vector, 0, 1 << 16 | 4, 0)).await, Status::SUCCESS);
        assert_eq!(get(sim, drive, (vector, 0, 4, 0)).await, Ok(1 << 16 | 4));
        assert_eq!(get(sim, drive, (vector, 0, 3, 0)).await, Ok(3));
        assert_eq!(set(sim, drive, (vector, 0, 5, 0)).await, Status::INVALID_FIELD, "there are five");
        assert_eq!(set(sim, drive, (feature::KEEP_ALIVE_TIMER, 0, 101, 0)).await, Status::SUCCESS);
        assert_eq!(current(sim, drive, feature::KEEP_ALIVE_TIMER).await, Ok(200));
        assert_eq!(set(sim, drive, (feature::KEEP_ALIVE_TIMER, 0, 0, 0)).await, Status::SUCCESS);
    });
}

#[test]
fn features_that_are_data_structures() {
    with(config(), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let set = async |id, cdw11, bytes: &[u8]| {
            let entry = SubmissionEntry::set_features(id, cdw11);
            admin.execute(entry, HostMem::from_bytes(bytes)).await.unwrap().status.meaning()
        };
        let get = async |id, cdw11: u32, bytes| {
            let (entry, mem) = (SubmissionEntry::get_features(id), HostMem::zeroed(bytes));
            let entry = SubmissionEntry { cdw11: cdw11.into(), ..entry };
            let status = admin.execute(entry, mem.clone()).await.unwrap().status;
            if status.is_success() { Ok(mem.to_vec()) } else { Err(status.meaning()) }
        };
        let host_id = feature::HOST_IDENTIFIER;
        assert_eq!(get(host_id, 0, 8).await, Ok(vec![0; 8]), "there is none");
        assert_eq!(set(host_id, 1, &[7; 16]).await, Status::SUCCESS);
        assert_eq!(get(host_id, 1, 16).await, Ok(vec![7; 16]));
        assert_eq!(get(host_id, 0, 8).await, Err(Status::HOST_ID_INCONSISTENT));
        assert_eq!(set(host_id, 0, &[8; 8]).await, Status::SUCCESS);
        assert_eq!(get(host_id, 0, 8).await, Ok(vec![8; 8]));
        assert_eq!(set(host_id, 1, &[7; 8]).await, Status::DATA_SGL_LENGTH_INVALID);
        let mut behavior = vec![0; 512];
        behavior[0] = 1;
        assert_eq!(set(feature::HOST_BEHAVIOR, 0, &behavior).await, Status::SUCCESS);
        assert_eq!(get(feature::HOST_BEHAVIOR, 0, 512).await, Ok(behavior.clone()));
        behavior[1] = 2;
        assert_eq!(set(feature::HOST_BEHAVIOR, 0, &behavior).await, Status::INVALID_FIELD);
        assert_eq!(set(feature::HOST_BEHAVIOR, 0, &behavior[..8]).await, Status::DATA_SGL_LENGTH_INVALID);
        let timestamp = feature::TIMESTAMP;
        assert_eq!(set(timestamp, 0, &[0x10, 0x20, 0, 0, 0, 0, 0, 0]).await, Status::SUCCESS);
        let now = get(timestamp, 0, 8).await.unwrap();
        assert_eq!((now[1], now[6]), (0x20, 1 << 1), "it was set by the host");
    });
}

/// Set and saved values of a namespace do not apply to the next namespace with its number.
#[test]
fn features_end_with_their_namespace() {
    with(config(), async |sim, drive| {
        let recovery = feature::ERROR_RECOVERY;
        assert_eq!(set(sim, drive, (recovery, SAVE, 1 << 16, 1)).await, Status::SUCCESS);
        assert_eq!(set(sim, drive, (feature::RESERVATION_MASK, 0, 0b1110, 1)).await, Status::SUCCESS);
        let admin = async |opcode, nsid: u32, select: u8, data: &[u8]| {
            let cdw10 = u32::from(select).into();
            let entry = SubmissionEntry { nsid: nsid.into(), cdw10, ..SubmissionEntry::admin(opcode) };
            let mem = if data.is_empty() { HostMem::none() } else { HostMem::from_bytes(data) };
            let ended = host(sim, drive, QueueId::ADMIN).execute(entry, mem).await.unwrap();
            assert!(ended.status.is_success(), "{}", ended.status);
        };
        let wish = Namespace { nsze: 64.into(), ncap: 64.into(), ..Namespace::zeroed() };
        admin(AdminOpcode::NAMESPACE_MANAGEMENT, 1, manage::NAMESPACE_DELETE, &[]).await;
        admin(AdminOpcode::NAMESPACE_MANAGEMENT, 0, manage::NAMESPACE_CREATE, wish.as_bytes()).await;
        let list = ControllerList::of([1]);
        admin(AdminOpcode::NAMESPACE_ATTACHMENT, 1, manage::NAMESPACE_ATTACH, list.as_bytes()).await;
        assert_eq!(current(sim, drive, recovery).await, Ok(0));
        assert_eq!(get(sim, drive, (recovery, 2, 0, 1)).await, Ok(0), "saved");
        assert_eq!(current(sim, drive, feature::RESERVATION_MASK).await, Ok(0));
        reset(sim, drive).await;
        assert_eq!(current(sim, drive, recovery).await, Ok(0));
    });
}

/// An unset timestamp counts from the last reset, and a set one keeps counting through it.
#[test]
fn a_timestamp_counts_from_the_reset() {
    with(config(), async |sim, drive| {
        let timestamp = async || {
            let mem = HostMem::zeroed(8);
            let entry = SubmissionEntry::get_features(feature::TIMESTAMP);
            assert!(host(sim, drive, QueueId::ADMIN).execute(entry, mem.clone()).await.unwrap().status.is_success());
            u64::from_le_bytes(mem.to_vec().try_into().unwrap())
        };
        sim.sleep(Span::from_s(5)).await;
        assert_eq!(timestamp().await, 5_000);
        reset(sim, drive).await;
        assert!(timestamp().await < 2);
        sim.sleep(Span::from_s(1)).await;
        assert!((1_000..1_003).contains(&timestamp().await));
        let entry = SubmissionEntry::set_features(feature::TIMESTAMP, 0);
        let given = HostMem::from_bytes(&70_000u64.to_le_bytes());
        assert!(host(sim, drive, QueueId::ADMIN).execute(entry, given).await.unwrap().status.is_success());
        sim.sleep(Span::from_s(1)).await;
        reset(sim, drive).await;
        let (now, was_set) = (timestamp().await & 0xffff_ffff_ffff, timestamp().await >> 49);
        assert!((71_000..71_010).contains(&now) && was_set == 1, "{now} {was_set}");
    });
}
