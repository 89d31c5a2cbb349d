//! Windows for a drive's background work: by schedule (TeaFA, Li 3.2.3, 3.2.4, 6.2), and those of Predictable Latency Mode
//! (Base 8.1.18).

use std::rc::Rc;

use nandscape_device_ftl_core::{Plant, Stats};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::identify::{self, cns};
use nandscape_wire_nvme::predictable_latency::{self as latency, Config, Log};
use nandscape_wire_nvme::vendor::{Capabilities, HAS_GC_CONTROL, HAS_WINDOWS, WINDOWS, Windows};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, feature, log};
use zerocopy::{FromBytes, IntoBytes};

const UNITS: u64 = (512 << 20) / 4_096;
const SMALL: [&str; 4] =
    ["capacity=512MiB", "geometry.channels=4", "geometry.dies_per_channel=4", "geometry.pages_per_block=64"];

struct Rig {
    sim: Sim,
    ssd: Ssd,
    io: Rc<QueueDrive>,
    admin: Rc<QueueDrive>,
}

/// Runs a test on a drive in steady state.
fn with<T>(changes: &[&str], test: impl AsyncFnOnce(&Rig) -> T) -> T {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let mut profile = Profile::load("femu-teafa").unwrap();
    SMALL.iter().chain(changes).for_each(|change| profile.set(change).unwrap());
    let ssd = Ssd::new(&sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
    ssd.plant(Plant::Steady, Seed::new(2), &mut |_| ());
    let io = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 1_024).unwrap();
    let admin = QueueDrive::new(&sim, ssd.controller(), QueueId::ADMIN, 32).unwrap();
    let rig = Rig { sim, ssd, io, admin };
    let result = executor.block_on(test(&rig)).unwrap();
    rig.ssd.check().unwrap();
    result
}

impl Rig {
    async fn admin(&self, entry: SubmissionEntry, data: &[u8]) -> Result<(u32, Vec<u8>), Status> {
        let mem = HostMem::from_bytes(data);
        let ended = Issuer::new(&self.sim).execute(&*self.admin, entry, mem.clone()).await;
        if ended.status.is_success() { Ok((ended.dw0, mem.to_vec())) } else { Err(ended.status.meaning()) }
    }

    async fn set(&self, windows: Windows) -> Result<(), Status> {
        self.admin(SubmissionEntry::set_features(WINDOWS, 0), windows.as_bytes()).await.map(drop)
    }

    async fn get(&self) -> Windows {
        let (_, data) = self.admin(SubmissionEntry::get_features(WINDOWS), &[0; 64]).await.unwrap();
        Windows::read_from_bytes(&data).unwrap()
    }

    async fn write(&self, unit: u64) {
        let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, unit * 8, 8);
        let ended = Issuer::new(&self.sim).execute(&*self.io, entry, HostMem::none()).await;
        assert_eq!(ended.status, Status::SUCCESS);
    }

    /// Random writes during the test, `gap` after each other.
    fn write_beside(self: &Rig, gap: Span, count: u32) {
        let (sim, io) = (self.sim.clone(), self.io.clone());
        self.sim.spawn(async move {
            let mut rng = Seed::new(3).child("writes").rng();
            for _ in 0..count {
                let (inner, io, unit) = (sim.clone(), io.clone(), rng.below(UNITS));
                sim.spawn(async move {
                    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, unit * 8, 8);
                    let ended = Issuer::new(&inner).execute(&*io, entry, HostMem::none()).await;
                    assert_eq!(ended.status, Status::SUCCESS);
                });
                sim.sleep(gap).await;
            }
        });
    }

    /// The work in each of `count` windows of `length` that begin now.
    async fn by_window(&self, length: Span, count: usize) -> Vec<Stats> {
        let mut all = Vec::new();
        for _ in 0..count {
            let before = self.ssd.ftl_stats();
            self.sim.sleep(length).await;
            all.push(self.ssd.ftl_stats().since(&before));
        }
        all
    }

    async fn latency_log(&self) -> Log {
        let entry = SubmissionEntry::get_log_page(log::PREDICTABLE_LATENCY, 0, 512);
        let entry = SubmissionEntry { cdw11: (1 << 16).into(), ..entry };
        Log::read_from_bytes(&self.admin(entry, &[0; 512]).await.unwrap().1).unwrap()
    }

    async fn configure(&self, enable: bool, config: &Config) -> Result<(), Status> {
        let entry = SubmissionEntry::set_features(feature::PREDICTABLE_LATENCY_CONFIG, 1);
        self.admin(SubmissionEntry { cdw12: u32::from(enable).into(), ..entry }, config.as_bytes()).await.map(drop)
    }

    async fn select(&self, window: u32) -> Result<(), Status> {
        let entry = SubmissionEntry::set_features(feature::PREDICTABLE_LATENCY_WINDOW, 1);
        self.admin(SubmissionEntry { cdw12: window.into(), ..entry }, &[]).await.map(drop)
    }

    async fn window(&self) -> u32 {
        let entry = SubmissionEntry::get_features(feature::PREDICTABLE_LATENCY_WINDOW);
        self.admin(SubmissionEntry { cdw11: 1.into(), ..entry }, &[]).await.unwrap().0
    }
}

fn collected(stats: &Stats) -> bool {
    stats.gc_units + stats.gc_blocks > 0
}

#[test]
fn a_drive_collects_in_its_own_windows_alone() {
    for (changes, batches) in
        [(&[][..], "whole blocks"), (&["ftl.gc.batch=4"], "batches"), (&["ftl.gc.copyback=false"], "no copyback")]
    {
        with(changes, async |rig| {
            let length = Span::from_ms(20);
            rig.set(Windows::new(4, 1, length.ns(), 0)).await.unwrap();
            rig.write_beside(Span::from_us(400), 10_000);
            // Work that ends with a window is part of it.
            rig.sim.sleep(Span::from_us(400_001)).await;
            let windows = rig.by_window(length, 80).await;
            for (number, window) in windows.iter().enumerate() {
                let is_own = number % 4 == 1;
                assert!(is_own || !collected(window), "{batches}, window {number}: {window:?}");
                assert_eq!(window.forced_steps, 0, "{batches}, window {number}");
            }
            let turns: u64 = windows.iter().map(|window| window.window_turns).sum();
            let active = windows.iter().filter(|window| collected(window)).count();
            assert_eq!(turns, 20);
            assert!(active >= 18, "{batches}: {active} of 20 windows are used");
            // From now on at any time.
            rig.set(Windows::none()).await.unwrap();
            rig.sim.sleep(Span::from_ms(1_500)).await;
            let windows = rig.by_window(length, 40).await;
            assert!((0..40).any(|number| number % 4 == 3 && collected(&windows[number])), "{batches}");
        });
    }
}

#[test]
fn without_room_for_the_host_a_plane_is_collected_at_any_time_and_that_is_counted() {
    with(&[], async |rig| {
        // Windows in which nothing ends, and more writes than fit.
        rig.set(Windows::new(4, 1, 1_000_000, 0)).await.unwrap();
        rig.write_beside(Span::from_us(60), 30_000);
        let before = rig.ssd.ftl_stats();
        rig.sim.sleep(Span::from_ms(2_500)).await;
        let stats = rig.ssd.ftl_stats().since(&before);
        assert!(stats.forced_steps > 0 && stats.gc_blocks > 0, "{stats:?}");
        assert_eq!(stats.host_units, 30_000, "no write is held up for good");
    });
}

/// Due collections run, as without windows. Only a drive that promises free space works ahead.
#[test]
fn drives_collect_ahead_where_they_have_to() {
    let ahead = |changes: &[&str]| {
        let mut profile = Profile::load("femu-teafa").unwrap();
        SMALL.iter().chain(changes).for_each(|change| profile.set(change).unwrap());
        let windows = profile.resolve().unwrap().keys.ftl.windows;
        (windows.free_blocks.expect("it is resolved"), windows.free_blocks_long.expect("it is resolved"))
    };
    let (_, room) = ahead(&[]);
    assert!(room > 0);
    assert_eq!(ahead(&[]), (0, room));
    assert_eq!(ahead(&["ftl.windows.free_blocks_long=1"]), (0, 1));
    assert_eq!(ahead(&["ftl.windows.ranges=4"]).0, ahead(&["ftl.windows.ranges=4"]).1);
    let mode = "controller.predictable_latency=true";
    assert_eq!(ahead(&[mode]), (room, room));
    assert_eq!(ahead(&[mode, "ftl.windows.free_blocks=1"]), (1, 1));
    assert_eq!(ahead(&[mode, "ftl.windows.free_blocks=0", "ftl.windows.free_blocks_long=2"]), (0, 2));
}

/// The dynamic windows of TeaFA set another length every 50 ms.
#[test]
fn a_schedule_changes_at_any_time() {
    with(&[], async |rig| {
        rig.write_beside(Span::from_us(400), 10_000);
        for step in 1..40_u64 {
            rig.set(Windows::new(4, 2, step * 1_500_000, 7_000 * step)).await.unwrap();
            rig.sim.sleep(Span::from_ms(50)).await;
        }
        assert!(rig.ssd.ftl_stats().window_turns > 10);
        // A lone drive may always collect.
        rig.set(Windows::new(1, 0, 10_000_000, 0)).await.unwrap();
        rig.sim.sleep(Span::from_ms(200)).await;
        assert!(rig.by_window(Span::from_ms(20), 10).await.iter().filter(|window| collected(window)).count() > 5);
    });
}

#[test]
fn outside_its_window_a_drive_writes_its_buffer_when_that_is_nearly_full() {
    with(&["buffer.mode=capacitor", "buffer.size=4MiB", "ftl.gc.scheme=none"], async |rig| {
        rig.set(Windows::new(2, 1, 1_000_000_000, 0)).await.unwrap();
        for unit in 0..800 {
            rig.write(unit).await;
        }
        assert_eq!(rig.ssd.ftl_stats().host_units, 0, "800 of 1,024 slots");
        for unit in 800..1_400 {
            rig.write(unit).await;
        }
        let written = rig.ssd.ftl_stats().host_units;
        assert!((350..600).contains(&written), "{written}");
        // Its window has begun.
        rig.sim.sleep(Span::from_ms(1_100)).await;
        assert_eq!(rig.ssd.ftl_stats().host_units, 1_400);
        // Flush does not wait for a window.
        rig.sim.sleep(Span::from_ms(1_000)).await;
        rig.write(5_000).await;
        let flush = SubmissionEntry::io(IoOpcode::FLUSH, 1);
        assert!(Issuer::new(&rig.sim).execute(&*rig.io, flush, HostMem::none()).await.status.is_success());
    });
}

/// The planted state equals the state after overwrites: for both kinds of ranges, and for drives without ranges.
#[test]
fn ranges_are_planted_as_overwrites_leave_them() {
    for changes in [&["ftl.windows.ranges=4"][..], &["ftl.windows.ranges=4", "ftl.windows.ranges_own=planes"]] {
        let waf = |writes: u64| {
            with(changes, async |rig| {
                let mut rng = Seed::new(7).child("overwrites").rng();
                for _ in 0..writes {
                    rig.write(rng.below(UNITS)).await;
                }
                let before = rig.ssd.ftl_stats();
                for _ in 0..UNITS / 2 {
                    rig.write(rng.below(UNITS)).await;
                }
                let stats = rig.ssd.ftl_stats().since(&before);
                stats.programmed_units() as f64 / stats.host_units as f64
            })
        };
        let (planted, later) = (waf(0), waf(3 * UNITS));
        assert!(
            (planted / later - 1.0).abs() < 0.03,
            "{changes:?}: {planted} as planted, {later} after more overwrites"
        );
    }
}

/// With abundant room on the planes of the other range, no write waits for room that never comes.
#[test]
fn a_drive_is_read_only_when_the_planes_of_a_range_are_gone() {
    for (mode, fault) in [
        ("capacitor", "dead channel=0 from=1ms"),
        ("through", "dead channel=0 from=1ms"),
        ("capacitor", "fail program channel=0 probability=5%"),
        ("through", "fail erase channel=0 probability=60%"),
    ] {
        let changes = [
            "ftl.windows.ranges=4",
            "ftl.windows.ranges_own=planes",
            "capacity=128MiB",
            "ftl.over_provisioning=300%",
            &format!("buffer.mode={mode}"),
            &format!("faults=[\"{fault}\"]"),
        ];
        with(&changes, async |rig| {
            let (mut rng, units) =
                (Seed::new(11).child("writes").rng(), u64::from(rig.ssd.controller().info().blocks as u32) / 8);
            let issuer = Issuer::new(&rig.sim);
            let mut left = 4_000_000;
            loop {
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, rng.below(units) * 8, 8);
                let ended = issuer.execute(&*rig.io, entry, HostMem::none()).await.status.meaning();
                if ended == Status::READ_ONLY_RANGE {
                    break;
                }
                assert!(ended == Status::SUCCESS || ended == Status::WRITE_FAULT, "{mode}, {fault}: {ended}");
                left -= 1;
                assert!(left > 0, "{mode}, {fault}: the planes of a range do not fail");
            }
        });
    }
}

#[test]
fn ranges_are_collected_in_windows_of_their_own() {
    ranges_are_collected_in_turn(&[]);
}

#[test]
fn ranges_with_planes_of_their_own_are_collected_in_windows_of_their_own() {
    ranges_are_collected_in_turn(&["ftl.windows.ranges_own=planes"]);
}

fn ranges_are_collected_in_turn(changes: &[&str]) {
    let changes = [&["ftl.windows.ranges=4", "ftl.gc.batch=4"], changes].concat();
    with(&changes, async |rig| {
        let ended = rig.set(Windows { ranges: 3.into(), ..Windows::new(4, 1, 20_000_000, 0) }).await;
        assert_eq!(ended, Err(Status::INVALID_FIELD), "it has four");
        let length = 20_000_000;
        let now_us = rig.sim.now().ns() / 1_000;
        rig.set(Windows { ranges: 4.into(), ..Windows::new(4, 1, length, now_us) }).await.unwrap();
        rig.write_beside(Span::from_us(400), 10_000);
        rig.sim.sleep(Span::from_ns(80 * length + 1_000)).await;
        let moved = || -> Vec<u64> {
            let report = rig.ssd.parts()[0].placement().unwrap();
            report.handles.iter().map(|handle| handle.moved).collect()
        };
        let mut used = [0; 4];
        for window in 0..80 {
            let before = moved();
            rig.sim.sleep(Span::from_ns(length)).await;
            for (range, (before, after)) in before.iter().zip(moved()).enumerate() {
                let is_open = (window + range) % 4 == 1;
                assert!(is_open || *before == after, "window {window}, range {range}");
                used[range] += u32::from(*before != after);
            }
        }
        assert!(used.iter().all(|windows| *windows > 5), "{used:?}");
    });
}

#[test]
fn the_value_of_the_feature_is_checked_and_told() {
    with(&[], async |rig| {
        let (_, data) = rig.admin(SubmissionEntry::identify(cns::CONTROLLER, 0), &[0; 4_096]).await.unwrap();
        let controller = identify::Controller::read_from_bytes(&data).unwrap();
        assert_eq!(Capabilities::of(&controller.vendor).unwrap().functions.get(), HAS_WINDOWS | HAS_GC_CONTROL);
        assert_eq!(controller.ctratt.get() & identify::CTRATT_PREDICTABLE_LATENCY, 0);
        assert_eq!(rig.get().await, Windows::none());
        let good = Windows::new(4, 3, 0, 1_000);
        let bad = [
            ("magic", Windows { magic: *b"nand", ..good }),
            ("version", Windows { version: 2.into(), ..good }),
            ("position", Windows { position: 4.into(), ..good }),
            ("ranges", Windows { ranges: 2.into(), ..good }),
            ("too short", Windows { length: 999_999.into(), ..good }),
            ("too long", Windows { length: 3_600_000_000_001.into(), ..good }),
            ("reserved", Windows { reserved_12: 1.into(), ..good }),
            ("reserved", Windows { reserved_48: [1; 16], ..good }),
        ];
        for (what, windows) in bad {
            assert_eq!(rig.set(windows).await, Err(Status::INVALID_FIELD), "{what}");
        }
        let short = rig.admin(SubmissionEntry::set_features(WINDOWS, 0), &good.as_bytes()[..63]).await;
        assert!(short.is_err());
        let saved = SubmissionEntry::set_features(WINDOWS, 0);
        let saved = SubmissionEntry { cdw10: (saved.cdw10.get() | feature::SAVE).into(), ..saved };
        assert_eq!(rig.admin(saved, good.as_bytes()).await.unwrap_err(), Status::FEATURE_NOT_SAVEABLE);
        rig.set(good).await.unwrap();
        let told = rig.get().await;
        // 64 pages, a quarter of them current: 16 x 240 us and 2 ms; 16 planes that gain 48 pages each in that time.
        assert_eq!((told.width.get(), told.position.get(), told.shortest.get()), (4, 3, 5_840_000));
        let gains = 16.0 * 48.0 * 4_096.0 / 5.84e-3;
        let flash = f64::from(rig.ssd.media().geometry().blocks()) * 64.0 * 4_096.0;
        let longest = (flash - (512 << 20) as f64) / (4.0 * 16.0 * 4_096.0 / 200e-6 - gains) * 1e9;
        assert!((told.longest.get() as f64 - longest).abs() < 1e3, "{} of {longest}", told.longest.get());
        assert_eq!(told.length, told.longest);
        rig.set(Windows { width: 0.into(), ..good }).await.unwrap();
        assert_eq!(rig.get().await, Windows::none());
    });
    with(&["ftl.kind=ox_block", "ftl.gc.copyback=false"], async |rig| {
        let ended = rig.set(Windows::new(4, 3, 0, 0)).await;
        assert_eq!(ended, Err(Status::INVALID_FIELD), "another FTL has no windows");
    });
}

/// The epoch is a time of the clock set by the host.
#[test]
fn windows_follow_the_clock_of_the_host() {
    with(&[], async |rig| {
        rig.sim.sleep(Span::from_ms(13)).await;
        let now_ms: u64 = 1_700_000_000_000;
        rig.admin(SubmissionEntry::set_features(feature::TIMESTAMP, 0), &now_ms.to_le_bytes()).await.unwrap();
        rig.write_beside(Span::from_us(400), 10_000);
        // Its turn begins 5 ms from now, and every 80 ms.
        rig.set(Windows::new(4, 0, 20_000_000, now_ms * 1_000 + 5_000)).await.unwrap();
        rig.sim.sleep(Span::from_us(405_001)).await;
        let windows = rig.by_window(Span::from_ms(20), 40).await;
        for (number, window) in windows.iter().enumerate() {
            assert!(number % 4 == 0 || !collected(window), "window {number}");
        }
        assert!(windows.iter().filter(|window| collected(window)).count() >= 8);
    });
}

#[test]
fn in_the_deterministic_window_a_drive_collects_only_if_it_must_and_tells() {
    with(&["controller.predictable_latency=true"], async |rig| {
        let (_, data) = rig.admin(SubmissionEntry::identify(cns::CONTROLLER, 0), &[0; 4_096]).await.unwrap();
        let controller = identify::Controller::read_from_bytes(&data).unwrap();
        let both = identify::CTRATT_PREDICTABLE_LATENCY | identify::CTRATT_NVM_SETS;
        assert_eq!((controller.ctratt.get() & both, controller.nsetidmax.get()), (both, 1));
        assert_eq!(rig.latency_log().await.status, latency::NOT_ENABLED);
        assert_eq!(rig.select(latency::WINDOW_DETERMINISTIC).await, Err(Status::COMMAND_SEQUENCE_ERROR));
        let mut config = Config::zeroed();
        config.events = latency::EVENT_EXCURSION.into();
        rig.configure(true, &config).await.unwrap();
        assert_eq!(rig.window().await, latency::WINDOW_NON_DETERMINISTIC);
        // The drive prepares itself as far as writes require.
        rig.write_beside(Span::from_us(200), 60_000);
        rig.sim.sleep(Span::from_ms(500)).await;
        rig.select(latency::WINDOW_DETERMINISTIC).await.unwrap();
        let log = rig.latency_log().await;
        assert_eq!((log.status, log.events.get()), (1, 0));
        assert!(log.writes_left.get() > 0 && log.writes_left.get() <= log.writes_typical.get(), "{log:?}");
        assert!(log.longest_ms.get() > 0 && log.left_ms.get() <= log.longest_ms.get() && log.reads_left.get() > 0);
        let mut windows = Vec::new();
        while rig.window().await == latency::WINDOW_DETERMINISTIC {
            windows.push(rig.by_window(Span::from_ms(2), 1).await.remove(0));
        }
        let quiet = windows.iter().filter(|window| !collected(window)).count();
        assert!(quiet + 2 >= windows.len() && quiet > 5, "{quiet} of {}", windows.len());
        let log = rig.latency_log().await;
        let why = log.events.get();
        assert!(why == latency::EVENT_EXCURSION || why == latency::EVENT_EXCEEDED, "{why:x}");
        assert_eq!((log.status, log.writes_left.get()), (2, 0));
        assert_eq!(rig.latency_log().await.events.get(), 0, "it was read");
        rig.configure(false, &config).await.unwrap();
        assert_eq!((rig.window().await, rig.latency_log().await.status), (0, 0));
    });
}

#[test]
fn events_of_a_deterministic_window_are_told() {
    with(&["controller.predictable_latency=true"], async |rig| {
        let wants = SubmissionEntry::set_features(feature::ASYNC_EVENT_CONFIG, feature::EVENT_PREDICTABLE_LATENCY);
        rig.admin(wants, &[]).await.unwrap();
        let mut config = Config::zeroed();
        (config.events, config.time_ms) = (latency::EVENT_TIME.into(), u64::MAX.into());
        rig.configure(true, &config).await.unwrap();
        let request = SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
        let issuer = Issuer::new(&rig.sim);
        let event = issuer.execute(&*rig.admin, request, HostMem::none());
        rig.select(latency::WINDOW_DETERMINISTIC).await.unwrap();
        let event = event.await;
        assert_eq!(event.dw0, 2 | 4 << 8 | u32::from(log::PREDICTABLE_LATENCY_EVENTS) << 16);
        let page = async || {
            let entry = SubmissionEntry::get_log_page(log::PREDICTABLE_LATENCY_EVENTS, 0, 16);
            rig.admin(entry, &[0; 16]).await.unwrap().1
        };
        assert_eq!(page().await, [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(rig.latency_log().await.events.get() & latency::EVENT_TIME, latency::EVENT_TIME);
        rig.select(latency::WINDOW_NON_DETERMINISTIC).await.unwrap();
        rig.latency_log().await;
        assert_eq!(page().await, [0; 16]);
        // Bad values.
        assert_eq!(rig.select(0).await, Err(Status::INVALID_FIELD));
        assert_eq!(rig.select(3).await, Err(Status::INVALID_FIELD));
        config.events = (1 << 5).into();
        assert_eq!(rig.configure(true, &config).await, Err(Status::INVALID_FIELD));
        let other = SubmissionEntry::set_features(feature::PREDICTABLE_LATENCY_CONFIG, 2);
        assert_eq!(rig.admin(other, &[0; 512]).await.unwrap_err(), Status::INVALID_FIELD);
        let other = SubmissionEntry::get_log_page(log::PREDICTABLE_LATENCY, 0, 512);
        assert_eq!(rig.admin(other, &[0; 512]).await.unwrap_err(), Status::INVALID_FIELD);
    });
    with(&[], async |rig| {
        assert_eq!(rig.configure(true, &Config::zeroed()).await, Err(Status::INVALID_FIELD), "there is no such mode");
        let entry = SubmissionEntry::get_log_page(log::PREDICTABLE_LATENCY_EVENTS, 0, 16);
        assert_eq!(rig.admin(entry, &[0; 16]).await.unwrap_err(), Status::INVALID_LOG_PAGE);
    });
}
