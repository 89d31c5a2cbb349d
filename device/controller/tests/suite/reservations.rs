//! Reservations as seen by hosts on several controllers: permitted access, notifications, persistence.

use std::ops::Deref;

use crate::common::{Drive, Pair, config, faulty_drive, host, read, with, write};
use nandscape_device_media::StoreKind;
use nandscape_drive::conformance::Host;
use nandscape_drive::testing::tenant::{self, run};
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::identify::Namespace;
use nandscape_wire_nvme::manage::{self, ControllerList};
use nandscape_wire_nvme::register;
use nandscape_wire_nvme::reservation::Notification;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry, feature, log};
use zerocopy::{FromBytes, IntoBytes};

const WRITE_EXCLUSIVE: u32 = 1 << 8;
const EXCLUSIVE_ACCESS: u32 = 2 << 8;
const WRITE_EXCLUSIVE_REGISTRANTS: u32 = 3 << 8;
const IGNORE_KEY: u32 = 1 << 3;
const PERSIST: u32 = 0b11 << 30;

struct Tenant(tenant::Tenant);

impl Deref for Tenant {
    type Target = tenant::Tenant;

    fn deref(&self) -> &tenant::Tenant {
        &self.0
    }
}

/// A host with its own controller, whose identifier is 16 times `id`.
fn tenant(sim: &Sim, drive: &Drive, id: u8) -> Tenant {
    Tenant(tenant::Tenant::new(sim, &**drive.subsystem(), id))
}

impl Tenant {
    async fn register(&self, cdw10: u32, current: u64, new: u64) -> Result<(), Status> {
        self.reserve(IoOpcode::RESERVATION_REGISTER, 1, cdw10, (current, new)).await
    }

    async fn acquire(&self, cdw10: u32, key: u64, victim: u64) -> Result<(), Status> {
        self.reserve(IoOpcode::RESERVATION_ACQUIRE, 1, cdw10, (key, victim)).await
    }

    async fn release(&self, cdw10: u32, key: u64) -> Result<(), Status> {
        self.reserve(IoOpcode::RESERVATION_RELEASE, 1, cdw10, (key, 0)).await
    }

    async fn read(&self) -> Result<u32, Status> {
        run(&self.io, read(0, 8), HostMem::zeroed(4_096)).await
    }

    async fn write(&self) -> Result<u32, Status> {
        let (entry, mem) = write(0, 8);
        run(&self.io, entry, mem).await
    }

    /// Generation, type, persistence, and controller, holding and key of each registrant.
    async fn report(&self) -> (u32, u8, bool, Vec<(u16, bool, u64)>) {
        let entry = SubmissionEntry {
            cdw10: 1_023.into(),
            cdw11: 1.into(),
            ..SubmissionEntry::io(IoOpcode::RESERVATION_REPORT, 1)
        };
        let mem = HostMem::zeroed(4_096);
        run(&self.io, entry, mem.clone()).await.unwrap();
        let data = mem.to_vec();
        let number =
            |at: usize, len: usize| data[at..at + len].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let one = |index: usize| {
            let at = 64 * (1 + index);
            (number(at, 2) as u16, data[at + 2] == 1, number(at + 8, 8))
        };
        (number(0, 4) as u32, data[4], data[9] == 1, (0..number(5, 2) as usize).map(one).collect())
    }

    /// Type of the oldest notification, and how many others wait.
    async fn notification(&self) -> (u8, u8) {
        let mem = HostMem::zeroed(64);
        run(&self.admin, SubmissionEntry::get_log_page(log::RESERVATION_NOTIFICATION, 0, 64), mem.clone())
            .await
            .unwrap();
        let page = Notification::read_from_bytes(&mem.to_vec()).unwrap();
        (page.kind, page.available)
    }
}

const CONFLICT: Status = Status::RESERVATION_CONFLICT;

#[test]
fn two_hosts_share_and_exclude() {
    with(config(), async |sim, drive| {
        let (a, b, other) = (tenant(sim, drive, 1), tenant(sim, drive, 2), tenant(sim, drive, 1));
        a.write().await.unwrap();
        assert_eq!(a.acquire(WRITE_EXCLUSIVE, 7, 0).await, Err(CONFLICT), "it is not registered");
        a.register(0, 0, 7).await.unwrap();
        b.register(0, 0, 8).await.unwrap();
        assert_eq!((a.write().await, b.write().await), (Ok(0), Ok(0)), "registering reserves nothing");
        a.acquire(WRITE_EXCLUSIVE, 7, 0).await.unwrap();
        assert_eq!((a.write().await, b.write().await, b.read().await), (Ok(0), Err(CONFLICT), Ok(0)));
        assert_eq!(other.write().await, Ok(0), "another controller of the host that holds it");
        let ranges = SubmissionEntry::deallocate(1, 1);
        assert_eq!(run(&b.io, ranges, HostMem::zeroed(16)).await, Err(CONFLICT));
        assert_eq!(run(&b.io, SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()).await, Err(CONFLICT));
        let format = SubmissionEntry { nsid: 1.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
        assert_eq!(run(&b.admin, format, HostMem::none()).await, Err(CONFLICT));
        let ids = [b.controller.id()];
        for select in [manage::NAMESPACE_DETACH, manage::NAMESPACE_ATTACH] {
            assert_eq!(attach(&b.admin, select, 1, &ids).await, Err(CONFLICT), "of the write group");
            attach(&a.admin, select, 1, &ids).await.unwrap();
        }
        assert_eq!(b.acquire(EXCLUSIVE_ACCESS, 8, 0).await, Err(CONFLICT));
        a.release(WRITE_EXCLUSIVE, 7).await.unwrap();
        b.acquire(EXCLUSIVE_ACCESS, 8, 0).await.unwrap();
        assert_eq!((a.read().await, other.read().await, b.read().await), (Err(CONFLICT), Err(CONFLICT), Ok(0)));
        let (generation, kind, persists, hosts) = a.report().await;
        assert_eq!((generation, kind, persists), (2, 2, false));
        let ids = [&a, &other, &b].map(|tenant| tenant.controller.id());
        assert_eq!(hosts, [(ids[0], false, 7), (ids[1], false, 7), (ids[2], true, 8)]);
        // A registrant that has left keeps its registration.
        a.controller.detach();
        other.controller.detach();
        drop((a, other));
        sim.sleep(Span::from_ms(1)).await;
        assert_eq!(b.report().await.3, [(0xffff, false, 7), (ids[2], true, 8)]);
    });
}

async fn attach(admin: &Host, select: u8, nsid: u32, ids: &[u16]) -> Result<u32, Status> {
    let entry = SubmissionEntry { nsid: nsid.into(), ..SubmissionEntry::admin(AdminOpcode::NAMESPACE_ATTACHMENT) };
    let list = ControllerList::of(ids.iter().copied());
    let entry = SubmissionEntry { cdw10: u32::from(select).into(), ..entry };
    run(admin, entry, HostMem::from_bytes(list.as_bytes())).await
}

/// Two namespaces of 1 MiB that all controllers have attached.
async fn two_namespaces(admin: &Host, ids: &[u16]) {
    let manage = |select: u8, nsid: u32| {
        let entry = SubmissionEntry { nsid: nsid.into(), ..SubmissionEntry::admin(AdminOpcode::NAMESPACE_MANAGEMENT) };
        SubmissionEntry { cdw10: u32::from(select).into(), ..entry }
    };
    run(admin, manage(manage::NAMESPACE_DELETE, 1), HostMem::none()).await.unwrap();
    let wish = Namespace { nsze: 2_048.into(), ncap: 2_048.into(), nmic: 1, ..Namespace::zeroed() };
    for nsid in [1, 2] {
        let wish = HostMem::from_bytes(wish.as_bytes());
        assert_eq!(run(admin, manage(manage::NAMESPACE_CREATE, 0), wish).await, Ok(nsid));
        attach(admin, manage::NAMESPACE_ATTACH, nsid, ids).await.unwrap();
    }
}

/// Flush of all namespaces needs the right to each of them.
#[test]
fn a_flush_of_all_namespaces_asks_each() {
    with(config(), async |sim, drive| {
        let (a, b) = (tenant(sim, drive, 1), tenant(sim, drive, 2));
        two_namespaces(&a.admin, &[a.controller.id(), b.controller.id()]).await;
        let flush =
            async |of: &Tenant, nsid| run(&of.io, SubmissionEntry::io(IoOpcode::FLUSH, nsid), HostMem::none()).await;
        assert_eq!(flush(&b, NSID_ALL).await, Ok(0));
        a.reserve(IoOpcode::RESERVATION_REGISTER, 2, 0, (0, 7)).await.unwrap();
        a.reserve(IoOpcode::RESERVATION_ACQUIRE, 2, WRITE_EXCLUSIVE, (7, 0)).await.unwrap();
        assert_eq!((flush(&b, 1).await, flush(&b, 2).await), (Ok(0), Err(CONFLICT)));
        assert_eq!((flush(&b, NSID_ALL).await, flush(&a, NSID_ALL).await), (Err(CONFLICT), Ok(0)));
        a.reserve(IoOpcode::RESERVATION_RELEASE, 2, WRITE_EXCLUSIVE, (7, 0)).await.unwrap();
        assert_eq!(flush(&b, NSID_ALL).await, Ok(0));
    });
}

#[test]
fn preemption_is_told_to_its_victims() {
    with(config(), async |sim, drive| {
        let (a, b) = (tenant(sim, drive, 1), tenant(sim, drive, 2));
        a.register(0, 0, 7).await.unwrap();
        b.register(0, 0, 8).await.unwrap();
        a.acquire(WRITE_EXCLUSIVE_REGISTRANTS, 7, 0).await.unwrap();
        a.admin.submit(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST), HostMem::none());
        b.acquire(1 | WRITE_EXCLUSIVE, 8, 7).await.unwrap();
        let told = a.admin.next().await.unwrap();
        assert_eq!(told.completion.dw0, 6 | u32::from(log::RESERVATION_NOTIFICATION) << 16);
        assert_eq!(a.notification().await, (1, 0), "its registration was preempted");
        assert_eq!(a.notification().await, (0, 0));
        assert_eq!((a.write().await, b.write().await), (Err(CONFLICT), Ok(0)));
        // Masked for every namespace: nothing comes.
        let mask = SubmissionEntry {
            nsid: NSID_ALL.into(),
            ..SubmissionEntry::set_features(feature::RESERVATION_MASK, 0b1110)
        };
        run(&a.admin, mask, HostMem::none()).await.unwrap();
        a.register(0, 0, 9).await.unwrap();
        b.acquire(1 | WRITE_EXCLUSIVE, 8, 9).await.unwrap();
        assert_eq!(a.notification().await, (0, 0));
        b.release(1, 8).await.unwrap();
        assert_eq!(b.report().await.3, []);
    });
}

/// The commands of the preempted host have ended when Preempt and Abort ends.
#[test]
fn preempt_and_abort_waits_for_commands() {
    with(config(), async |sim, drive| {
        let (entry, mem) = write(0, 256);
        host(sim, drive, QueueId(1)).execute(entry, mem).await.unwrap();
        sim.sleep(Span::from_ms(5)).await;
        let (a, b) = (tenant(sim, drive, 1), tenant(sim, drive, 2));
        a.register(0, 0, 7).await.unwrap();
        b.register(0, 0, 8).await.unwrap();
        a.acquire(EXCLUSIVE_ACCESS, 7, 0).await.unwrap();
        let pair = Pair::over(sim, a.controller.clone(), 2, 8);
        pair.put(read(0, 8), HostMem::zeroed(4_096));
        pair.ring();
        sim.sleep(crate::common::FIRMWARE + crate::common::LINK_LATENCY + crate::common::READ / 2).await;
        b.acquire(2 | EXCLUSIVE_ACCESS, 8, 7).await.unwrap();
        assert!(
            pair.reap().is_some_and(|posted| posted.entry.status().is_success()),
            "it was in the flash, and has ended"
        );
        pair.put(read(0, 8), HostMem::zeroed(4_096));
        pair.ring();
        sim.sleep(Span::from_ms(1)).await;
        assert_eq!(pair.reap().unwrap().entry.status(), CONFLICT.final_().with_more());
        assert_eq!(b.read().await, Ok(0));
    });
}

#[test]
fn each_bad_field_has_its_status() {
    with(config(), async |sim, drive| {
        let (a, b) = (tenant(sim, drive, 1), tenant(sim, drive, 2));
        a.register(0, 0, 7).await.unwrap();
        let bad = Err(Status::INVALID_FIELD);
        assert_eq!(a.register(3, 7, 8).await, bad, "RREGA");
        assert_eq!(a.register(0b01 << 30, 7, 7).await, bad, "CPTPL");
        assert_eq!(a.acquire(3 | WRITE_EXCLUSIVE, 7, 0).await, bad, "RACQA");
        assert_eq!(a.acquire(0, 7, 0).await, bad, "no type");
        assert_eq!(a.acquire(7 << 8, 7, 0).await, bad, "no such type");
        assert_eq!(a.acquire(IGNORE_KEY | WRITE_EXCLUSIVE, 7, 0).await, bad, "IEKEY");
        assert_eq!(a.acquire(1 | WRITE_EXCLUSIVE, 7, 0).await, bad, "no key to preempt");
        assert_eq!(a.release(IGNORE_KEY | WRITE_EXCLUSIVE, 7).await, bad, "IEKEY");
        assert_eq!(a.release(2 | WRITE_EXCLUSIVE, 7).await, bad, "RRELA");
        assert_eq!(a.release(0, 7).await, bad, "no type");
        a.acquire(WRITE_EXCLUSIVE, 7, 0).await.unwrap();
        assert_eq!(a.release(EXCLUSIVE_ACCESS, 7).await, bad, "of another type");
        let conflict = Err(CONFLICT);
        assert_eq!(a.register(0, 0, 9).await, conflict, "it has another key");
        assert_eq!(a.register(2, 9, 9).await, conflict, "the wrong key");
        assert_eq!(a.register(2 | IGNORE_KEY, 9, 9).await, Ok(()));
        assert_eq!(a.release(WRITE_EXCLUSIVE, 7).await, conflict, "the key before");
        assert_eq!(b.release(WRITE_EXCLUSIVE, 0).await, conflict, "not registered");
        assert_eq!(b.register(1 | IGNORE_KEY, 0, 0).await, conflict, "not registered");
        let entry = |opcode, cdw11: u32| SubmissionEntry {
            cdw10: 15.into(),
            cdw11: cdw11.into(),
            ..SubmissionEntry::io(opcode, 1)
        };
        let report = entry(IoOpcode::RESERVATION_REPORT, 0);
        assert_eq!(run(&a.io, report, HostMem::zeroed(64)).await, Err(Status::HOST_ID_INCONSISTENT));
        let report = entry(IoOpcode::RESERVATION_REPORT, 1);
        assert_eq!(run(&a.io, report, HostMem::zeroed(63)).await, Err(Status::DATA_SGL_LENGTH_INVALID));
        let short = entry(IoOpcode::RESERVATION_REGISTER, 0);
        assert_eq!(run(&a.io, short, HostMem::zeroed(15)).await, Err(Status::DATA_SGL_LENGTH_INVALID));
    });
}

/// A host without an identifier counts as another host on each controller, and a reset of the controller forgets it.
#[test]
fn hosts_without_identifiers_end_with_a_reset() {
    with(config(), async |sim, drive| {
        let (a, b) = (tenant(sim, drive, 0), tenant(sim, drive, 0));
        a.register(0, 0, 7).await.unwrap();
        a.acquire(WRITE_EXCLUSIVE, 7, 0).await.unwrap();
        assert_eq!((a.write().await, b.write().await), (Ok(0), Err(CONFLICT)));
        a.controller.set_register(register::CC, 0);
        sim.sleep(Span::from_ms(1)).await;
        assert_eq!(b.write().await, Ok(0));
    });
}

/// Reservations outlast a power cut if the host requested that, by command or by feature.
#[test]
fn power_cuts_end_what_does_not_persist() {
    for (cdw10, feature_too, lasts) in [(0, false, false), (PERSIST, false, true), (0, true, true)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drive = faulty_drive(&sim, config(), StoreKind::Ram, 32, &["power_cut read off=20ms nth=1 count=1"]);
        let test = async {
            let (a, b) = (tenant(&sim, &drive, 1), tenant(&sim, &drive, 2));
            let (entry, mem) = write(0, 256);
            run(&a.io, entry, mem).await.unwrap();
            sim.sleep(Span::from_ms(5)).await;
            a.register(cdw10, 0, 7).await.unwrap();
            a.acquire(WRITE_EXCLUSIVE, 7, 0).await.unwrap();
            if feature_too {
                let set = SubmissionEntry {
                    nsid: 1.into(),
                    ..SubmissionEntry::set_features(feature::RESERVATION_PERSISTENCE, 1)
                };
                run(&a.admin, set, HostMem::none()).await.unwrap();
            }
            assert_eq!(a.report().await.2, lasts);
            assert_eq!(b.read().await, Err(Status::ABORTED_POWER_LOSS));
            sim.sleep(Span::from_ms(100)).await;
            let expected = if lasts { Err(CONFLICT) } else { Ok(0) };
            assert_eq!(b.write().await, expected);
        };
        executor.block_on(test).unwrap();
    }
}
