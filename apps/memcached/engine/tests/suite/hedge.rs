//! Drives that fall silent: reads go to the others long before the connection of the silent one would count as broken.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, Placement};
use nandscape_drive::{Drive, DriveInfo, Io};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::IoOpcode;

use crate::client::{SMALL, disks, drives, open_all};
use crate::degraded::{check, fill, put};

/// A drive that holds commands back while it is silent.
struct Silent {
    drive: Rc<dyn Drive>,
    is_silent: Cell<bool>,
    /// It takes writes nevertheless.
    writes: bool,
    held: RefCell<Vec<Io>>,
    commands: Cell<u64>,
}

impl Silent {
    fn all(sim: &Sim, count: usize, writes: bool) -> Vec<Rc<Silent>> {
        let silent = |drive| Silent {
            drive,
            is_silent: Cell::new(false),
            writes,
            held: RefCell::default(),
            commands: Cell::new(0),
        };
        drives(sim, &disks(count)).into_iter().map(|drive| Rc::new(silent(drive))).collect()
    }

    fn speak(&self) {
        self.is_silent.set(false);
        self.held.take().into_iter().for_each(|io| self.drive.submit(io));
    }
}

impl Drive for Silent {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, io: Io) {
        self.commands.set(self.commands.get() + 1);
        let is_held = self.is_silent.get() && !(self.writes && io.command.opcode != IoOpcode::READ.0);
        match is_held {
            true => self.held.borrow_mut().push(io),
            false => self.drive.submit(io),
        }
    }
}

#[test]
fn a_silent_drive_is_asked_once_and_again_when_it_answers() {
    const ITEMS: u32 = 60;
    for (placement, count) in [(Placement::Copies, 2), (Placement::Parity, 3)] {
        for policy in ["mixed", "epochs"] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let silent = Silent::all(&sim, count, false);
            let ran = executor.block_on(async {
                let config = Config { placement, ack: Ack::All, caches: false, hedges_reads: true, ..SMALL };
                let given = silent.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>));
                let engine = open_all(&sim, given, policy, config).await.unwrap();
                fill(&engine, 0..ITEMS, 1).await;
                sim.sleep(Span::from_ms(100)).await;
                check(&engine, 0..ITEMS, 1).await;
                assert_eq!(engine.stats().hedged, 0, "no drive was silent");
                silent[1].is_silent.set(true);
                let (begun, before) = (sim.now(), silent[1].commands.get());
                check(&engine, 0..ITEMS, 1).await;
                // Half of the patience would be 5 s.
                assert!(sim.now() - begun < Span::from_ms(200), "{placement:?} {policy}: {:?}", sim.now() - begun);
                assert_eq!(
                    (silent[1].commands.get() - before, engine.stats().hedged),
                    (1, 1),
                    "{placement:?} {policy}"
                );
                silent[1].speak();
                sim.sleep(Span::from_ms(1)).await;
                check(&engine, 0..ITEMS, 1).await;
                assert!(silent[1].commands.get() > before + 10, "it is not asked although it answers");
                let stats = engine.stats();
                assert_eq!((stats.hedged, stats.lost_drives, stats.unreadable), (1, 0, 0));
                engine.close().await.unwrap();
            });
            ran.unwrap();
        }
    }
}

/// A read may begin in the turn in which an epoch does: between the epoch's start and its taking of a token. The token waits for this read, which
/// another task carries out.
#[test]
fn a_token_waits_for_a_hedged_read_that_began_in_its_turn() {
    const ITEMS: u32 = 30;
    for (placement, count) in [(Placement::Copies, 2), (Placement::Parity, 3)] {
        for policy in ["epochs", "rails"] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let all = disks(count);
            let ran = executor.block_on(async {
                let config = Config { placement, caches: false, hedges_reads: true, ..SMALL };
                let given = drives(&sim, &all).into_iter().map(|drive| Some(drive as Rc<dyn Drive>));
                let engine = open_all(&sim, given, policy, config).await.unwrap();
                fill(&engine, 0..ITEMS, 1).await;
                let turn = Rc::new(Signal::new(&sim));
                for number in 0..ITEMS {
                    let (engine, turn) = (engine.clone(), turn.clone());
                    sim.spawn(async move {
                        loop {
                            turn.changed().await;
                            check(&engine, number..number + 1, 1).await;
                        }
                    });
                }
                for round in 0..8 {
                    // The engine is idle, and waits for changes.
                    sim.sleep(Span::from_ms(200)).await;
                    let (tokens, hits) = (engine.tokens(), engine.stats().drive_hits);
                    assert_eq!(tokens, vec![false; count], "{placement:?} {policy}");
                    // Fifteen changes begin an epoch at once. The engine wakes first, then the readers, and only then the workers that take tokens.
                    fill(&engine, ITEMS..ITEMS + 15, round).await;
                    turn.notify();
                    sim.sleep(Span::from_us(1)).await;
                    assert!(engine.tokens().contains(&true), "{placement:?} {policy}: no epoch has begun");
                    sim.sleep(Span::from_ms(50)).await;
                    let stats = engine.stats();
                    assert_eq!(
                        (stats.drive_hits - hits, stats.unreadable),
                        (ITEMS.into(), 0),
                        "{placement:?} {policy}"
                    );
                    assert_eq!(stats.reads_at_tokens, 0, "{placement:?} {policy}");
                }
                engine.close().await.unwrap();
            });
            ran.unwrap();
        }
    }
}

/// With parity, an item whose drive has a token is reconstructed from the others. One of these may be silent.
#[test]
fn a_reconstruction_does_not_wait_for_a_silent_drive() {
    const ITEMS: u32 = 60;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let silent = Silent::all(&sim, 3, true);
    let ran = executor.block_on(async {
        let config =
            Config { placement: Placement::Parity, ack: Ack::Cache, caches: false, hedges_reads: true, ..SMALL };
        let given = silent.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>));
        let engine = open_all(&sim, given, "epochs", config).await.unwrap();
        fill(&engine, 0..ITEMS, 1).await;
        sim.sleep(Span::from_ms(100)).await;
        let (writer, clock) = (engine.clone(), sim.clone());
        sim.spawn(async move {
            for number in 0..2_000 {
                // Those that find no room while a drive is silent.
                let _ = put(&writer, ITEMS + number % 100, 2).await;
                clock.sleep(Span::from_us(200)).await;
            }
        });
        // Items of drive 0 are reconstructed from the silent drive now.
        while !engine.tokens()[0] {
            sim.sleep(Span::from_us(50)).await;
        }
        silent[1].is_silent.set(true);
        let read = Rc::<Cell<u32>>::default();
        for number in 0..ITEMS {
            let (engine, read) = (engine.clone(), read.clone());
            sim.spawn(async move {
                check(&engine, number..number + 1, 1).await;
                read.set(read.get() + 1);
            });
        }
        sim.sleep(Span::from_ms(400)).await;
        assert_eq!(read.get(), ITEMS, "some wait for the silent drive");
        let mut longest = Span::ZERO;
        for round in 0..3 {
            for number in 0..ITEMS {
                let begun = sim.now();
                check(&engine, number..number + 1, 1).await;
                longest = longest.max(sim.now() - begun);
            }
            sim.sleep(Span::from_ms(round)).await;
        }
        assert!(longest < Span::from_ms(400), "{longest:?}");
        let stats = engine.stats();
        assert!(stats.hedged > 0 && stats.reconstructed > 0, "{stats:?}");
        silent[1].speak();
        sim.sleep(Span::from_ms(500)).await;
        check(&engine, 0..ITEMS, 1).await;
        assert_eq!((engine.stats().lost_drives, engine.stats().reads_at_tokens), (0, 0));
    });
    ran.unwrap();
}
