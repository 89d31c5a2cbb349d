//! The policies on emulated drives that collect garbage: never a read at a drive with a token, and one replica of all is always free.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_memcached_engine::policy::{PERIOD, POLICIES, policy};
use nandscape_apps_memcached_engine::{
    Ack, Config, Engine, EngineError, Event, Expect, Given, New, Placement, Refused,
};
use nandscape_apps_store::Host;
use nandscape_device_ssd::Ssd;
use nandscape_drive::{Completion, Drive, DriveInfo, Io, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Sim, Span, Time};
use nandscape_wire_nvme::vendor::READY_FOR_READ;
use nandscape_wire_nvme::{AdminOpcode, Status};

use crate::client::SMALL;
use crate::stand::model;
use nandscape_lab_crash::each;

/// The index of all items fits memory, their values do not.
const CONFIG: Config = Config { memory: 1 << 20, ..SMALL };

const DRIVE: [&str; 3] = ["capacity=16MiB", "geometry.pages_per_block=32", "buffer.mode=capacitor"];

/// A drive that has what a policy needs.
pub(crate) fn ssd(sim: &Sim, number: u64, seed: Seed, name: &str) -> Rc<Ssd> {
    model(sim, name, &DRIVE, seed.child("drive").nth(number))
}

pub(crate) fn given(sim: &Sim, ssd: &Ssd) -> Given {
    let queue = |id| QueueDrive::new(sim, ssd.controller(), id, 64).unwrap();
    Given { io: queue(QueueId(1)), admin: Some(queue(QueueId::ADMIN)) }
}

/// An engine under a policy, on drives once they are in service.
async fn engine_on(sim: &Sim, ssds: &[Rc<Ssd>], name: &str) -> Rc<Engine> {
    engine_as(sim, ssds, name, CONFIG).await
}

/// The same with other settings.
async fn engine_as(sim: &Sim, ssds: &[Rc<Ssd>], name: &str, config: Config) -> Rc<Engine> {
    for ssd in ssds {
        ssd.in_service().await;
    }
    let drives = ssds.iter().map(|ssd| Some(given(sim, ssd))).collect();
    Engine::open(&Host::free(sim), drives, policy(name).unwrap(), config).await.unwrap()
}

/// Readers and writers; epochs, reads that drives answered, and of those the ones that all drives but one answered together.
fn run(name: &str, placement: Placement, seed: Seed) -> (u64, u64, u64) {
    let mut executor = Executor::new();
    let (sim, mut rng) = (executor.sim(), seed.child("load").rng());
    let ssds: Vec<Rc<Ssd>> = (0..4).map(|number| ssd(&sim, number, seed, name)).collect();
    let ran = executor.block_on(async {
        let engine = engine_as(&sim, &ssds, name, Config { placement, ..CONFIG }).await;
        for number in 0..1_500u64 {
            let new = New { flags: 0, expiry: 0, value: vec![number as u8; 4_000].into() };
            engine.put(&number.to_le_bytes(), Expect::Any, new).await.unwrap();
        }
        for number in 0..3u64 {
            let (engine, sim, mut rng) = (engine.clone(), sim.clone(), seed.child("writer").nth(number).rng());
            sim.clone().spawn(async move {
                loop {
                    let key = rng.below(1_500);
                    let new = New { flags: 0, expiry: 0, value: vec![key as u8; 4_000].into() };
                    engine.put(&key.to_le_bytes(), Expect::Any, new).await.unwrap();
                    sim.sleep(Span::from_us(rng.below(500))).await;
                }
            });
        }
        for _ in 0..6_000 {
            let key = rng.below(1_500);
            let found = engine.get(&key.to_le_bytes()).await.expect("all keys were put");
            assert!(found.value.len() == 4_000 && found.value[7] == key as u8);
            let tokens = engine.tokens();
            if !["mixed", "raid0"].contains(&name) {
                let most = if placement == Placement::Parity { 1 } else { 2 };
                assert!(tokens.iter().filter(|token| **token).count() <= most, "{tokens:?}");
                assert!(tokens.chunks(2).all(|pair| pair != [true; 2]), "{tokens:?}");
                let parities = [0, 1].map(|parity| tokens.iter().skip(parity).step_by(2).any(|token| *token));
                assert_ne!(parities, [true; 2], "one parity at a time: {tokens:?}");
            }
        }
        let stats = engine.stats();
        assert_eq!((stats.reads_at_tokens, stats.unreadable, stats.evictions), (0, 0, 0), "{stats:?}");
        assert!(stats.waiting_bytes <= 2 * SMALL.dirty + (64 << 10), "{stats:?}");
        (stats.epochs, stats.drive_hits, stats.reconstructed)
    });
    ssds.iter().for_each(|ssd| ssd.check().unwrap());
    ran.unwrap()
}

#[test]
fn no_read_begins_at_a_drive_with_a_token() {
    each(2, |seed| {
        for name in POLICIES {
            let (epochs, hits, _) = run(name, Placement::Copies, seed);
            assert!(epochs > 20 && hits > 1_000, "{name}: {epochs} epochs, {hits} reads at drives");
        }
    });
}

/// With parity one drive has a token at a time, and the others give what is on it.
#[test]
fn the_others_are_read_for_a_drive_with_a_token() {
    each(1, |seed| {
        for name in ["mixed", "gc_control", "rails", "predictable_latency", "fdp"] {
            let (epochs, hits, reconstructed) = run(name, Placement::Parity, seed);
            assert!(epochs > 20 && hits > 1_000, "{name}: {epochs} epochs, {hits} reads at drives");
            assert_eq!(reconstructed > 20, name != "mixed", "{name}: {reconstructed} of {hits}");
        }
    });
}

/// The admin queue of a drive that has stopped: it never is ready for reads.
struct NeverReady(Rc<dyn Drive>);

impl Drive for NeverReady {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn submit(&self, io: Io) {
        match AdminOpcode(io.command.opcode) == READY_FOR_READ {
            true => io.token.complete(Completion::of(Status::SUCCESS)),
            false => self.0.submit(io),
        }
    }
}

/// The wait for a drive ends, and so does the engine once it has no other drive.
#[test]
fn a_drive_that_is_never_ready_ends_the_engine() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds: Vec<Rc<Ssd>> = (0..2).map(|number| ssd(&sim, number, Seed::new(1), "gc_control")).collect();
    let ran = executor.block_on(async {
        for ssd in &ssds {
            ssd.in_service().await;
        }
        let stopped = |given: Given| {
            let admin = given.admin.map(|admin| Rc::new(NeverReady(admin)) as Rc<dyn Drive>);
            Given { admin, ..given }
        };
        let drives = ssds.iter().map(|ssd| Some(stopped(given(&sim, ssd)))).collect();
        let config = Config { ack: Ack::All, ..CONFIG };
        let engine = Engine::open(&Host::free(&sim), drives, policy("gc_control").unwrap(), config).await.unwrap();
        let new = New { flags: 0, expiry: 0, value: vec![1; 100].into() };
        // Both have it before they are asked whether they are ready.
        assert!(engine.put(b"key", Expect::Any, new.clone()).await.is_ok());
        let refused = engine.put(b"key", Expect::Any, new).await;
        assert!(matches!(refused, Err(Refused::Failed(EngineError::Busy { .. }))), "{refused:?}");
        assert!(matches!(engine.take_events()[..], [Event::Failed { error: EngineError::Busy { .. }, .. }]));
        assert!(matches!(engine.close().await, Err(EngineError::Busy { .. })));
        sim.now()
    });
    assert!(ran.unwrap() < Time::ZERO + Span::from_s(60));
}

/// Drives that are written many times over under a policy.
fn wear(name: &str, check: impl AsyncFn(&Engine, &Ssd)) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds: Vec<Rc<Ssd>> = (0..2).map(|number| ssd(&sim, number, Seed::new(1), name)).collect();
    let ran = executor.block_on(async {
        let engine = engine_on(&sim, &ssds, name).await;
        for round in 0..20_000u64 {
            let new = New { flags: 0, expiry: 0, value: vec![round as u8; 4_000].into() };
            engine.put(&(round % 1_000).to_le_bytes(), Expect::Any, new).await.unwrap();
        }
        engine.close().await.unwrap();
        for ssd in &ssds {
            check(&engine, ssd).await;
        }
    });
    ran.unwrap();
}

/// The engine begins a deterministic window where it ends a token, and in these windows the drives collect next to nothing.
#[test]
fn drives_collect_in_the_windows_of_their_tokens() {
    wear("predictable_latency", async |engine, ssd| {
        let stats = ssd.ftl_stats();
        assert!(stats.gc_blocks > 0 && stats.window_turns > 20, "{stats:?}");
        let steps = stats.gc_blocks + stats.gc_units;
        assert!(stats.forced_steps * 20 < steps, "{} of {steps} steps in a deterministic window", stats.forced_steps);
        assert_eq!(engine.stats().reads_at_tokens, 0);
    });
}

/// The log has a handle for itself and a segment lies in one reclaim unit, so that nothing is moved.
#[test]
fn a_drive_with_handles_has_nothing_to_move() {
    wear("fdp", async |_, ssd| {
        let (stats, report) = (ssd.ftl_stats(), ssd.parts()[0].placement().expect("handles"));
        assert!(stats.gc_blocks > 0, "nothing was collected");
        assert!(report.handles[1].host_written > 50 * report.handles[0].host_written, "{report:?}");
        assert_eq!(stats.gc_units, 0, "{stats:?}");
    });
}

/// Zones are erased when the engine resets them, and nothing is moved.
#[test]
fn a_drive_with_zones_erases_what_is_reset_and_moves_nothing() {
    wear("zoned", async |engine, ssd| {
        let stats = ssd.ftl_stats();
        assert_eq!((stats.gc_blocks, stats.gc_units, engine.stats().reads_at_tokens), (0, 0, 0), "{stats:?}");
        assert!(stats.erases.2 > 100, "{stats:?}");
    });
}

/// The longest that changes waited for room, in epochs and in time, and the longest epoch.
#[derive(Clone, Default, Debug)]
struct Waits {
    epochs: Cell<u64>,
    time: Cell<Span>,
    epoch: Cell<Span>,
}

fn raise<T: Copy + Ord>(cell: &Cell<T>, to: T) {
    cell.set(cell.get().max(to));
}

/// Writers that drives which collect garbage cannot keep up with, and how many changes were delayed.
fn wait(name: &str, placement: Placement, (drives, seed): (u64, Seed)) -> (Rc<Waits>, u64) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds: Vec<Rc<Ssd>> = (0..drives).map(|number| ssd(&sim, number, seed, name)).collect();
    let ran = executor.block_on(async {
        let engine = engine_as(&sim, &ssds, name, Config { placement, ..CONFIG }).await;
        let waits = Rc::<Waits>::default();
        for writer in 0..4 {
            let (engine, waits, sim) = (engine.clone(), waits.clone(), sim.clone());
            let mut rng = seed.child("writer").nth(writer).rng();
            sim.clone().spawn(async move {
                loop {
                    let (number, len) = (rng.below(1_000), 100 + rng.below(6_000) as usize);
                    let new = New { flags: 0, expiry: 0, value: vec![number as u8; len].into() };
                    let (epochs, at) = (engine.stats().epochs, sim.now());
                    engine.put(&number.to_le_bytes(), Expect::Any, new).await.unwrap();
                    raise(&waits.epochs, engine.stats().epochs - epochs);
                    raise(&waits.time, sim.now() - at);
                }
            });
        }
        let (mut last, until) = ((engine.stats().epochs, sim.now()), sim.now() + Span::from_s(6));
        let have_collected = || ssds.iter().all(|ssd| ssd.ftl_stats().gc_blocks > 0);
        while sim.now() < until || !have_collected() {
            assert!(sim.now() < until + Span::from_s(60), "{name}: a drive has collected nothing");
            sim.sleep(Span::from_us(50)).await;
            let epochs = engine.stats().epochs;
            if epochs != last.0 {
                raise(&waits.epoch, sim.now() - last.1);
                last = (epochs, sim.now());
            }
        }
        (waits, engine.stats().throttled)
    });
    ran.unwrap()
}

/// An epoch of `gc_control` has a collection of at most a second for each drive in addition; an epoch of `rails` lasts as long as its turn.
#[test]
fn a_delayed_change_waits_for_a_bounded_time_on_drives_that_collect() {
    let second = Span::from_ms(1_000);
    each(2, |seed| {
        for (name, placement, drives, bound, epoch) in [
            ("gc_control", Placement::Copies, 4, 3, second),
            ("gc_control", Placement::Parity, 3, 4, second),
            ("rails", Placement::Copies, 4, 3, PERIOD),
            ("rails", Placement::Parity, 3, 4, PERIOD),
        ] {
            let (waits, throttled) = wait(name, placement, (drives, seed));
            assert!(throttled > 200, "{name}: {throttled} changes were delayed");
            let (epochs, time, longest) = (waits.epochs.get(), waits.time.get(), waits.epoch.get());
            assert!((1..=bound).contains(&epochs), "{name}, {drives} drives: {epochs} epochs");
            // The writes of what may wait take less than a second time as long.
            assert!(longest <= epoch + epoch, "{name}, {drives} drives: an epoch of {longest:?}");
            assert!(time <= longest * bound, "{name}, {drives} drives: a wait of {time:?}, an epoch of {longest:?}");
        }
    });
}

/// A drive that lacks what a policy needs is rejected, and the message names the key.
#[test]
fn a_policy_names_what_its_drives_lack() {
    for (name, key) in [
        ("predictable_latency", "controller.predictable_latency"),
        ("fdp", "ftl.fdp.handles"),
        ("zoned", "ftl.kind = \"zone\""),
    ] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssds: Vec<Rc<Ssd>> = (0..2).map(|number| ssd(&sim, number, Seed::new(1), "epochs")).collect();
        let opened = executor.block_on(async {
            ssds[0].in_service().await;
            let drives = ssds.iter().map(|ssd| Some(given(&sim, ssd))).collect();
            Engine::open(&Host::free(&sim), drives, policy(name).unwrap(), CONFIG).await.map(drop)
        });
        let error = opened.unwrap().expect_err("the drives lack it").to_string();
        assert!(error.contains(key), "{error}");
    }
}

/// Drives that are written many times over, on which the engine's runs are needed.
#[test]
fn runs_free_as_many_blocks_as_the_writes_take() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds: Vec<Rc<Ssd>> = (0..2).map(|number| ssd(&sim, number, Seed::new(1), "gc_control")).collect();
    let ran = executor.block_on(async {
        for ssd in &ssds {
            ssd.in_service().await;
        }
        let drives = ssds.iter().map(|ssd| Some(given(&sim, ssd))).collect();
        let engine = Engine::open(&Host::free(&sim), drives, policy("gc_control").unwrap(), CONFIG).await.unwrap();
        for round in 0..20_000u64 {
            let new = New { flags: 0, expiry: 0, value: vec![round as u8; 4_000].into() };
            engine.put(&(round % 1_000).to_le_bytes(), Expect::Any, new).await.unwrap();
        }
        engine.close().await.unwrap();
    });
    ran.unwrap();
    for ssd in &ssds {
        let status = ssd.collections().unwrap().status();
        assert!(ssd.ftl_stats().gc_blocks > 0, "nothing was collected");
        assert!(status.free >= status.watermarks.low && status.is_held, "{status:?}");
    }
}
