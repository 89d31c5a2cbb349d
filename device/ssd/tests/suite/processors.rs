//! The work of a controller's processors: the cost of commands, pages of buffers and flash operations, and the resulting
//! waits.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Completion, HostMem, Issuer, QueueDrive, QueueId, Stage};
use nandscape_sim::account::Totals;
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::lss::{Entry, Head, LIST, METADATA, PAGE};
use nandscape_wire_nvme::vendor::{BATCHED_READ, LSS_FLUSH};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

/// No work except that of the changes.
const NONE: [&str; 7] = [
    "controller.processors.count=1",
    "controller.processors.command_time=0ns",
    "controller.processors.unit_time=0ns",
    "controller.processors.kib_time=0ns",
    "controller.processors.page_time=0ns",
    "controller.processors.flash_time=0ns",
    "controller.processors.flash_kib_time=0ns",
];

fn drive(sim: &Sim, store: StoreKind, changes: &[&str]) -> (Ssd, Rc<QueueDrive>) {
    let mut profile = Profile::load("femu-blackbox").unwrap();
    for change in ["capacity=64MiB", "ftl.gc.copyback=false"].iter().chain(&NONE).chain(changes) {
        profile.set(change).unwrap();
    }
    let ssd = Ssd::new(sim, &profile.resolve().unwrap(), store, Seed::new(1)).unwrap();
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 64).unwrap();
    (ssd, drive)
}

fn block(opcode: IoOpcode, slba: u64) -> SubmissionEntry {
    SubmissionEntry::blocks(opcode, 1, slba, 8)
}

fn usage(ssd: &Ssd) -> Totals {
    ssd.usage().processors.expect("it has processors").1
}

fn us(number: u64) -> Span {
    Span::from_us(number)
}

#[test]
fn a_command_costs_its_parts_and_the_time_sums() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let changes = ["command_time=10us", "unit_time=1us", "kib_time=2us", "flash_time=5us", "flash_kib_time=500ns"];
    let changes = changes.map(|change| format!("controller.processors.{change}"));
    let (ssd, drive) = drive(&sim, StoreKind::None, &changes.each_ref().map(String::as_str));
    let issuer = Issuer::new(&sim);
    executor
        .block_on(async {
            let write = issuer.execute(&*drive, block(IoOpcode::WRITE, 0), HostMem::none()).await;
            assert_eq!(write.status, Status::SUCCESS);
            sim.sleep(us(10_000)).await;
            let before = usage(&ssd);
            assert_eq!(
                before.by(cause::HOST_WRITE),
                us(10 + 1 + 8 + 5 + 2),
                "command, unit, link, program and its data"
            );
            let read = issuer.execute(&*drive, block(IoOpcode::READ, 0), HostMem::none()).await;
            assert_eq!(read.breakdown.stage(Stage::Firmware), us(10 + 1 + 8), "what it waits for");
            assert_eq!(read.breakdown.stage(Stage::Queue), Span::ZERO);
            sim.sleep(us(1_000)).await;
            assert_eq!(usage(&ssd).since(&before).by(cause::HOST_READ), us(10 + 1 + 8 + 5 + 2));
        })
        .unwrap();
}

#[test]
fn commands_wait_for_a_processor_that_is_free() {
    for (count, waited) in [(1, 10), (2, 0)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let count = format!("controller.processors.count={count}");
        let (_ssd, drive) = drive(&sim, StoreKind::None, &[&count, "controller.processors.command_time=10us"]);
        let issuer = Issuer::new(&sim);
        let both: [Completion; 2] = executor
            .block_on(async {
                let first = issuer.execute(&*drive, block(IoOpcode::READ, 0), HostMem::none());
                let second = issuer.execute(&*drive, block(IoOpcode::READ, 800), HostMem::none());
                [first.await, second.await]
            })
            .unwrap();
        let waits = both.map(|done| done.breakdown.waited(Stage::Queue, cause::HOST_READ));
        assert_eq!(waits, [Span::ZERO, us(waited)], "{count}");
    }
}

/// Collections too: every flash operation costs the same, and is accounted by its cause.
#[test]
fn operations_of_the_flash_are_work() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (ssd, drive) = drive(&sim, StoreKind::None, &["controller.processors.flash_time=100ns"]);
    let issuer = Issuer::new(&sim);
    let mut rng = Seed::new(7).rng();
    executor
        .block_on(async {
            for _ in 0..50_000 {
                let entry = block(IoOpcode::WRITE, 8 * rng.below(16_384));
                assert_eq!(issuer.execute(&*drive, entry, HostMem::none()).await.status, Status::SUCCESS);
            }
            sim.sleep(us(1_000_000)).await;
        })
        .unwrap();
    let (usage, counts) = (usage(&ssd), ssd.op_counts());
    assert!(usage.by(cause::GC) > us(1_000), "{usage:?}");
    assert_eq!(usage.total(), Span::from_ns(100) * (counts.reads + counts.programs + counts.erases), "{counts:?}");
}

#[test]
fn each_page_of_a_buffer_and_of_a_batch_is_parsed() {
    const PAGES: usize = 20;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let changes = ["ftl.kind=ox_block", "buffer.mode=volatile", "controller.processors.page_time=3us"];
    let (ssd, drive) = drive(&sim, StoreKind::Ram, &changes);
    let issuer = Issuer::new(&sim);
    let mut buffer = vec![0; METADATA + PAGES * PAGE];
    let entry = |page: usize| Entry {
        lpid: (page as u64 * 7).into(),
        offset: ((METADATA + page * PAGE) as u32).into(),
        bytes: (PAGE as u32).into(),
    };
    let entries: Vec<Entry> = (0..PAGES).map(entry).collect();
    buffer[..size_of::<Head>()].copy_from_slice(Head::of(PAGES as u32).as_bytes());
    buffer[size_of::<Head>()..][..size_of_val(&*entries)].copy_from_slice(entries.as_bytes());
    let mut flush = SubmissionEntry::io(LSS_FLUSH, 1);
    (flush.cdw10, flush.cdw12) = ((buffer.len() as u32 / PAGE as u32 - 1).into(), FUA.into());
    let mut read = SubmissionEntry::io(BATCHED_READ, 1);
    read.cdw10 = (PAGES as u32 - 1).into();
    executor
        .block_on(async {
            ssd.in_service().await;
            let done = issuer.execute(&*drive, flush, HostMem::from_bytes(&buffer)).await;
            assert_eq!((done.status, done.breakdown.stage(Stage::Firmware)), (Status::SUCCESS, us(3 * PAGES as u64)));
            let done = issuer.execute(&*drive, read, HostMem::zeroed(LIST + PAGES * PAGE)).await;
            assert_eq!((done.status, done.breakdown.stage(Stage::Firmware)), (Status::SUCCESS, us(3 * PAGES as u64)));
        })
        .unwrap();
    let usage = usage(&ssd);
    assert_eq!([cause::HOST_WRITE, cause::HOST_READ].map(|cause| usage.by(cause)), [us(60), us(60)]);
}

#[test]
fn a_drive_without_processors_has_no_such_figures_and_times_without_a_number_are_refused() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let mut profile = Profile::load("default").unwrap();
    profile.set("capacity=64MiB").unwrap();
    let ssd = Ssd::new(&sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
    assert!(ssd.usage().processors.is_none());
    profile.set("controller.processors.kib_time=1us").unwrap();
    let problem = profile.resolve().unwrap_err().to_string();
    assert!(problem.contains("controller.processors.count"), "{problem}");
    profile.set("controller.processors.count=0").unwrap();
    let problem = profile.resolve().unwrap_err().to_string();
    assert!(problem.contains("controller.processors.count") && problem.contains("1024"), "{problem}");
    executor.block_on(async {}).unwrap();
}
