//! `serve --array`: arrays of drives of the server's own, and of drives in files.

use nandscape_sim::Seed;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::hang_ups::{ask, until};
use crate::patience;
use crate::server::{SMALL, Server, nandscape, number, refuse, sim};
use crate::store::{Client, Model, count};
use crate::tools::{fio, start_fio};

/// Four small drives as one. Clients call it as they call the small drive of other tests.
const ARRAY: [&str; 10] = [
    "--array",
    "small=raid5:4",
    "--drive",
    "member=default",
    "--set",
    "capacity=64MiB",
    "--set",
    "geometry.channels=2",
    "--set",
    "array.chunk=16KiB",
];

fn array(more: &[&str]) -> Server {
    let own = ["--nbd", "unix:n.sock", "--check", "--json"];
    Server::start(tempfile::tempdir().unwrap(), &[&ARRAY[..], &own, more].concat())
}

pub(crate) const VERIFY: [&str; 6] =
    ["--rw=randrw", "--bsrange=512-64k", "--iodepth=16", "--io_size=24m", "--size=48m", "--verify=crc32c"];

#[test]
fn fio_verifies_an_array_and_the_figures_tell_of_each_member() {
    let server = array(&["--nvme-tcp", "127.0.0.1:0"]);
    fio(&server, &VERIFY);
    fio(&server, &["--rw=randtrim", "--bs=64k", "--offset=64m", "--size=8m"]);
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "drive small is an array: raid5:4 of member-0, member-1, member-2, member-3, technique base";
    assert!(ended.err.contains(told), "{}", ended.err);
    let figures: Value = serde_json::from_str(&ended.out).unwrap();
    let of = |place: &str| number(&figures, &format!("/drives/0/{place}"));
    assert!(of("counters/array_stripe_writes_total") > 500.0, "{figures:#}");
    assert!(of("counters/array_writes_sent_total") > of("counters/array_stripe_writes_total"), "{figures:#}");
    for member in 0..4 {
        let of = |name: &str| of(&format!("parts/member-{member}/{name}"));
        let (p50, p99, most) =
            (of("array_member_read_p50_us"), of("array_member_read_p99_us"), of("array_member_read_max_us"));
        assert!(0.0 < p50 && p50 <= p99 && p99 <= most, "{figures:#}");
    }
    assert_eq!((of("counters/array_members_missing"), of("counters/array_lost"), of("writes/errors")), (0.0, 0.0, 0.0));
}

/// Caches over block layers below an array that is a layer itself, and one above it; over files the array opens again.
#[test]
fn layers_lie_below_an_array() {
    let folder = tempfile::tempdir().unwrap();
    let drives = ["--drive", "member=default", "--set", "capacity=64MiB", "--set", "geometry.channels=2"];
    let below = ["--over", "block", "--over", "cache,memory=1MiB"];
    let above = ["--over", "small=raid1:2,chunk=16KiB", "--over", "top=cache,memory=2MiB"];
    let own = ["--store", "file:m.nand", "--set", "cache.hit=1us", "--nbd", "unix:n.sock", "--check", "--json"];
    let args = [&drives[..], &below, &above, &own].concat();
    let mut server = Server::start(folder, &args);
    let verify = ["--rw=randrw", "--bsrange=512-64k", "--iodepth=16", "--io_size=8m", "--size=16m", "--verify=crc32c"];
    fio(&server, &verify);
    server.signal(Signal::TERM);
    let (ended, folder) = (server.wait(), server.keep_folder());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "chunks of 16384 bytes, over each drive \"block\", then \"cache,memory=1MiB,hit=1us\"";
    assert!(ended.err.contains(told), "{}", ended.err);
    let figures: Value = serde_json::from_str(&ended.out).unwrap();
    let of = |place: &str| number(&figures, &format!("/drives/0/{place}"));
    for member in 0..2 {
        let of = |name: &str| of(&format!("parts/member-{member}/{name}"));
        assert!(of("block_reads_total") > 0.0 && of("cache_misses_total") > 0.0, "{figures:#}");
    }
    assert_eq!((of("counters/array_members_missing"), of("writes/errors")), (0.0, 0.0));
    let again = Server::start(folder, &args);
    fio(&again, &["--rw=read", "--bs=64k", "--size=8m"]);
    assert_eq!(again.end().code, Some(0));
    let folder = tempfile::tempdir().unwrap();
    for (words, problem) in
        [(&["--array-create"][..], "--array-create: there is no array"), (&["--over", "raid0:2,chunks=4KiB"], "chunks")]
    {
        let ended = refuse(folder.path(), &[&drives[..], words, &["--nbd", "unix:n.sock"]].concat());
        assert!(ended.code == Some(2) && ended.err.contains(problem), "{words:?}: {ended:?}");
    }
}

/// A stripe over two mirrors, as a simulation has it: the same layers in the times of commands, and a recording that replays to the
/// byte. Members take orders by their names.
#[test]
fn an_array_of_arrays_is_served_recorded_and_replayed_to_the_byte() {
    let drives = ["--set", "capacity=64MiB", "--set", "geometry.channels=2", "--precondition", "full"];
    let over = ["--over", "raid1:2", "--over", "small=raid0:2,chunk=16KiB", "--over", "cache,memory=1MiB"];
    let own = ["--nbd", "unix:n.sock", "--check", "--json", "--record", "run.rec", "--chrome-trace", "live.json"];
    let named = ["--drive", "member=default", "--control", "control", "--out", "out"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&named[..], &drives, &over, &own].concat());
    let verify = ["--rw=randrw", "--bsrange=512-64k", "--iodepth=16", "--io_size=8m", "--size=16m", "--verify=crc32c"];
    fio(&server, &verify);
    let ordered = nandscape(server.folder.path(), &["ctl", "array", "fail", "control", "member-3"]);
    assert_eq!(ordered.code, Some(0), "{ordered:?}");
    let ordered = nandscape(server.folder.path(), &["ctl", "array", "fail", "control", "member-7"]);
    assert!(
        ordered.code != Some(0) && ordered.err.contains("its drives are member-0, member-1, member-2"),
        "{ordered:?}"
    );
    let gc = |words: &[&str]| nandscape(server.folder.path(), &[&["ctl", "gc"], words].concat());
    let ordered = gc(&["watermarks", "control", "--low", "0", "--high", "9", "--member", "member-1"]);
    assert!(ordered.code == Some(0) && ordered.out.contains("high watermark  9"), "{ordered:?}");
    let all: Value = serde_json::from_str(&gc(&["status", "control", "--json"]).out).unwrap();
    let high = |member: &str| all[member]["high_watermark"].as_u64();
    assert_eq!((high("member-1"), high("member-0").is_some_and(|high| high != 9)), (Some(9), true), "{all:#}");
    let ordered = gc(&["run", "control", "1ms", "--member", "member-9"]);
    let members = "no drive or FTL \"member-9\" that takes orders for its garbage collection; --member is one of member-0, member-1";
    assert!(ordered.code == Some(2) && ordered.err.contains(members), "{ordered:?}");
    let set = ["ctl", "set", "control", "member-9.gc.run=1ms"];
    let ordered = nandscape(server.folder.path(), &set);
    assert!(
        ordered.code == Some(2) && ordered.err.contains("no drive \"member-9\"; its drives are member-0, member-1"),
        "{ordered:?}"
    );
    fio(&server, &["--rw=randrw", "--bs=4k", "--io_size=1m", "--size=16m"]);
    let (ended, folder) = server.end_keeping();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = "drive small is \"raid1:2\", then \"small=raid0:2,chunk=16KiB\", then \"cache,memory=1MiB\" over 4 drives of default";
    assert!(ended.err.contains(line), "{}", ended.err);
    let line = "drive small: array/1: member 1, member-3, has failed: the array continues without it";
    assert!(ended.err.contains(line), "{}", ended.err);
    let page = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert!(page("report.html").contains("member-0") && page("member-0/report.html").contains("clock on the wall"));
    let whole: Value = serde_json::from_str(&page("report.json")).unwrap();
    assert!(whole["details"]["drives"].is_object() && whole["chain"].as_array().is_some_and(|chain| chain.len() == 4));
    let figures: Value = serde_json::from_str(&ended.out).unwrap();
    let part = |of: &str, name: &str| figures["drives"][0]["parts"][of][name].as_f64().unwrap();
    assert!(part("small", "array_writes_sent_total") > 100.0, "{figures:#}");
    for member in ["member-0", "member-2", "array/0", "array/1"] {
        assert!(part(member, "array_member_reads_total") > 0.0, "{figures:#}");
    }
    let [p50, most] = ["p50", "max"].map(|of| part("member-0", &format!("array_member_read_{of}_us")));
    assert!(0.0 < p50 && p50 <= most, "{figures:#}");
    assert_eq!(figures["drives"][0]["parts"]["member-3"].get("array_member_reads_total"), None);
    assert_eq!((part("array/0", "array_members_missing"), part("array/1", "array_members_missing")), (0.0, 1.0));
    let again = ["--replay", "run.rec", "--chrome-trace", "again.json", "--json", "--check"];
    let replayed = sim(folder.path(), &again);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let trace = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(trace("live.json") == trace("again.json"), "the traces differ");
    let replayed: Value = serde_json::from_str(&replayed.out).unwrap();
    let simulated = ["--drive", "default", "--rw", "randrw", "--io-count", "300", "--json"];
    let simulated = sim(folder.path(), &[&simulated[..], &drives, &over].concat());
    let simulated: Value = serde_json::from_str(&simulated.out).unwrap();
    let layers = |of: &Value| of["layers_us"]["read"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(layers(&replayed), layers(&simulated));
    let chain = |of: &Value| of["chain"].as_array().unwrap().iter().map(|one| one["layer"].clone()).collect::<Vec<_>>();
    assert_eq!(chain(&replayed), chain(&simulated));
    assert_eq!((replayed["drives"].as_array().unwrap().len(), &replayed["replay"]["kind"]), (4, &json!("exact")));
    let text = sim(folder.path(), &["--replay", "run.rec", "--out", "replayed"]);
    assert!(folder.path().join("replayed/member-3/report.html").is_file(), "{text:?}");
    assert!(text.code == Some(0) && text.out.contains("raid0:2") && text.out.contains("member-3"), "{text:?}");
}

/// An array of one drive is an array: its drive is a member, in figures, orders and reports.
#[test]
fn an_array_of_one_drive_is_recorded_as_an_array() {
    let drive = ["--drive", "member=default", "--set", "capacity=64MiB", "--over", "small=raid0:1"];
    let own = ["--nbd", "unix:n.sock", "--control", "control", "--check", "--json", "--record", "run.rec"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &own].concat());
    fio(&server, &["--rw=randrw", "--bs=4k", "--iodepth=8", "--io_size=1m", "--size=8m"]);
    let slow = ["ctl", "fault", "add", "control", "member-0=slow by=40us"];
    let ordered = nandscape(server.folder.path(), &slow);
    assert_eq!(ordered.code, Some(0), "{ordered:?}");
    let (ended, folder) = server.end_keeping();
    let line = "drive small is \"small=raid0:1\" over one drive of default";
    assert!(ended.code == Some(0) && ended.err.contains(line), "{ended:?}");
    let figures: Value = serde_json::from_str(&ended.out).unwrap();
    let part = |place: &str| number(&figures, &format!("/drives/0/parts/{place}"));
    assert!(part("member-0/array_member_reads_total") > 0.0, "{figures:#}");
    let (member, array) = (part("member-0/array_member_writes_total"), part("small/array_writes_sent_total"));
    assert!(member >= array && array > 0.0, "{figures:#}");
    let replayed = sim(folder.path(), &["--replay", "run.rec", "--json", "--check"]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let replayed: Value = serde_json::from_str(&replayed.out).unwrap();
    assert_eq!(replayed["drives"].as_array().map(Vec::len), Some(1), "{replayed:#}");
}

/// A page cache over a block layer over an array: data is right, the figures are those of each layer, and the members take orders.
#[test]
fn layers_lie_over_an_array() {
    let layers = ["--over", "block", "--over", "hot=cache,memory=8MiB", "--set", "hot.hit=1us"];
    let server = array(&layers);
    fio(&server, &VERIFY);
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = "over drive small lies \"block\", then \"hot=cache,memory=8MiB,hit=1us\"";
    assert!(ended.err.contains(line), "{}", ended.err);
    let figures: Value = serde_json::from_str(&ended.out).unwrap();
    let of = |place: &str| number(&figures, &format!("/drives/0/{place}"));
    assert!(of("counters/array_stripe_writes_total") > 500.0 && of("counters/block_reads_total") > 0.0, "{figures:#}");
    let reads = of("parts/hot/cache_hits_total") + of("parts/hot/cache_misses_total");
    assert!(reads > 100.0 && of("parts/member-3/array_member_writes_total") > 0.0, "{figures:#}");
    assert_eq!((of("writes/errors"), of("reads/errors")), (0.0, 0.0));
}

#[test]
fn the_summary_of_an_array_tells_busy_stripes_windows_and_the_tail_of_each_drive() {
    let teafa = [
        "--set",
        "array.technique=teafa",
        "--set",
        "array.window=20ms",
        "--set",
        "controller.predictable_latency=true",
    ];
    let args = [&ARRAY[..], &["--nbd", "unix:n.sock", "--precondition", "steady", "--store", "none"], &teafa].concat();
    let server = Server::start(tempfile::tempdir().unwrap(), &args);
    fio(&server, &["--rw=randrw", "--bs=16k", "--iodepth=8", "--io_size=32m", "--size=128m"]);
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().collect();
    let line =
        |start: &str| lines.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{}", ended.out));
    assert!(line("small stripe reads by busy sub-I/Os: none ").contains("three or more "), "{}", ended.out);
    assert_eq!(*line("small windows of"), "small windows of 20.0 ms", "{}", ended.out);
    for number in 0..4 {
        let of = line(&format!("small drive member-{number}: "));
        assert!(of.contains(" busy; latency p50 "), "{of}");
    }
}

/// An array that is recorded is a layer over its drives, and has its figures by its name.
#[test]
fn the_summary_of_a_recorded_array_has_its_figures_and_those_of_its_members() {
    let own = ["--nbd", "unix:n.sock", "--store", "none", "--record", "run.rec"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&ARRAY[..], &own].concat());
    fio(&server, &["--rw=randrw", "--bs=16k", "--iodepth=8", "--io_size=4m", "--size=128m"]);
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let has = |start: &str, rest: &str| ended.out.lines().any(|line| line.starts_with(start) && line.contains(rest));
    assert!(has("small array stripe reads by busy sub-I/Os: none ", "three or more "), "{}", ended.out);
    for number in 0..4 {
        assert!(has(&format!("small drive member-{number}: "), " busy; latency p50 "), "{}", ended.out);
    }
}

#[test]
fn an_array_in_files_outlasts_kill_9_and_goes_on() {
    let stores = ["--store", "file:a.nand", "--set", "array.technique=tea2"];
    let first = array(&stores);
    fio(&first, &VERIFY);
    // What is not flushed is in the drives, or in the journal.
    fio(&first, &["--rw=randwrite", "--bs=16k", "--offset=64m", "--size=64m", "--io_size=8m"]);
    let mut first = first;
    first.signal(Signal::KILL);
    first.wait();
    let folder = first.keep_folder();
    for number in 0..4 {
        assert!(folder.path().join(format!("a.nand.{number}")).exists());
    }
    let args = [&ARRAY[..], &["--nbd", "unix:n.sock", "--check", "--json"], &stores].concat();
    let again = Server::start(folder, &args);
    let only = [&VERIFY[..], &["--verify_only=1"]].concat();
    fio(&again, &only);
    let ended = again.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// The writes of fio next to the tested client, until fio is ended.
pub(crate) const LOAD: [&str; 7] = [
    "--rw=randwrite",
    "--bsrange=4k-64k",
    "--iodepth=8",
    "--offset=40m",
    "--size=32m",
    "--time_based",
    "--runtime=300",
];

fn acknowledged_outlasts_kills(set: &str) {
    let (mut rng, mut next, mut model) = (Seed::new(1).child(set).rng(), 0, Model::new());
    let fixed = ["--nbd", "unix:n.sock", "--check", "--json", "--store", "file:a.nand", "--no-delay"];
    let args = [&ARRAY[..], &fixed, &["--set", "buffer.mode=capacitor", "--set", set]].concat();
    let mut folder = tempfile::tempdir().unwrap();
    for _ in 0..count(2) {
        let mut server = Server::start(folder, &args);
        let mut client = Client::connect(&mut server);
        model.verify(&mut client);
        let mut load = start_fio(&server, &LOAD);
        let after = 200 + rng.below(1_500);
        model.write_until_killed(&server, &mut client, &mut rng, after, (&mut next, true));
        server.wait();
        load.kill().unwrap();
        patience::wait(&mut load, "fio");
        std::fs::remove_file(server.path("n.sock")).unwrap();
        folder = server.keep_folder();
    }
    let mut server = Server::start(folder, &args);
    model.verify(&mut Client::connect(&mut server));
    fio(&server, &VERIFY);
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let figures: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(number(&figures, "/drives/0/counters/array_members_missing"), 0.0, "{figures:#}");
}

#[test]
fn what_an_array_acknowledged_under_load_outlasts_kills() {
    acknowledged_outlasts_kills("array.journal=intent");
    acknowledged_outlasts_kills("array.journal=data");
}

#[test]
fn a_member_in_memory_beside_members_in_files_is_told_of_and_rebuilt_after_a_restart() {
    let small = ["--set", "capacity=64MiB", "--set", "geometry.channels=2", "--set", "array.journal=data"];
    let three = ["--array", "small=raid5:3", "--drive", "a=default", "--drive", "b=default", "--drive", "c=default"];
    let stores = ["--store", "a=file:a.nand", "--store", "b=file:b.nand"];
    let args = [&three[..], &small, &stores, &["--nbd", "unix:n.sock", "--check", "--json"]].concat();
    let server = Server::start(tempfile::tempdir().unwrap(), &args);
    fio(&server, &VERIFY);
    let mut server = server;
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "members in memory (c) are empty after a restart: the array is degraded then";
    assert!(ended.err.contains(told) && ended.err.contains("--store c=file:PATH"), "{}", ended.err);
    let again = Server::start(server.keep_folder(), &args);
    fio(&again, &[&VERIFY[..], &["--verify_only=1"]].concat());
    let ended = again.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("it is degraded, member 2 is missing"), "{}", ended.err);
    // If that would lose the array, or pass unnoticed, it is rejected.
    let folder = tempfile::tempdir().unwrap();
    for (more, words) in [
        (
            &["--store", "a=file:a.nand"][..],
            "members in memory (b, c) are empty after a restart, and it tolerates the loss of 1",
        ),
        (
            &["--store", "a=file:a.nand", "--store", "b=file:b.nand", "--set", "array.journal=none"],
            "with array.journal=none the array would not notice",
        ),
    ] {
        let ended = refuse(folder.path(), &[&three[..], &small, &["--nbd", "unix:n.sock"], more].concat());
        assert!(ended.code == Some(2) && ended.err.contains(words), "{more:?}: {ended:?}");
    }
}

#[test]
fn arrays_that_cannot_be_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let of = |more: &[&str]| {
        let ended = refuse(folder.path(), &[&["--nbd", "unix:n.sock"], more].concat());
        assert_eq!(ended.code, Some(2), "{more:?}: {ended:?}");
        ended.err
    };
    let small = ["--drive", "default", "--set", "capacity=64MiB"];
    for (args, words) in [
        (&["--array", "raid5:2"][..], "raid5"),
        (&["--array", "raid1:2", "--set", "array.technique=rails"], "is for nandscape sim"),
        (&["--array", "raid5:4", "--set", "array.techniqe=base"], "array.techniqe"),
        (&["--array", "raid5:4", "--record", "r", "--store", "file:x"], "drives in files cannot be recorded"),
        (&["--array", "raid5:4", "--record", "r", "--set", "array.journal=data"], "has no journal"),
        (&["--array", "raid5:4", "--record", "r", "--array-create"], "--array-create: the arrays are new"),
        (&["--over", "raid1:2", "--over", "raid0:2", "--save-state", "s"], "nandscape sim --save-state"),
        (
            &["--over", "raid1:2", "--over", "raid0:2", "--drive", "b=default"],
            "the layers take 4 drives, and there are 2",
        ),
        (&["--array", "raid5:4", "--save-state", "s"], "--save-state: a state is of one drive"),
        (&["--array", "raid5:4", "--reactors", "2"], "give 1 to 1"),
        (&["--array", "raid5:4", "--store", "none", "--set", "array.journal=data"], "keep no journal"),
        (&["--array", "raid5:4", "--set", "array.chunk=3KiB"], "array.chunk"),
        (&["--array", "raid5:4", "--drive", "b=default"], "it needs 4 drives, and there are 2"),
        (&["--array", "raid5:4", "--array-degraded", "--set", "array.journal=none"], "needs records"),
        (&["--array-create"], "--array"),
    ] {
        let told = of(&[&small[..], args].concat());
        assert!(told.contains(words), "{args:?}: {told}");
    }
    let zones = of(&["--array", "raid5:4", "--drive", "wd-zn540", "--set", "capacity=1GiB"]);
    assert!(zones.contains("members are written anywhere"), "{zones}");
}

#[test]
fn a_new_array_refuses_a_state_with_data() {
    let mut server = Server::small(&["--save-state", "used.state"]);
    fio(&server, &["--rw=write", "--bs=64k", "--size=1m"]);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let used = ["--array", "raid1:2", "--from-state", "default-0=used.state", "--from-state", "default-1=used.state"];
    let drive = &SMALL[2..SMALL.len() - 2];
    let told = refuse(server.folder.path(), &[&["--nbd", "unix:n.sock", "--drive", "default"], drive, &used].concat());
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(told.err.contains("has data, which the array's parity would not fit"), "{}", told.err);
}

#[test]
fn records_of_an_array_are_not_overlooked() {
    let stores = ["--store", "file:a.nand"];
    let mut first = array(&stores);
    fio(&first, &["--rw=randwrite", "--bs=16k", "--io_size=2m", "--size=48m"]);
    first.signal(Signal::TERM);
    first.wait();
    let folder = first.keep_folder();
    let none = ["--set", "array.journal=none", "--nbd", "unix:n.sock"];
    for more in [&[][..], &["--set", "array.chunk=64KiB"]] {
        let args = [&ARRAY[..], &stores, &none, more].concat();
        let ended = refuse(folder.path(), &args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.err.contains("the drives have records of an array") && ended.err.contains("--array-create"),
            "{ended:?}"
        );
    }
    let again = Server::start(folder, &[&ARRAY[..], &["--nbd", "unix:n.sock", "--json"], &stores].concat());
    assert_eq!(again.end().code, Some(0));
}

#[test]
fn a_scrub_is_begun_at_the_control_socket_and_orders_that_do_nothing_are_refused() {
    let server = array(&["--control", "control", "--set", "array.rebuild_rate=0"]);
    fio(&server, &VERIFY);
    let set =
        |key: &str, value: &str| ask(&server, &json!({ "command": "set", "key": key, "value": value })).to_string();
    assert!(!set("array.scrub", "start").contains("error"));
    let of = |figures: &Value, name: &str| number(figures, &format!("/drives/0/counters/array_{name}"));
    until(&server, "the scrub has ended", |figures| of(figures, "scrubbing") == 0.0);
    let told = set("array.spare", "member-1");
    assert!(told.contains("is a member at work"), "{told}");
    assert!(!set("array.fail", "member-1").contains("error"));
    let told = set("array.fail", "member-2");
    assert!(told.contains("would lose data without it, as member 1 is missing"), "{told}");
    assert!(!set("array.spare", "member-1").contains("error"));
    until(&server, "the member is rebuilt", |figures| of(figures, "members_missing") == 0.0);
    let told = set("array.chunk", "4KiB");
    assert!(told.contains("array.scrub=start are valid"), "{told}");
    let figures = server.figures();
    assert!(of(&figures, "scrub_stripes") > 1_000.0, "{figures:#}");
    assert_eq!((of(&figures, "scrub_mismatches"), of(&figures, "chunks_condemned_total")), (0.0, 0.0));
}

#[test]
fn failures_and_rebuilds_are_told_as_they_happen() {
    let server = array(&["--control", "control", "--set", "array.rebuild_rate=0"]);
    fio(&server, &VERIFY);
    let set =
        |key: &str, value: &str| ask(&server, &json!({ "command": "set", "key": key, "value": value })).to_string();
    assert!(!set("array.fail", "member-1").contains("error"));
    assert!(!set("array.spare", "member-1").contains("error"));
    let of = |figures: &Value, name: &str| number(figures, &format!("/drives/0/counters/array_{name}"));
    until(&server, "the member is rebuilt", |figures| of(figures, "members_missing") == 0.0);
    let ended = server.end();
    let places: Vec<usize> =
        ["member 1, member-1, has failed", "member 1 is being rebuilt on member-1", "member 1 is rebuilt on member-1"]
            .iter()
            .map(|words| ended.err.find(words).unwrap_or_else(|| panic!("{words}: {}", ended.err)))
            .collect();
    assert!(places.is_sorted(), "{}", ended.err);
}

#[test]
fn a_used_drive_is_not_taken_for_a_spare_and_a_start_that_fails_leaves_no_files() {
    let store = |server: &str, file: &str| ["--store".to_owned(), format!("{server}=file:{file}")];
    let three = ["--array", "small=raid5:3", "--drive", "a=default", "--drive", "b=default", "--drive", "c=default"];
    let small = ["--set", "capacity=64MiB", "--set", "geometry.channels=2", "--nbd", "unix:n.sock"];
    let with = |c: &str, more: &[&str]| -> Vec<String> {
        let files = [store("a", "a.nand"), store("b", "b.nand"), store("c", c)].concat();
        [&three[..], &small, more].concat().into_iter().map(str::to_owned).chain(files).collect()
    };
    let words = |args: &[String]| -> Vec<&'static str> { args.iter().map(|word| &*word.clone().leak()).collect() };
    // An array that cannot be: its files are gone with it.
    let folder = tempfile::tempdir().unwrap();
    let refused = refuse(folder.path(), &words(&with("c.nand", &["--set", "array.chunk=32MiB"])));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".nand")), "{left:?}");
    let mut server = Server::start(folder, &words(&with("c.nand", &[])));
    fio(&server, &VERIFY);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code, Some(0));
    let folder = server.keep_folder();
    let alone = [
        "--drive",
        "small=default",
        "--set",
        "capacity=64MiB",
        "--set",
        "geometry.channels=2",
        "--nbd",
        "unix:n.sock",
        "--store",
        "file:used.nand",
    ];
    let mut other = Server::start(folder, &alone);
    fio(&other, &["--rw=write", "--bs=64k", "--size=1m"]);
    other.signal(Signal::TERM);
    assert_eq!(other.wait().code, Some(0));
    let folder = other.keep_folder();
    let refused = refuse(folder.path(), &words(&with("used.nand", &[])));
    assert!(refused.code == Some(2) && refused.err.contains("drive c holds data of no array, or may"), "{refused:?}");
    let again = Server::start(folder, &words(&with("c.nand", &[])));
    fio(&again, &[&VERIFY[..], &["--verify_only=1"]].concat());
    assert_eq!(again.end().code, Some(0));
}

#[test]
fn an_array_of_drives_of_several_sizes_is_opened_again_and_without_one_that_is_dead() {
    let drives = ["a=./small.toml", "b=./large.toml", "c=./small.toml"].iter().flat_map(|drive| ["--drive", drive]);
    let stores = ["a=file:a.nand", "b=file:b.nand", "c=file:c.nand"].iter().flat_map(|store| ["--store", store]);
    let rest = ["--array", "small=raid5:3", "--nbd", "unix:n.sock", "--set", "geometry.channels=2", "--json"];
    let args: Vec<&str> = rest.into_iter().chain(drives).chain(stores).collect();
    let folder = tempfile::tempdir().unwrap();
    for (file, size) in [("small.toml", "64MiB"), ("large.toml", "96MiB")] {
        std::fs::write(folder.path().join(file), format!("version = 1\nbase = \"default\"\ncapacity = \"{size}\"\n"))
            .unwrap();
    }
    let mut server = Server::start(folder, &args);
    fio(&server, &VERIFY);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code, Some(0));
    let mut again = Server::start(server.keep_folder(), &args);
    fio(&again, &[&VERIFY[..], &["--verify_only=1"]].concat());
    again.signal(Signal::TERM);
    assert_eq!(again.wait().code, Some(0));
    let dead = Server::start(again.keep_folder(), &[&args[..], &["--fault", "b=dead"]].concat());
    fio(&dead, &[&VERIFY[..], &["--verify_only=1"]].concat());
    let ended = dead.end();
    let line = "note: drive small: b is left out, and is no spare: its records cannot be read (";
    assert!(ended.code == Some(0) && ended.err.contains(line), "{ended:?}");
}

/// Serves the array of four drives in files over NBD.
fn in_files(folder: tempfile::TempDir, more: &[&str]) -> Server {
    let own = ["--store", "file:a.nand", "--nbd", "unix:n.sock", "--control", "control", "--json"];
    Server::start(folder, &[&ARRAY[..], &own, more].concat())
}

/// Ends a server in order, and has its folder.
fn ended(mut server: Server) -> tempfile::TempDir {
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code, Some(0));
    server.keep_folder()
}

pub(crate) const VERIFY_ONLY: [&str; 7] = [
    "--rw=randrw",
    "--bsrange=512-64k",
    "--iodepth=16",
    "--io_size=24m",
    "--size=48m",
    "--verify=crc32c",
    "--verify_only=1",
];

#[test]
fn a_member_put_back_from_an_older_copy_is_rebuilt_and_its_old_data_is_not_read() {
    let folder = ended(in_files(tempfile::tempdir().unwrap(), &[]));
    let (file, copy) = (folder.path().join("a.nand.1"), folder.path().join("old"));
    std::fs::copy(&file, &copy).unwrap();
    let server = in_files(folder, &[]);
    fio(&server, &VERIFY);
    let folder = ended(server);
    std::fs::copy(&copy, &file).unwrap();
    let server = in_files(folder, &["--set", "array.rebuild_rate=0"]);
    fio(&server, &VERIFY_ONLY);
    until(&server, "the member is rebuilt", |figures| {
        number(figures, "/drives/0/counters/array_members_missing") == 0.0
    });
    let ended = server.end();
    assert!(ended.code == Some(0) && ended.err.contains("member-1 is as it was at an earlier time"), "{ended:?}");
}

#[test]
fn a_member_in_a_file_is_served_alone_only_if_that_is_asked_and_its_array_notices() {
    let mut server = in_files(tempfile::tempdir().unwrap(), &[]);
    let (mut rng, mut next, mut model) = (Seed::new(1).rng(), 0, Model::new());
    model.write_telling(&mut Client::connect(&mut server), &mut rng, 300, (&mut next, true), |_| ());
    assert_eq!(next, 300);
    let folder = ended(server);
    let alone =
        [&["--drive", "small=default", "--nbd", "unix:n.sock", "--store", "small=file:a.nand.1"][..], &ARRAY[4..8]]
            .concat();
    let refused = refuse(folder.path(), &alone);
    for words in ["a.nand.1: its drive is a member of an array", "serve the array (--array), or give --outside-array"] {
        assert!(refused.code == Some(2) && refused.err.contains(words), "{words}: {refused:?}");
    }
    let refused = refuse(folder.path(), &["--store", "small=file:a.nand.1", "--nbd", "unix:n.sock"]);
    assert!(refused.code == Some(2) && refused.err.contains("is a member of an array"), "{refused:?}");
    // Nothing has changed: the array opens as before.
    let folder = ended(in_files(folder, &[]));
    let shown = nandscape(folder.path(), &["inspect", "a.nand.1"]).out;
    assert!(shown.lines().any(|line| line.contains("member of an array") && line.ends_with("yes")), "{shown}");
    let mut server = Server::start(folder, &[&alone[..], &["--outside-array"]].concat());
    Model::new().write_telling(&mut Client::connect(&mut server), &mut rng, 50, (&mut next, true), |_| ());
    assert_eq!(next, 350);
    server.signal(Signal::KILL);
    server.wait();
    let folder = server.keep_folder();
    let own = ["--store", "file:a.nand", "--nbd", "unix:n.sock"];
    let refused = refuse(folder.path(), &[&ARRAY[..], &own].concat());
    for words in ["a.nand.1: it was served outside of its array", "--array-degraded", "without its file it is new"] {
        assert!(refused.code == Some(2) && refused.err.contains(words), "{words}: {refused:?}");
    }
    let mut server = in_files(folder, &["--array-degraded"]);
    model.verify(&mut Client::connect(&mut server));
    let folder = ended(server);
    std::fs::remove_file(folder.path().join("a.nand.1")).unwrap();
    let mut server = in_files(folder, &[]);
    model.verify(&mut Client::connect(&mut server));
    let folder = ended(server);
    let refused = refuse(folder.path(), &alone);
    assert!(refused.code == Some(2) && refused.err.contains("is a member of an array"), "{refused:?}");
}

#[test]
fn an_array_that_was_ended_in_the_midst_of_a_rebuild_opens_again() {
    for signal in [Signal::TERM, Signal::KILL] {
        let server = in_files(tempfile::tempdir().unwrap(), &[]);
        fio(&server, &VERIFY);
        let folder = ended(server);
        std::fs::remove_file(folder.path().join("a.nand.2")).unwrap();
        let mut server = in_files(folder, &["--set", "array.rebuild_rate=1MiB"]);
        let rebuilt = |figures: &Value| number(figures, "/drives/0/counters/array_stripes_rebuilt_total") > 0.0;
        until(&server, "the rebuild has begun", rebuilt);
        server.signal(signal);
        server.wait();
        let server = in_files(server.keep_folder(), &["--set", "array.rebuild_rate=0"]);
        fio(&server, &VERIFY_ONLY);
        until(&server, "it is rebuilt", |figures| number(figures, "/drives/0/counters/array_members_missing") == 0.0);
        assert_eq!(server.end().code, Some(0));
    }
}

#[test]
fn a_start_that_fails_leaves_drives_in_files_turned_off_in_order() {
    let folder = ended(in_files(tempfile::tempdir().unwrap(), &[]));
    let in_order = || {
        for member in 0..4 {
            let told = nandscape(folder.path(), &["inspect", &format!("a.nand.{member}")]);
            assert!(told.out.contains("; closed in order"), "{told:?}");
        }
    };
    in_order();
    let own = ["--store", "file:a.nand", "--nbd", "unix:n.sock"];
    // Of another level; without two of its members; together with another invalid drive; with an address of another host.
    let of_another: Vec<&str> =
        ARRAY.iter().map(|word| if *word == "small=raid5:4" { "small=raid6:4" } else { word }).collect();
    let refused = refuse(folder.path(), &[&of_another[..], &own].concat());
    assert!(refused.code == Some(2) && refused.err.contains("are of an array raid5:4; give that"), "{refused:?}");
    in_order();
    for member in [2, 3] {
        std::fs::rename(folder.path().join(format!("a.nand.{member}")), folder.path().join(format!("away.{member}")))
            .unwrap();
    }
    let refused = refuse(folder.path(), &[&ARRAY[..], &own].concat());
    for words in
        ["members 2, 3 are missing, and it tolerates the loss of 1", "they count again when they are brought back"]
    {
        assert!(refused.code == Some(2) && refused.err.contains(words), "{words}: {refused:?}");
    }
    for member in [2, 3] {
        std::fs::rename(folder.path().join(format!("away.{member}")), folder.path().join(format!("a.nand.{member}")))
            .unwrap();
    }
    in_order();
    // The place is found to be taken once the drives are built.
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let refused = refuse(folder.path(), &[&ARRAY[..], &own, &["--nvme-tcp", &taken]].concat());
    assert!(refused.code == Some(2) && refused.err.contains(&taken), "{refused:?}");
    in_order();
}

#[test]
fn an_array_with_a_damaged_file_says_how_it_opens() {
    let server = in_files(tempfile::tempdir().unwrap(), &[]);
    fio(&server, &VERIFY);
    let folder = ended(server);
    let file = folder.path().join("a.nand.3");
    std::fs::File::options().write(true).open(&file).unwrap().set_len(100_000).unwrap();
    let own = ["--store", "file:a.nand", "--nbd", "unix:n.sock"];
    let refused = refuse(folder.path(), &[&ARRAY[..], &own].concat());
    for words in
        ["a.nand.3: it is truncated", "--array-degraded opens the array without it", "without its file it is new"]
    {
        assert!(refused.code == Some(2) && refused.err.contains(words), "{words}: {refused:?}");
    }
    let server = in_files(folder, &["--array-degraded"]);
    fio(&server, &VERIFY_ONLY);
    let (stopped, folder) = server.end_keeping();
    let line = "note: drive small: member-3 is left out, and is no spare: ";
    let reason = stopped.err.lines().find_map(|text| text.strip_prefix(line));
    assert!(stopped.code == Some(0) && reason.is_some_and(|why| why.contains("it is truncated")), "{stopped:?}");
    std::fs::remove_file(&file).unwrap();
    let server = in_files(folder, &["--set", "array.rebuild_rate=0"]);
    until(&server, "it is rebuilt", |figures| number(figures, "/drives/0/counters/array_members_missing") == 0.0);
    fio(&server, &VERIFY_ONLY);
    assert_eq!(server.end().code, Some(0));
}
