//! Runs of engines over layers, as commands: states, reports and recordings of `paper ycsb` and `paper lsm`, and `paper fox` through
//! block layers.

use std::path::Path;

use serde_json::Value;

use crate::program::{number, refuse, run, succeed};

const YCSB: [&str; 9] =
    ["ycsb", "--records", "1500", "--operations", "1500", "--cache", "1MiB", "--form", "conventional"];
const LSM: [&str; 13] = [
    "lsm",
    "--keys",
    "5000",
    "--operations",
    "2000",
    "--memtable",
    "256KiB",
    "--run-size",
    "512KiB",
    "--form",
    "generic",
    "--benchmark",
    "readwhilewriting",
];
const LAYERS: [&str; 4] = ["--over", "raid1:2", "--over", "cache,memory=1MiB"];

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn json(words: &[&str]) -> Value {
    serde_json::from_str(&succeed(&[words, &["--json"]].concat())).expect("one JSON object")
}

#[test]
fn a_run_from_a_state_equals_the_run_that_saved_it() {
    let folder = tempfile::tempdir().unwrap();
    let warm_up = ["--warm-up", "2000"];
    for (base, layers, warm_up) in [(&YCSB[..], &[][..], &[][..]), (&YCSB, &LAYERS, &[]), (&LSM, &LAYERS, &warm_up)] {
        let state = path(folder.path(), "filled.state");
        let saving = json(&[base, layers, warm_up, &["--save-state", &state]].concat());
        let from = json(&[base, &["--from-state", &state]].concat());
        assert_eq!(saving, from, "{base:?} {layers:?}: the layers are those of the state");
        assert_eq!(json(&[base, layers, &["--from-state", &state]].concat()), from);
        let words = succeed(&["inspect", &state]);
        assert!(words.contains("a Bw-tree of 1500 records") || words.contains("an LSM-tree of 5000 keys"), "{words}");
    }
}

#[test]
fn an_engine_continues_from_the_state_after_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let state = path(folder.path(), "after.state");
    let later = path(folder.path(), "later.state");
    let from = ["--from-state", &state, "--save-state-after", &later];
    // Inserts of workload d stay in the state.
    json(&[&YCSB[..], &["--workload", "d", "--save-state-after", &state]].concat());
    json(&[&YCSB[..], &["--workload", "f"], &from].concat());
    for (words, told) in [
        (&["--records", "3000"][..], "of 3000 records have no value"),
        (&["--value-size", "99"], "has a value of 1000 bytes, and values of 99 are put"),
    ] {
        let small = ["ycsb", "--operations", "10", "--form", "conventional", "--from-state", &state];
        let own: &[&str] = if words[0] == "--records" { &[] } else { &["--records", "1500"] };
        let words = [&small[..], own, words].concat();
        refuse(&words, &["--from-state: ", told, "--records and --value-size are its own"]);
    }
    refuse(&[&YCSB[..7], &["--from-state", &state]].concat(), &["there are 2 runs", "--form conventional is valid"]);
    let offloaded = [&YCSB[..7], &["--form", "offloaded"]].concat();
    json(&[&offloaded[..], &["--save-state", &state]].concat());
    json(&[&offloaded[..], &["--from-state", &state]].concat());
    refuse(
        &[&YCSB[..7], &["--form", "chains", "--save-state", &state]].concat(),
        &["formats its namespace", "the conventional form and the offloaded one are valid"],
    );
    let filling = [&LSM[..11], &["--benchmark", "fillrandom"]].concat();
    json(&[&filling[..], &["--save-state-after", &state]].concat());
    json(&[&LSM[..], &["--from-state", &state]].concat());
    refuse(&[&filling[..], &["--from-state", &state]].concat(), &["overwrite is valid"]);
    refuse(&[&filling[..], &["--save-state", &state]].concat(), &["--save-state-after"]);
    let runs = [&LSM[..9], &["--form", "lsm", "--benchmark", "overwrite"]].concat();
    let saving = json(&[&runs[..], &["--save-state", &state]].concat());
    assert_eq!(saving, json(&[&runs[..], &["--from-state", &state]].concat()), "sorted runs of the drive");
    refuse(&[&runs[..], &["--over", "cache", "--from-state", &state]].concat(), &["--form generic is valid"]);
}

#[test]
fn a_report_has_the_commands_of_the_operations_and_can_be_explained() {
    let folder = tempfile::tempdir().unwrap();
    for (name, words) in [("alone", &[][..]), ("layers", &LAYERS)] {
        let out = path(folder.path(), name);
        succeed(&[&YCSB[..], words, &["--out", &out]].concat());
        let report = std::fs::read_to_string(folder.path().join(name).join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert!(number(&report, "/latency_us/write/count") > 0.0, "{name}");
        assert!(folder.path().join(name).join("report.html").is_file(), "{name}");
        succeed(&["explain", &out]);
    }
}

/// Runs of stores that differ in any way are columns of their own, and a line names what differs.
#[test]
fn stores_that_differ_are_compared_and_not_pooled() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["ycsb", "--records", "300", "--operations", "100", "--set", "capacity=128MiB"];
    let lsm = ["lsm", "--keys", "500", "--operations", "100", "--warm-up", "0", "--benchmark", "readrandom"];
    let cases = [
        (&small[..], &["--form", "conventional"][..], &["--form", "offloaded"][..], "store: form"),
        (&small, &["--form", "conventional"], &["--form", "conventional", "--cache", "1MiB"], "store: cache"),
        (&small, &["--form", "conventional"], &["--form", "conventional", "--page", "8KiB"], "store: page"),
        (&lsm, &["--form", "generic"], &["--form", "lsm"], "store: form"),
        (&lsm, &["--form", "generic"], &["--form", "generic", "--memtable", "256KiB"], "store: memtable"),
    ];
    for (number, (base, first, second, key)) in cases.into_iter().enumerate() {
        let of = |name: &str, more: &[&str], seed: &str| {
            let out = path(folder.path(), &format!("{name}{number}-{seed}"));
            json(&[base, more, &["--seed", seed, "--out", &out]].concat());
            out
        };
        // Two seeds of the first are a column.
        let reports = [of("first", first, "1"), of("second", second, "2"), of("first", first, "3")];
        let words: Vec<&str> = ["compare"].into_iter().chain(reports.iter().map(String::as_str)).collect();
        let comparison: Value = serde_json::from_str(&succeed(&[&words[..], &["--json"]].concat())).unwrap();
        let seeds: Vec<&Value> = comparison["columns"].as_array().unwrap().iter().map(|one| &one["seeds"]).collect();
        assert_eq!(seeds, [&serde_json::json!([1, 3]), &serde_json::json!([2])], "{key}");
        let printed = succeed(&words);
        assert!(printed.contains(key), "{key}: {printed}");
    }
}

#[test]
fn a_report_notes_the_member_that_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let out = path(folder.path(), "out");
    let words = ["--over", "raid1:2", "--fault", "drive-1=dead from=5ms", "--out", &out];
    let ran = run(&[&YCSB[..], &words].concat());
    let note = "member 1, drive-1, has failed, and no spare has taken its place";
    assert!(ran.code == 0 && ran.err.contains(note), "{}", ran.err);
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("out/report.json")).unwrap()).unwrap();
    assert!(report["notes"].to_string().contains(note), "{}", report["notes"]);
    assert_eq!(report["workload"], "YCSB a on a Bw-tree");
    assert!(report["inputs"]["workload_lines"].to_string().contains("50% read, 50% update"), "{}", report["inputs"]);
}

#[test]
fn a_recording_of_an_engine_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let all = [&[][..], &["--over", "block"], &["--over", "cache,memory=1MiB"], &LAYERS];
    for (base, layers) in all.into_iter().flat_map(|layers| [(&YCSB[..], layers), (&LSM, layers)]) {
        let (recording, out) = (path(folder.path(), "engine.rec"), path(folder.path(), "replayed"));
        let recorded = json(&[base, layers, &["--record", &recording]].concat());
        assert_eq!(recorded, json(&[base, layers].concat()), "a recording changes no figure");
        let replayed = json(&["sim", "--replay", &recording, "--out", &out]);
        assert!(replayed.to_string().contains("engine.rec"), "{replayed}");
        json(&["sim", "--replay", &recording, "--set", "timing.read=400us"]);
    }
    let recording = path(folder.path(), "offloaded.rec");
    let offloaded = [&YCSB[..7], &["--form", "offloaded", "--record", &recording]].concat();
    refuse(&offloaded, &["admin commands, which a recording of a drive does not have"]);
}

/// A recording from a state has the commands of the measured phase only, and its replay their latencies.
#[test]
fn a_recording_from_a_state_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let [state, recording, out] = ["filled.state", "engine.rec", "out"].map(|name| path(folder.path(), name));
    let report = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("out/report.json")).unwrap()).unwrap()
    };
    for layers in [&[][..], &["--over", "block"], &["--over", "cache,memory=1MiB"], &LAYERS] {
        let plain = json(&[&YCSB[..], layers, &["--save-state", &state]].concat());
        let from = ["--from-state", &state, "--record", &recording, "--out", &out];
        assert_eq!(json(&[&YCSB[..], layers, &from].concat()), plain, "a recording changes no figure");
        let measured = report()["requests"].clone();
        let replayed = json(&["sim", "--replay", &recording]);
        assert!(number(&replayed, "/requests") >= measured.as_f64().unwrap(), "{layers:?}: {measured} and {replayed}");
        assert!(replayed["errors"].as_object().is_none_or(|errors| errors.is_empty()), "{layers:?}: {replayed}");
        std::fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn fox_runs_through_block_layers_and_names_the_layer_that_keeps_it_from_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let (state, trace) = (path(folder.path(), "worn.state"), path(folder.path(), "events.json"));
    let changes = ["--set", "geometry.blocks_per_plane=32"];
    let drive = [&["--drive", "dfc-mlc"][..], &changes].concat();
    let small = ["--blocks", "1", "--pages", "8"];
    let runs = |words: &[&str]| json(&[&["fox", "oc-0"][..], &drive, &small, words].concat())["runs"].clone();
    let block = ["--over", "block,scheduler=cfq,depth=4", "--over", "top=block"];
    let through = runs(&[&block[..], &["--chrome-trace", &trace, "--save-state-after", &state]].concat());
    assert_eq!(through, runs(&[]), "a block layer adds no time to one command of a thread");
    assert!(std::fs::read_to_string(&trace).unwrap().contains("traceEvents"));
    json(&[&["fox", "oc-0", "--from-state", &state][..], &small].concat());
    let refused = |words: &[&str], told: &str| {
        refuse(&[&["fox", "oc-0"][..], &drive, &small, words].concat(), &["--over: layer ", told, "block is valid"]);
    };
    for (layer, told) in [
        ("cache", "cache passes no commands on chunks: it keeps pages"),
        ("ahci:2", "ahci passes no commands on chunks: ports take ATA commands"),
        ("raid0:2", "array passes no commands on chunks: it places blocks on several drives"),
        ("ftl", "host_ftl passes no commands on chunks: it has the chunks to itself"),
    ] {
        refused(&["--over", layer], told);
    }
    refused(&["--over", "block", "--over", "slow=cache"], "slow passes no commands on chunks");
    refuse(
        &[&["fox", "oc-0"][..], &drive, &["--record", &trace]].concat(),
        &["--record: commands on chunks", "--chrome-trace"],
    );
    let predicts = [&["fox", "oc-0"][..], &drive, &["--over", "block,predictor=ssd"]].concat();
    refuse(&predicts, &["block.predictor: ssd knows the flash", "none and told are valid here"]);
}
