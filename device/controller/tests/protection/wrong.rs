//! Memory that does not fit, formats that do not exist, and the data of Identify.

use nandscape_device_media::StoreKind;
use nandscape_drive::HostMem;
use nandscape_drive::conformance::Host;
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_sim::Executor;
use nandscape_wire_nvme::command::{FLAGS_FUSED_FIRST, FLAGS_FUSED_SECOND};
use nandscape_wire_nvme::identify::{self, Namespace, cns};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use zerocopy::FromBytes;

use crate::common::{Pair, config, drive_with, with};
use crate::host::Guest;
use crate::model::{Block, Fields, Shape};

const SEPARATE: Shape = Shape { index: 2, data: 512, metadata: 8, is_extended: false, kind: 1, is_first: false };
const EXTENDED: Shape = Shape { index: 3, data: 4_096, metadata: 8, is_extended: true, kind: 2, is_first: true };
/// The controller inserts and strips protection information.
const ACTS: Fields = Fields { prinfo: 8, reference: 0, application: 0, mask: 0 };

fn block(shape: Shape) -> Block {
    Block { data: vec![3; shape.data], metadata: vec![0; shape.metadata] }
}

async fn identify(admin: &Host) -> Namespace {
    let mem = HostMem::zeroed(4_096);
    let ended = admin.execute(SubmissionEntry::identify(cns::NAMESPACE, 1), mem.clone()).await.unwrap();
    assert_eq!(ended.status, Status::SUCCESS);
    Namespace::read_from_bytes(&mem.to_vec()).unwrap()
}

#[test]
fn identify_tells_format_and_protection() {
    with(config(), async |sim, drive| {
        let admin = || Host::new(sim, QueueDrive::new(sim, drive.clone(), QueueId(0), 32).unwrap());
        let before = identify(&admin()).await;
        assert_eq!((before.nlbaf_z, before.flbas, before.dps, before.mc, before.dpc), (4, 0, 0, 0b11, 0x1f));
        let formats: Vec<(u16, u8)> = before.lbaf[..5].iter().map(|format| (format.ms.get(), format.lbads)).collect();
        assert_eq!(formats, [(0, 9), (0, 12), (8, 9), (8, 12), (64, 12)]);
        Guest::new(sim, drive, EXTENDED).await;
        let now = identify(&admin()).await;
        assert_eq!((now.flbas, now.dps, now.nsze.get()), (0x13, 0b1010, before.nsze.get() / 8));
        assert_eq!(now.dlfeat & 1 << 4, 0, "the guard of a deallocated block is FFFFh");
        assert_eq!(nandscape_drive::Controller::info(&**drive).metadata_bytes, 8);
    });
}

#[test]
fn a_drive_without_data_has_no_format_with_metadata() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drive_with(&sim, config(), StoreKind::None);
    let test = async {
        let admin = Host::new(&sim, QueueDrive::new(&sim, drive.clone(), QueueId(0), 32).unwrap());
        let id = identify(&admin).await;
        assert_eq!((id.nlbaf_z, id.mc, id.dpc), (1, 0, 0));
        let entry = SubmissionEntry::admin(AdminOpcode::FORMAT_NVM);
        let format = SubmissionEntry { nsid: 1.into(), cdw10: 2.into(), ..entry };
        let ended = admin.execute(format, HostMem::none()).await.unwrap();
        assert_eq!(ended.status.meaning(), Status::INVALID_FORMAT);
    };
    executor.block_on(test).unwrap();
}

#[test]
fn memory_that_does_not_fit_has_its_status() {
    with(config(), async |sim, drive| {
        let mut guest = Guest::new(sim, drive, SEPARATE).await;
        let write = async |guest: &Guest, fields| guest.send(IoOpcode::WRITE, 0, fields, &[block(SEPARATE)]).await;
        assert_eq!(write(&guest, Fields::default()).await, Ok(()));
        guest.metadata_at += 2;
        assert_eq!(write(&guest, Fields::default()).await, Err(Status::INVALID_FIELD), "no dword");
        assert_eq!(write(&guest, ACTS).await, Ok(()), "it is not used");
        guest.metadata_at = (1 << 20) - 4;
        assert_eq!(write(&guest, Fields::default()).await, Err(Status::DATA_TRANSFER_ERROR), "half of it");
        (guest.describes_metadata, guest.missing_metadata, guest.metadata_at) = (true, 1, 0xc_0000);
        assert_eq!(write(&guest, Fields::default()).await, Err(Status::METADATA_SGL_LENGTH_INVALID));
        let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 1);
        let none = guest.with_list(entry, &[0; 512]).await;
        assert_eq!(none, Err(Status::INVALID_FIELD), "a host without a metadata pointer");
    });
}

#[test]
fn what_crosses_the_link_is_within_the_transfer_limit() {
    // 128 KiB are 32 blocks, or 31 with their metadata.
    with(config(), async |sim, drive| {
        let guest = Guest::new(sim, drive, EXTENDED).await;
        let write = async |blocks, fields| guest.send(IoOpcode::WRITE, 0, fields, &vec![block(EXTENDED); blocks]).await;
        assert_eq!(write(31, Fields::default()).await, Ok(()));
        assert_eq!(write(32, Fields::default()).await, Err(Status::INVALID_FIELD));
        assert_eq!(write(32, ACTS).await, Ok(()), "without metadata");
        assert_eq!(write(33, ACTS).await, Err(Status::INVALID_FIELD));
    });
}

#[test]
fn a_block_that_is_declared_unreadable_is_so_with_its_metadata() {
    with(config(), async |sim, drive| {
        let guest = Guest::new(sim, drive, EXTENDED).await;
        let block = block(EXTENDED);
        guest.send(IoOpcode::WRITE, 5, ACTS, std::slice::from_ref(&block)).await.unwrap();
        guest.command(Guest::entry(IoOpcode::WRITE_UNCORRECTABLE, 5, 1, Fields::default())).await.unwrap();
        let verify = Guest::entry(IoOpcode::VERIFY, 5, 1, Fields::default());
        assert_eq!(guest.command(verify).await, Err(Status::UNRECOVERED_READ_ERROR));
        guest.send(IoOpcode::WRITE, 5, ACTS, std::slice::from_ref(&block)).await.unwrap();
        let checks = Fields { prinfo: 0b1111, mask: 0xffff, ..Fields::default() };
        assert_eq!(guest.read(5, checks, &[block]).await, Ok(()));
    });
}

#[test]
fn a_fused_pair_compares_and_writes_with_protection() {
    with(config(), async |sim, drive| {
        let guest = Guest::new(sim, drive, EXTENDED).await;
        let of = |value| [Block { data: vec![value; EXTENDED.data], ..block(EXTENDED) }];
        guest.send(IoOpcode::WRITE, 9, ACTS, &of(1)).await.unwrap();
        let pair = Pair::new(sim, drive, 2, 32);
        // The comparison's memory is taken at once, because both commands share it.
        let swap = async |from: u8, to: u8, write: Fields| {
            let copied = |opcode, flags, value, fields| {
                let (entry, mem) = guest.to_drive(Guest::entry(opcode, 9, 1, fields), fields, &of(value));
                let bytes = if guest.shape.strips(fields) { 4_096 } else { 4_104 };
                (SubmissionEntry { flags, ..entry }, HostMem::from_bytes(&mem.part(0, bytes).to_vec()))
            };
            for (entry, mem) in [
                copied(IoOpcode::COMPARE, FLAGS_FUSED_FIRST, from, ACTS),
                copied(IoOpcode::WRITE, FLAGS_FUSED_SECOND, to, write),
            ] {
                pair.put(entry, mem);
            }
            pair.ring();
            sim.sleep(nandscape_sim::Span::from_ms(20)).await;
            let ended: Vec<Status> =
                std::iter::from_fn(|| pair.reap()).map(|posted| posted.entry.status().meaning()).collect();
            pair.release();
            ended
        };
        assert_eq!(swap(1, 2, ACTS).await, [Status::SUCCESS; 2]);
        assert_eq!(swap(1, 3, ACTS).await, [Status::COMPARE_FAILURE, Status::FUSED_FAILED]);
        let wrong = Fields { prinfo: 0b100, ..Fields::default() };
        assert_eq!(swap(2, 3, wrong).await, [Status::FUSED_FAILED, Status::GUARD_CHECK]);
        let mut now = of(2);
        EXTENDED.protect(ACTS, 0, &mut now[0]);
        assert_eq!(guest.read(9, Fields { prinfo: 0b110, ..Fields::default() }, &now).await, Ok(()));
    });
}

#[test]
fn a_namespace_may_be_created_with_protection() {
    with(config(), async |sim, drive| {
        let admin = Host::new(sim, QueueDrive::new(sim, drive.clone(), QueueId(0), 32).unwrap());
        let manage = |select: u32, nsid: u32| SubmissionEntry {
            cdw10: select.into(),
            nsid: nsid.into(),
            ..SubmissionEntry::admin(AdminOpcode::NAMESPACE_MANAGEMENT)
        };
        assert_eq!(admin.execute(manage(1, 1), HostMem::none()).await.unwrap().status, Status::SUCCESS);
        let create = async |flbas: u8, dps: u8| {
            let size = 256u64.into();
            let wish = Namespace { nsze: size, ncap: size, flbas, dps, ..Namespace::zeroed() };
            let mem = HostMem::from_bytes(zerocopy::IntoBytes::as_bytes(&wish));
            admin.execute(manage(0, 0), mem).await.unwrap().status.meaning()
        };
        assert_eq!(create(0x10, 0).await, Status::INVALID_FORMAT, "a place for metadata that there is not");
        assert_eq!(create(2, 4).await, Status::INVALID_FORMAT, "type 4");
        assert_eq!(create(2, 1 << 4).await, Status::INVALID_FORMAT, "a reserved bit");
        assert_eq!(create(0x14, 0b1011).await, Status::SUCCESS);
        let mem = HostMem::zeroed(4_096);
        admin.execute(SubmissionEntry::identify(cns::ALLOCATED_NAMESPACE, 1), mem.clone()).await.unwrap();
        let id = Namespace::read_from_bytes(&mem.to_vec()).unwrap();
        assert_eq!((id.flbas, id.dps, id.mc & identify::MC_SEPARATE), (0x14, 0b1011, identify::MC_SEPARATE));
    });
}
