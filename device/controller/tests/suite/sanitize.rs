//! Sanitize and Device Self-test: background work, rejections meanwhile, and behaviour over resets and power cuts.

use crate::common::{Pair, config, faulty_drive, host, read, with, write};
use nandscape_device_controller::ControllerConfig;
use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostIdentity, HostMem, QueueDrive, QueueId, Subsystem, TransportModel};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::log::ErrorInformation;
use nandscape_wire_nvme::manage::{self, SanitizeStatus, SelfTestLog};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry, feature, log, register, vendor};
use zerocopy::FromBytes;

const CRYPTO: u32 = 4;
const BLOCK_ERASE: u32 = 2;

async fn run(host: &Host, entry: SubmissionEntry, mem: HostMem) -> Result<u32, Status> {
    let ended = host.execute(entry, mem).await.unwrap();
    if ended.status.is_success() { Ok(ended.dw0) } else { Err(ended.status.meaning()) }
}

async fn admin(host: &Host, opcode: AdminOpcode, nsid: u32, cdw10: u32) -> Result<u32, Status> {
    let entry = SubmissionEntry { nsid: nsid.into(), cdw10: cdw10.into(), ..SubmissionEntry::admin(opcode) };
    run(host, entry, HostMem::none()).await
}

async fn sanitize_status(host: &Host) -> (u16, u16) {
    let mem = HostMem::zeroed(512);
    run(host, SubmissionEntry::get_log_page(log::SANITIZE_STATUS, 0, 512), mem.clone()).await.unwrap();
    let log = SanitizeStatus::read_from_bytes(&mem.to_vec()).unwrap();
    (log.status.get(), log.progress.get())
}

async fn self_tests(host: &Host) -> SelfTestLog {
    let mem = HostMem::zeroed(564);
    run(host, SubmissionEntry::get_log_page(log::SELF_TEST, 0, 564), mem.clone()).await.unwrap();
    SelfTestLog::read_from_bytes(&mem.to_vec()).unwrap()
}

async fn fill(io: &Host, value: u8) {
    for slba in (0..1_024).step_by(256) {
        let (entry, _) = write(slba, 256);
        run(io, entry, HostMem::from_bytes(&[value; 256 * 512])).await.unwrap();
    }
}

async fn holds(io: &Host, value: u8) -> bool {
    let mem = HostMem::zeroed(256 * 512);
    run(io, read(0, 256), mem.clone()).await.unwrap();
    mem.to_vec().iter().all(|byte| *byte == value)
}

#[test]
fn sanitize_drops_everything_in_the_background() {
    with(config(), async |sim, drive| {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        fill(&io, 7).await;
        assert_eq!(sanitize_status(&control).await, (manage::SANITIZE_NEVER, 0xffff));
        admin(&control, AdminOpcode::SANITIZE, 0, CRYPTO).await.unwrap();
        let (status, progress) = sanitize_status(&control).await;
        assert!(status != manage::SANITIZE_IN_PROGRESS || progress < 0xffff);
        assert!(is_sanitized(&control, sim).await);
        let done = manage::SANITIZE_SUCCEEDED;
        assert_eq!(sanitize_status(&control).await, (done | manage::GLOBAL_DATA_ERASED, 0xffff));
        assert!(holds(&io, 0).await);
        fill(&io, 1).await;
        assert_eq!(sanitize_status(&control).await.0, done, "something was written since");
        control.submit(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST), HostMem::none());
        control.submit(
            SubmissionEntry { cdw10: CRYPTO.into(), ..SubmissionEntry::admin(AdminOpcode::SANITIZE) },
            HostMem::none(),
        );
        let ended = [control.next().await.unwrap(), control.next().await.unwrap()].map(|ended| ended.completion.dw0);
        assert!(ended.contains(&(6 | 1 << 8 | u32::from(log::SANITIZE_STATUS) << 16)), "{ended:x?}");
    });
}

/// Global Data Erased: whether anything was written since the drive was created, or since the last successful operation.
#[test]
fn what_is_written_is_no_longer_erased() {
    let (never, done, erased) = (manage::SANITIZE_NEVER, manage::SANITIZE_SUCCEEDED, manage::GLOBAL_DATA_ERASED);
    with(config(), async |sim, drive| {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        assert_eq!(sanitize_status(&control).await.0, never | erased, "as it was made");
        let zeroes = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 0, 8);
        run(&io, zeroes, HostMem::none()).await.unwrap();
        assert_eq!(sanitize_status(&control).await.0, never);
        for action in [CRYPTO, BLOCK_ERASE] {
            fill(&io, 7).await;
            admin(&control, AdminOpcode::SANITIZE, 0, action).await.unwrap();
            assert!(is_sanitized(&control, sim).await);
            run(&io, SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()).await.unwrap();
            assert!(holds(&io, 0).await);
            assert_eq!(sanitize_status(&control).await.0, done | erased, "nothing was written");
            run(&io, zeroes, HostMem::none()).await.unwrap();
            assert_eq!(sanitize_status(&control).await.0, done);
        }
    });
    with(config(), async |sim, drive| {
        drive.subsystem().ftl().plant(Plant::Full, Seed::new(1), &mut |_| ());
        let control = host(sim, drive, QueueId::ADMIN);
        assert_eq!(sanitize_status(&control).await.0, never, "it was made full of data");
        admin(&control, AdminOpcode::SANITIZE, 0, BLOCK_ERASE).await.unwrap();
        sim.sleep(Span::from_ms(500)).await;
        assert_eq!(sanitize_status(&control).await.0, done | erased);
    });
}

/// A command in work keeps the operation in progress: meanwhile others are rejected.
#[test]
fn what_is_refused_while_it_is_in_progress() {
    with(config(), async |sim, drive| {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        fill(&io, 7).await;
        sim.sleep(Span::from_ms(20)).await;
        io.submit(read(0, 256), HostMem::zeroed(256 * 512));
        sim.sleep(crate::common::FIRMWARE + crate::common::LINK_LATENCY + Span::from_us(1)).await;
        let entry = |opcode, cdw10: u32| SubmissionEntry {
            nsid: u32::from(opcode != AdminOpcode::SANITIZE).into(),
            cdw10: cdw10.into(),
            ..SubmissionEntry::admin(opcode)
        };
        let refused = [
            entry(AdminOpcode::SANITIZE, CRYPTO),
            entry(AdminOpcode::FORMAT_NVM, 0),
            entry(AdminOpcode::DEVICE_SELF_TEST, 1),
            entry(AdminOpcode::NAMESPACE_MANAGEMENT, 1),
            entry(AdminOpcode::SET_FEATURES, feature::WRITE_PROTECTION.into()),
        ];
        control.submit(entry(AdminOpcode::SANITIZE, CRYPTO), HostMem::none());
        refused.into_iter().for_each(|entry| _ = control.submit(entry, HostMem::none()));
        io.submit(read(256, 8), HostMem::zeroed(4_096));
        for tag in 0..6 {
            let ended = control.next().await.unwrap();
            let right = if ended.tag == 0 { Status::SUCCESS } else { Status::SANITIZE_IN_PROGRESS.with_more() };
            assert_eq!(ended.completion.status, right, "{tag}");
        }
        let ends = [io.next().await.unwrap(), io.next().await.unwrap()];
        let status = |tag| ends.iter().find(|ended| ended.tag == tag).unwrap().completion.status.meaning();
        assert_eq!((status(4), status(5)), (Status::SUCCESS, Status::SANITIZE_IN_PROGRESS));
        assert!(is_sanitized(&control, sim).await);
        assert!(holds(&io, 0).await);
    });
}

/// Only some log pages are readable meanwhile, and the error log names no blocks.
#[test]
fn log_pages_while_it_is_in_progress() {
    with(config(), async |sim, drive| {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        fill(&io, 7).await;
        let beyond = 1 << 40;
        assert_eq!(run(&io, read(beyond, 1), HostMem::none()).await, Err(Status::LBA_OUT_OF_RANGE));
        let page = async |id| {
            let mem = HostMem::zeroed(512);
            run(&control, SubmissionEntry::get_log_page(id, 0, 512), mem.clone()).await.map(|_| mem.to_vec())
        };
        let blocks = async || {
            let page = page(log::ERROR_INFORMATION).await.unwrap();
            let entries = page.chunks(size_of::<ErrorInformation>());
            entries.map(|entry| ErrorInformation::read_from_bytes(entry).unwrap().lba.get()).max().unwrap()
        };
        assert_eq!(blocks().await, beyond);
        admin(&control, AdminOpcode::SANITIZE, 0, BLOCK_ERASE).await.unwrap();
        for id in (0..=0x13).chain([log::RESERVATION_NOTIFICATION, log::SANITIZE_STATUS, vendor::DRIVE_LOG]) {
            let allowed = [1, 2, 4, 0x80, 0x81].contains(&id);
            let right = if allowed { Ok(()) } else { Err(Status::SANITIZE_IN_PROGRESS) };
            assert_eq!(page(id).await.map(drop), right, "log {id:#x}");
        }
        assert_eq!(blocks().await, 0);
        assert_eq!(sanitize_status(&control).await.0 & 0b111, manage::SANITIZE_IN_PROGRESS);
        assert!(is_sanitized(&control, sim).await);
        page(log::SELF_TEST).await.unwrap();
    });
}

#[test]
fn each_bad_field_has_its_status() {
    with(config(), async |sim, drive| {
        let control = host(sim, drive, QueueId::ADMIN);
        for cdw10 in [0, 5, 7, CRYPTO | 1 << 9, CRYPTO | 1 << 10, 2 | 1 << 9, 3 | 1 << 10] {
            assert_eq!(
                admin(&control, AdminOpcode::SANITIZE, 0, cdw10).await,
                Err(Status::INVALID_FIELD),
                "{cdw10:x}h"
            );
        }
        assert_eq!(admin(&control, AdminOpcode::SANITIZE, 0, 1).await, Ok(0), "there is no failure to leave");
        for (nsid, cdw10, status) in [
            (1, 0, Status::INVALID_FIELD),
            (1, 0xe, Status::INVALID_FIELD),
            (2, 1, Status::INVALID_FIELD),
            (65, 1, Status::INVALID_NAMESPACE),
        ] {
            assert_eq!(
                admin(&control, AdminOpcode::DEVICE_SELF_TEST, nsid, cdw10).await,
                Err(status),
                "{nsid} {cdw10:x}h"
            );
        }
    });
}

/// Waits until no self-test is in progress.
async fn finish(sim: &Sim, control: &Host) -> SelfTestLog {
    for _ in 0..1_000 {
        let log = self_tests(control).await;
        if log.current == 0 {
            return log;
        }
        sim.sleep(Span::from_ms(1)).await;
    }
    panic!("the self-test does not end");
}

#[test]
fn self_tests_read_and_report() {
    with(config(), async |sim, drive| {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        fill(&io, 7).await;
        assert_eq!(self_tests(&control).await.results[0].status, 0xf, "none so far");
        let reads = || drive.subsystem().ftl().media().counts().reads;
        for (code, nsid) in [(1, 1), (2, NSID_ALL), (1, 0)] {
            let before = reads();
            admin(&control, AdminOpcode::DEVICE_SELF_TEST, nsid, code).await.unwrap();
            if nsid != 0 {
                let again = admin(&control, AdminOpcode::DEVICE_SELF_TEST, 1, 1).await;
                assert_eq!(again, Err(Status::SELF_TEST_IN_PROGRESS));
            }
            let log = finish(sim, &control).await;
            assert_eq!(log.results[0].status, (code as u8) << 4, "it has passed");
            assert_eq!(reads() > before, nsid != 0, "code {code}");
        }
        assert!(holds(&io, 7).await);
        // One after the other is ended early.
        let change = |opcode, cdw10: u32| (opcode, cdw10);
        for ((opcode, cdw10), result) in [
            (change(AdminOpcode::DEVICE_SELF_TEST, 0xf), manage::SELF_TEST_ABORTED),
            (change(AdminOpcode::FORMAT_NVM, 0), manage::SELF_TEST_FORMATTED),
            (change(AdminOpcode::SANITIZE, CRYPTO), manage::SELF_TEST_SANITIZED),
        ] {
            fill(&io, 7).await;
            admin(&control, AdminOpcode::DEVICE_SELF_TEST, 1, 2).await.unwrap();
            admin(&control, opcode, u32::from(opcode != AdminOpcode::SANITIZE), cdw10).await.unwrap();
            // Meanwhile this log is not read.
            assert!(opcode != AdminOpcode::SANITIZE || is_sanitized(&control, sim).await);
            let log = self_tests(&control).await;
            assert_eq!((log.current, log.results[0].status), (0, 2 << 4 | result));
            sim.sleep(Span::from_ms(20)).await;
        }
        assert_eq!(self_tests(&control).await.results[3].status, 1 << 4, "older ones follow");
    });
}

/// Blocks that hold no data take no flash time, but they do take firmware time: the test ends at a later instant.
#[test]
fn a_self_test_of_an_empty_drive_takes_time() {
    with(config(), async |sim, drive| {
        let control = host(sim, drive, QueueId::ADMIN);
        let reads = drive.subsystem().ftl().media().counts().reads;
        let began = sim.now();
        admin(&control, AdminOpcode::DEVICE_SELF_TEST, 1, 2).await.unwrap();
        // The namespace has more than 1,024 blocks, of which one command reads 256 at most.
        while self_tests(&control).await.current != 0 {
            sim.sleep(Span::from_us(1)).await;
        }
        assert!(sim.now() - began >= Span::from_us(40), "{:?}", sim.now() - began);
        assert_eq!(drive.subsystem().ftl().media().counts().reads, reads);
    });
}

/// A self-test finds unreadable blocks, and reports where.
#[test]
fn a_self_test_finds_lost_blocks() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = faulty_drive(&sim, config(), StoreKind::Ram, 32, &["uncorrectable lba=512"]);
    let test = async {
        let (control, io) = (host(&sim, &drive, QueueId::ADMIN), host(&sim, &drive, QueueId(1)));
        fill(&io, 7).await;
        sim.sleep(Span::from_ms(20)).await;
        admin(&control, AdminOpcode::DEVICE_SELF_TEST, 1, 2).await.unwrap();
        let found = finish(&sim, &control).await.results[0];
        assert_eq!((found.status, found.segment, found.nsid.get()), (2 << 4 | manage::SELF_TEST_SEGMENT_FAILED, 1, 1));
        assert_eq!((found.sct, found.sc, found.valid), (2, 0x81, 0xf));
        assert!((504..520).contains(&found.lba.get()), "{}", found.lba.get());
    };
    executor.block_on(test).unwrap();
}

/// A power cut ends a short self-test; an extended one and a sanitize operation continue afterwards.
#[test]
fn what_outlasts_a_power_cut() {
    for (code, result) in [(1, manage::SELF_TEST_RESET), (2, manage::SELF_TEST_PASSED)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drive = faulty_drive(&sim, config(), StoreKind::Ram, 32, &["power_cut read off=20ms nth=2 count=1"]);
        let test = async {
            let (control, io) = (host(&sim, &drive, QueueId::ADMIN), host(&sim, &drive, QueueId(1)));
            fill(&io, 7).await;
            sim.sleep(Span::from_ms(20)).await;
            admin(&control, AdminOpcode::DEVICE_SELF_TEST, 1, code).await.unwrap();
            sim.sleep(Span::from_ms(200)).await;
            let log = finish(&sim, &control).await;
            assert_eq!(log.results[0].status, (code as u8) << 4 | result);
        };
        executor.block_on(test).unwrap();
    }
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = faulty_drive(&sim, config(), StoreKind::Ram, 32, &[]);
    let test = async {
        let (control, io) = (host(&sim, &drive, QueueId::ADMIN), host(&sim, &drive, QueueId(1)));
        fill(&io, 7).await;
        sim.sleep(Span::from_ms(20)).await;
        io.submit(read(0, 256), HostMem::zeroed(256 * 512));
        control.submit(
            SubmissionEntry { cdw10: CRYPTO.into(), ..SubmissionEntry::admin(AdminOpcode::SANITIZE) },
            HostMem::none(),
        );
        sim.sleep(Span::from_us(20)).await;
        drive.subsystem().ftl().media().cut_power(Span::from_ms(20));
        sim.sleep(Span::from_ms(200)).await;
        control.next().await.unwrap();
        assert!(is_sanitized(&control, &sim).await);
        let io = host(&sim, &drive, QueueId(2));
        assert!(holds(&io, 0).await);
    };
    executor.block_on(test).unwrap();
}

/// Whether a sanitize operation in progress succeeds, in reasonable time.
async fn is_sanitized(control: &Host, sim: &Sim) -> bool {
    for _ in 0..100 {
        let status = sanitize_status(control).await.0 & 0b111;
        if status != manage::SANITIZE_IN_PROGRESS {
            return status == manage::SANITIZE_SUCCEEDED;
        }
        sim.sleep(Span::from_ms(1)).await;
    }
    false
}

/// A change that waited for another one is rejected if a sanitize operation began meanwhile, and the namespaces stay closed.
#[test]
fn a_change_that_waits_is_refused_once_the_drive_is_sanitized() {
    with(config(), async |sim, drive| {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        fill(&io, 7).await;
        io.submit(read(0, 256), HostMem::zeroed(256 * 512));
        let format = SubmissionEntry { nsid: 1.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
        let sanitize = SubmissionEntry { cdw10: CRYPTO.into(), ..SubmissionEntry::admin(AdminOpcode::SANITIZE) };
        let tokens = [format, format, sanitize].map(|entry| control.submit(entry, HostMem::none()));
        let mut ended = Vec::new();
        for _ in tokens {
            ended.push(control.next().await.unwrap().completion.status.meaning());
        }
        ended.sort_by_key(|status| status.bits());
        let mut right = [Status::SUCCESS, Status::SUCCESS, Status::SANITIZE_IN_PROGRESS];
        right.sort_by_key(|status| status.bits());
        assert_eq!(ended, right);
        assert!(io.next().await.unwrap().completion.status.is_success());
        assert!(is_sanitized(&control, sim).await);
        assert!(holds(&io, 0).await);
    });
}

/// Background work takes no command slot: with one slot, commands are served during it.
#[test]
fn one_command_slot_is_enough_beside_a_self_test() {
    with(ControllerConfig { command_slots: 1, ..config() }, async |sim, drive| {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        fill(&io, 7).await;
        admin(&control, AdminOpcode::DEVICE_SELF_TEST, NSID_ALL, manage::SELF_TEST_EXTENDED.into()).await.unwrap();
        assert!(holds(&io, 7).await);
        assert_eq!(self_tests(&control).await.current, manage::SELF_TEST_EXTENDED, "it goes on");
        admin(&control, AdminOpcode::SANITIZE, 0, CRYPTO).await.unwrap();
        assert!(is_sanitized(&control, sim).await);
    });
}

/// The controller that began it is gone at its end, and another one has its identifier: the new host is not notified.
#[test]
fn the_end_is_not_told_to_another_controller_of_the_same_identifier() {
    with(config(), async |sim, drive| {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        fill(&io, 7).await;
        let new = || {
            let made = drive.subsystem().new_controller(HostIdentity::default(), TransportModel::Message).unwrap();
            // Enabled, with entries of 64 and of 16 bytes.
            made.set_register(register::CC, register::CC_EN | 6 << 16 | 4 << 20);
            made
        };
        let first = new();
        let id = first.id();
        let its = Host::new(sim, QueueDrive::new(sim, first.clone(), QueueId::ADMIN, 32).unwrap());
        admin(&its, AdminOpcode::SANITIZE, 0, BLOCK_ERASE).await.unwrap();
        drop(its);
        first.detach();
        drop(first);
        sim.sleep(Span::from_us(50)).await;
        let second = new();
        assert_eq!(second.id(), id);
        let pair = Pair::over(sim, second.clone(), 0, 32);
        pair.put(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST), HostMem::none());
        pair.ring();
        assert_eq!(sanitize_status(&control).await.0 & 0b111, manage::SANITIZE_IN_PROGRESS);
        assert!(is_sanitized(&control, sim).await);
        assert!(pair.reap().is_none(), "it has not begun the operation");
    });
}
