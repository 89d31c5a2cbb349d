//! `nandscape sweep`: points, files, pages, interruptions, and what it refuses.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::browser::{data, open};
use crate::program::{command, number, refuse, run, succeed};

/// A sweep of a small drive into a folder, with more words.
fn words(out: &Path, more: &[&str]) -> Vec<String> {
    let base = ["sweep", "--set", "capacity=64MiB", "--set", "rw=randread", "--set", "io_count=2000", "--out"];
    let out = out.to_str().expect("UTF-8");
    base.iter().chain([&out]).chain(more).map(|word| (*word).to_owned()).collect()
}

/// The rows of the CSV file, by column.
fn rows(out: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = std::fs::read_to_string(out.join("sweep.csv")).expect("a table");
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = text.lines();
    let heads = cells(lines.next().expect("a head"));
    lines.map(|line| heads.iter().cloned().zip(cells(line)).collect()).collect()
}

#[test]
fn points_are_told_kept_and_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let vary = ["--vary", "iodepth=16,4,1", "--vary", "bs=64k,4k,16k", "--seeds", "1,2"];
    let ran = run(&words(&out, &vary));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("read p99.9, us") && ran.out.contains(" ± ") && ran.out.contains("18 points"),
        "{}",
        ran.out
    );
    let rows = rows(&out);
    let column = |name: &str| rows.iter().map(|row| row[name].as_str()).collect::<Vec<_>>();
    assert_eq!(column("iodepth")[..7], ["1", "1", "1", "1", "1", "1", "4"]);
    assert_eq!(column("bs")[..6], ["4k", "4k", "16k", "16k", "64k", "64k"]);
    assert_eq!(column("bs_bytes")[2], "16384");
    assert!(rows.iter().all(|row| row["status"] == "done" && row["requests"] == "2000"));
    let iops = |row: &std::collections::BTreeMap<String, String>| row["iops"].parse::<f64>().expect("a number");
    assert!(iops(&rows[12]) > 1.5 * iops(&rows[0]), "more outstanding requests, more of them a second");

    let page = out.join("sweep.html");
    let drawings = data(&std::fs::read_to_string(&page).expect("a page"))["drawings"].clone();
    assert_eq!(drawings[0]["x"]["names"], serde_json::json!(["1", "4", "16"]));
    assert_eq!(drawings[0]["series"][1]["label"], "16k");
    assert!(drawings[0]["series"][0]["low"][0].as_f64() <= drawings[0]["series"][0]["values"][0].as_f64());
    let dom = open(&page);
    assert!(
        dom.contains("table class=\"data heat\"") || dom.contains("class=\"data heat\""),
        "a heat map of two parameters"
    );

    let again = run(&words(&out, &vary));
    assert!(
        again
            .err
            .contains("18 of 18 points have a result of an earlier run in the folder --out; --fresh measures them"),
        "{}",
        again.err
    );
    assert_eq!(again.out, ran.out);
    let json: Value =
        serde_json::from_str(&succeed_words(&words(&out, &[&vary[..], &["--json"]].concat()))).expect("JSON");
    assert_eq!(json["points"].as_array().expect("a list").len(), 18);
    assert_eq!(number(&json, "/points/0/report/requests"), 2_000.0);
    assert!(json["points"][0]["report"]["host"].is_null());
    let list = succeed_words(&words(&out, &[&vary[..], &["--list"]].concat()));
    assert!(list.lines().count() == 18 && list.contains("iodepth 16, bs 64k, seed 2"), "{list}");
    refuse(&["explain", out.to_str().expect("UTF-8")], &["a folder of `nandscape sweep`", "sweep.html"]);

    let note = "sweep.csv: replaces the table of another sweep (18 points)";
    let other = run(&words(&out, &["--vary", "iodepth=2", "--seeds", "3"]));
    assert!(other.err.contains(note) && !again.err.contains("replaces the table"), "{} {}", other.err, again.err);
}

fn succeed_words(words: &[String]) -> String {
    succeed(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_point_that_fails_is_told_in_its_row_and_by_the_status() {
    let folder = tempfile::tempdir().expect("a folder");
    let vary = ["--vary", "geometry.channels=4,1000", "--vary", "iodepth=1,2"];
    let output = command(&words(folder.path(), &vary)).output().expect("the program starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("2 of 4 points failed") && err.contains("geometry.channels 1000"), "{err}");
    assert!(out.contains("4 points, 2 failed"), "{out}");
    let rows = rows(folder.path());
    let status: Vec<&str> = rows.iter().map(|row| row["status"].as_str()).collect();
    assert_eq!(status, ["done", "done", "failed", "failed"]);
    assert!(open(&folder.path().join("sweep.html")).contains("Points that failed"));
}

/// Waits until a sweep has measured this many points, for a minute at most.
#[cfg(target_os = "linux")]
fn await_points(child: &std::process::Child, folder: &Path, points: usize) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let is_point = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".json");
    let measured = || std::fs::read_dir(folder).map_or(0, |entries| entries.flatten().filter(is_point).count());
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("it runs");
    let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    for _ in 0..6_000 {
        if measured() >= points {
            return;
        }
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&moment)).expect("a process");
        assert_eq!(ended, 0, "the sweep ends before it has measured {points} points");
    }
    panic!("waited a minute for {points} points, and there are {}", measured());
}

/// After Ctrl-C, and after a kill, measured points are kept, and the next run completes the same table.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_sweep_goes_on() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let [whole, stopped, killed] = folders.each_ref().map(tempfile::TempDir::path);
    // The last point alone takes minutes: it is in progress when the others are done.
    let vary = ["--vary", "warmup_count=0,1,2,300000000", "--jobs", "1"];
    let short = ["--vary", "warmup_count=0,1,2", "--jobs", "1"];
    for (folder, signal) in [(stopped, rustix::process::Signal::INT), (killed, rustix::process::Signal::KILL)] {
        let mut child = command(&words(folder, &vary)).spawn().expect("the program starts");
        await_points(&child, &folder.join("points"), 3);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("it runs");
        let mut err = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
        let status = child.wait().expect("a child");
        if signal == rustix::process::Signal::INT {
            assert_eq!(status.code(), Some(1), "{err}");
            assert!(err.contains("interrupted: 3 of 4 points are kept") && err.contains("the same command"), "{err}");
            assert_eq!(rows(folder).iter().filter(|row| row["status"] == "missing").count(), 1);
        }
    }
    let table = |folder: &Path| {
        let ran = run(&words(folder, &short));
        assert_eq!(ran.code, 0, "{}", ran.err);
        (std::fs::read(folder.join("sweep.csv")).expect("a table"), ran.err)
    };
    let (expected, _) = table(whole);
    for folder in [stopped, killed] {
        let (found, err) = table(folder);
        assert!(err.contains("3 of 3 points have a result of an earlier run in the folder --out; --fresh"), "{err}");
        assert_eq!(found, expected);
    }
}

/// The question of the guide, on a small drive.
#[test]
fn the_guide_on_suspension_works_in_a_short_form() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guides/suspension.toml");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let small = ["--set", "capacity=4GiB", "--set", "geometry.channels=2", "--set", "geometry.dies_per_channel=4"];
    let short =
        ["--set", "io_count=6000", "--set", "warmup_count=1000", "--set", "job.reads.rate_iops=4000", "--seeds", "1,2"];
    let vary = ["--vary", "job.writes.rate_iops=500,1000", "--out", out, "--json"];
    let json = succeed(&[&["sweep", guide][..], &small, &short, &vary].concat());
    let sweep: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(sweep["parameters"][0]["name"], "writes a second");
    let p99_9 = |suspension: &str| {
        let of = sweep["points"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|point| point["values"]["suspension"] == suspension);
        of.map(|point| number(point, "/report/latency_us/read/p99_9")).sum::<f64>()
    };
    assert!(p99_9("with") < 0.8 * p99_9("without"), "{} and {}", p99_9("with"), p99_9("without"));
    open(&folder.path().join("sweep.html"));
}

/// A trace at several paces, and a percentile that reports do not have by themselves.
#[test]
fn traces_and_percentiles_are_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, trace) = (folder.path().join("out"), folder.path().join("t.csv"));
    let line =
        |number: u64| format!("{},srv,0,Read,{},4096,100\n", 128_166_372_000_000_000 + number * 10_000, number * 4_096);
    std::fs::write(&trace, (0..200).map(line).collect::<String>()).expect("a file");
    let trace = format!("trace={}", trace.display());
    let out = out.to_str().expect("UTF-8");
    let base = ["sweep", "--set", "capacity=64MiB", "--set", &trace, "--set", "percentiles=95", "--out", out];
    let figure = ["--vary", "trace.time_scale=1,4", "--figure", "latency_us.read.p95", "--json"];
    let json: Value = serde_json::from_str(&succeed(&[&base[..], &figure].concat())).expect("JSON");
    let of = |point: usize, path: &str| number(&json, &format!("/points/{point}/report/{path}"));
    assert_eq!((of(0, "requests"), of(1, "requests")), (200.0, 200.0));
    let times = of(1, "arrivals/asked_iops") / of(0, "arrivals/asked_iops");
    assert!((times - 4.0).abs() < 0.1 && of(0, "latency_us/read/p95") > 0.0, "{times}");
    refuse(&[&base[..], &["--vary", "bs=4k,8k"]].concat(), &["bs does not apply to a trace"]);
}

/// One of the points needs flushes: they have a column, and the head of the rate names them.
#[test]
fn flushes_and_padding_have_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let load = ["--set", "rw=randwrite", "--set", "iodepth=1", "--set", "fsync=1", "--set", "io_count=2000"];
    let words = ["sweep", "--set", "capacity=64MiB", "--vary", "buffer.mode=capacitor,volatile", "--out"];
    let table = succeed(&[&words[..], &[out.to_str().expect("UTF-8")], &load].concat());
    let heads = table.lines().next().expect("a head");
    for head in ["write p99.9, us", "flush p99.9, us", "requests a second, flushes included", "units of padding"] {
        assert!(heads.contains(head), "no {head} in {table}");
    }
    let page = std::fs::read_to_string(out.join("sweep.html")).expect("a page");
    assert!(page.contains("<h2>requests a second, flushes included against buffer.mode</h2>"), "{page}");
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = |more: &[&str], parts: &[&str]| {
        let words = words(folder.path(), more);
        refuse(&words.iter().map(String::as_str).collect::<Vec<_>>(), parts);
        assert!(!folder.path().join("points").exists(), "{more:?}");
    };
    wrong(&[], &["required", "<FILE>"]);
    wrong(&["--vary", "ftl.gc.victims=greedy"], &["ftl.gc.victims", "unknown field"]);
    wrong(&["--vary", "iodepth=1,0"], &["iodepth 0", "from 1 to 65535"]);
    wrong(&["--vary", "iodepth"], &["KEY=A,B,C"]);
    wrong(&["--vary", "rw=read"], &["rw is set for all points and varied"]);
    wrong(&["--vary", "seed=1,2"], &["--seeds"]);
    wrong(&["--vary", "iodepth=1", "--seeds", "3-1"], &["1-5"]);
    wrong(&["--vary", "drive=default,nothing"], &["no such profile", "wd-zn540-block"]);
    wrong(&["nowhere.toml"], &["nowhere.toml", "cannot be read"]);
    wrong(&["--vary", "iodepth=1", "--figure", "latency_us.read.p99.9"], &["is no latency", "latency_us.read.p99_9"]);
    wrong(&["--vary", "runtime=1s,2s"], &["io_count is set for all points and varied by runtime"]);
    let file = folder.path().join("wrong.toml");
    std::fs::write(
        &file,
        "version = 1\n[[vary]]\nkey = \"iodepth\"\nvalues = [1]\n[[figure]]\ny = \"iops\"\nx = \"depth\"\n",
    )
    .expect("a file");
    wrong(&[file.to_str().expect("UTF-8")], &["x = \"depth\"", "there are iodepth"]);
}

#[test]
fn points_fork_the_state_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (state, out) = (folder.path().join("worn.state"), folder.path().join("out"));
    let (state, out) = (state.to_str().unwrap(), out.to_str().unwrap());
    let drive = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--precondition", "steady"];
    succeed(&[&drive[..], &["--rw", "randread", "--io-count", "10", "--save-state", state]].concat());
    let from = format!("from_state={state}");
    let sweep = ["sweep", "--set", "rw=randrw", "--set", "io_count=300", "--vary", "ftl.gc.victim=greedy,cost_benefit"];
    let json = succeed(&[&sweep[..], &["--set", &from, "--out", out, "--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{json:#}");
    assert!(points.iter().all(|point| point["report"]["precondition"] == "steady"), "{json:#}");
    let other = ["--set", "capacity=128MiB", "--set", &from, "--out", out];
    refuse(&[&sweep[..], &other].concat(), &["from_state", "is of another drive: capacity"]);
}

/// The figures of an array and of its drives. Left out: figures that depend on the machine, or name the jobs.
fn figures_of(report: &Value) -> Value {
    let fields =
        ["requests", "virtual_s", "latency_us", "breakdown_us", "layers_us", "array", "gc", "waf", "flash", "busy"];
    let of = |report: &Value| -> Vec<Value> { fields.iter().map(|field| report[*field].clone()).collect() };
    let drives = report["drives"].as_array().expect("a list").iter();
    serde_json::json!([of(report), report["profile"], drives.map(|drive| of(&drive["report"])).collect::<Vec<_>>()])
}

#[test]
fn points_on_arrays_are_those_that_sim_measures() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let array = ["--array", "raid5:4", "--set", "precondition=steady", "--set", "rw=randrw", "--set", "iodepth=4"];
    let vary = ["--vary", "array.technique=base,tea2", "--seeds", "1,2"];
    let all = words(&out, &[&array[..], &vary].concat());
    let ran = run(&all);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for head in [
        "read p99, us",
        "read p99.9, us",
        "requests a second",
        "stripe reads that met a busy drive",
        "write amplification of the drives",
    ] {
        assert!(ran.out.contains(head), "no {head} in {}", ran.out);
    }
    let rows = rows(&out);
    let techniques: Vec<&str> = rows.iter().map(|row| row["array.technique"].as_str()).collect();
    assert_eq!(techniques, ["base", "base", "tea2", "tea2"]);
    assert!(rows.iter().all(|row| row["status"] == "done" && !row["drives.waf"].is_empty()), "{rows:?}");
    let json: Value = serde_json::from_str(&succeed_words(&[&all[..], &["--json".to_owned()]].concat())).expect("JSON");
    let sim = [
        "sim",
        "--array",
        "raid5:4",
        "--drive",
        "default",
        "--set",
        "capacity=64MiB",
        "--set",
        "array.technique=tea2",
        "--precondition",
        "steady",
        "--rw",
        "randrw",
        "--iodepth",
        "4",
        "--io-count",
        "2000",
        "--seed",
        "2",
        "--json",
    ];
    let alone: Value = serde_json::from_str(&succeed(&sim)).expect("JSON");
    let swept = &json["points"][3]["report"];
    assert!(figures_of(swept) == figures_of(&alone), "the point has other figures than sim");
    assert!(swept["host"].is_null() && swept["drives"][0]["report"]["host"].is_null());
    let set = swept["inputs"]["set"].to_string();
    assert!(set.contains("array.technique=tea2") && set.contains("capacity="), "{set}");
    let point = std::fs::read_dir(out.join("points")).expect("a folder").next().expect("a point").expect("a file");
    let told = succeed(&["explain", point.path().to_str().expect("UTF-8")]);
    assert!(told.contains("stripe reads"), "{told}");
    assert!(open(&out.join("sweep.html")).contains("stripe reads that met a busy drive"));
}

#[test]
fn settings_of_layers_are_varied() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let layers = ["--over", "raid1:2", "--over", "hot=cache", "--set", "rw=randread"];
    let all = words(&out, &[&layers[..], &["--vary", "hot.memory=1MiB,32MiB", "--seeds", "1", "--json"]].concat());
    let json: Value = serde_json::from_str(&succeed_words(&all)).expect("JSON");
    let hits = |point: usize| number(&json["points"][point]["report"], "/chain/1/cache/hit_ratio");
    assert!(hits(1) > 2.0 * hits(0), "{} and {}", hits(0), hits(1));
    assert_eq!(json["points"][0]["report"]["profile"], "hot over raid1:2 of default");
}

#[test]
fn settings_of_the_ftl_of_a_host_are_varied_and_layers_begin_in_states() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = ["geometry.channels=2", "geometry.dies_per_channel=2", "geometry.blocks_per_plane=24"];
    let drive =
        ["geometry.pages_per_block=32", "geometry.factory_bad_blocks=0%", "buffer.mode=through", "drive=dfc-mlc"];
    let load = ["precondition=steady", "rw=randwrite", "io_count=2000", "over=ftl,buffer.size=1MiB"];
    let out = folder.path().join("ftl").to_str().expect("UTF-8").to_owned();
    let mut words = vec!["sweep", "--out", &out, "--seeds", "1", "--json", "--vary", "host_ftl.moves=copy,read-write"];
    small.iter().chain(&drive).chain(&load).for_each(|key| words.extend(["--set", key]));
    let json: Value = serde_json::from_str(&succeed(&words)).expect("JSON");
    let copied = |point: usize| number(&json["points"][point]["report"], "/chain/0/ftl/copied_bytes");
    assert!(copied(0) > 0.0 && copied(1) == 0.0, "{} and {}", copied(0), copied(1));

    let state = folder.path().join("array.state").to_str().expect("UTF-8").to_owned();
    let made =
        ["sim", "--drive", "default", "--set", "capacity=64MiB", "--over", "raid1:2", "--over", "cache,memory=1MiB"];
    succeed(
        &[&made[..], &["--rw", "randread", "--io-count", "50", "--precondition", "steady", "--save-state", &state]]
            .concat(),
    );
    let out = folder.path().join("states").to_str().expect("UTF-8").to_owned();
    let from = format!("from_state={state}");
    let words = [
        "sweep",
        "--out",
        &out,
        "--seeds",
        "1",
        "--json",
        "--set",
        &from,
        "--set",
        "rw=randread",
        "--set",
        "io_count=200",
    ];
    let json: Value =
        serde_json::from_str(&succeed(&[&words[..], &["--vary", "cache.memory=1MiB,2MiB"]].concat())).expect("JSON");
    assert_eq!(json["points"][1]["report"]["profile"], "cache over raid1:2 of default");
    assert_eq!(number(&json["points"][1]["report"], "/chain/1/cache/memory_bytes"), 2_097_152.0);
}

#[test]
fn arrays_that_cannot_be_swept_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |more: &[&str], parts: &[&str]| {
        let all = words(&folder.path().join("out"), &[more, &["--list"]].concat());
        refuse(&all.iter().map(String::as_str).collect::<Vec<_>>(), parts);
    };
    let seeds = ["--seeds", "1"];
    let with = |more: &[&'static str]| [&seeds[..], more].concat();
    refused(&with(&["--array", "raid7:4"]), &["array = raid7:4", "raid7"]);
    refused(&with(&["--array", "raid5:2"]), &["array = raid5:2", "cannot have 2 members"]);
    refused(&["--vary", "array.technique=base,tea2"], &["array.technique", "give array = LEVEL:MEMBERS"]);
    let array = ["--array", "raid5:4"];
    let of = |more: &[&'static str]| [&array[..], more].concat();
    refused(&of(&["--vary", "array.technique=base,fast"]), &["technique fast", "valid are base"]);
    refused(&of(&["--vary", "array.stripes=1,2"]), &["array.stripes", "valid are array.chunk"]);
    refused(&of(&["--vary", "array.journal=none,data"]), &["array.journal", "has no journal"]);
    refused(&of(&["--seeds", "1", "--set", "host=i9"]), &["host", "valid are server"]);
    refused(&with(&["--set", "fault=drive-1=dead"]), &["fault = drive-1=dead", "there is one drive"]);
    // An array that cannot be is an error of its point.
    let list = |more: &[&str]| {
        let all = words(&folder.path().join("out"), &[more, &["--list"]].concat());
        succeed_words(&all)
    };
    let told = list(&of(&["--vary", "array.technique=base,rails"]));
    assert!(
        told.contains("technique rails, seed 1: raid5:4,technique=rails: array.technique") && told.contains("raid1:2"),
        "{told}"
    );
    let told = list(&of(&["--vary", "drive=default,wd-zn540"]));
    assert!(told.contains("have zones, and layers write anywhere"), "{told}");
    let told = list(&of(&["--seeds", "1", "--set", "fault=drive-9=dead"]));
    assert!(told.contains("there is no drive \"drive-9\""), "{told}");
}

#[test]
fn a_member_that_fails_is_swept_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rebuild.toml");
    let text = "version = 1\ndrive = \"default\"\narray = \"raid5:4\"\n[set]\ncapacity = \"64MiB\"\nrw = \"randread\"\n\
                rate_iops = 1000\nio_count = 1000\narray.spares = 1\nfault = \"drive-1=dead from=100ms\"\n\
                [[vary]]\nkey = \"array.rebuild_rate\"\nvalues = [\"10MiB\", \"0\"]\n\
                [[figure]]\ny = \"array.stripes_rebuilt\"\n";
    std::fs::write(&file, text).expect("a file");
    let out = folder.path().join("out");
    let words = ["sweep", file.to_str().expect("UTF-8"), "--json", "--out", out.to_str().expect("UTF-8")];
    let json: Value = serde_json::from_str(&succeed(&words)).expect("JSON");
    let rebuilt = |at: usize| number(&json, &format!("/points/{at}/report/array/stripes_rebuilt"));
    // Numbers are in their order, and 0 is no limit.
    assert!(rebuilt(1) > 0.0 && rebuilt(1) < rebuilt(0), "{} and {}", rebuilt(0), rebuilt(1));
    assert_eq!(json["points"][0]["report"]["array"]["member_failures"][0]["member"], 1);
}
