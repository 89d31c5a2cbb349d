//! The two clocks agree: an emulated SSD served over NBD in real time, with all input recorded, and the
//! recording run again in simulated time. Every event of every die and channel is the same, to the byte, and so is every
//! figure: with garbage collection, several clients at once, hang-ups in the middle of writes, unfinished work, and faults
//! injected meanwhile.
#![cfg(target_os = "linux")]

mod kinds;
mod recorded;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use nandscape_device_ssd::Profile;
use nandscape_drive::HostMem;
use nandscape_lab_run::{Chain, DriveSpec, LiveDrives, Phase, Precondition, Progress, Replay, Rules, WhatIf};
use nandscape_sim::{Executor, Rng, Seed, Time};
use nandscape_transport_nbd::{Address, Exported, Listener, ListenerConfig};
use nandscape_transport_reactor::handle::{ExportFigures, Figures};
use nandscape_transport_reactor::recording::Recorder;
use nandscape_transport_reactor::{Export, Handle, Order, PollMode, Port};
use nandscape_wire_nbd::{
    OPTION_MAGIC, OptionHeader, REQUEST_MAGIC, Request, SimpleReply, command, error, flag, option,
};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

const CAPACITY: u64 = 64 << 20;
const CLIENTS: u64 = 4;
/// Two drives on one reactor: the first has most of the clients.
const NAMES: [&str; 2] = ["small", "other"];
/// Sessions of each client, one after another.
const SESSIONS: u64 = 5;
/// Batches of requests in a session.
const BATCHES: u64 = 12;

/// A small drive with little to spare, so that collectors run.
fn drives(mode: &str, seed: u64) -> LiveDrives {
    let mut profile = Profile::load("default").unwrap();
    let mode = format!("buffer.mode={mode}");
    let small = ["capacity=64MiB", "geometry.channels=2", "geometry.dies_per_channel=2", "ftl.over_provisioning=2%"];
    small.into_iter().chain(["buffer.size=1MiB", &mode]).for_each(|change| profile.set(change).unwrap());
    let drive = |(name, number): (&&str, u64)| DriveSpec {
        name: (*name).to_owned(),
        number,
        profile_name: "default".to_owned(),
        profile: profile.resolve().unwrap().to_toml(),
        keeps_data: true,
        precondition: Precondition::Full,
        from_state: None,
        is_shared: false,
        own_seed: None,
    };
    LiveDrives {
        version: "test".to_owned(),
        seed,
        drives: NAMES.iter().zip(0..).map(drive).collect(),
        layers: Chain::default(),
        is_engine: false,
        assign: Vec::new(),
    }
}

/// Open-channel drives of 96 MiB without a volatile write cache.
fn drives_of_chunks(seed: u64) -> LiveDrives {
    let mut profile = Profile::load("dfc-mlc").unwrap();
    let small =
        ["geometry.channels=2", "geometry.dies_per_channel=2", "geometry.blocks_per_plane=24", "buffer.mode=through"];
    profile.set_all(small.iter().chain(&["geometry.pages_per_block=32", "geometry.factory_bad_blocks=0%"])).unwrap();
    let (of_chunks, plain) = (profile.resolve().unwrap().to_toml(), drives("through", seed));
    let drive = |spec: DriveSpec| DriveSpec { profile_name: "dfc-mlc".to_owned(), profile: of_chunks.clone(), ..spec };
    LiveDrives { drives: plain.drives.into_iter().map(drive).collect(), ..plain }
}

/// Serves over NBD while `work` is done at the socket; the trace and the last figures.
fn serve(live: &LiveDrives, poll: PollMode, record: &Path, work: impl FnOnce(&Path, &Handle)) -> (String, Figures) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nbd.sock");
    recorded::serve(live, poll, record, |handle, _| {
        let exported = |name: &str| Exported { name: name.to_owned(), description: String::new() };
        let listener = Listener::start(ListenerConfig {
            address: Address::Unix(socket.clone()),
            allow_remote: false,
            max_clients: 1_024,
            patience: Duration::from_secs(60),
            exports: NAMES
                .iter()
                .zip(0..live.specs().len() as u16)
                .map(|(name, number)| (exported(name), handle.clone(), number))
                .collect(),
            log: Box::new(|_| {}),
        });
        work(&socket, handle);
        drop(listener.unwrap());
    })
}

/// Negotiates in the old way, which has no replies. A queue pair of a client that has just left is waited for.
fn connect(socket: &Path, name: &str) -> UnixStream {
    try_connect(socket, name).expect("a queue pair")
}

/// `None` when connected clients have all queue pairs: the server hangs up.
fn try_connect(socket: &Path, name: &str) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    let header = OptionHeader {
        magic: OPTION_MAGIC.into(),
        option: option::EXPORT_NAME.into(),
        len: (name.len() as u32).into(),
    };
    stream.write_all(&[&[0, 0, 0, 3], header.as_bytes(), name.as_bytes()].concat()).unwrap();
    let mut size_and_flags = [0; 10];
    stream.read_exact(&mut size_and_flags).ok()?;
    assert!(size_and_flags[..8] >= CAPACITY.to_be_bytes()[..], "a drive as large as requests expect");
    Some(stream)
}

fn request(kind: u16, flags: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let (magic, cookie) = (REQUEST_MAGIC.into(), cookie.into());
    let request =
        Request { magic, flags: flags.into(), kind: kind.into(), cookie, offset: offset.into(), len: len.into() };
    let data = if kind == command::WRITE { len as usize } else { 0 };
    [request.as_bytes(), &vec![cookie.get() as u8; data]].concat()
}

/// A random request, its kind and its length.
fn random(rng: &mut Rng, cookie: u64) -> (Vec<u8>, u16, u32) {
    let most = if rng.below(4) == 0 { 256 } else { 32 };
    let blocks = 1 + rng.below(most);
    let (offset, len) = (rng.below(CAPACITY / 512 - blocks) * 512, (blocks * 512) as u32);
    let (kind, flags) = match rng.below(20) {
        0..12 => (command::WRITE, if rng.below(8) == 0 { flag::FUA } else { 0 }),
        12..17 => (command::READ, 0),
        17 => (command::TRIM, 0),
        18 => (command::WRITE_ZEROES, if rng.below(2) == 0 { flag::NO_HOLE } else { 0 }),
        _ => return (request(command::FLUSH, 0, cookie, 0, 0), command::FLUSH, 0),
    };
    (request(kind, flags, cookie, offset, len), kind, len)
}

/// Several sessions: each sends batches and takes the replies, and ends in one way or another.
///
/// Requests succeed, or may fail for faults of the drive if it is `faulty`.
fn client(socket: &Path, seed: u64, number: u64, faulty: bool) {
    client_of(socket, seed, number, NAMES[usize::from(number == 0)], faulty);
}

/// The same of a drive of this name.
fn client_of(socket: &Path, seed: u64, number: u64, name: &str, faulty: bool) {
    let mut rng = Seed::new(seed).child("client").nth(number).rng();
    for session in 0..SESSIONS {
        let mut stream = connect(socket, name);
        for _ in 0..BATCHES {
            let batch: BTreeMap<u64, _> =
                (0..1 + rng.below(16)).map(|cookie| (cookie, random(&mut rng, cookie))).collect();
            let bytes: Vec<u8> = batch.values().flat_map(|(bytes, ..)| bytes.clone()).collect();
            stream.write_all(&bytes).unwrap();
            for _ in &batch {
                let mut reply = [0; 16];
                stream.read_exact(&mut reply).unwrap();
                let reply = SimpleReply::read_from_bytes(&reply).unwrap();
                let (_, kind, len) = &batch[&reply.cookie.get()];
                let fine = reply.error.get() == 0 || faulty && [error::EIO, error::EPERM].contains(&reply.error.get());
                assert!(fine, "seed {seed}: request {kind} of {len} bytes: error {}", reply.error.get());
                if *kind == command::READ && reply.error.get() == 0 {
                    stream.read_exact(&mut vec![0; *len as usize]).unwrap();
                }
            }
        }
        let last: Vec<u8> = (0..8).flat_map(|cookie| random(&mut rng, cookie).0).collect();
        let write = request(command::WRITE, 0, 9, 0, 65_536);
        let farewell = match session % 4 {
            // In order, with work in flight.
            0 => [last, request(command::DISC, 0, 0, 0, 0)].concat(),
            // With work in flight.
            1 => last,
            // In the middle of a write's data, with work in flight.
            2 => [&last, &write[..40_000]].concat(),
            // In the middle of a request.
            _ => write[..11].to_vec(),
        };
        stream.write_all(&farewell).unwrap();
    }
}

fn figures_agree(live: &ExportFigures, again: &nandscape_lab_run::Report, what: &str) {
    let pairs = [("read", &live.reads), ("write", &live.writes)];
    for (direction, tally) in pairs {
        let found = &again.latency_us[direction];
        assert_eq!(found.count, tally.latency.count(), "{what}: {direction}s");
        if found.count == 0 {
            continue;
        }
        assert_eq!(found.max, Some(tally.latency.max().as_us()), "{what}: the longest {direction}");
        assert_eq!(found.mean, Some(tally.latency.mean_ns() / 1e3), "{what}: the mean {direction}");
    }
    assert_eq!(again.gc.blocks as f64, live.counters["gc_blocks_total"], "{what}: blocks that were collected");
    let failed: u64 = again.errors.values().sum();
    let of = |way: &str| again.latency_us.get(way).map(|latency| (latency.count, latency.mean));
    for (way, live) in [("flush", &live.flushes), ("fua", &live.forced_writes)] {
        let seen = (live.latency.count() > 0).then(|| (live.latency.count(), Some(live.latency.mean_ns() / 1e3)));
        assert_eq!(of(way), seen, "{what}: {way}");
    }
    let data = live.reads.errors + live.writes.errors;
    assert!((data..=data + live.others.errors).contains(&failed), "{what}: {failed} requests failed");
    let struck = |rule: &str, matched: u64, struck: u64| (rule.to_owned(), matched, struck);
    let live_faults = live.faults.iter().map(|fault| struck(&fault.rule, fault.matched, fault.struck));
    let same = live_faults.eq(again.faults.iter().map(|fault| struck(&fault.rule, fault.matched, fault.struck)));
    assert!(same, "{what}: {:?} and {:?}", live.faults, again.faults);
    let damage = again.damage.as_ref();
    let retired = damage.map_or(0, |damage| damage.retired_blocks);
    assert_eq!(retired as f64, live.counters["retired_blocks_total"], "{what}: blocks that were retired");
}

fn the_clocks_agree(mode: &str, poll: PollMode) {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(11, |seed| seed.parse().expect("a number"));
    let what = format!("{mode}, {poll:?}, seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.rec");
    let (trace, figures) = serve(&drives(mode, seed), poll, &record, |socket, _| {
        thread::scope(|scope| {
            (0..CLIENTS).for_each(|number| drop(scope.spawn(move || client(socket, seed, number, false))))
        });
    });
    let live = &figures.exports[0];
    assert!(figures.exports[1].writes.latency.count() > 50, "{what}: the other drive was at work");
    assert!(live.counters["gc_blocks_total"] > 10.0, "{what}: collectors ran: {:?}", live.counters);
    assert!(live.reads.latency.count() > 100 && live.others.latency.count() > 20, "{what}");
    assert!(live.flushes.latency.count() > 0 && live.forced_writes.latency.count() > 0, "{what}");

    replays(record, &trace, &figures, &what);
}

/// The recording gives the same figures again, and the same trace to the byte.
fn replays(recording: PathBuf, trace: &str, figures: &Figures, what: &str) -> Vec<nandscape_lab_run::Report> {
    let reports = recorded::replay(recording.clone(), trace, what);
    is_ended_by_its_user(recording, &reports[0], what);
    figures.exports.iter().zip(&reports).for_each(|(live, again)| figures_agree(live, again, what));
    reports
}

/// A block layer and a page cache over each drive: the header of the recording has them, and so has a what-if, which may change them.
#[test]
fn with_layers_of_a_host_over_the_drives() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    let what = format!("layers, seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.rec");
    let layers: Chain = "block,depth=8,scheduler=ssd top=cache,memory=1MiB".parse().unwrap();
    let live = LiveDrives { layers, ..drives("capacitor", seed) };
    let (trace, figures) = serve(&live, PollMode::Adaptive, &record, |socket, _| {
        thread::scope(|scope| {
            (0..CLIENTS).for_each(|number| drop(scope.spawn(move || client(socket, seed, number, false))))
        });
    });
    assert!(figures.exports[0].counters["cache_loaded_pages_total"] > 0.0, "{what}: {:?}", figures.exports[0].counters);
    let reports = replays(record.clone(), &trace, &figures, &what);
    for report in &reports {
        let names: Vec<&str> = report.chain.iter().map(|one| &*one.layer).collect();
        assert_eq!(names, ["block", "top"], "{what}");
        for (way, layers) in &report.layers_us {
            let (sum, mean) = (layers.values().sum::<f64>(), report.latency_us[way].mean.unwrap());
            assert!((sum - mean).abs() < 1e-6, "{what}: {way}: {layers:?} of {mean}");
        }
    }
    let cache = |report: &nandscape_lab_run::Report| serde_json::to_value(&report.chain[1]).unwrap()["cache"].clone();
    assert_eq!(figures.exports[0].counters["cache_hits_total"], cache(&reports[0])["hits"].as_f64().unwrap(), "{what}");
    let set = vec!["top.memory=4MiB".to_owned(), "link.latency=1us".to_owned()];
    let what_if = Some(WhatIf { set, ..WhatIf::default() });
    let again = Replay { recording: record, check: true, what_if, ..Replay::default() }.run(&()).unwrap();
    assert_eq!(cache(&again.drives[0].report)["memory_bytes"], 4 << 20, "{what}");
}

/// The FTL of a host over open-channel drives, and a page cache over the FTL: the drives' flash, the FTL and the cache do the same
/// again, and so do they in a what-if that changes the FTL.
#[test]
fn with_the_ftl_of_a_host_over_open_channel_drives() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(5, |seed| seed.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    for layers in ["ftl,buffer.size=1MiB", "ftl,buffer.size=1MiB,moves=read-write top=cache,memory=1MiB"] {
        let what = format!("{layers}, seed {seed}");
        let record = folder.path().join("run.rec");
        let live = LiveDrives { layers: layers.parse().unwrap(), ..drives_of_chunks(seed) };
        let (trace, figures) = serve(&live, PollMode::Adaptive, &record, |socket, _| {
            thread::scope(|scope| {
                (0..2).for_each(|number| drop(scope.spawn(move || client(socket, seed, number, false))))
            });
        });
        assert!(figures.exports[0].counters["flash_link_written_bytes_total"] > 0.0, "{what}");
        let reports = recorded::replay(record.clone(), &trace, &what);
        for (report, live) in reports.iter().zip(&figures.exports) {
            assert_eq!(report.chain[0].layer, "host_ftl", "{what}");
            assert_eq!(report.latency_us["read"].max, Some(live.reads.latency.max().as_us()), "{what}");
            for (way, layers) in &report.layers_us {
                let (sum, mean) = (layers.values().sum::<f64>(), report.latency_us[way].mean.unwrap());
                assert!((sum - mean).abs() < 1e-6, "{what}: {way}: {layers:?} of {mean}");
            }
            assert!(report.layers_us["read"]["host_ftl"] > 0.0, "{what}: {:?}", report.layers_us);
            let ftl = &serde_json::to_value(&report.chain[0]).unwrap()["ftl"];
            assert_eq!(
                ftl["link_written_bytes"].as_f64(),
                Some(live.counters["flash_link_written_bytes_total"]),
                "{what}"
            );
        }
        let set = vec!["host_ftl.ftl.gc.victim=cost_benefit".to_owned()];
        let what_if = Some(WhatIf { set, ..WhatIf::default() });
        let again = Replay { recording: record.clone(), check: true, what_if, ..Replay::default() }.run(&()).unwrap();
        // Commands that were cancelled complete at other times.
        let (found, recorded) = (again.drives[0].report.requests, reports[0].requests);
        assert!(found.abs_diff(recorded) * 20 < recorded, "{what}: {found} of {recorded}");
        std::fs::remove_file(record).unwrap();
    }
}

/// A recording whose requests begin before its drives are open, as of no run: it is refused. A what-if, in which several drives
/// open one after the other, has the requests later.
#[test]
fn with_requests_from_before_the_drives_are_open() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("run.rec");
    let (plain, layers) = (drives("through", 3), "ftl,buffer.size=1MiB".parse().unwrap());
    let header = LiveDrives { layers, ..drives_of_chunks(3) };
    let mut timelines = plain.timelines();
    let sims: Vec<_> = timelines.iter().map(Executor::sim).collect();
    let built = plain.build(&mut timelines, &()).unwrap();
    let mut port = Port::apart(&sims, built.iter().map(|drive| drive.clone() as Rc<dyn Export>).collect());
    port.record(Recorder::create(&recording, &serde_json::to_string(&header).unwrap()).unwrap());
    let block = port.exports()[0].info().lba_bytes as usize;
    for export in 0..2 {
        let connection = port.open(export).unwrap();
        for slba in 0..4 {
            port.submit(connection, 0, SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1), HostMem::zeroed(block));
        }
    }
    for timeline in &mut timelines {
        assert!(timeline.advance(Time::from_ns(1_000_000_000), u32::MAX));
    }
    assert_eq!(port.outstanding(), 0);
    port.end_recording().unwrap();
    let replay = |what_if| Replay { recording: recording.clone(), what_if, ..Replay::default() }.run(&());
    let error = replay(None).err().expect("it is of other drives").to_string();
    assert!(error.contains("does not fit these drives: its time, 0ns, is before that of its drives"), "{error}");
    let again = replay(Some(WhatIf::default())).unwrap();
    assert_eq!(again.drives.iter().map(|drive| drive.report.requests).collect::<Vec<_>>(), [4, 4]);
}

/// A stripe over mirrors over drives, served as one, with rules for its clients: the replay has the report of a simulation, in which the times of all layers sum
/// to the latency, and so has a what-if.
#[test]
fn with_an_array_of_arrays() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(9, |seed| seed.parse().expect("a number"));
    let what = format!("arrays of arrays, seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.rec");
    let plain = drives("capacitor", seed);
    let drive = |number: u64| {
        let name = format!("drive-{number}");
        DriveSpec { name, number, ..plain.drives[0].clone() }
    };
    let layers: Chain = "raid1:2 mid=block,depth=8,scheduler=cfq raid0:2 cache,memory=1MiB".parse().unwrap();
    // Clients state neither class nor tenant; with other ones the scheduler would have another order.
    let assign = vec![Rules("queue=1,class=14,tenant=1 class=2,tenant=2".parse().unwrap())];
    let live = LiveDrives { layers, assign, drives: (0..4).map(drive).collect(), ..plain };
    let (trace, figures) = serve(&live, PollMode::Adaptive, &record, |socket, _| {
        thread::scope(|scope| {
            (0..2).for_each(|number| drop(scope.spawn(move || client_of(socket, seed, number, "small", false))))
        });
    });
    let replayed = recorded::replayed(record.clone(), &trace, &what);
    let group = replayed.group.expect("drives that were served as one");
    let host = &group.finished.host;
    let names: Vec<&str> = host.chain.iter().map(|one| &*one.layer).collect();
    assert_eq!(names, ["array-1/0", "array-1/1", "mid/0", "mid/1", "array-2", "cache"], "{what}");
    let served = &figures.exports[0];
    for (way, live) in [("read", &served.reads), ("write", &served.writes)] {
        assert_eq!(host.latency_us[way].count, live.latency.count(), "{what}: {way}s");
        assert_eq!(host.latency_us[way].max, Some(live.latency.max().as_us()), "{what}: the longest {way}");
    }
    for (way, layers) in &host.layers_us {
        let (sum, mean) = (layers.values().sum::<f64>(), host.latency_us[way].mean.unwrap());
        assert!((sum - mean).abs() < 1e-6, "{what}: {way}: {layers:?} of {mean}");
    }
    assert_eq!(group.finished.drives.len(), 4, "{what}");
    let written = |number: usize| group.finished.drives[number].report.bytes;
    assert!((0..4).all(|number| written(number) > 0), "{what}");
    let set = vec!["array-1.technique=tea2".to_owned(), "link.latency=1us".to_owned()];
    let what_if = Some(WhatIf { set, ..WhatIf::default() });
    let again = Replay { recording: record, check: true, what_if, ..Replay::default() }.run(&()).unwrap();
    let (found, recorded) = (again.group.expect("as recorded").finished.host.requests, host.requests);
    assert!(found.abs_diff(recorded) * 20 < recorded, "{what}: {found} of {recorded}");
}

/// Chains of four layers that are drawn, served and replayed: two, or twenty with `NANDSCAPE_TEST_WHOLE_GRID=1`. Every other lies over
/// open-channel drives.
#[test]
fn with_chains_that_are_drawn() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(3, |seed| seed.parse().expect("a number"));
    let mut rng = Seed::new(seed).child("served chains").rng();
    let folder = tempfile::tempdir().unwrap();
    for number in 0..if std::env::var_os("NANDSCAPE_TEST_WHOLE_GRID").is_some() { 20 } else { 2 } {
        let words = kinds::drawn(&mut rng, (number % 2 == 0).then_some("ftl,buffer.size=1MiB"));
        let takes = kinds::takes(&words) as u64;
        let what = format!("{}, seed {seed}", words.join(" "));
        let layers: Chain = words.join(" ").parse().unwrap();
        let plain = if number % 2 == 0 { drives_of_chunks(seed) } else { drives("through", seed) };
        // Layers over one drive lie over each of two.
        let count = takes.max(2);
        let names = |number: u64| match takes {
            1 => NAMES[number as usize].to_owned(),
            _ => format!("drive-{number}"),
        };
        let drive = |number: u64| DriveSpec { name: names(number), number, ..plain.drives[0].clone() };
        let live = LiveDrives { layers, drives: (0..count).map(drive).collect(), ..plain.clone() };
        let record = folder.path().join(format!("{number}.rec"));
        let (trace, _) = serve(&live, PollMode::Adaptive, &record, |socket, _| {
            client_of(socket, seed, number, NAMES[0], false);
        });
        let replayed = recorded::replayed(record, &trace, &what);
        let reported = replayed.drives.iter().map(|drive| (&drive.report.layers_us, &drive.report.latency_us));
        let group = replayed.group.iter().map(|group| &group.finished.host);
        for (layers_us, latency_us) in reported.chain(group.map(|host| (&host.layers_us, &host.latency_us))) {
            for (way, layers) in layers_us {
                let (sum, mean) = (layers.values().sum::<f64>(), latency_us[way].mean.unwrap());
                assert!((sum - mean).abs() < 1e-6, "{what}: {way}: {layers:?} of {mean}");
            }
        }
    }
}

/// Wants the replay to end when it is asked for the second time, if ever.
#[derive(Default)]
struct Impatient {
    asked: std::cell::Cell<u32>,
    share: std::cell::Cell<f64>,
}

impl Progress for Impatient {
    fn at(&self, _: Phase, share: f64) {
        assert!((self.share.get()..=1.0).contains(&share), "{share} after {}", self.share.get());
        self.share.set(share);
    }

    fn is_stopped(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.asked.get() > 1
    }
}

/// A replay that is ended has the figures until then, of an exact one and of a what-if.
fn is_ended_by_its_user(recording: PathBuf, whole: &nandscape_lab_run::Report, what: &str) {
    let seed_only = WhatIf { no_delay: true, ..WhatIf::default() };
    for what_if in [None, Some(seed_only)] {
        let user = Impatient::default();
        let replay = Replay { recording: recording.clone(), check: true, what_if, ..Replay::default() };
        let ended = replay.run(&user).unwrap();
        let report = &ended.drives[0].report;
        assert_eq!(report.interrupted, user.asked.get() > 1, "{what}");
        assert!(!report.interrupted || report.requests < whole.requests, "{what}");
    }
}

/// Clients that come and go, more of them than queue pairs, a flood of requests without data, and an end in
/// the middle of it: rejected input leaves no trace, and accepted input leaves the same.
#[test]
fn with_refusals_churn_floods_and_an_end_in_the_middle() {
    let seed = 3;
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.rec");
    let mut refused = 0;
    // A client that disconnects cancels its commands; these stay to the end.
    let mut present: Vec<UnixStream> = Vec::new();
    let (trace, figures) = serve(&drives("volatile", seed), PollMode::Adaptive, &record, |socket, _| {
        let mut held: Vec<UnixStream> = Vec::new();
        while let Some(stream) = try_connect(socket, "other") {
            held.push(stream);
        }
        refused = 1 + (0..5).filter(|_| try_connect(socket, "other").is_none()).count();
        for _ in 0..100 {
            drop(connect(socket, "small"));
        }
        let mut flood = connect(socket, "small");
        let requests: Vec<u8> = (0..200)
            .flat_map(|cookie| {
                let kind = if cookie % 2 == 0 { command::TRIM } else { command::WRITE_ZEROES };
                request(kind, 0, cookie, 0, CAPACITY as u32)
            })
            .collect();
        flood.write_all(&requests).unwrap();
        for (cookie, stream) in held.iter_mut().take(8).enumerate() {
            let writes: Vec<u8> =
                (0..40).flat_map(|at| request(command::WRITE, 0, cookie as u64, at << 17, 1 << 16)).collect();
            stream.write_all(&writes).unwrap();
        }
        // It hangs up with work in flight, on the drive that is flooded.
        client(socket, seed, 1, false);
        present.append(&mut held);
        present.push(flood);
    });
    assert_eq!(refused, 6);
    assert!(figures.exports[0].others.latency.count() > 0 && figures.exports[1].writes.latency.count() > 0);
    assert_eq!((figures.outstanding, figures.exports[1].writes.errors), (0, 0), "the end waited for the drives");
    replays(record, &trace, &figures, "a crowd");
}

/// Faults of all kinds are injected into a working drive, and removed: orders are arrivals, at the same times in
/// the replay. A rejected order changes nothing, live or replayed.
#[test]
fn with_faults_on_order() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(5, |seed| seed.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.rec");
    let orders = [
        "uncorrectable probability=3%",
        "fail program every=150 count=2",
        "slow by=300us every=17",
        "stuck read timeout=2ms every=60 count=3",
        "power_cut nth=40 off=1ms",
        "fail read",
        "fail channel=2",
        "corrupt program every=9",
        "power_cut every=50 count=2",
        "uncorrectable probability=20%",
    ];
    let (trace, figures) = serve(&drives("volatile", seed), PollMode::Adaptive, &record, |socket, handle| {
        thread::scope(|scope| {
            (0..CLIENTS).for_each(|number| drop(scope.spawn(move || client(socket, seed, number, true))));
            // One after another, as the work proceeds.
            let done = || handle.figures().unwrap().exports[0].writes.latency.count();
            for (number, rule) in orders.iter().enumerate() {
                while done() < 40 * number as u64 {}
                let told = handle.order(0, Order::AddFault((*rule).to_owned()));
                assert_eq!(told.is_err(), ["fail read", "fail channel=2"].contains(rule), "{rule}: {told:?}");
                if number == 6 {
                    handle.order(0, Order::ClearFaults).unwrap();
                }
            }
        });
        assert!(handle.order(7, Order::ClearFaults).is_err(), "there are two drives");
        // However fast the others were, this client meets the last rules.
        client(socket, seed, CLIENTS, true);
    });
    let (live, other) = (&figures.exports[0], &figures.exports[1]);
    let what = format!("seed {seed}, faults: {:?}, {:?}", live.faults, live.counters);
    assert!(live.reads.errors > 0 && live.counters["power_cuts_total"] >= 1.0, "{what}");
    assert_eq!((live.faults.len(), other.faults.len()), (3, 0), "{what}");
    replays(record, &trace, &figures, "faults on order");
}

#[test]
fn with_a_buffer_that_survives_power_cuts() {
    the_clocks_agree("capacitor", PollMode::Adaptive);
}

#[test]
fn with_a_volatile_buffer() {
    the_clocks_agree("volatile", PollMode::Adaptive);
}

#[test]
fn without_a_buffer() {
    the_clocks_agree("through", PollMode::Adaptive);
}

#[test]
fn with_a_loop_that_never_rests() {
    the_clocks_agree("capacitor", PollMode::Busy);
}

/// The flush of one connection covers writes completed on another: a volatile buffer is empty after it.
#[test]
fn a_flush_covers_what_other_connections_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.rec");
    let (_, figures) = serve(&drives("volatile", 1), PollMode::Adaptive, &record, |socket, _| {
        let (mut writer, mut flusher) = (connect(socket, "small"), connect(socket, "small"));
        let mut reply = [0; 16];
        writer.write_all(&request(command::WRITE, 0, 1, 0, 4_096)).unwrap();
        writer.read_exact(&mut reply).unwrap();
        flusher.write_all(&request(command::FLUSH, 0, 2, 0, 0)).unwrap();
        flusher.read_exact(&mut reply).unwrap();
    });
    let export = &figures.exports[0];
    let program = 500e3;
    // The first flush waited for a program; the one at the end of the run, with nothing left to flush, did not.
    assert_eq!(export.others.latency.count(), 2);
    assert!(export.others.latency.max().ns() as f64 >= program, "the flush waited for the flash");
    assert!(export.writes.latency.max().ns() as f64 <= program / 10.0, "the write did not");
    assert!(export.counters["flash_programmed_bytes_total"] >= 4_096.0, "{:?}", export.counters);
}
