//! `sim --over`: layers of a host over drives, in any order.

use serde_json::Value;

use crate::program::{number, refuse, succeed};

const SMALL: [&str; 9] =
    ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "randrw", "--io-count", "600"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

fn report(more: &[&str]) -> Value {
    serde_json::from_str(&succeed(&with(&[more, &["--json", "--check"]].concat()))).expect("one JSON object")
}

#[test]
fn what_was_refused_for_want_of_a_common_mechanism_runs() {
    for words in [
        &["--over", "block,deadline=5ms", "--over", "raid1:2"][..],
        &["--over", "raid1:2", "--over", "block,deadline=5ms"],
        &["--over", "raid0:2", "--over", "raid1:2"],
        &["--over", "cache,memory=4MiB", "--over", "raid5:3", "--over", "block", "--over", "top=cache"],
    ] {
        let found = report(&[words, &["--precondition", "steady", "--iodepth", "4"]].concat());
        assert_eq!(number(&found, "/requests"), 600.0, "{words:?}");
        let sum = |layers: &Value| layers.as_object().unwrap().values().filter_map(Value::as_f64).sum::<f64>();
        let (layers, mean) = (sum(&found["layers_us"]["read"]), number(&found, "/latency_us/read/mean"));
        assert!((layers - mean).abs() < 1e-6, "{words:?}: {layers} of {mean}");
    }
}

#[test]
fn an_array_and_a_block_layer_are_the_same_by_their_old_names() {
    let old = report(&["--array", "raid1:2", "--set", "array.technique=tea2"]);
    let new = report(&["--over", "raid1:2,technique=tea2"]);
    for part in ["latency_us", "layers_us", "array", "chain", "profile"] {
        assert_eq!(old[part], new[part], "{part}");
    }
    let old = report(&["--array", "raid1:2", "--set", "block.deadline=2ms"]);
    let new = report(&["--over", "block,deadline=2ms", "--over", "raid1:2"]);
    assert_eq!(old["chain"], new["chain"]);
    assert_eq!(number(&new, "/chain/0/block/deadline_us"), 2_000.0);
    let old = report(&["--over", "cache,memory=4MiB", "--array", "raid1:2"]);
    let new = report(&["--over", "raid1:2", "--over", "cache,memory=4MiB"]);
    assert_eq!(old["chain"], new["chain"], "other layers lie over the array");
}

#[test]
fn layers_of_a_file_are_those_of_the_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    let good = file(
        "good.toml",
        "version = 1\n[[layer]]\nkind = \"raid1:2\"\nname = \"mirror\"\ntechnique = \"tea2\"\n[[layer]]\nkind = \"cache\"\n\
         memory = \"4MiB\"\n",
    );
    let words = report(&["--over", "block", "--over", "mirror=raid1:2,technique=tea2", "--over", "cache,memory=4MiB"]);
    let of_file = report(&["--over", "block", "--over", &good]);
    for part in ["latency_us", "layers_us", "chain", "profile"] {
        assert_eq!(of_file[part], words[part], "{part}");
    }
    let sweep = |file| {
        ["sweep", "--drive", "default", "--set", "rw=randread", "--vary", "iodepth=1,2", "--list", "--over", file]
    };
    let list = succeed(&sweep(&good));
    assert!(list.contains("iodepth 2"), "{list}");
    let bad = file("bad.toml", "version = 1\n[[layer]]\nkind = \"blok\"\n");
    for command in [&with(&["--over", &bad])[..], &sweep(&bad)] {
        refuse(command, &["bad.toml: layer 1: \"blok\": there is no layer \"blok\"; valid are block, cache"]);
    }
    let serve = ["serve", "--drive", "default", "--nbd", "unix:none.sock", "--over", &bad];
    refuse(&serve, &["bad.toml: layer 1"]);
    refuse(&with(&["--over", "missing.toml"]), &["missing.toml"]);
}

#[test]
fn a_table_under_layers_has_causes_outages_and_faults() {
    let cut = ["--fault", "power_cut nth=200 off=50ms"];
    let alone = succeed(&with(&[&["--over", "block"][..], &cut].concat()));
    for line in
        ["where the mean goes", "behind power", "drive-0: fault \"power_cut", "drive-0: outages after power cuts 1"]
    {
        assert!(alone.contains(line), "{line}: {alone}");
    }
    let of_two = succeed(&with(&["--over", "raid1:2", "--fault", "drive-1=slow read by=2ms every=10"]));
    assert!(of_two.contains("drive-1: fault \"slow read") && !of_two.contains("drive-0: fault"), "{of_two}");
}

#[test]
fn faults_settings_and_pages_find_their_drives_and_layers() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let out = out.to_str().expect("a path in UTF-8");
    let words = ["--over", "raid1:2", "--over", "hot=cache", "--set", "hot.memory=1MiB", "--out", out];
    let faults = ["--fault", "drive-1=slow read by=2ms every=10"];
    let found = report(&[&words[..], &faults].concat());
    assert_eq!(number(&found, "/chain/1/cache/memory_bytes"), 1_048_576.0);
    assert_eq!(found["inputs"]["profile_keys"]["hot"]["memory"], "1MiB");
    assert_eq!(found["profile"], "hot over raid1:2 of default");
    assert!(found["drives"][0]["report"].get("faults").is_none() && found["drives"][1]["report"]["faults"].is_array());
    for file in ["report.html", "report.json", "drive-1/report.html"] {
        assert!(folder.path().join("out").join(file).exists(), "{file}");
    }
    let text = succeed(&with(&["--over", "raid1:2", "--over", "cache"]));
    assert!(text.starts_with("cache (64MiB) over raid1:2 (base, chunks of 4KiB) of default under"), "{text}");
}

#[test]
fn the_highest_rate_is_found_under_layers() {
    let words =
        ["--over", "raid0:2", "--over", "cache", "--find-rate", "read.p99 < 1ms", "--json", "--io-count", "3000"];
    let small = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "randrw"];
    let found: Value = serde_json::from_str(&succeed(&[&small[..], &words].concat())).expect("one JSON object");
    assert!(number(&found, "/search/holds_iops") > 1_000.0, "{}", found["search"]);
    assert_eq!(found["report"]["profile"], "cache over raid0:2 of default");
}

#[test]
fn the_times_of_a_logged_request_in_layers_and_drives_sum_to_its_latency() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("requests.csv");
    let words = ["--over", "block,depth=2", "--over", "low=raid1:2", "--over", "cache,memory=4MiB"];
    let log = ["--iodepth", "8", "--requests", path.to_str().expect("a path in UTF-8")];
    succeed(&with(&[&words[..], &log].concat()));
    let text = std::fs::read_to_string(&path).expect("the log");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().expect("a line of names");
    assert_eq!(heads[heads.len() - 3..], ["layer_block_ns", "layer_low_ns", "layer_cache_ns"]);
    let is_time = |name: &str| name.ends_with("_ns") && !name.contains("_behind_");
    let others = ["arrival_ns", "completion_ns", "latency_ns"];
    let (mut rows, mut in_layers) = (0, 0);
    for row in lines {
        let of = |name: &str| row[heads.iter().position(|head| *head == name).expect("a column")].parse::<u64>();
        let latency = of("latency_ns").expect("a number");
        let times = heads.iter().filter(|name| is_time(name) && !others.contains(name));
        assert_eq!(times.map(|name| of(name).expect("a number")).sum::<u64>(), latency, "{row:?}");
        in_layers += of("layer_cache_ns").expect("a number") + of("layer_block_ns").expect("a number");
        rows += 1;
    }
    assert!(rows == 600 && in_layers > 0, "{rows} rows, {in_layers} ns in layers");
}

#[test]
fn each_of_several_jobs_has_its_figures_and_its_slowdown_under_layers() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let small = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--workload", "noisy-neighbour"];
    let limit = ["--io-count", "2000", "--precondition", "steady", "--over", "raid0:2", "--over", "cache"];
    let both = [&small[..], &limit].concat();
    let found: Value =
        serde_json::from_str(&succeed(&[&both[..], &["--fairness", "--json"]].concat())).expect("one JSON object");
    let flows = found["flows"].as_array().expect("several jobs");
    let slowdowns: Vec<f64> = flows.iter().map(|flow| number(flow, "/slowdown")).collect();
    let (least, most) =
        slowdowns.iter().fold((f64::MAX, 0.0_f64), |(least, most), one| (least.min(*one), most.max(*one)));
    assert!(flows.len() > 1 && number(&found, "/fairness") == least / most, "{found:#}");
    for flow in flows {
        let Some(mean) = flow.pointer("/latency_us/read/mean").and_then(Value::as_f64) else { continue };
        let layers = flow["layers_us"]["read"].as_object().expect("times by layer");
        assert!((layers.values().filter_map(Value::as_f64).sum::<f64>() - mean).abs() < 1e-6, "{flow:#}");
    }
    let text = succeed(&[&both[..], &["--fairness", "--out", out.to_str().expect("UTF-8")]].concat());
    assert!(text.contains("slowdown") && text.contains("fairness 0."), "{text}");
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("Its jobs") && page.contains("smallest slowdown over the largest"));
    refuse(&with(&["--over", "cache", "--fairness"]), &["--fairness", "no second job"]);
}

/// An open-channel drive of 96 MiB: 4 parallel units with 24 chunks of a MiB.
const CHUNKS: [&str; 15] = [
    "sim",
    "--drive",
    "dfc-mlc",
    "--set",
    "geometry.channels=2",
    "--set",
    "geometry.dies_per_channel=2",
    "--set",
    "geometry.blocks_per_plane=24",
    "--set",
    "geometry.pages_per_block=32",
    "--set",
    "geometry.factory_bad_blocks=0%",
    "--set",
    "buffer.mode=through",
];

#[test]
fn the_ftl_of_a_host_lies_over_open_channel_drives_and_below_any_layer() {
    let report = |load: &[&str], words: &[&str]| -> Value {
        let common = ["--iodepth", "4", "--json", "--check", "--precondition", "steady"];
        let text = succeed(&[&CHUNKS[..], &common, load, words].concat());
        serde_json::from_str(&text).expect("one JSON object")
    };
    for words in [
        &["--over", "ftl,buffer.size=1MiB"][..],
        &["--over", "ftl", "--over", "block,deadline=5ms"],
        &["--over", "ftl,moves=read-write,commands=rows,order=fifo", "--over", "raid1:2,technique=tea2"],
        &["--over", "low=ftl,profile=default", "--set", "low.buffer.size=1MiB", "--over", "cache,memory=4MiB"],
    ] {
        let found = report(&["--rw", "randrw", "--io-count", "600"], words);
        assert_eq!(number(&found, "/requests"), 600.0, "{words:?}");
        let layers = found["layers_us"]["read"].as_object().expect("times by layer");
        let name = if words[1].starts_with("low=") { "low" } else { "host_ftl" };
        assert!(layers[name].as_f64() > Some(0.0) && layers["drive"].as_f64() > Some(0.0), "{words:?}: {layers:?}");
        let sum = layers.values().filter_map(Value::as_f64).sum::<f64>();
        let mean = number(&found, "/latency_us/read/mean");
        assert!((sum - mean).abs() < 1e-6, "{words:?}: {sum} of {mean}");
        let ftl = |figure: &str| number(&found, &format!("/chain/0/ftl/{figure}"));
        assert!(ftl("host_written_bytes") > 0.0 && ftl("link_read_bytes") > 0.0, "{words:?}: {}", found["chain"]);
        assert_eq!(found["chain"][0]["ftl"]["precondition"], "steady", "{words:?}");
    }
    let writes = ["--rw", "randwrite", "--io-count", "2000"];
    let moved = |moves: &str| report(&writes, &["--over", &format!("ftl,buffer.size=1MiB,moves={moves}")]);
    let (copied, through) = (moved("copy"), moved("read-write"));
    assert!(number(&copied, "/chain/0/ftl/copied_bytes") > 0.0, "{}", copied["chain"]);
    assert_eq!(number(&through, "/chain/0/ftl/copied_bytes"), 0.0, "{}", through["chain"]);
    assert!(number(&through, "/chain/0/ftl/waf") > 1.5, "{}", through["chain"]);
    let text = succeed(&[&CHUNKS[..], &["--over", "ftl", "--rw", "randwrite", "--io-count", "100"]].concat());
    let begins = text.starts_with("host_ftl (default, by vectors) of dfc-mlc under");
    assert!(begins && text.contains("over the link"), "{text}");
}

#[test]
fn what_the_ftl_of_a_host_cannot_lie_over_is_refused_with_what_it_can() {
    let (drive, load) = (CHUNKS, ["--rw", "randread", "--io-count", "10"]);
    let on = |drive: &[&'static str], words: &[&'static str]| [drive, &load, words].concat();
    let default = &["sim", "--drive", "default", "--set", "capacity=64MiB"][..];
    refuse(
        &on(default, &["--over", "ftl"]),
        &["--over: drive default has its own FTL", "ftl.kind=open_channel is valid"],
    );
    refuse(&on(&drive, &["--over", "cache"]), &["drive dfc-mlc has chunks", "ftl is valid as the lowest one"]);
    refuse(
        &on(default, &["--over", "cache", "--over", "ftl"]),
        &["host_ftl: what lies directly below is no open-channel drive"],
    );
    refuse(&on(&drive, &["--over", "ftl,moves=fast"]), &["moves=fast: valid are copy, read-write"]);
    refuse(&on(&drive, &["--over", "ftl,buffer.sise=1MiB"]), &["buffer.sise"]);
    refuse(&on(&drive, &["--over", "ftl", "--set", "buffer.mode=register"]), &["volatile write cache", "through"]);
}

/// A state has the chunks of the drives and the tables of the FTLs. A run from the file is the run that wrote it.
#[test]
fn a_run_from_a_state_under_the_ftl_of_a_host_is_the_run_that_wrote_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (state, after) = (path("ftl.state"), path("after.state"));
    let load = ["--rw", "randrw", "--iodepth", "4", "--io-count", "1500", "--json", "--check"];
    let over = ["--over", "ftl,buffer.size=1MiB", "--over", "cache,memory=1MiB"];
    let report = |words: &[&str]| figures(&succeed(words));
    let plain = report(&[&CHUNKS[..], &load, &over, &["--precondition", "steady"]].concat());
    assert_eq!(plain["precondition"], "steady", "{plain:#}");
    let saving = ["--precondition", "steady", "--save-state", &state, "--save-state-after", &after];
    assert_eq!(report(&[&CHUNKS[..], &load, &over, &saving].concat()), plain);
    let again = report(&[&["sim"], &load[..], &["--from-state", &state]].concat());
    assert_eq!(again["requests"], plain["requests"]);
    assert_eq!(again["latency_us"], plain["latency_us"], "layers and drives are those of the file");
    assert_eq!(again["chain"], plain["chain"]);
    let next = report(
        &[&["sim"], &load[..], &["--from-state", &after, "--set", "host_ftl.ftl.gc.victim=cost_benefit"]].concat(),
    );
    let words = next["initial_state"].as_str().expect("words").to_owned();
    assert!(words.ends_with("then randrw with 1500 requests measured"), "{words}");
    let without_cache = report(&[&CHUNKS[..], &load, &over[..2], &["--from-state", &state]].concat());
    assert_eq!(without_cache["chain"][0]["ftl"]["precondition"], "steady", "the FTL continues under other layers, too");
    let shown = succeed(&["inspect", &state]);
    assert!(shown.contains("dfc-mlc") && shown.contains("ftl"), "{shown}");
    let other = [&CHUNKS[..], &load, &["--over", "ftl,ftl.over_provisioning=20%", "--from-state", &state]].concat();
    refuse(&other, &["the state is of another FTL: "]);
    let other = [&CHUNKS[..], &load, &["--over", "ftl", "--over", "raid0:2", "--from-state", &state]].concat();
    refuse(&other, &["it is of drives under other layers: it has ftl, and the run has ftl, then raid0:2"]);
    let default = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "read", "--from-state", &state];
    refuse(&default, &["--from-state", "its layers: drive default has its own FTL"]);
}

#[test]
fn a_load_settles_the_ftl_of_a_host() {
    let load = ["--over", "ftl,buffer.size=1MiB", "--rw", "randwrite", "--bs", "256k", "--io-count", "200", "--json"];
    let text = succeed(&[&CHUNKS[..], &load, &["--precondition", "load", "--check"]].concat());
    let found: Value = serde_json::from_str(&text).expect("one JSON object");
    let windows = found["drives"][0]["report"]["settled"]["waf"].as_array().expect("windows").clone();
    assert!(windows.len() >= 3 && windows.last().and_then(Value::as_f64) > Some(1.0), "{windows:?}");
    assert_eq!(found["chain"][0]["ftl"]["precondition"], "load");
}

/// A report without what depends on the machine, and without the changes as they were given.
fn figures(text: &str) -> Value {
    let mut found: Value = serde_json::from_str(text).expect("one JSON object");
    found.as_object_mut().expect("an object").remove("host");
    for drive in found["drives"].as_array_mut().expect("drives") {
        drive["report"].as_object_mut().expect("a report").remove("host");
    }
    found["inputs"]["set"] = Value::Null;
    found
}

#[test]
fn a_run_begins_in_the_state_of_drives_under_layers() {
    let folder = tempfile::tempdir().expect("a folder");
    let [before, after] = ["before.state", "after.state"].map(|name| folder.path().join(name));
    let [before, after] = [&before, &after].map(|path| path.to_str().expect("a path in UTF-8"));
    let words = ["--over", "raid1:2", "--over", "cache,memory=1MiB", "--precondition", "steady", "--json"];
    let plain = figures(&succeed(&with(&words)));
    let saving = ["--save-state", before, "--save-state-after", after];
    assert_eq!(plain, figures(&succeed(&with(&[&words[..], &saving].concat()))));
    let load = ["sim", "--rw", "randrw", "--io-count", "600", "--json"];
    let from = |more: &[&str]| succeed(&[&load[..], more].concat());
    assert_eq!(plain, figures(&from(&["--from-state", before])), "profile and layers are in the file");
    let over = ["--drive", "default", "--set", "capacity=64MiB", "--over", "block", "--over", "raid1:2,technique=tea2"];
    let other = from(&[&["--from-state", before][..], &over].concat());
    assert_eq!(figures(&other)["profile"], "raid1:2 over block of default");
    let next: Value = serde_json::from_str(&from(&["--from-state", after, "--set", "cache.hit=2us"])).expect("JSON");
    assert_eq!((&next["host"]["state_file"], &next["chain"][1]["layer"]), (&after.into(), &"cache".into()));
    let state = next["initial_state"].as_str().expect("words");
    assert!(state.ends_with(", then randrw with 600 requests measured"), "{state}");

    let shown = succeed(&["inspect", before]);
    assert!(shown.contains("state of 2 drives default, 64MiB, without data"), "{shown}");
    assert!(shown.contains("under layers   raid1:2, then cache,memory=1MiB"), "{shown}");
    let shown: Value = serde_json::from_str(&succeed(&["inspect", before, "--json"])).expect("JSON");
    assert_eq!((&shown["drives"], &shown["layers"][0]), (&2.into(), &"raid1:2".into()));
    let full = |drive: usize| shown["contents"][drive]["blocks"]["full"].as_u64().expect("a count");
    assert!(shown["contents"].as_array().map(Vec::len) == Some(2) && full(0) > 0 && full(1) > 0, "{shown:#}");
    let second = succeed(&["inspect", before, "--drive", "1", "--blocks"]);
    assert!(second.contains("1 (default), 64MiB") && !second.contains("0 (default), 64MiB"), "{second}");
    refuse(&["inspect", before, "--lba", "0"], &["--lba 0: the state has several drives; --drive selects one"]);
    succeed(&["inspect", before, "--lba", "0", "--drive", "0"]);
    refuse(&["inspect", before, "--drive", "2"], &["--drive 2: there is no such drive; 0 to 1 are valid"]);
    let raid0 = ["sim", "--rw", "read", "--from-state", before, "--over", "raid0:2"];
    refuse(&raid0, &["--from-state", "it has raid1:2 with chunk=4KiB, and the run has raid0:2 with chunk=4KiB"]);
    let served = ["serve", "--drive", "default", "--set", "capacity=64MiB", "--from-state", before];
    refuse(&[&served[..], &["--nbd", "unix:never.sock"]].concat(), &["it has raid1:2", "the run has no array"]);
}

/// Operations and commits are those of the workload, whatever lies between it and the drives.
#[test]
fn operations_have_their_latencies_under_layers() {
    let drive = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--set", "buffer.mode=volatile"];
    let load = ["--rw", "write", "--iodepth", "1", "--fsync", "1", "--io-count", "100"];
    for over in [&["--over", "raid1:2"][..], &["--over", "block"], &["--array", "raid1:2"]] {
        let text = succeed(&[&drive[..], &load, over].concat());
        assert!(text.contains("operation, us") && text.contains("\n commit") && !text.contains("\n\n\n"), "{text}");
        let found = succeed(&[&drive[..], &load, over, &["--json"]].concat());
        let found: Value = serde_json::from_str(&found).expect("one JSON object");
        let mean = |path: &str| number(&found, path);
        let parts = mean("/latency_us/write/mean") + mean("/latency_us/flush/mean");
        assert_eq!(mean("/operations_us/commit/count"), mean("/latency_us/flush/count"), "{over:?}");
        assert!((mean("/operations_us/commit/mean") - parts).abs() < 0.05 * parts, "{over:?}: {found:#}");
    }
    let ycsb = succeed(&[&drive[..], &["--workload", "ycsb-a", "--io-count", "500", "--over", "raid1:2"]].concat());
    assert!(ycsb.contains("operation, us") && ycsb.contains("\n update"), "{ycsb}");
}

#[test]
fn what_is_no_layer_is_refused() {
    for (words, problem) in [
        (&["--over", "raid9:4"][..], "there is no level \"raid9\""),
        (&["--over", "disk"], "there is no layer \"disk\"; valid are block, cache, ftl, ahci:N, raid0:N"),
        (&["--over", "mirror:2"], "a mirror is raid1:2"),
        (&["--set", "block.scheduler=mq-deadline"], "noop is the scheduler none of Linux"),
        (&["--over", "cache,size=1MiB"], "there is no such key; valid are cache.memory"),
        (&["--over", "raid1:2", "--over", "block,predictor=ssd"], "none and told are valid here"),
        (&["--over", "a=cache", "--over", "a=cache"], "two layers are called \"a\""),
        (&["--over", "cache", "--set", "array.chunk=8KiB"], "no layer has this name; there are cache"),
        (&["--over", "raid1:2", "--fault", "drive-2=slow read by=1ms"], "there is no drive \"drive-2\""),
    ] {
        refuse(&with(words), &[problem]);
    }
    let zones = ["sim", "--drive", "wd-zn540", "--set", "capacity=4GiB", "--rw", "randread", "--over", "cache"];
    refuse(&zones, &["drives of wd-zn540 have zones"]);
}
