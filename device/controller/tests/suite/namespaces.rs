//! Namespace Management and Attachment, Format NVM, as seen by hosts on several controllers.

use std::rc::Rc;

use crate::common::{CAPACITY, Drive, Pair, config, host, read, with, write};
use nandscape_drive::conformance::Host;
use nandscape_drive::{Controller, HostIdentity, HostMem, QueueDrive, QueueId, Subsystem, TransportModel};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::identify::{self, Namespace, cns};
use nandscape_wire_nvme::manage::{self, ControllerList};
use nandscape_wire_nvme::register::{self, CC_EN};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry, feature, log};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const MIB: u64 = 1 << 20;
/// Entries of 64 and of 16 bytes, enabled.
const ENABLED: u32 = CC_EN | 6 << 16 | 4 << 20;

/// A host with its own controller: its admin queue and an I/O queue.
struct Tenant {
    id: u16,
    controller: Rc<dyn Controller>,
    admin: Host,
    io: Host,
}

fn tenant(sim: &Sim, drive: &Drive) -> Tenant {
    let new = drive.subsystem().new_controller(HostIdentity::default(), TransportModel::Message);
    let controller = new.unwrap();
    controller.set_register(register::CC, ENABLED);
    let queue = |id| Host::new(sim, QueueDrive::new(sim, controller.clone(), QueueId(id), 32).unwrap());
    Tenant { id: controller.id(), admin: queue(0), io: queue(1), controller }
}

/// Dword 0 of a command, or its status. Every failure here is final and in the error log.
async fn run(host: &Host, entry: SubmissionEntry, mem: HostMem) -> Result<u32, Status> {
    let ended = host.execute(entry, mem).await.unwrap();
    if ended.status.is_success() {
        return Ok(ended.dw0);
    }
    let meaning = ended.status.meaning();
    assert_eq!(ended.status, meaning.final_().with_more(), "{entry:?}");
    Err(meaning)
}

fn manage(opcode: AdminOpcode, select: u8, nsid: u32) -> SubmissionEntry {
    SubmissionEntry { cdw10: u32::from(select).into(), nsid: nsid.into(), ..SubmissionEntry::admin(opcode) }
}

/// A namespace to be created: size and capacity in blocks, format, sharing.
fn wish(nsze: u64, ncap: u64, flbas: u8, nmic: u8) -> HostMem {
    let data = Namespace { nsze: nsze.into(), ncap: ncap.into(), flbas, nmic, ..Namespace::zeroed() };
    HostMem::from_bytes(data.as_bytes())
}

async fn create(admin: &Host, wish: HostMem) -> Result<u32, Status> {
    run(admin, manage(AdminOpcode::NAMESPACE_MANAGEMENT, manage::NAMESPACE_CREATE, 0), wish).await
}

async fn delete(admin: &Host, nsid: u32) -> Result<u32, Status> {
    run(admin, manage(AdminOpcode::NAMESPACE_MANAGEMENT, manage::NAMESPACE_DELETE, nsid), HostMem::none()).await
}

async fn attach(admin: &Host, select: u8, nsid: u32, ids: &[u16]) -> Result<u32, Status> {
    let list = ControllerList::of(ids.iter().copied());
    run(admin, manage(AdminOpcode::NAMESPACE_ATTACHMENT, select, nsid), HostMem::from_bytes(list.as_bytes())).await
}

async fn format(admin: &Host, nsid: u32, cdw10: u32) -> Result<u32, Status> {
    let entry =
        SubmissionEntry { nsid: nsid.into(), cdw10: cdw10.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
    run(admin, entry, HostMem::none()).await
}

async fn page(admin: &Host, entry: SubmissionEntry) -> Vec<u8> {
    let mem = HostMem::zeroed(4_096);
    run(admin, entry, mem.clone()).await.unwrap();
    mem.to_vec()
}

/// Numbers of a list of 32-bit values, as far as they are not zero.
fn list(page: &[u8]) -> Vec<u32> {
    let numbers = page.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
    numbers.take_while(|number| *number != 0).collect()
}

async fn namespace(admin: &Host, nsid: u32) -> Namespace {
    Namespace::read_from_bytes(&page(admin, SubmissionEntry::identify(cns::ALLOCATED_NAMESPACE, nsid)).await).unwrap()
}

async fn unallocated(admin: &Host) -> u64 {
    let bytes = page(admin, SubmissionEntry::identify(cns::CONTROLLER, 0)).await;
    u128::from_le_bytes(identify::Controller::read_from_bytes(&bytes).unwrap().unvmcap) as u64
}

/// Writes and reads back `blocks` blocks of a namespace, filled with `value`.
async fn keeps(io: &Host, nsid: u32, slba: u64, blocks: u32, value: u8) {
    let bytes = blocks as usize * 512;
    let entry = |opcode| SubmissionEntry::blocks(opcode, nsid, slba, blocks);
    run(io, entry(IoOpcode::WRITE), HostMem::from_bytes(&vec![value; bytes])).await.unwrap();
    assert!(reads(io, nsid, slba, blocks, value).await);
}

async fn reads(io: &Host, nsid: u32, slba: u64, blocks: u32, value: u8) -> bool {
    let mem = HostMem::zeroed(blocks as usize * 512);
    run(io, SubmissionEntry::blocks(IoOpcode::READ, nsid, slba, blocks), mem.clone()).await.unwrap();
    mem.to_vec().iter().all(|byte| *byte == value)
}

#[test]
fn namespaces_come_and_go() {
    with(config(), async |sim, drive| {
        let Tenant { id, admin, io, .. } = &tenant(sim, drive);
        keeps(io, 1, 0, 8, 9).await;
        assert_eq!(unallocated(admin).await, 0);
        assert_eq!(create(admin, wish(8, 8, 0, 1)).await, Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY));
        let first = namespace(admin, 1).await;
        delete(admin, 1).await.unwrap();
        assert_eq!(unallocated(admin).await, CAPACITY);
        let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8);
        assert_eq!(run(io, read, HostMem::zeroed(4_096)).await, Err(Status::INVALID_FIELD), "it is not active");
        // 3 MiB and a block need four granules of 1 MiB.
        assert_eq!(create(admin, wish(3 * 2_048 + 1, 3 * 2_048 + 1, 0, 1)).await, Ok(1));
        assert_eq!(create(admin, wish(256, 256, 1, 1)).await, Ok(2));
        let (one, two) = (namespace(admin, 1).await, namespace(admin, 2).await);
        assert_eq!((one.nsze.get(), one.lba_bytes(), two.nsze.get(), two.lba_bytes()), (6_145, 512, 256, 4_096));
        assert_eq!(one.nvmcap[..8], (4 * MIB).to_le_bytes());
        assert_eq!(unallocated(admin).await, CAPACITY - 5 * MIB);
        assert_ne!((one.nguid, one.eui64), (first.nguid, first.eui64), "no identifier comes twice");
        // Created namespaces are attached to no controller.
        assert_eq!(list(&page(admin, SubmissionEntry::identify(cns::ACTIVE_NAMESPACES, 0)).await), [0; 0]);
        assert_eq!(list(&page(admin, SubmissionEntry::identify(cns::ALLOCATED_NAMESPACES, 0)).await), [1, 2]);
        assert_eq!(list(&page(admin, SubmissionEntry::identify(cns::ALLOCATED_NAMESPACES, 1)).await), [2]);
        for nsid in [1, 2] {
            attach(admin, manage::NAMESPACE_ATTACH, nsid, &[*id]).await.unwrap();
        }
        assert_eq!(list(&page(admin, SubmissionEntry::identify(cns::ACTIVE_NAMESPACES, 0)).await), [1, 2]);
        assert!(reads(io, 1, 0, 8, 0).await, "nothing is left of the one before");
        keeps(io, 1, 6_137, 8, 1).await;
        let beyond = SubmissionEntry::blocks(IoOpcode::READ, 1, 6_138, 8);
        assert_eq!(run(io, beyond, HostMem::zeroed(4_096)).await, Err(Status::LBA_OUT_OF_RANGE));
        let write = SubmissionEntry::blocks(IoOpcode::WRITE, 2, 255, 1);
        run(io, write, HostMem::from_bytes(&[2; 4_096])).await.unwrap();
        assert!(reads(io, 1, 6_137, 8, 1).await, "namespaces do not share blocks");
        assert_eq!(tenant(sim, drive).controller.info().blocks, 6_145, "a new controller has what is in use");
        delete(admin, NSID_ALL).await.unwrap();
        assert_eq!((unallocated(admin).await, drive.info().blocks), (CAPACITY, 0));
    });
}

/// Without a long enough free run, a namespace has several runs, invisibly to hosts.
#[test]
fn a_namespace_in_pieces_works_as_a_whole() {
    with(config(), async |sim, drive| {
        let Tenant { id, admin, io, .. } = &tenant(sim, drive);
        delete(admin, 1).await.unwrap();
        for _ in 0..16 {
            create(admin, wish(2_048, 2_048, 0, 1)).await.unwrap();
        }
        for nsid in (1..=16).step_by(2) {
            delete(admin, nsid).await.unwrap();
        }
        assert_eq!(create(admin, wish(4 * 2_048, 4 * 2_048, 0, 1)).await, Ok(1));
        attach(admin, manage::NAMESPACE_ATTACH, 1, &[*id]).await.unwrap();
        attach(admin, manage::NAMESPACE_ATTACH, 2, &[*id]).await.unwrap();
        assert_eq!(namespace(admin, 1).await.nabsn_z.get(), 2_047, "a boundary that atomic writes do not cross");
        keeps(io, 2, 0, 256, 7).await;
        for (slba, blocks, value) in [(2_040, 16, 1), (4_000, 250, 2), (6_143, 2, 3), (8_000, 192, 4)] {
            keeps(io, 1, slba, blocks, value).await;
        }
        assert!(reads(io, 1, 2_040, 16, 1).await && reads(io, 2, 0, 256, 7).await);
        // Whole mapping units of it are dropped, on both sides of the seam.
        let ranges = nandscape_wire_nvme::io::DsmRange { slba: 2_040.into(), blocks: 16.into(), ..Default::default() };
        run(io, SubmissionEntry::deallocate(1, 1), HostMem::from_bytes(ranges.as_bytes())).await.unwrap();
        assert!(reads(io, 1, 2_040, 16, 0).await);
        // Copy reads and writes across seams.
        let range =
            nandscape_wire_nvme::io::CopyRange { slba: 4_000.into(), nlb_z: 199.into(), ..FromZeros::new_zeroed() };
        let copy = SubmissionEntry { cdw10: 6_100.into(), ..SubmissionEntry::io(IoOpcode::COPY, 1) };
        run(io, copy, HostMem::from_bytes(range.as_bytes())).await.unwrap();
        assert!(reads(io, 1, 6_100, 200, 2).await);
        let beyond = SubmissionEntry::blocks(IoOpcode::READ, 1, 8_191, 2);
        assert_eq!(run(io, beyond, HostMem::zeroed(1_024)).await, Err(Status::LBA_OUT_OF_RANGE));
    });
}

#[test]
fn attachment_and_its_events() {
    with(config(), async |sim, drive| {
        let (one, two) = (tenant(sim, drive), tenant(sim, drive));
        let events = SubmissionEntry::set_features(feature::ASYNC_EVENT_CONFIG, feature::EVENT_NAMESPACE_CHANGED);
        run(&two.admin, events, HostMem::none()).await.unwrap();
        two.admin.submit(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST), HostMem::none());
        delete(&one.admin, 1).await.unwrap();
        let told = two.admin.next().await.unwrap();
        assert_eq!(told.completion.dw0, 2 | u32::from(log::CHANGED_NAMESPACES) << 16, "a notice");
        let log = SubmissionEntry::get_log_page(log::CHANGED_NAMESPACES, 0, 4_096);
        assert_eq!(list(&page(&two.admin, log).await), [1]);
        assert_eq!(list(&page(&two.admin, log).await), [0; 0], "it was read");
        assert_eq!(create(&one.admin, wish(2_048, 2_048, 0, 0)).await, Ok(1));
        let (yes, no) = (manage::NAMESPACE_ATTACH, manage::NAMESPACE_DETACH);
        assert_eq!(attach(&one.admin, yes, 1, &[one.id, two.id]).await, Err(Status::NAMESPACE_IS_PRIVATE));
        assert_eq!(attach(&one.admin, no, 1, &[two.id]).await, Err(Status::NAMESPACE_NOT_ATTACHED));
        attach(&one.admin, yes, 1, &[two.id]).await.unwrap();
        assert_eq!(attach(&one.admin, yes, 1, &[two.id]).await, Err(Status::NAMESPACE_ALREADY_ATTACHED));
        assert_eq!(attach(&one.admin, yes, 1, &[one.id]).await, Err(Status::NAMESPACE_IS_PRIVATE));
        assert_eq!(list(&page(&two.admin, log).await), [1]);
        assert_eq!(list(&page(&one.admin, log).await), [1], "it had it too");
        keeps(&two.io, 1, 0, 8, 3).await;
        let holders =
            SubmissionEntry { cdw10: u32::from(cns::ATTACHED_CONTROLLERS).into(), ..SubmissionEntry::identify(0, 1) };
        assert_eq!(page(&one.admin, holders).await[..6], [1, 0, two.id as u8, 0, 0, 0]);
        attach(&one.admin, no, 1, &[two.id]).await.unwrap();
        assert_eq!(list(&page(&two.admin, log).await), [1]);
        for ids in [&[9][..], &[one.id, 9], &[two.id, one.id], &[one.id, one.id], &[]] {
            assert_eq!(attach(&one.admin, yes, 1, ids).await, Err(Status::CONTROLLER_LIST_INVALID), "{ids:?}");
        }
        for (nsid, status) in
            [(0, Status::INVALID_NAMESPACE), (2, Status::INVALID_FIELD), (65, Status::INVALID_NAMESPACE)]
        {
            assert_eq!(attach(&one.admin, yes, nsid, &[one.id]).await, Err(status));
            assert_eq!(delete(&one.admin, nsid).await, Err(status));
            assert_eq!(format(&one.admin, nsid, 0).await, Err(status));
        }
        assert_eq!(attach(&one.admin, 2, 1, &[one.id]).await, Err(Status::INVALID_FIELD));
    });
}

#[test]
fn each_bad_wish_has_its_status() {
    with(config(), async |sim, drive| {
        let Tenant { admin, .. } = &tenant(sim, drive);
        delete(admin, 1).await.unwrap();
        let protected = Namespace { nsze: 8.into(), ncap: 8.into(), dps: 1, ..Namespace::zeroed() };
        for (wish, status) in [
            (wish(0, 0, 0, 0), Status::INVALID_FIELD),
            (wish(8, 9, 0, 0), Status::INVALID_FIELD),
            (wish(9, 8, 0, 0), Status::THIN_PROVISIONING_NOT_SUPPORTED),
            (wish(8, 8, 0, 2), Status::INVALID_FIELD),
            (wish(8, 8, 5, 0), Status::INVALID_FORMAT),
            // Metadata in a separate buffer, for which capsules have no pointer.
            (wish(8, 8, 2, 0), Status::INVALID_FORMAT),
            (wish(8, 8, 0x20, 0), Status::INVALID_FORMAT),
            (wish(8, 8, 0x10, 0), Status::INVALID_FORMAT),
            (HostMem::from_bytes(protected.as_bytes()), Status::INVALID_FORMAT),
            (wish(u64::MAX, u64::MAX, 1, 0), Status::NAMESPACE_INSUFFICIENT_CAPACITY),
            (wish(CAPACITY / 512 + 1, CAPACITY / 512 + 1, 0, 0), Status::NAMESPACE_INSUFFICIENT_CAPACITY),
            (HostMem::zeroed(4_095), Status::DATA_SGL_LENGTH_INVALID),
        ] {
            assert_eq!(create(admin, wish).await, Err(status));
        }
        let mut zoned = manage(AdminOpcode::NAMESPACE_MANAGEMENT, manage::NAMESPACE_CREATE, 0);
        zoned.cdw11 = (2 << 24).into();
        assert_eq!(run(admin, zoned, wish(8, 8, 0, 0)).await, Err(Status::INVALID_FIELD));
        let select = manage(AdminOpcode::NAMESPACE_MANAGEMENT, 2, 1);
        assert_eq!(run(admin, select, HostMem::zeroed(4_096)).await, Err(Status::INVALID_FIELD));
        // Index 5 of the formats, index 16, protection, metadata at the end of blocks, an unsupported secure erase.
        create(admin, wish(8, 8, 0, 0)).await.unwrap();
        for (cdw10, status) in [
            (5, Status::INVALID_FORMAT),
            (2, Status::INVALID_FORMAT),
            (1 << 12, Status::INVALID_FORMAT),
            (1 << 5, Status::INVALID_FORMAT),
            (1 << 4, Status::INVALID_FORMAT),
            (3 << 9, Status::INVALID_FIELD),
        ] {
            assert_eq!(format(admin, 1, cdw10).await, Err(status), "{cdw10:x}h");
        }
        for _ in 1..16 {
            create(admin, wish(8, 8, 0, 0)).await.unwrap();
        }
        assert_eq!(create(admin, wish(8, 8, 0, 0)).await, Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY));
    });
}

#[test]
fn format_changes_the_blocks_and_drops_the_data() {
    with(config(), async |sim, drive| {
        let Tenant { admin, io, .. } = &tenant(sim, drive);
        let identifiers = namespace(admin, 1).await.nguid;
        for (nsid, cdw10, lba_bytes) in [(1, 1, 4_096), (NSID_ALL, 1 << 9 | 1, 4_096), (1, 2 << 9, 512), (1, 0, 512)] {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 1);
            run(io, write, HostMem::from_bytes(&[5; 4_096])).await.unwrap();
            format(admin, nsid, cdw10).await.unwrap();
            let now = namespace(admin, 1).await;
            assert_eq!((now.lba_bytes(), now.nsze.get()), (lba_bytes, CAPACITY / lba_bytes));
            assert_eq!(now.nguid, identifiers);
            let mem = HostMem::zeroed(lba_bytes as usize);
            run(io, SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 1), mem.clone()).await.unwrap();
            assert!(mem.to_vec().iter().all(|byte| *byte == 0));
        }
    });
}

/// Commands in work end before the data is dropped, and later ones fail.
#[test]
fn format_and_deletion_wait_for_commands() {
    with(config(), async |sim, drive| {
        let (entry, mem) = write(0, 256);
        host(sim, drive, QueueId(1)).execute(entry, mem).await.unwrap();
        sim.sleep(Span::from_ms(5)).await;
        let tenant = tenant(sim, drive);
        for change in [format_entry(), manage(AdminOpcode::NAMESPACE_MANAGEMENT, manage::NAMESPACE_DELETE, 1)] {
            let pair = Pair::over(sim, tenant.controller.clone(), 2, 64);
            let reads = HostMem::zeroed(4_096);
            pair.put(read(0, 8), reads.clone());
            pair.ring();
            tenant.admin.submit(change, HostMem::none());
            sim.sleep(crate::common::FIRMWARE + crate::common::LINK_LATENCY + Span::from_us(1)).await;
            pair.put(read(0, 8), HostMem::zeroed(4_096));
            pair.ring();
            assert!(tenant.admin.next().await.unwrap().completion.status.is_success());
            sim.sleep(Span::from_ms(1)).await;
            let ended = [pair.reap(), pair.reap()].map(|posted| posted.unwrap().entry);
            let (first, second) = match ended[0].cid.get() {
                0 => (ended[0], ended[1]),
                _ => (ended[1], ended[0]),
            };
            let deletes = change.opcode == AdminOpcode::NAMESPACE_MANAGEMENT.0;
            // A format ends; a deletion is permanent.
            let refused = if deletes { Status::INVALID_FIELD.final_() } else { Status::FORMAT_IN_PROGRESS };
            assert_eq!((first.status(), second.status()), (Status::SUCCESS, refused.with_more()));
            tenant.controller.delete_queue_pair(QueueId(2)).unwrap();
        }
    });
}

fn format_entry() -> SubmissionEntry {
    SubmissionEntry { nsid: 1.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) }
}

/// A client in this process relies on the size and format of its namespace.
#[test]
fn hosts_do_not_change_the_blocks_of_clients_in_this_process() {
    with(config(), async |sim, drive| {
        let tenant = tenant(sim, drive);
        let local = host(sim, drive, QueueId(1));
        assert_eq!(format(&tenant.admin, 1, 1).await, Err(Status::OPERATION_DENIED));
        assert_eq!(delete(&tenant.admin, 1).await, Err(Status::OPERATION_DENIED));
        let detach = manage::NAMESPACE_DETACH;
        assert_eq!(attach(&tenant.admin, detach, 1, &[1]).await, Err(Status::OPERATION_DENIED));
        assert_eq!(attach(&tenant.admin, detach, 1, &[tenant.id]).await, Ok(0), "its own controller");
        assert_eq!(format(&tenant.admin, 1, 0).await, Ok(0), "the blocks stay");
        drop(local);
        sim.sleep(Span::from_ms(1)).await;
        assert_eq!(format(&tenant.admin, 1, 1).await, Ok(0));
        assert_eq!(drive.info().lba_bytes, 4_096);
    });
}

/// Format NVM of all namespaces covers those attached to its controller (Base 5.1.10, "Operation Scope").
#[test]
fn all_attached_namespaces_are_formatted() {
    with(config(), async |sim, drive| {
        let (tenant, other) = (tenant(sim, drive), tenant(sim, drive));
        delete(&tenant.admin, 1).await.unwrap();
        for (nsid, id) in [(1, tenant.id), (2, other.id)] {
            assert_eq!(create(&tenant.admin, wish(2_048, 2_048, 0, 1)).await, Ok(nsid));
            attach(&tenant.admin, manage::NAMESPACE_ATTACH, nsid, &[id]).await.unwrap();
        }
        keeps(&other.io, 2, 0, 8, 3).await;
        assert_eq!(format(&tenant.admin, NSID_ALL, 1).await, Ok(0));
        assert_eq!(namespace(&tenant.admin, 1).await.lba_bytes(), 4_096);
        assert!(reads(&other.io, 2, 0, 8, 3).await, "the other controller's is not formatted");
        assert_eq!(namespace(&other.admin, 2).await.lba_bytes(), 512);
    });
}

/// A command for all namespaces changes none if one must not change.
#[test]
fn all_namespaces_change_or_none() {
    with(config(), async |sim, drive| {
        let tenant = tenant(sim, drive);
        delete(&tenant.admin, 1).await.unwrap();
        for nsid in [1, 2] {
            assert_eq!(create(&tenant.admin, wish(2_048, 2_048, 0, 1)).await, Ok(nsid));
            attach(&tenant.admin, manage::NAMESPACE_ATTACH, nsid, &[tenant.id]).await.unwrap();
        }
        attach(&tenant.admin, manage::NAMESPACE_ATTACH, 2, &[1]).await.unwrap();
        keeps(&tenant.io, 1, 0, 8, 3).await;
        let local = host(sim, drive, QueueId(1));
        assert_eq!(format(&tenant.admin, NSID_ALL, 1).await, Err(Status::OPERATION_DENIED));
        assert_eq!(delete(&tenant.admin, NSID_ALL).await, Err(Status::OPERATION_DENIED));
        assert!(reads(&tenant.io, 1, 0, 8, 3).await, "the first has neither gone nor lost its data");
        drop(local);
        sim.sleep(Span::from_ms(1)).await;
        assert_eq!(format(&tenant.admin, NSID_ALL, 1).await, Ok(0));
        assert_eq!(namespace(&tenant.admin, 2).await.lba_bytes(), 4_096);
    });
}
