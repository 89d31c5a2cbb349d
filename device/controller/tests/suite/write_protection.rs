//! Namespace write protection: rejections, notifications, persistence.

use std::rc::Rc;

use crate::common::{BLOCKS, Drive, config, drive, read, with, write};
use nandscape_drive::conformance::Host;
use nandscape_drive::{Controller, HostIdentity, HostMem, QueueDrive, QueueId, Subsystem, TransportModel};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::identify::{self, Namespace, cns};
use nandscape_wire_nvme::register::{self, CC_EN};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry, feature, log};
use zerocopy::FromBytes;

const ENABLED: u32 = CC_EN | 6 << 16 | 4 << 20;
const OFF: u32 = 0;
const ON: u32 = 1;
const UNTIL_POWER_CYCLE: u32 = 2;
const PERMANENT: u32 = 3;
const PROTECTED: Result<u32, Status> = Err(Status::NAMESPACE_WRITE_PROTECTED);
const FIXED: Result<u32, Status> = Err(Status::FEATURE_NOT_CHANGEABLE);

/// A host with its own controller.
struct Tenant {
    controller: Rc<dyn Controller>,
    admin: Host,
    io: Host,
}

fn tenant(sim: &Sim, drive: &Drive) -> Tenant {
    let controller = drive.subsystem().new_controller(HostIdentity::default(), TransportModel::Message).unwrap();
    controller.set_register(register::CC, ENABLED);
    let queue = |id| Host::new(sim, QueueDrive::new(sim, controller.clone(), QueueId(id), 32).unwrap());
    Tenant { admin: queue(0), io: queue(1), controller }
}

async fn run(host: &Host, entry: SubmissionEntry, mem: HostMem) -> Result<u32, Status> {
    let ended = host.execute(entry, mem).await.unwrap();
    if ended.status.is_success() { Ok(ended.dw0) } else { Err(ended.status.meaning()) }
}

async fn admin(host: &Host, opcode: AdminOpcode, nsid: u32, cdw10: u32) -> Result<u32, Status> {
    let entry = SubmissionEntry { nsid: nsid.into(), cdw10: cdw10.into(), ..SubmissionEntry::admin(opcode) };
    run(host, entry, HostMem::none()).await
}

impl Tenant {
    async fn protect(&self, state: u32) -> Result<u32, Status> {
        let set = SubmissionEntry::set_features(feature::WRITE_PROTECTION, state);
        run(&self.admin, SubmissionEntry { nsid: 1.into(), ..set }, HostMem::none()).await
    }

    async fn state(&self) -> Result<u32, Status> {
        let get = SubmissionEntry::get_features(feature::WRITE_PROTECTION);
        run(&self.admin, SubmissionEntry { nsid: 1.into(), ..get }, HostMem::none()).await
    }

    async fn write(&self) -> Result<u32, Status> {
        let (entry, mem) = write(0, 8);
        run(&self.io, entry, mem).await
    }

    async fn attributes(&self) -> u8 {
        let mem = HostMem::zeroed(4_096);
        run(&self.admin, SubmissionEntry::identify(cns::NAMESPACE, 1), mem.clone()).await.unwrap();
        Namespace::read_from_bytes(&mem.to_vec()).unwrap().nsattr
    }
}

#[test]
fn nothing_is_changed_and_all_is_read() {
    with(config(), async |sim, drive| {
        let (one, other) = (tenant(sim, drive), tenant(sim, drive));
        assert_eq!((one.write().await, one.state().await, one.attributes().await), (Ok(0), Ok(OFF), 0));
        one.protect(ON).await.unwrap();
        let states = (one.state().await, other.state().await, other.attributes().await);
        assert_eq!(states, (Ok(ON), Ok(ON), identify::NSATTR_WRITE_PROTECTED));
        let blocks = |opcode| SubmissionEntry::blocks(opcode, 1, 0, 8);
        let hints = SubmissionEntry { cdw11: 1.into(), ..SubmissionEntry::deallocate(1, 1) };
        for (entry, right) in [
            (blocks(IoOpcode::WRITE), PROTECTED),
            (blocks(IoOpcode::WRITE_ZEROES), PROTECTED),
            (blocks(IoOpcode::WRITE_UNCORRECTABLE), PROTECTED),
            (SubmissionEntry::copy(1, 16, 1, 0), PROTECTED),
            (SubmissionEntry::deallocate(1, 1), PROTECTED),
            (hints, Ok(0)),
            (blocks(IoOpcode::READ), Ok(0)),
            (blocks(IoOpcode::VERIFY), Ok(0)),
            (SubmissionEntry::io(IoOpcode::FLUSH, 1), Ok(0)),
        ] {
            let mem = HostMem::zeroed(4_096);
            assert_eq!(run(&other.io, entry, mem).await, right, "{entry:?}");
        }
        for (opcode, nsid, cdw10) in [
            (AdminOpcode::FORMAT_NVM, 1, 0),
            (AdminOpcode::FORMAT_NVM, NSID_ALL, 0),
            (AdminOpcode::SANITIZE, 0, 4),
            (AdminOpcode::NAMESPACE_MANAGEMENT, 1, 1),
        ] {
            assert_eq!(admin(&other.admin, opcode, nsid, cdw10).await, PROTECTED, "{opcode:?}");
        }
        let mem = HostMem::zeroed(4_096);
        run(&other.io, read(0, 8), mem.clone()).await.unwrap();
        assert!(mem.to_vec().iter().all(|byte| *byte == 7), "the data is as before");
        other.protect(OFF).await.unwrap();
        assert_eq!((one.write().await, one.attributes().await), (Ok(0), 0));
    });
}

#[test]
fn a_state_for_longer_cannot_be_changed() {
    with(config(), async |sim, drive| {
        let host = tenant(sim, drive);
        let set = SubmissionEntry::set_features(feature::WRITE_PROTECTION, ON);
        let save = SubmissionEntry { cdw10: (set.cdw10.get() | feature::SAVE).into(), nsid: 1.into(), ..set };
        assert_eq!(run(&host.admin, save, HostMem::none()).await, Err(Status::FEATURE_NOT_SAVEABLE));
        assert_eq!(host.protect(4).await, Err(Status::INVALID_FIELD), "reserved");
        host.protect(UNTIL_POWER_CYCLE).await.unwrap();
        assert_eq!((host.protect(OFF).await, host.protect(PERMANENT).await), (FIXED, FIXED));
        assert_eq!(host.protect(UNTIL_POWER_CYCLE).await, Ok(0), "as it is");
        host.controller.set_register(register::CC, 0);
        sim.sleep(Span::from_ms(1)).await;
        assert_eq!(tenant(sim, drive).state().await, Ok(UNTIL_POWER_CYCLE), "a reset is no power cycle");
    });
}

#[test]
fn only_protection_until_a_power_cycle_ends_with_it() {
    for (state, after) in [(ON, ON), (UNTIL_POWER_CYCLE, OFF), (PERMANENT, PERMANENT)] {
        with(config(), async |sim, drive| {
            let host = tenant(sim, drive);
            host.protect(state).await.unwrap();
            drive.subsystem().ftl().media().cut_power(Span::from_ms(20));
            sim.sleep(Span::from_ms(100)).await;
            assert_eq!(host.state().await, Ok(after));
            assert_eq!(host.write().await, if after == OFF { Ok(0) } else { PROTECTED });
        });
    }
}

/// The feature is set after earlier writes have ended, and each host is notified.
#[test]
fn writes_in_work_end_first() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drive(&sim, config());
    let test = async {
        let (one, other) = (tenant(&sim, &drive), tenant(&sim, &drive));
        other.admin.submit(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST), HostMem::none());
        let events = SubmissionEntry::set_features(feature::ASYNC_EVENT_CONFIG, feature::EVENT_NAMESPACE_CHANGED);
        run(&one.admin, events, HostMem::none()).await.unwrap();
        let (entry, mem) = write(BLOCKS - 256, 256);
        let submitted = one.io.submit(entry, mem);
        sim.sleep(crate::common::FIRMWARE + crate::common::LINK_LATENCY + Span::from_us(1)).await;
        one.protect(ON).await.unwrap();
        let ended = one.io.next().await.unwrap();
        assert_eq!((ended.tag, ended.completion.status), (submitted, Status::SUCCESS));
        assert_eq!(other.write().await, PROTECTED);
        let changed = HostMem::zeroed(4_096);
        let page = SubmissionEntry::get_log_page(log::CHANGED_NAMESPACES, 0, 4_096);
        run(&one.admin, page, changed.clone()).await.unwrap();
        assert_eq!(changed.to_vec()[..4], 1u32.to_le_bytes());
    };
    executor.block_on(test).unwrap();
}
