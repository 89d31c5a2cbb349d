//! Block erase and overwrite: no data is left in the flash, in each state of its blocks and over power cuts; and the failure
//! mode if a block cannot be erased. `NANDSCAPE_TEST_SEED` sets the first seed; failures print their seed.

use crate::common::{Drive, config, faulty_drive, host, read, with, write};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_ftl_core::Ftl;
use nandscape_device_media::{BlockId, Media, StoreKind};
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::manage::{self, SanitizeStatus};
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry, log};
use zerocopy::FromBytes;

const BLOCK_ERASE: u32 = 2;
const OVERWRITE: u32 = 3;
const EXIT_FAILURE: u32 = 1;
const ALLOW_EXIT: u32 = 1 << 3;
/// The pattern of an overwrite.
const PATTERN: u32 = 0xdead_1234;

/// A drive and its hosts.
struct Case {
    sim: Sim,
    drive: Drive,
    control: Host,
    io: Host,
}

impl Case {
    fn new(sim: &Sim, drive: &Drive) -> Case {
        let (control, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        Case { sim: sim.clone(), drive: drive.clone(), control, io }
    }

    async fn sanitize(&self, cdw10: u32) -> Result<(), Status> {
        let entry = SubmissionEntry::admin(AdminOpcode::SANITIZE);
        let entry = SubmissionEntry { cdw10: cdw10.into(), cdw11: PATTERN.into(), ..entry };
        let ended = self.control.execute(entry, HostMem::none()).await.unwrap();
        if ended.status.is_success() { Ok(()) } else { Err(ended.status.meaning()) }
    }

    async fn log(&self) -> SanitizeStatus {
        let mem = HostMem::zeroed(512);
        let entry = SubmissionEntry::get_log_page(log::SANITIZE_STATUS, 0, 512);
        assert!(self.control.execute(entry, mem.clone()).await.unwrap().status.is_success());
        SanitizeStatus::read_from_bytes(&mem.to_vec()).unwrap()
    }

    /// Waits for the end. Returns its status, and the values of progress that were seen.
    async fn ended(&self) -> (u16, Vec<u16>) {
        let mut seen = Vec::new();
        for _ in 0..20_000 {
            let log = self.log().await;
            let status = log.status.get();
            if status & 0b111 != manage::SANITIZE_IN_PROGRESS {
                assert_eq!(log.progress.get(), 0xffff);
                return (status, seen);
            }
            seen.push(log.progress.get());
            self.sim.sleep(Span::from_us(500)).await;
        }
        panic!("the operation does not end");
    }

    /// Writes all over the drive, some of it twice, and leaves the last of it in the write buffer.
    async fn fill(&self) {
        let rng = &mut Seed::new(5).rng();
        for number in 0..160u64 {
            let slba = if number < 64 { number * 256 } else { rng.below(100) * 128 };
            let (entry, mem) = write(slba, 256);
            assert!(self.io.execute(entry, mem).await.unwrap().status.is_success());
        }
    }

    async fn status_of_read(&self) -> Status {
        self.io.execute(read(0, 8), HostMem::zeroed(4_096)).await.unwrap().status.meaning()
    }

    fn media(&self) -> &Media {
        self.drive.subsystem().ftl().media()
    }

    /// Blocks that hold anything.
    fn used(&self) -> Vec<BlockId> {
        let media = self.media();
        (0..media.geometry().blocks()).map(BlockId).filter(|block| media.pages_programmed(*block) > 0).collect()
    }

    /// Checks that the flash is empty, all blocks read as zeros, and the drive works as before.
    async fn is_as_new(&self) {
        assert_eq!(self.used(), []);
        let mem = HostMem::from_bytes(&[1; 128 << 10]);
        assert!(self.io.execute(read(0, 256), mem.clone()).await.unwrap().status.is_success());
        assert!(mem.to_vec().iter().all(|byte| *byte == 0));
        self.drive.subsystem().ftl().check().unwrap();
        self.fill().await;
        assert!(self.io.execute(read(0, 256), mem.clone()).await.unwrap().status.is_success());
        assert!(mem.to_vec().iter().all(|byte| *byte == 7));
    }
}

#[test]
fn a_block_erase_leaves_nothing_in_the_flash() {
    with(config(), async |sim, drive| {
        let case = Case::new(sim, drive);
        case.fill().await;
        let erases = case.media().counts().erases;
        let (used, begun) = (case.used().len() as u64, sim.now());
        assert!(used > 30, "{used} blocks are used");
        case.sanitize(BLOCK_ERASE).await.unwrap();
        assert_eq!(case.status_of_read().await, Status::SANITIZE_IN_PROGRESS);
        let (status, seen) = case.ended().await;
        assert_eq!(status, manage::SANITIZE_SUCCEEDED | manage::GLOBAL_DATA_ERASED);
        assert!(seen.is_sorted() && seen.last() > Some(&0x4000) && seen.len() > 10, "{seen:x?}");
        assert!(case.media().counts().erases - erases >= used);
        // The blocks of a plane are erased one after the other, in 5 ms each.
        assert!(sim.now() - begun >= Span::from_ms(5) * (used / 4));
        case.is_as_new().await;
    });
}

#[test]
fn an_overwrite_writes_the_pattern_before_it_erases() {
    with(config(), async |sim, drive| {
        let case = Case::new(sim, drive);
        case.fill().await;
        let used = case.used().len() as u64;
        let before = case.media().counts();
        // Two passes, inverted in between.
        case.sanitize(OVERWRITE | 2 << 4 | 1 << 8).await.unwrap();
        let (mut plain, mut inverted) = (0, 0);
        while case.log().await.status.get() & 0b111 == manage::SANITIZE_IN_PROGRESS {
            for block in case.used() {
                let geometry = case.media().geometry();
                let first = case.media().data(geometry.unit_at(geometry.page_at(block, 0), 0));
                let word = first.map(|data| u32::from_le_bytes([data[4], data[5], data[6], data[7]]));
                plain += u32::from(word == Some(PATTERN));
                inverted += u32::from(word == Some(!PATTERN));
            }
            sim.sleep(Span::from_us(700)).await;
        }
        assert!(plain > 20 && inverted > 20, "{plain} and {inverted} units with the pattern were seen");
        let done = case.media().counts().since(&before);
        // The write buffer was emptied into one more block of each plane at most.
        assert!(done.erases >= 3 * used && done.programs >= 2 * 16 * used, "{done:?} for {used} blocks");
        let (.., wear) = case.drive.subsystem().ftl().stats().erases;
        assert_eq!(wear, case.media().counts().erases, "each pass wears its block");
        let status = case.log().await.status.get();
        let passes = 2 << manage::SANITIZE_PASSES;
        assert_eq!(status, manage::SANITIZE_SUCCEEDED | manage::GLOBAL_DATA_ERASED | passes);
        case.is_as_new().await;
    });
}

/// Power is cut in any phase; the operation continues after the restart of the drive.
#[test]
fn it_goes_on_after_power_cuts() {
    let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("it is a number"));
    for seed in first..first + 40 {
        let ended = std::panic::catch_unwind(|| cut_while_sanitizing(seed));
        assert!(ended.is_ok(), "NANDSCAPE_TEST_SEED={seed} shows it at once");
    }
}

fn cut_while_sanitizing(seed: u64) {
    let mut rng = Seed::new(seed).rng();
    let buffers = [BufferMode::Capacitor, BufferMode::Volatile, BufferMode::Register, BufferMode::Through];
    let buffer = buffers[rng.below(4) as usize];
    with(ControllerConfig { buffer, ..config() }, async |sim, drive| {
        let case = Case::new(sim, drive);
        case.fill().await;
        case.sanitize([BLOCK_ERASE, OVERWRITE | 1 << 4][rng.below(2) as usize]).await.unwrap();
        for _ in 0..=rng.below(4) {
            let most = [10, 1_000, 40_000][rng.below(3) as usize];
            sim.sleep(Span::from_us(rng.below(most))).await;
            case.media().cut_power(Span::from_us(rng.below(4_000)));
        }
        // Commands in work at the cut end with it.
        sim.sleep(Span::from_ms(10)).await;
        let (status, _) = case.ended().await;
        assert_eq!(status & 0b111, manage::SANITIZE_SUCCEEDED);
        case.is_as_new().await;
    });
}

#[test]
fn under_collection_and_with_blocks_that_have_gone_bad() {
    // A program that fails sends its block into retirement.
    let faults = ["fail program every=40 count=3"];
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = faulty_drive(&sim, config(), StoreKind::Ram, 22, &faults);
    let test = async {
        let case = Case::new(&sim, &drive);
        case.fill().await;
        let stats = drive.subsystem().ftl().stats();
        assert!(stats.gc_blocks > 0, "{stats:?}");
        case.sanitize(BLOCK_ERASE).await.unwrap();
        assert_eq!(case.ended().await.0 & 0b111, manage::SANITIZE_SUCCEEDED);
        assert!(drive.subsystem().ftl().stats().retired_blocks > 0);
        case.is_as_new().await;
    };
    executor.block_on(test).unwrap();
}

/// The data of a block that cannot be erased remains.
#[test]
fn a_block_that_cannot_be_erased_fails_it() {
    for allows_exit in [false, true] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drive = faulty_drive(&sim, config(), StoreKind::Ram, 32, &["fail erase every=5 count=2"]);
        let test = async {
            let case = Case::new(&sim, &drive);
            case.fill().await;
            let exit = if allows_exit { ALLOW_EXIT } else { 0 };
            case.sanitize(BLOCK_ERASE | exit).await.unwrap();
            assert_eq!(case.ended().await.0, manage::SANITIZE_FAILED);
            assert_eq!(case.used().len(), 2, "two blocks");
            assert_eq!(case.status_of_read().await, Status::SANITIZE_FAILED);
            let format = SubmissionEntry { nsid: 1.into(), ..SubmissionEntry::admin(AdminOpcode::FORMAT_NVM) };
            let ended = case.control.execute(format, HostMem::none()).await.unwrap();
            assert_eq!(ended.status.meaning(), Status::SANITIZE_FAILED);
            if allows_exit {
                assert_eq!(case.sanitize(EXIT_FAILURE).await, Ok(()));
                assert_eq!(case.status_of_read().await, Status::SUCCESS);
                assert_eq!(case.log().await.status.get(), manage::SANITIZE_FAILED, "it is still the last one");
            } else {
                assert_eq!(case.sanitize(EXIT_FAILURE).await, Err(Status::SANITIZE_FAILED));
                assert_eq!(case.sanitize(BLOCK_ERASE | ALLOW_EXIT).await, Err(Status::SANITIZE_FAILED));
            }
            // These blocks can be erased now, and so the next one succeeds.
            assert_eq!(case.sanitize(BLOCK_ERASE).await, Ok(()));
            assert_eq!(case.ended().await.0 & 0b111, manage::SANITIZE_SUCCEEDED);
            case.is_as_new().await;
        };
        executor.block_on(test).unwrap();
    }
}
