//! Drives that are missing, fail or are damaged: their twins serve, and nothing older returns.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, Engine, Event, Expect, New, OpenError, Placement, Refused};
use nandscape_apps_store::testing::Disk;
use nandscape_apps_store::{Host, Range};
use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::{Executor, Sim, Span, Time};
use nandscape_wire_nvme::Status;

use crate::client::{SMALL, disks, drives, open_all};

/// Chunks of an item each: each change is written before the next one.
const CONFIG: Config = Config { ack: Ack::All, memory: 1 << 20, ..SMALL };

/// A drive that ends all commands with a status once it is set.
pub(crate) struct Failing {
    drive: Rc<dyn Drive>,
    pub(crate) status: Cell<Option<Status>>,
}

impl Failing {
    pub(crate) fn over(drive: Rc<dyn Drive>) -> Rc<Failing> {
        Rc::new(Failing { drive, status: Cell::new(None) })
    }
}

impl Drive for Failing {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, io: Io) {
        match self.status.get() {
            Some(status) => io.token.complete(Completion::of(status)),
            None => self.drive.submit(io),
        }
    }
}

/// Waits until all drives that are there are whole.
pub(crate) async fn are_rebuilt(engine: &Engine, missing: usize, sim: &Sim) {
    while engine.stats().lost_drives > missing as u64 {
        sim.sleep(Span::from_ms(1)).await;
    }
}

/// A run on those disks that are not missing.
fn run(
    disks: &[Option<&Rc<Disk>>],
    name: &str,
    work: impl AsyncFn(Rc<Engine>, Vec<Rc<Failing>>, Sim),
) -> Result<Vec<Event>, OpenError> {
    run_as(disks, name, CONFIG, work)
}

/// The same with other settings.
pub(crate) fn run_as(
    disks: &[Option<&Rc<Disk>>],
    name: &str,
    config: Config,
    work: impl AsyncFn(Rc<Engine>, Vec<Rc<Failing>>, Sim),
) -> Result<Vec<Event>, OpenError> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ran = executor.block_on(async {
        let mut failing = Vec::new();
        let mut given = Vec::new();
        for disk in disks {
            let drive = disk.map(|disk| {
                let drive = drives(&sim, std::slice::from_ref(disk)).remove(0);
                Rc::new(Failing { drive, status: Cell::new(None) })
            });
            failing.extend(drive.clone());
            given.push(drive.map(|drive| drive as Rc<dyn Drive>));
        }
        let engine = open_all(&sim, given.into_iter(), name, config).await?;
        are_rebuilt(&engine, disks.iter().filter(|disk| disk.is_none()).count(), &sim).await;
        let events = engine.take_events();
        work(engine, failing, sim.clone()).await;
        Ok(events)
    });
    ran.unwrap()
}

pub(crate) async fn put(engine: &Engine, number: u32, version: u8) -> Result<u64, Refused> {
    let new = New { flags: 0, expiry: 0, value: vec![version; 3_000].into() };
    engine.put(&number.to_le_bytes(), Expect::Any, new).await
}

pub(crate) async fn version(engine: &Engine, number: u32) -> Option<u8> {
    engine.get(&number.to_le_bytes()).await.map(|item| item.value[2_999])
}

pub(crate) async fn fill(engine: &Engine, numbers: std::ops::Range<u32>, version: u8) {
    for number in numbers {
        put(engine, number, version).await.unwrap();
    }
}

pub(crate) async fn check(engine: &Engine, numbers: std::ops::Range<u32>, wanted: u8) {
    for number in numbers {
        assert_eq!(version(engine, number).await, Some(wanted), "item {number}");
    }
}

#[test]
fn a_store_without_a_drive_is_served_and_the_drive_is_rebuilt_when_it_returns() {
    for name in ["mixed", "epochs"] {
        let all = disks(4);
        let [a, b, c, d] = [0, 1, 2, 3].map(|number| Some(&all[number]));
        let begin = run(&[a, b, c, d], name, async |engine, _, _| {
            fill(&engine, 0..100, 1).await;
            engine.close().await.unwrap();
        });
        assert_eq!(begin, Ok(vec![]));
        let alone = run(&[a, None, c, d], name, async |engine, _, _| {
            check(&engine, 0..100, 1).await;
            fill(&engine, 0..50, 2).await;
            let stats = engine.stats();
            assert_eq!((stats.lost_drives, stats.reads_at_tokens), (1, 0));
            engine.close().await.unwrap();
        });
        assert_eq!(alone, Ok(vec![Event::Missing { drive: 1, twin: Some(0) }]));
        let back = run(&[a, b, c, d], name, async |engine, _, _| engine.close().await.unwrap());
        assert_eq!(back, Ok(vec![Event::Rebuilt { drive: 1, twin: Some(0) }]));
        // An empty one in the place of its twin.
        let new = disks(1);
        let replaced = run(&[Some(&new[0]), b, c, d], name, async |engine, _, _| {
            check(&engine, 0..50, 2).await;
            check(&engine, 50..100, 1).await;
            engine.close().await.unwrap();
        });
        assert_eq!(replaced, Ok(vec![Event::Rebuilt { drive: 0, twin: Some(1) }]));
        // The one that it replaced, alone with the drives of other pairs, lacks nothing that they know of; next to its twin it differs.
        let gone = run(&[None, None, c, d], name, async |_, _, _| ());
        assert!(matches!(gone, Err(OpenError::Gone { drive: 0, what: "is missing", twin: 1 })), "{gone:?}");
    }
}

/// Whether the first segment of a disk is empty.
fn is_first_slot_free(disk: &Rc<Disk>) -> bool {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drives(&sim, std::slice::from_ref(disk)).remove(0);
    let read = executor.block_on(async {
        let (slba, blocks) = ((64 << 10) / 512, 1);
        nandscape_apps_store::Disk::new(&Host::free(&sim), drive)
            .read(&[Range { slba, blocks }])
            .await
            .unwrap()
            .concat()
    });
    read.unwrap().iter().all(|byte| *byte == 0)
}

/// The first segment was free when a drive was rebuilt. Next to an empty drive the rebuilt one has a store, and no store is made.
#[test]
fn a_rebuilt_drive_without_a_first_segment_keeps_the_store() {
    let is_kept = |segments: u32| {
        let small = || Disk::new(1_200 << 10);
        let [old, twin, rebuilt, empty] = [small(), small(), small(), small()];
        run(&[Some(&old), Some(&twin)], "mixed", async |engine, _, _| {
            for number in 0..segments * 15 {
                put(&engine, number % 20, 1).await.unwrap();
            }
            engine.close().await.unwrap();
        })
        .unwrap();
        run(&[Some(&rebuilt), Some(&twin)], "mixed", async |engine, _, _| engine.close().await.unwrap()).unwrap();
        if !is_first_slot_free(&rebuilt) {
            return false;
        }
        let opened = run(&[Some(&rebuilt), Some(&empty)], "mixed", async |engine, _, _| check(&engine, 0..20, 1).await);
        assert_eq!(opened, Ok(vec![Event::Rebuilt { drive: 1, twin: Some(0) }]));
        true
    };
    assert!((14..40).any(is_kept), "the first segment is never free");
}

#[test]
fn drives_that_were_each_alone_are_not_mixed() {
    let all = disks(2);
    let [a, b] = [Some(&all[0]), Some(&all[1])];
    let write = async |engine: Rc<Engine>, _: Vec<Rc<Failing>>, _: Sim| {
        fill(&engine, 0..10, 1).await;
        engine.close().await.unwrap();
    };
    assert_eq!(run(&[None, b], "epochs", write), Err(OpenError::Incomplete(0)));
    run(&[a, b], "epochs", write).unwrap();
    run(&[a, None], "epochs", write).unwrap();
    run(&[None, b], "epochs", write).unwrap();
    assert_eq!(run(&[a, b], "epochs", write), Err(OpenError::Split { drive: 0, other: 1 }));
    let one = run(&[a, None], "epochs", write);
    assert_eq!(one, Ok(vec![Event::Missing { drive: 1, twin: Some(0) }]));
}

/// The drive that another one replaced returns without the drive that was its twin: it is not whole, though it was when it was lost.
#[test]
fn a_drive_from_before_its_replacement_is_not_whole() {
    let lacks = "lacks what was written while it was lost";
    for (count, placement) in [(4, Placement::Copies), (3, Placement::Parity)] {
        let (all, new, config) = (disks(count), disks(1), Config { placement, ..CONFIG });
        let before: Vec<Option<&Rc<Disk>>> = all.iter().map(Some).collect();
        let with = |drive: usize, disk| {
            let mut there = before.clone();
            there[drive] = disk;
            there
        };
        let fill_with = |there: &[Option<&Rc<Disk>>], version| {
            run_as(there, "epochs", config, async |engine, _, _| {
                fill(&engine, 0..20, version).await;
                engine.close().await.unwrap();
            })
        };
        fill_with(&before, 1).unwrap();
        fill_with(&with(1, Some(&new[0])), 2).unwrap();
        let stale = run_as(&with(0, None), "epochs", config, async |_, _, _| ());
        assert_eq!(
            stale,
            Err(match placement {
                Placement::Copies => OpenError::Gone { drive: 1, what: lacks, twin: 0 },
                Placement::Parity => OpenError::TooFew { drive: 1, what: lacks, other: 0 },
            })
        );
        let rebuilt = run_as(&before, "epochs", config, async |engine, _, _| check(&engine, 0..20, 2).await);
        let twin = (placement == Placement::Copies).then_some(0);
        assert_eq!(rebuilt, Ok(vec![Event::Rebuilt { drive: 1, twin }]));
    }
}

/// The drive that another one replaced was used alone: neither its items nor those of the others are lost.
#[test]
fn a_replaced_drive_that_was_used_alone_splits_the_store() {
    for rounds in [1, 2, 5] {
        let (all, new) = (disks(2), disks(1));
        let [a, b] = [Some(&all[0]), Some(&all[1])];
        let fill_with = |there: &[Option<&Rc<Disk>>], version| {
            run(there, "epochs", async |engine, _, _| {
                fill(&engine, 0..20, version).await;
                engine.close().await.unwrap();
            })
        };
        fill_with(&[a, b], 1).unwrap();
        fill_with(&[a, Some(&new[0])], 2).unwrap();
        (0..rounds).for_each(|_| drop(fill_with(&[None, b], 3).unwrap()));
        let both = run(&[a, b], "epochs", async |_, _, _| ());
        assert_eq!(both, Err(OpenError::Split { drive: 0, other: 1 }), "{rounds} rounds");
        for (there, version) in [([a, Some(&new[0])], 2), ([None, b], 3)] {
            run(&there, "epochs", async |engine, _, _| check(&engine, 0..20, version).await).unwrap();
        }
    }
}

/// A drive fails for good, by an error or by power that never returns: clients wait for a bounded time, and then its twin serves.
#[test]
fn a_drive_that_fails_is_put_out_of_use() {
    for (status, name) in [
        (Status::WRITE_FAULT, "epochs"),
        (Status::ABORTED_POWER_LOSS, "epochs"),
        (Status::ABORTED_POWER_LOSS, "mixed"),
        (Status::INTERNAL_ERROR, "mixed"),
    ] {
        let all = disks(2);
        let [a, b] = [Some(&all[0]), Some(&all[1])];
        let ran = run(&[a, b], name, async |engine, failing, sim| {
            fill(&engine, 0..60, 1).await;
            failing[1].status.set(Some(status));
            let begun = sim.now();
            check(&engine, 0..60, 1).await;
            assert!(sim.now() - begun < Span::from_ms(500), "reads do not wait for a drive whose twin serves");
            fill(&engine, 0..30, 2).await;
            assert!(sim.now() - begun < Span::from_s(15), "{:?}", sim.now() - begun);
            check(&engine, 0..30, 2).await;
            check(&engine, 30..60, 1).await;
            let events = engine.take_events();
            assert!(matches!(events[..], [Event::Failed { twin: Some(0), .. }]), "{events:?}");
            engine.close().await.unwrap();
        });
        assert_eq!(ran, Ok(vec![]));
        let back = run(&[a, b], name, async |engine, _, _| {
            check(&engine, 0..30, 2).await;
            engine.close().await.unwrap();
        });
        assert_eq!(back, Ok(vec![Event::Rebuilt { drive: 1, twin: Some(0) }]));
    }
}

/// Both fail: the engine ends, in bounded time, and items that are not read are not taken for gone.
#[test]
fn without_a_drive_of_a_pair_the_engine_ends() {
    let all = disks(2);
    let ran = run(&[Some(&all[0]), Some(&all[1])], "epochs", async |engine, failing, sim| {
        fill(&engine, 0..60, 1).await;
        let values = (0..60u32).filter(|number| !engine.is_in_memory(&number.to_le_bytes())).count();
        failing.iter().for_each(|drive| drive.status.set(Some(Status::ABORTED_POWER_LOSS)));
        let refused = put(&engine, 1, 2).await;
        assert!(matches!(refused, Err(Refused::Failed(_))), "{refused:?}");
        assert!(sim.now() < Time::ZERO + Span::from_s(60), "{:?}", sim.now());
        assert_eq!((engine.stats().items, values), (60, 0).max((60, values)));
        assert!(engine.close().await.is_err());
    });
    assert_eq!(ran, Ok(vec![]));
}

/// The place of a chunk in the first segment: each has an item of 3000 bytes.
fn chunk(number: usize) -> usize {
    (64 << 10) + number * 4_096
}

#[test]
fn different_damage_of_both_replicas_is_repaired() {
    let all = disks(2);
    let both = [Some(&all[0]), Some(&all[1])];
    run(&both, "epochs", async |engine, _, _| {
        fill(&engine, 0..12, 1).await;
        engine.close().await.unwrap();
    })
    .unwrap();
    for number in 0..12 {
        match number % 4 {
            0 => all[number / 4 % 2].spoil(chunk(number) + 100),
            _ => all[number % 2].damage(chunk(number) / 512 + 1),
        }
    }
    for missing in [None, Some(0), Some(1)] {
        let there = [0, 1].map(|drive| (missing != Some(drive)).then(|| &all[drive]));
        let events = run(&there, "epochs", async |engine, _, _| {
            check(&engine, 0..12, 1).await;
            assert_eq!(engine.stats().unreadable, 0);
        });
        assert_eq!(events.unwrap().len(), usize::from(missing.is_some()));
        if missing.is_some() {
            break;
        }
    }
}

/// The newest version is damaged on both replicas: the one before it does not return, and it is reported that items are lost.
#[test]
fn the_same_damage_of_both_replicas_is_reported_and_brings_nothing_older_back() {
    for (damaged, is_last) in [(14, false), (17, false), (2, false), (40, false), (47, true)] {
        let all = disks(2);
        let both = [Some(&all[0]), Some(&all[1])];
        // 15 chunks of 16 blocks of a segment: the items are in some 4 segments. Each is put twice.
        run(&both, "epochs", async |engine, _, _| {
            fill(&engine, 0..24, 1).await;
            fill(&engine, 0..24, 2).await;
            engine.close().await.unwrap();
        })
        .unwrap();
        for disk in &all {
            disk.spoil(chunk(damaged) + 200);
            disk.damage(chunk(damaged) / 512 + 2);
        }
        for round in 0..2 {
            let events = run(&both, "epochs", async |engine, _, _| {
                for number in 0..24 {
                    // What was put after the damaged chunk is there.
                    let found = version(&engine, number).await;
                    let is_certain = 24 + number as usize > damaged;
                    let wanted: &[Option<u8>] = if is_certain { &[Some(2)] } else { &[None, Some(2)] };
                    assert!(is_last || wanted.contains(&found), "chunk {damaged}, item {number}: {found:?}");
                }
                engine.close().await.unwrap();
            });
            let events = events.unwrap();
            let is_reported = matches!(events[..], [Event::Damaged { .. }]);
            // The last chunk could be torn. Once the damaged segment is released there is nothing to report.
            assert_eq!(is_reported, round == 0 && !is_last, "chunk {damaged}: {events:?}");
            run(&both, "epochs", async |engine, _, _| {
                fill(&engine, 100..101, 3).await;
                engine.close().await.unwrap();
            })
            .unwrap();
        }
    }
}

/// Clients are served while a drive is rebuilt: they read the others and write to all, and a crash at any time of it loses nothing.
#[test]
fn a_store_is_served_while_a_drive_is_rebuilt() {
    for (count, config) in [(2, CONFIG), (3, Config { placement: Placement::Parity, ..CONFIG })] {
        let all = disks(count);
        let begun: Vec<Option<&Rc<Disk>>> = all.iter().map(Some).collect();
        run_as(&begun, "epochs", config, async |engine, _, _| {
            fill(&engine, 0..300, 1).await;
            engine.close().await.unwrap();
        })
        .unwrap();
        let new = disks(1);
        let replaced: Vec<Rc<Disk>> = new.iter().chain(&all[1..]).cloned().collect();
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, &replaced);
        let ran = executor.block_on(async {
            let given = drives.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>));
            let engine = open_all(&sim, given, "epochs", config).await.unwrap();
            assert_eq!((engine.stats().lost_drives, engine.take_events()), (1, vec![]));
            check(&engine, 200..220, 1).await;
            fill(&engine, 0..2, 2).await;
            let before = engine.stats();
            assert_eq!((before.lost_drives, before.unreadable), (1, 0), "it takes longer than that");
            are_rebuilt(&engine, 0, &sim).await;
            let twin = (config.placement == Placement::Copies).then_some(1);
            assert_eq!(engine.take_events(), [Event::Rebuilt { drive: 0, twin }]);
            fill(&engine, 2..25, 2).await;
            engine.close().await.unwrap();
        });
        ran.unwrap();
        // The rebuilt drive has all: another one may be lost.
        let others: Vec<Option<&Rc<Disk>>> = (0..count).map(|drive| (drive != 1).then(|| &replaced[drive])).collect();
        let alone = run_as(&others, "epochs", config, async |engine, _, _| {
            check(&engine, 0..25, 2).await;
            check(&engine, 25..300, 1).await;
        });
        assert!(matches!(alone.unwrap()[..], [Event::Missing { drive: 1, .. }]));
    }
}

/// A drive that fails while it is rebuilt is done without; its twin cannot be.
#[test]
fn a_failure_ends_a_rebuild() {
    for (failing, is_served) in [(0, true), (1, false)] {
        let all = disks(2);
        run(&[Some(&all[0]), Some(&all[1])], "mixed", async |engine, _, _| {
            fill(&engine, 0..200, 1).await;
            engine.close().await.unwrap();
        })
        .unwrap();
        let new = disks(1);
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, &[new[0].clone(), all[1].clone()]);
        let ran = executor.block_on(async {
            let wrap =
                |drive: &Rc<_>| Rc::new(Failing { drive: Rc::clone(drive) as Rc<dyn Drive>, status: Cell::new(None) });
            let wrapped: Vec<Rc<Failing>> = drives.iter().map(wrap).collect();
            let given = wrapped.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>));
            let engine = open_all(&sim, given, "mixed", CONFIG).await.unwrap();
            wrapped[failing].status.set(Some(Status::WRITE_FAULT));
            sim.sleep(Span::from_ms(50)).await;
            assert_eq!(engine.failure().is_none(), is_served);
            if is_served {
                assert!(matches!(engine.take_events()[..], [Event::Failed { twin: Some(1), .. }]));
                fill(&engine, 0..10, 2).await;
                check(&engine, 0..10, 2).await;
                assert!(engine.close().await.is_ok());
            }
        });
        ran.unwrap();
    }
}

/// Items that no drive returns are dropped and counted, and the operator hears of the first of each segment.
#[test]
fn unreadable_items_are_reported_once_a_segment() {
    const ITEMS: u32 = 60;
    for (placement, count) in [(Placement::Copies, 2), (Placement::Parity, 3)] {
        let all = disks(count);
        let present: Vec<_> = all.iter().map(Some).collect();
        let config = Config { placement, ..CONFIG };
        run_as(&present, "epochs", config, async |engine, _, _| {
            fill(&engine, 0..ITEMS, 1).await;
            engine.close().await.unwrap();
        })
        .unwrap();
        let left = run_as(&present, "epochs", config, async |engine, _, _| {
            let segment = engine.segment_bytes();
            let log = (segment / 512) as usize..(4 << 20) / 512;
            all.iter().for_each(|disk| log.clone().for_each(|block| disk.damage(block)));
            for number in 0..ITEMS {
                assert_eq!(version(&engine, number).await, None);
            }
            let events = engine.take_events();
            let mut segments: Vec<u64> = Vec::new();
            for event in &events {
                let Event::Unreadable { drives, at, dropped: 1 } = event else { panic!("{event:?}") };
                assert_eq!(*drives, (0..count).collect::<Vec<_>>());
                segments.push(at / segment);
            }
            segments.dedup();
            assert!(segments.len() == events.len() && (2..ITEMS as usize / 2).contains(&events.len()), "{events:?}");
            let stats = engine.stats();
            assert_eq!((stats.unreadable, stats.items), (u64::from(ITEMS), 0));
            // They can be put again.
            fill(&engine, 0..ITEMS, 2).await;
            check(&engine, 0..ITEMS, 2).await;
        });
        assert_eq!(left, Ok(Vec::new()));
    }
}
