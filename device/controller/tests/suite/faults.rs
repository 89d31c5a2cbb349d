//! Flash faults as seen by a host: statuses, logs, and no avoidable loss of data. A host writes, reads, deallocates and
//! flushes at random, and checks each block against its permitted contents.
//!
//! NANDSCAPE_TEST_SEED sets the seed.

use crate::common::{PROGRAM, READ, config, faulty_drive, host, read, timed, write};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_ftl_core::Ftl;
use nandscape_device_media::StoreKind;
use nandscape_drive::conformance::{Ask, Damaged, Host};
use nandscape_drive::{HostMem, QueueDrive, QueueId};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::log::{ErrorInformation, Smart, WARNING_READ_ONLY, WARNING_SPARE};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, feature, log};
use zerocopy::FromBytes;

/// Commands a dozen at a time.
const ROUNDS: u32 = 150;

fn mode(buffer: BufferMode) -> ControllerConfig {
    ControllerConfig { buffer, ..config() }
}

/// Runs a test on a new drive with faults, and checks the drive's tables afterwards.
fn with<T>(config: ControllerConfig, faults: &[&str], test: impl AsyncFnOnce(&Sim, &crate::common::Drive) -> T) -> T {
    with_blocks(26, config, faults, test)
}

/// The same with `blocks` blocks on each of the four planes: 16 hold the capacity, and garbage collection needs more.
fn with_blocks<T>(
    blocks: u32,
    config: ControllerConfig,
    faults: &[&str],
    test: impl AsyncFnOnce(&Sim, &crate::common::Drive) -> T,
) -> T {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = faulty_drive(&sim, config, StoreKind::Ram, blocks, faults);
    let result = executor.block_on(test(&sim, &drive)).unwrap();
    drive.subsystem().ftl().check().unwrap();
    result
}

/// A host of a drive's first queue.
fn damaged(sim: &Sim, drive: &crate::common::Drive) -> Damaged {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let media = drive.subsystem().ftl().media().clone();
    let queue = QueueDrive::new(sim, drive.clone(), QueueId(1), 32).unwrap();
    Damaged::new(sim, queue, move || media.power_cuts(), seed)
}

async fn status(sim: &Sim, host: &Host, (entry, mem): (SubmissionEntry, HostMem)) -> Status {
    timed(sim, host, entry, mem).await.0.status.meaning()
}

/// A read of `blocks` logical blocks, and memory for them.
fn reading(slba: u64, blocks: u32) -> (SubmissionEntry, HostMem) {
    (read(slba, blocks), HostMem::zeroed(blocks as usize * 512))
}

async fn log_page(sim: &Sim, drive: &crate::common::Drive, id: u8, bytes: usize) -> Vec<u8> {
    let admin = host(sim, drive, QueueId::ADMIN);
    let mut entry = SubmissionEntry::io(IoOpcode(AdminOpcode::GET_LOG_PAGE.0), 0xffff_ffff);
    entry.cdw10 = (u32::from(id) | ((bytes / 4 - 1) as u32) << 16).into();
    let mem = HostMem::zeroed(bytes);
    let completion = admin.execute(entry, mem.clone()).await.unwrap();
    assert!(completion.status.is_success(), "{}", completion.status);
    mem.to_vec()
}

#[test]
fn a_page_that_cannot_be_corrected_is_an_unrecovered_read_error_and_is_logged() {
    with(mode(BufferMode::Through), &["uncorrectable nth=2"], async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        assert_eq!(status(sim, &host, write(0, 32)).await, Status::SUCCESS);
        let mut ended = Vec::new();
        for _ in 0..3 {
            ended.push(status(sim, &host, reading(8, 8)).await);
        }
        assert_eq!(ended, [Status::SUCCESS, Status::UNRECOVERED_READ_ERROR, Status::SUCCESS]);
        let page = log_page(sim, drive, log::ERROR_INFORMATION, 128).await;
        let (entry, rest) = ErrorInformation::read_from_prefix(&page).unwrap();
        assert_eq!((entry.error_count.get(), entry.sqid.get(), entry.lba.get(), entry.nsid.get()), (1, 1, 8, 1));
        assert_eq!(
            (entry.status.get() >> 1, entry.opcode),
            (Status::UNRECOVERED_READ_ERROR.with_more().bits(), IoOpcode::READ.0)
        );
        assert!(rest.iter().all(|byte| *byte == 0), "there was one error");
        let smart = Smart::read_from_bytes(&log_page(sim, drive, log::SMART, 512).await).unwrap();
        assert_eq!((smart.media_errors.low.get(), smart.error_log_entries.low.get()), (1, 1));
        assert_eq!((smart.critical_warning, smart.available_spare), (0, 100));
    });
}

/// The log names the first block that failed, not the first of the command.
#[test]
fn the_log_names_the_block_that_failed() {
    let faults = ["uncorrectable lba=70", "uncorrectable lba=100"];
    with(mode(BufferMode::Through), &faults, async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        assert_eq!(status(sim, &host, write(0, 128)).await, Status::SUCCESS);
        for (slba, lba) in [(0, 64), (68, 68), (96, 96)] {
            assert_eq!(status(sim, &host, reading(slba, 128 - slba as u32)).await, Status::UNRECOVERED_READ_ERROR);
            let page = log_page(sim, drive, log::ERROR_INFORMATION, 64).await;
            assert_eq!(ErrorInformation::read_from_bytes(&page).unwrap().lba.get(), lba, "from {slba} on");
        }
    });
}

/// A large read of which one page fails, and commands that read without moving data.
#[test]
fn one_page_in_many_fails_the_command() {
    with(mode(BufferMode::Through), &["uncorrectable lba=70"], async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        assert_eq!(status(sim, &host, write(0, 128)).await, Status::SUCCESS);
        let verify = |slba| (SubmissionEntry::blocks(IoOpcode::VERIFY, 1, slba, 64), HostMem::none());
        let compare = |slba| (SubmissionEntry::blocks(IoOpcode::COMPARE, 1, slba, 64), write(slba, 64).1);
        for (command, ended) in [
            (reading(0, 128), Status::UNRECOVERED_READ_ERROR),
            (reading(0, 64), Status::SUCCESS),
            (verify(64), Status::UNRECOVERED_READ_ERROR),
            (verify(0), Status::SUCCESS),
            (compare(64), Status::UNRECOVERED_READ_ERROR),
            (compare(0), Status::SUCCESS),
            // A page is read whole: block 70 is in the page of blocks 64 to 95.
            (reading(95, 1), Status::UNRECOVERED_READ_ERROR),
            (reading(96, 1), Status::SUCCESS),
        ] {
            let (entry, mem) = command;
            let text = format!("{entry:?}");
            assert_eq!(status(sim, &host, (entry, mem)).await, ended, "{text}");
        }
    });
}

#[test]
fn corrupt_data_is_returned_without_a_word_and_stays() {
    with(mode(BufferMode::Through), &["corrupt nth=1"], async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        assert_eq!(status(sim, &host, write(0, 32)).await, Status::SUCCESS);
        for _ in 0..2 {
            let (entry, mem) = reading(0, 32);
            assert_eq!(status(sim, &host, (entry, mem.clone())).await, Status::SUCCESS);
            let flipped: u32 = mem.to_vec().iter().map(|byte| (byte ^ 7).count_ones()).sum();
            assert_eq!(flipped, 4, "a bit of each mapping unit of the page");
        }
    });
}

#[test]
fn slow_and_stuck_operations_take_the_time_they_say() {
    let time_of = |faults: &[&str]| {
        with(mode(BufferMode::Through), faults, async |sim, drive| {
            let host = host(sim, drive, QueueId(1));
            let (entry, mem) = write(0, 32);
            let (written, write_time) = timed(sim, &host, entry, mem).await;
            let (entry, mem) = reading(0, 32);
            let (read, read_time) = timed(sim, &host, entry, mem).await;
            ((written.status.meaning(), write_time), (read.status.meaning(), read_time))
        })
    };
    let (good_write, good_read) = time_of(&[]);
    assert_eq!((good_write.0, good_read.0), (Status::SUCCESS, Status::SUCCESS));
    let slow = Span::from_us(300);
    assert_eq!(
        time_of(&["slow by=300us"]),
        ((Status::SUCCESS, good_write.1 + slow), (Status::SUCCESS, good_read.1 + slow))
    );
    // The first program is abandoned after 2 ms, and repeated in another block.
    let stuck = time_of(&["stuck program timeout=2ms nth=1"]);
    assert_eq!(stuck, ((Status::SUCCESS, good_write.1 + Span::from_ms(2)), good_read));
    // An abandoned read moves no data.
    let (_, (ended, time)) = time_of(&["stuck read timeout=2ms"]);
    assert_eq!(ended, Status::UNRECOVERED_READ_ERROR);
    let transfers = "1024MB/s".parse::<nandscape_sim::units::Rate>().unwrap().time_for(16 << 10)
        + "4096MB/s".parse::<nandscape_sim::units::Rate>().unwrap().time_for(16 << 10);
    assert_eq!(time + READ + transfers, good_read.1 + Span::from_ms(2));
}

#[test]
fn a_failed_program_costs_its_time_and_its_block_and_no_data() {
    with(mode(BufferMode::Through), &["fail program nth=2"], async |sim, drive| {
        let host = host(sim, drive, QueueId(1));
        let (entry, mem) = write(0, 32);
        let (_, good) = timed(sim, &host, entry, mem).await;
        let (entry, mem) = write(32, 32);
        let (ended, repeated) = timed(sim, &host, entry, mem).await;
        assert!(ended.status.is_success());
        let load = "1024MB/s".parse::<nandscape_sim::units::Rate>().unwrap().time_for(16 << 10);
        assert_eq!(repeated, good + load + PROGRAM);
        sim.sleep(Span::from_s(1)).await;
        let stats = drive.subsystem().ftl().stats();
        assert_eq!((stats.retired_blocks, stats.lost_units), (1, 0));
        let (left, new) = stats.spare_blocks;
        assert_eq!(left, new - 1);
        let smart = Smart::read_from_bytes(&log_page(sim, drive, log::SMART, 512).await).unwrap();
        assert_eq!(u64::from(smart.available_spare), left * 100 / new);
        assert_eq!(smart.media_errors.low.get(), 0, "the host has not noticed");
    });
}

/// Each enabled warning is reported once, one at a time.
#[test]
fn warnings_are_events_for_a_host_that_asks() {
    with(config(), &["fail program every=3"], async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let wanted = u32::from(WARNING_SPARE | WARNING_READ_ONLY);
        let wish = SubmissionEntry::set_features(feature::ASYNC_EVENT_CONFIG, wanted);
        assert!(admin.execute(wish, HostMem::none()).await.unwrap().status.is_success());
        for _ in 0..3 {
            admin.submit(SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST), HostMem::none());
        }
        let mut book = damaged(sim, drive);
        while drive.subsystem().ftl().read_only().is_none() {
            book.round(&[Ask::Write]).await.unwrap();
        }
        book.round(&[Ask::Write]).await.unwrap();
        // Type 1, SMART; the spare is below its threshold; log page 2. The other event waits for the read of the log, which
        // reports it.
        assert_eq!(admin.ended(), 2);
        assert_eq!(admin.next().await.unwrap().completion.dw0, 0x02_02_01);
        let mut smart = SubmissionEntry::admin(AdminOpcode::GET_LOG_PAGE);
        (smart.nsid, smart.cdw10) = (0xffff_ffff.into(), (u32::from(log::SMART) | 127 << 16).into());
        admin.submit(smart, HostMem::zeroed(512));
        assert_eq!(admin.next().await.unwrap().completion.dw0, 0);
        admin.submit(smart, HostMem::zeroed(512));
        admin.next().await.unwrap();
        assert_eq!(admin.ended(), 4, "nothing new has come up, and the log has told that the media is read-only");
    });
}

/// Faults that cost no data, at random under load: everything reads back.
#[test]
fn blocks_that_go_bad_lose_nothing() {
    for (faults, retired) in [
        (&["fail program every=60 count=12"][..], 12),
        (&["fail erase every=6 count=12"], 10),
        (&["fail program probability=2% count=7", "fail erase probability=10% count=7"], 8),
        (&["stuck program timeout=3ms every=60 count=9", "slow by=1ms probability=5%"], 9),
    ] {
        for buffer in [BufferMode::Capacitor, BufferMode::Volatile, BufferMode::Through] {
            let stats = with(mode(buffer), faults, async |sim, drive| {
                let mut book = damaged(sim, drive);
                for _ in 0..ROUNDS {
                    book.round(&Ask::ALL).await.unwrap();
                }
                assert_eq!(book.failed(), 0, "{faults:?} {buffer:?}");
                book.read_all().await.unwrap();
                drive.subsystem().ftl().stats()
            });
            assert!(stats.retired_blocks >= retired, "{faults:?} {buffer:?}: {stats:?}");
            assert_eq!((stats.lost_units, stats.dropped_units), (0, 0), "{faults:?} {buffer:?}");
        }
    }
}

/// Failing reads of the host and of collectors: readable data is correct, and lost data stays lost until rewritten.
#[test]
fn data_that_cannot_be_read_is_told_and_never_made_up() {
    for faults in [
        &["uncorrectable probability=2%"][..],
        &["uncorrectable block=3-6 count=200"],
        &["stuck read timeout=1ms probability=1%", "fail program probability=1% count=9"],
        &["dead channel=1 die=0 from=200ms"],
        &["dead plane=0 channel=0 die=1 nth=900 timeout=50us", "uncorrectable probability=1%"],
    ] {
        let is_dead = faults[0].starts_with("dead");
        // A dead die takes a quarter of the blocks with it.
        let lost = with_blocks(if is_dead { 40 } else { 26 }, config(), faults, async |sim, drive| {
            let mut book = damaged(sim, drive);
            for _ in 0..ROUNDS {
                book.round(&Ask::ALL).await.unwrap();
            }
            let failed = book.failed();
            assert!(failed > 0, "{faults:?}: the faults were not seen");
            book.read_all().await.unwrap();
            drive.subsystem().ftl().media().faults().clear();
            // All rewritten data is readable again.
            assert!(drive.subsystem().ftl().read_only().is_none(), "{faults:?}");
            let failed = book.failed();
            book.write_all().await.unwrap();
            book.read_all().await.unwrap();
            assert_eq!(book.failed(), failed, "{faults:?}: everything was written anew");
            drive.subsystem().ftl().stats().lost_units
        });
        assert!(is_dead || lost > 0, "{faults:?}: no collector met an unreadable page");
    }
}

/// Without spare blocks the drive is read-only: writes are rejected, no command waits, and all data is readable.
#[test]
fn a_drive_without_spare_blocks_is_read_only() {
    for buffer in [BufferMode::Capacitor, BufferMode::Volatile, BufferMode::Through] {
        with(mode(buffer), &["fail program every=3"], async |sim, drive| {
            let mut book = damaged(sim, drive);
            for _ in 0..200 {
                book.round(&[Ask::Write, Ask::Flush]).await.unwrap();
            }
            assert!(drive.subsystem().ftl().read_only().is_some(), "{:?}", drive.subsystem().ftl().stats());
            book.read_all().await.unwrap();
            let host = host(sim, drive, QueueId(2));
            let trim = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 0, 8);
            assert_eq!(status(sim, &host, write(0, 8)).await, Status::READ_ONLY_RANGE);
            assert_eq!(status(sim, &host, (trim, HostMem::none())).await, Status::READ_ONLY_RANGE);
            let smart = Smart::read_from_bytes(&log_page(sim, drive, log::SMART, 512).await).unwrap();
            assert_eq!((smart.available_spare, smart.critical_warning), (0, WARNING_SPARE | WARNING_READ_ONLY));
        });
    }
}

/// Repeated power cuts at operations that a host cannot choose: acknowledged data survives as the buffer mode promises, and
/// no read returns data that was never written.
#[test]
fn power_cuts_lose_what_they_may_and_nothing_else() {
    for buffer in [BufferMode::Capacitor, BufferMode::Volatile, BufferMode::Through, BufferMode::Register] {
        for faults in [
            &["power_cut every=97 count=100"][..],
            &["power_cut erase every=3 count=20"],
            &["power_cut program off=20ms every=41 count=50", "fail program every=50 count=9"],
            &["power_cut probability=1% count=100", "uncorrectable probability=0.5%"],
        ] {
            let (cuts, dropped) = with(mode(buffer), faults, async |sim, drive| {
                let mut book = damaged(sim, drive);
                for _ in 0..ROUNDS {
                    book.round(&Ask::ALL).await.unwrap();
                }
                book.read_all().await.unwrap();
                (drive.subsystem().ftl().media().power_cuts(), drive.subsystem().ftl().stats().dropped_units)
            });
            assert!(cuts > 5, "{buffer:?} {faults:?}: {cuts} cuts");
            assert_eq!(dropped > 0, buffer != BufferMode::Capacitor, "{buffer:?} {faults:?}: {dropped} units dropped");
        }
    }
}
