//! Notices ahead of completions and the count of free slots (Shin 4.3): the times of notices, against a plain computation
//! from the stages of each read; no notice after its completion; nothing for hosts that ask for nothing; and rejections.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::common::{Drive, Pair, config, drive, host, read, with, write};
use nandscape_device_controller::ControllerConfig;
use nandscape_device_ftl_core::{Inspection, Occupancy};
use nandscape_drive::conformance::Host;
use nandscape_drive::testing::tenant::Tenant;
use nandscape_drive::{Completion, HostMem, Notice, NoticeQueue, QueueId, Stage};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span, Time};
use nandscape_wire_nvme::vendor::{Hints, NOTICE, NOTICES, Notices};
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

const WINDOW: Span = Span::from_us(16);
const QUEUE: QueueId = QueueId(4);

fn noticing() -> ControllerConfig {
    ControllerConfig { notices: Some(WINDOW), ..config() }
}

fn asking(entry: SubmissionEntry) -> SubmissionEntry {
    SubmissionEntry { cdw2: (entry.cdw2.get() | NOTICE).into(), ..entry }
}

async fn set(admin: &Host, value: Notices) -> Status {
    let entry = SubmissionEntry::set_features(NOTICES, 0);
    admin.execute(entry, HostMem::from_bytes(value.as_bytes())).await.unwrap().status.meaning()
}

async fn get(admin: &Host) -> Result<Notices, Status> {
    let (entry, mem) = (SubmissionEntry::get_features(NOTICES), HostMem::zeroed(64));
    let status = admin.execute(entry, mem.clone()).await.unwrap().status;
    if status.is_success() { Ok(Notices::read_from_bytes(&mem.to_vec()).unwrap()) } else { Err(status.meaning()) }
}

type Log = Rc<RefCell<Vec<(Time, Notice)>>>;

/// A queue whose notices are logged with their times.
fn logged(sim: &Sim, drive: &Drive) -> (Rc<NoticeQueue>, Log) {
    let (log, clock) = (Log::default(), sim.clone());
    let told = log.clone();
    let queue = NoticeQueue::new(drive.clone(), QUEUE, 64, move |notice| told.borrow_mut().push((clock.now(), notice)));
    (queue.unwrap(), log)
}

/// Fills the drive, so that reads need the flash.
async fn fill(sim: &Sim, io: &Host, units: u64) {
    for unit in 0..units {
        let (entry, mem) = write(unit * 8, 8);
        assert!(io.execute(entry, mem).await.unwrap().status.is_success());
    }
    sim.sleep(Span::from_ms(50)).await;
}

/// The mean of the last three, or of fewer.
fn mean(times: &[u64]) -> Option<u64> {
    let last = &times[times.len().saturating_sub(3)..];
    (!last.is_empty()).then(|| last.iter().sum::<u64>() / last.len() as u64)
}

/// One read at a time, of random sizes. Each notice comes when the means of the stages of earlier reads predict it.
#[test]
fn a_notice_comes_when_the_means_of_the_last_three_reads_say() {
    with(noticing(), async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        let (_queue, log) = logged(sim, drive);
        fill(sim, &io, 256).await;
        assert_eq!(set(&admin, Notices::new(QUEUE.0, 0)).await, Status::SUCCESS);
        assert_eq!(get(&admin).await.unwrap().window_ns.get(), WINDOW.ns() as u32, "what the drive recommends");
        let (mut rng, mut flash, mut transfer) = (Seed::new(5).rng(), BTreeMap::<u32, Vec<u64>>::new(), Vec::new());
        let (mut expected, mut reads) = (Vec::new(), 0);
        for _ in 0..400 {
            let (unit, blocks) = (rng.below(256), 1 + rng.below(8) as u32);
            let place = drive.subsystem().ftl().flash_unit(nandscape_device_ftl_core::address::Lpn(unit as u32));
            let done = io.execute(asking(read(unit * 8, blocks)), HostMem::zeroed(4_096)).await.unwrap();
            assert!(done.status.is_success());
            let Some(place) = place else { continue };
            reads += 1;
            // Blocks are units x pages: the plane is the high part of the address, and a plane is a chip here.
            let chip = place.0 / (4 * 16 * 32);
            let stage = |stage| done.breakdown.stage(stage).ns();
            let of_flash =
                [Stage::Array, Stage::ChannelWait, Stage::Transfer, Stage::Ecc].map(stage).iter().sum::<u64>();
            // The link's latency comes before the read is served.
            let of_link = stage(Stage::Link) - crate::common::LINK_LATENCY.ns();
            let issued = sim.now().ns() - of_flash - of_link;
            let known = mean(flash.get(&chip).map_or(&[][..], |times| &times[..])).zip(mean(&transfer));
            if let Some((of_chip, to_host)) = known {
                let due = issued + (of_chip + to_host).saturating_sub(WINDOW.ns());
                if due < sim.now().ns() {
                    expected.push((Time::from_ns(due), Span::from_ns(issued + of_chip + to_host - due)));
                }
            }
            flash.entry(chip).or_default().push(of_flash);
            transfer.push(of_link);
        }
        let told: Vec<(Time, Span)> = log.borrow().iter().map(|(at, notice)| (*at, notice.remaining)).collect();
        assert!(expected.len() > 300, "{} of {reads}", expected.len());
        assert_eq!(told, expected, "seed 5");
        let counts = get(&admin).await.unwrap();
        assert_eq!((counts.asked.get(), counts.sent.get()), (400, told.len() as u64));
        assert_eq!(counts.missing.get(), reads - told.len() as u64);
    });
}

/// Reads and writes at any depth and of any size, with notices by a window at random: a notice names a command that has not completed, and
/// every read that asks is counted once.
#[test]
fn no_notice_follows_its_completion() {
    let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("it is a number"));
    for seed in first..first + 12 {
        let ended = std::panic::catch_unwind(|| storm(&mut Seed::new(seed).rng()));
        assert!(ended.is_ok(), "NANDSCAPE_TEST_SEED={seed} shows it at once");
    }
}

fn storm(rng: &mut Rng) {
    with(noticing(), async |sim, drive| {
        let (admin, io) = (host(sim, drive, QueueId::ADMIN), host(sim, drive, QueueId(1)));
        fill(sim, &io, 1_024).await;
        let pair = Rc::new(Pair::new(sim, drive, 2, 64));
        let open: Rc<RefCell<BTreeSet<u16>>> = Rc::default();
        let (polled, outstanding) = (pair.clone(), open.clone());
        let count = Rc::new(std::cell::Cell::new(0));
        let notices = count.clone();
        let told = move |notice: Notice| {
            for cid in polled.reap_all() {
                assert!(outstanding.borrow_mut().remove(&cid), "command {cid} completes once");
            }
            assert_eq!(notice.queue, QueueId(2));
            assert!(outstanding.borrow().contains(&notice.cid), "{notice:?} is of a command that has ended");
            notices.set(notices.get() + 1);
        };
        let _queue = NoticeQueue::new(drive.clone(), QUEUE, 64, told).unwrap();
        assert_eq!(set(&admin, Notices::new(QUEUE.0, 1 + rng.below(120_000) as u32)).await, Status::SUCCESS);
        let (depth, mut asked, mut issued) = (1 + rng.below(32) as usize, 0, 0);
        while issued < 400 {
            while open.borrow().len() < depth {
                let (at, blocks) = (rng.below(1_000) * 8 + rng.below(8), 1 + rng.below(24) as u32);
                let (entry, mem) = match rng.below(4) {
                    0 => write(at / 8 * 8, 8),
                    _ => (read(at, blocks), HostMem::zeroed(512 * blocks as usize)),
                };
                let asks = rng.below(8) > 0;
                asked += u64::from(asks && entry.opcode == 2);
                let cid = pair.put(if asks { asking(entry) } else { entry }, mem);
                open.borrow_mut().insert(cid);
                issued += 1;
            }
            pair.ring();
            sim.sleep(Span::from_us(1 + rng.below(80))).await;
            pair.reap_all()
                .iter()
                .for_each(|cid| assert!(open.borrow_mut().remove(cid), "command {cid} completes once"));
        }
        sim.sleep(Span::from_ms(50)).await;
        pair.reap_all().iter().for_each(|cid| assert!(open.borrow_mut().remove(cid)));
        assert!(open.borrow().is_empty());
        let counts = get(&admin).await.unwrap();
        assert_eq!((counts.asked.get(), counts.sent.get()), (asked, count.get()));
        assert!(counts.sent.get() > 20, "{counts:?}");
        assert!(counts.early.get() + counts.late.get() <= counts.sent.get());
        assert!(counts.sent.get() + counts.missing.get() <= asked);
    });
}

/// The ends of a host's reads and writes, none or all of which ask.
fn run(config: ControllerConfig, asks: bool, announces: bool) -> Vec<(Time, Completion)> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drive(&sim, config);
    executor
        .block_on(async {
            let io = host(&sim, &drive, QueueId(1));
            fill(&sim, &io, 256).await;
            let admin = host(&sim, &drive, QueueId::ADMIN);
            let (_queue, log) = logged(&sim, &drive);
            if announces {
                assert_eq!(set(&admin, Notices::new(QUEUE.0, 0)).await, Status::SUCCESS);
            }
            sim.sleep_until(Time::from_ns(1_000_000_000)).await;
            let (mut rng, mut sent) = (Seed::new(9).rng(), 0);
            while sent < 300 {
                for _ in 0..1 + rng.below(12) {
                    let unit = rng.below(256);
                    let (entry, mem) =
                        if rng.below(3) > 0 { (read(unit * 8, 8), HostMem::zeroed(4_096)) } else { write(unit * 8, 8) };
                    io.submit(if asks { asking(entry) } else { entry }, mem);
                    sent += 1;
                }
                while io.ended() < io.submitted() {
                    let _ = io.next().await.unwrap();
                }
            }
            assert_eq!(log.borrow().is_empty(), !(asks && announces));
            let all = io.log();
            all[256..].iter().map(|ended| (ended.ended, ended.completion.clone())).collect()
        })
        .unwrap()
}

#[test]
fn reads_take_as_long_with_notices_as_without() {
    let plain = run(config(), false, false);
    assert!(plain.iter().all(|(_, done)| done.dw1 == 0));
    assert_eq!(run(config(), true, false), plain, "a drive without notices ignores the bit");
    assert_eq!(run(noticing(), false, true), plain, "a host that does not ask sees nothing");
    let asked = run(noticing(), true, true);
    let times = |of: &[(Time, Completion)]| -> Vec<_> {
        of.iter().map(|(at, done)| (*at, done.status, done.breakdown.clone())).collect()
    };
    assert_eq!(times(&asked), times(&plain));
    assert!(asked.iter().all(|(_, done)| Hints(done.dw1).buffer_free() > 0), "there is room at the end of each");
}

#[test]
fn completions_count_the_free_slots_of_the_write_buffer() {
    with(noticing(), async |sim, drive| {
        let io = host(sim, drive, QueueId(1));
        let ftl = drive.subsystem().ftl();
        let all = ftl.occupancy();
        assert_eq!(all, Occupancy { slots: 64, free: 64 });
        for unit in 0..40 {
            let (entry, mem) = write(unit * 8, 8);
            let done = io.execute(asking(entry), mem).await.unwrap();
            assert_eq!(u32::from(Hints(done.dw1).buffer_free()), ftl.occupancy().free, "after write {unit}");
            assert!(ftl.occupancy().free < 64);
        }
        sim.sleep(Span::from_ms(50)).await;
        let done = io.execute(asking(read(0, 16)), HostMem::zeroed(8_192)).await.unwrap();
        assert_eq!(u32::from(Hints(done.dw1).buffer_free()), ftl.occupancy().free);
    });
}

#[test]
fn values_and_hosts_that_cannot_have_notices_are_refused() {
    with(noticing(), async |sim, drive| {
        let (admin, (queue, log)) = (host(sim, drive, QueueId::ADMIN), logged(sim, drive));
        let right = Notices::new(QUEUE.0, 5);
        let wrong = [
            Notices { magic: *b"nand", ..right },
            Notices { version: 2.into(), ..right },
            Notices { asked: 1.into(), ..right },
            Notices { reserved_12: 1.into(), ..right },
            Notices::new(3, 5),
            Notices::new(9, 5),
        ];
        for value in wrong {
            assert_eq!(set(&admin, value).await, Status::INVALID_FIELD, "{value:?}");
        }
        assert_eq!(get(&admin).await.unwrap().queue.get(), 0);
        assert_eq!(set(&admin, right).await, Status::SUCCESS);
        assert_eq!((get(&admin).await.unwrap().queue.get(), get(&admin).await.unwrap().window_ns.get()), (QUEUE.0, 5));
        // Without its queue, no notice is posted.
        drop(queue);
        assert_eq!(get(&admin).await.unwrap().queue.get(), 0);
        let io = host(sim, drive, QueueId(1));
        fill(sim, &io, 16).await;
        for _ in 0..10 {
            assert!(io.execute(asking(read(0, 8)), HostMem::zeroed(4_096)).await.unwrap().status.is_success());
        }
        assert!(log.borrow().is_empty());
        // A host over messages has no queue for notices.
        let tenant = Tenant::new(sim, &**drive.subsystem(), 1);
        assert_eq!(get(&tenant.admin).await.err(), Some(Status::INVALID_FIELD));
        assert_eq!(set(&tenant.admin, right).await, Status::INVALID_FIELD);
    });
    with(config(), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        assert_eq!(get(&admin).await.err(), Some(Status::INVALID_FIELD));
        assert_eq!(set(&admin, Notices::new(0, 0)).await, Status::INVALID_FIELD);
    });
}
