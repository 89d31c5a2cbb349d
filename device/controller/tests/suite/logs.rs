//! The drive log, telemetry, and wear in the SMART log.

use crate::common::{Pair, config, host, with, write};
use nandscape_device_controller::ControllerConfig;
use nandscape_device_media::StoreKind;
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::log::{self, RETAIN_EVENT, Smart, Telemetry};
use nandscape_wire_nvme::vendor::{self, DriveLog};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry};
use zerocopy::FromBytes;

async fn page(admin: &Host, log: u8, flags: u32, bytes: u32) -> Result<Vec<u8>, Status> {
    let entry = SubmissionEntry::get_log_page(log, 0, bytes);
    let entry = SubmissionEntry { cdw10: (entry.cdw10.get() | flags).into(), ..entry };
    let mem = HostMem::zeroed(bytes as usize);
    match admin.execute(entry, mem.clone()).await.unwrap().status {
        Status::SUCCESS => Ok(mem.to_vec()),
        status => Err(status.meaning()),
    }
}

async fn drive_log(admin: &Host) -> DriveLog {
    DriveLog::read_from_bytes(&page(admin, vendor::DRIVE_LOG, 0, 1_024).await.unwrap()).unwrap()
}

#[test]
fn the_drive_log_counts_what_happens_inside() {
    let config = ControllerConfig { rated_erases: 10, ..config() };
    with(config, async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        let drive_log = async || drive_log(&admin).await;
        let before = drive_log().await;
        assert_eq!((before.magic, before.version.get(), before.host_bytes.get()), (vendor::MAGIC, 1, 0));
        // Overwritten until blocks are collected.
        for round in 0..400u64 {
            let (entry, mem) = write(round * 7_919 % 120 * 256, 256);
            assert!(io.execute(entry, mem).await.unwrap().status.is_success());
        }
        let log = drive_log().await;
        assert_eq!((log.now.get(), log.host_bytes.get()), (log.now.get().max(1), 400 << 17));
        assert!(log.gc_blocks.get() > 0 && log.erases[2].get() >= log.gc_blocks.get(), "{log:?}");
        assert_eq!(log.operations[3], log.erases[2], "every erase is one of a block");
        assert!(log.array_busy[1].get() > 0 && log.array_busy[2].get() > 0, "host writes and collections: {log:?}");
        assert!(log.link_busy[1].get() > 0 && log.buffer_waits.iter().any(|wait| wait.get() > 0), "{log:?}");
        assert_eq!((log.commands[0].get(), log.commands[1].get()), (1, 64), "the command that reads the log");
        let queues: Vec<u16> = log.queues[..log.queue_count.get().into()].iter().map(|queue| queue.id.get()).collect();
        assert_eq!(queues, [0, 1]);
        assert_eq!((log.queues[0].in_work.get(), log.queues[1].in_work.get()), (1, 0));
        let smart = Smart::read_from_bytes(&page(&admin, log::SMART, 0, 512).await.unwrap()).unwrap();
        // 4 planes of 32 blocks, each rated for 10 erases.
        assert_eq!(u64::from(smart.percentage_used), (log.erases[2].get() * 100).div_ceil(4 * 32 * 10), "{log:?}");
        assert!(smart.percentage_used > 1, "{smart:?}");
        assert_eq!(smart.temperature.get(), 308);
    });
}

#[test]
fn queues_that_are_full_show_in_the_drive_log() {
    with(ControllerConfig { command_slots: 2, ..config() }, async |sim, drive| {
        let (admin, pair) = (host(sim, drive, QueueId::ADMIN), Pair::new(sim, drive, 3, 16));
        for slba in 0..15 {
            let (entry, mem) = write(slba * 8, 8);
            pair.put(entry, mem);
        }
        pair.ring();
        // The queues take turns, so that the log is read while others wait.
        let log = drive_log(&admin).await;
        let queue = log.queues[1];
        assert_eq!((queue.id.get(), queue.entries_z.get(), log.queue_count.get()), (3, 15, 2));
        assert!(queue.waiting.get() > 0 && queue.waiting.get() < 15, "{queue:?}");
    });
}

#[test]
fn telemetry_holds_a_snapshot_of_when_it_was_asked_for() {
    with(config(), async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        let read = async |create: bool| {
            let flags = u32::from(log::TELEMETRY_CREATE) << 8;
            let bytes = page(&admin, log::TELEMETRY_HOST, if create { flags } else { 0 }, 1_536).await.unwrap();
            let (header, rest) = Telemetry::read_from_prefix(&bytes).unwrap();
            (header, DriveLog::read_from_bytes(rest).unwrap())
        };
        let (header, _) = read(false).await;
        assert_eq!((header.lid, header.last_blocks[0].get(), header.host_generation), (7, 0, 0), "there is none");
        let (header, first) = read(true).await;
        assert_eq!((header.last_blocks.map(|last| last.get()), header.host_generation), ([2; 3], 1));
        assert_eq!(header.host_scope, log::TELEMETRY_SUBSYSTEM);
        assert_eq!(first.magic, vendor::MAGIC);
        let (entry, mem) = write(0, 8);
        assert!(io.execute(entry, mem).await.unwrap().status.is_success());
        let (_, same) = read(false).await;
        assert_eq!((same.now, same.host_bytes.get()), (first.now, 0));
        let (header, second) = read(true).await;
        assert_eq!((header.host_generation, second.host_bytes.get()), (2, 4_096));
        // Offsets are of whole blocks.
        let entry = SubmissionEntry::get_log_page(log::TELEMETRY_HOST, 0, 512);
        let entry = SubmissionEntry { cdw12: 256.into(), ..entry };
        let ended = admin.execute(entry, HostMem::zeroed(512)).await.unwrap();
        assert_eq!(ended.status.meaning(), Status::INVALID_FIELD);
    });
}

#[test]
fn the_drive_takes_a_snapshot_after_a_power_cut() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = crate::common::faulty_drive(&sim, config(), StoreKind::Ram, 32, &["power_cut program nth=2 off=1ms"]);
    executor
        .block_on(async {
            let (admin, io) = (host(&sim, &drive, QueueId::ADMIN), host(&sim, &drive, QueueId(1)));
            let header = async |flags| {
                let bytes = page(&admin, log::TELEMETRY_CONTROLLER, flags, 512).await.unwrap();
                Telemetry::read_from_bytes(&bytes).unwrap()
            };
            assert_eq!(header(0).await.controller_available, 0);
            // The scope is at another offset than in the other log.
            assert_eq!((header(0).await.host_scope, header(0).await.host_generation), (0, log::TELEMETRY_SUBSYSTEM));
            for slba in 0..40 {
                let (_, mem) = write(0, 256);
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba * 256, 256);
                let _ = io.execute(entry, mem).await;
            }
            sim.sleep(Span::from_ms(100)).await;
            let first = header(RETAIN_EVENT).await;
            assert_eq!((first.controller_available, first.controller_generation), (1, 1));
            let cut = async || {
                drive.subsystem().ftl().media().cut_power(Span::from_ms(1));
                sim.sleep(Span::from_ms(100)).await;
            };
            cut().await;
            assert_eq!(header(RETAIN_EVENT).await.controller_generation, 1, "it stays until a host has read it");
            assert_eq!(header(0).await.controller_available, 1, "this one reads it");
            assert_eq!(header(0).await.controller_available, 0);
            cut().await;
            let second = header(RETAIN_EVENT).await;
            assert_eq!((second.controller_available, second.controller_generation), (1, 2));
        })
        .unwrap();
}

/// All log pages have the scope of the subsystem or the controller: they are requested without a namespace, or for all.
#[test]
fn a_log_page_is_of_no_single_namespace() {
    with(config(), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        for log in [log::SMART, log::SELF_TEST, log::COMMANDS_AND_EFFECTS, vendor::DRIVE_LOG] {
            for (nsid, right) in [(0, true), (NSID_ALL, true), (1, false), (2, false), (NSID_ALL - 1, false)] {
                let ended = admin.execute(SubmissionEntry::get_log_page(log, nsid, 512), HostMem::zeroed(512)).await;
                let status = if right { Status::SUCCESS } else { Status::INVALID_FIELD };
                assert_eq!(ended.unwrap().status.meaning(), status, "log {log:#x} of namespace {nsid:#x}");
            }
        }
    });
}

/// A command rejected for its memory has no effect: the list stays, no snapshot is taken, and events stay.
#[test]
fn a_log_that_was_not_delivered_is_not_read() {
    with(config(), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let read = async |log, flags: u32, bytes: usize| {
            let entry = SubmissionEntry::get_log_page(log, 0, 512);
            let entry = SubmissionEntry { cdw10: (entry.cdw10.get() | flags).into(), ..entry };
            let mem = HostMem::zeroed(bytes);
            let status = admin.execute(entry, mem.clone()).await.unwrap().status;
            if status.is_success() { Ok(mem.to_vec()) } else { Err(status.meaning()) }
        };
        let short = Err(Status::DATA_SGL_LENGTH_INVALID);
        let format = SubmissionEntry { nsid: 1.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
        assert!(admin.execute(format, HostMem::none()).await.unwrap().status.is_success());
        assert_eq!(read(log::CHANGED_NAMESPACES, 0, 508).await, short);
        assert_eq!(read(log::CHANGED_NAMESPACES, 0, 512).await.unwrap()[0], 1);
        assert_eq!(read(log::CHANGED_NAMESPACES, 0, 512).await.unwrap()[0], 0);
        let create = u32::from(log::TELEMETRY_CREATE) << 8;
        assert_eq!(read(log::TELEMETRY_HOST, create, 508).await, short);
        let generation =
            async || Telemetry::read_from_bytes(&read(log::TELEMETRY_HOST, 0, 512).await.unwrap()).unwrap();
        assert_eq!(generation().await.host_generation, 0);
        read(log::TELEMETRY_HOST, create, 512).await.unwrap();
        assert_eq!(generation().await.host_generation, 1);
    });
}
