//! Every drive and workload that comes with the program, small and larger, in every state. Each run ends with the check
//! of the drive's tables against each other.

use std::thread;

use serde_json::Value;

use crate::program::{refuse, sim, succeed};

/// The drives that come with the program and that workloads run on: those without zones.
pub(crate) const DRIVES: [&str; 16] = [
    "default",
    "qlc",
    "femu-blackbox",
    "femu-ocssd",
    "femu-teafa",
    "ttflash-256g",
    "ttflash",
    "mqsim-mlc",
    "samsung-970pro",
    "840-pro",
    "sm843t",
    "wd-zn540-block",
    "ox-block",
    "two-ftls",
    "cosmos",
    "vc709",
];
/// Those for hosts that know runs, zones, or chunks.
const SPECIAL: [&str; 4] = ["lsm", "wd-zn540", "dfc-mlc", "cnex-westlake"];
const JOBS: [&str; 6] = ["mixed", "noisy-neighbour", "bursts", "zipf-oltp", "log-and-compact", "commit-log"];
const PERSONALITIES: [&str; 7] = ["fileserver", "webserver", "varmail", "webproxy", "videoserver", "oltp", "networkfs"];
const YCSB: [&str; 7] = ["ycsb-load", "ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"];
const TEAFA: [&str; 9] = ["ast", "bidx", "bsel", "cosm", "dtrs", "est", "lmbe", "msnfs", "tpcc"];
const FLASHSHARE: [&str; 13] =
    ["bfs", "gpgnu", "gp", "gzip", "index", "kmn", "pr", "ungzip", "wcgnu", "wc", "ap", "au", "is"];

/// All that come with it.
fn workloads() -> Vec<String> {
    let named = [&JOBS[..], &PERSONALITIES, &YCSB].concat().into_iter().map(str::to_owned);
    let teafa = TEAFA.iter().map(|row| format!("teafa-{row}"));
    let flashshare = FLASHSHARE.iter().map(|row| format!("flashshare-{row}"));
    named.chain(teafa).chain(flashshare).collect()
}

fn report(args: &[&str]) -> Value {
    serde_json::from_str(&succeed(&[&["sim", "--json", "--check"], args].concat())).expect("JSON")
}

#[test]
fn lists_name_everything() {
    let (drives, workloads) = (succeed(&["drives"]), succeed(&["workloads"]));
    for name in DRIVES.iter().chain(&SPECIAL) {
        assert!(drives.contains(name), "{name}");
        assert!(succeed(&["drives", "show", name]).starts_with("version = 1"));
    }
    let names = self::workloads();
    for name in &names {
        assert!(workloads.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
        assert!(succeed(&["workloads", "show", name]).starts_with("version = 1"));
    }
    // One line each, and the heading: these lists hold nothing that is not tried here.
    assert_eq!(drives.lines().count(), DRIVES.len() + SPECIAL.len() + 1, "{drives}");
    assert_eq!(workloads.lines().count(), names.len() + 1, "{workloads}");
}

#[test]
fn keys_are_listed_with_their_meaning() {
    let keys = succeed(&["drives", "keys"]);
    assert!(keys.contains("[default drive: \"256GiB\"]") && keys.contains("[default drive: 8]"), "{keys}");
    for key in ["[ftl.gc]", "scheme", "victim", "capacity", "blocks_per_plane", "mapping_unit"] {
        assert!(keys.contains(key), "{key}");
    }
    let section = succeed(&["drives", "keys", "ftl.gc"]);
    assert!(
        section.starts_with("[ftl.gc]\n") && section.contains("  victim ") && !section.contains("[geometry]"),
        "{section}"
    );
    assert!(keys.contains(section.lines().nth(1).expect("a key")), "{section}");
    assert_eq!(succeed(&["drives", "keys", "ftl.gc.victim"]).lines().count(), 2);
    refuse(&["drives", "keys", "xyzzy"], &["xyzzy: no key begins like that"]);
    assert!(keys.contains("See faults (docs/techniques/faults.md).") && !keys.contains("]("), "{keys}");
}

#[test]
fn every_drive_works_at_any_size_in_every_state() {
    thread::scope(|scope| {
        for drive in DRIVES {
            scope.spawn(move || {
                for capacity in ["64MiB", "1GiB"] {
                    for state in ["none", "full", "steady"] {
                        let capacity = format!("capacity={capacity}");
                        let report = report(&[
                            "--drive",
                            drive,
                            "--set",
                            &capacity,
                            "--precondition",
                            state,
                            "--rw",
                            "randrw",
                            "--io-count",
                            "3000",
                        ]);
                        let shown = format!("{drive} {capacity} {state}");
                        assert_eq!(
                            (&report["requests"], &report["precondition"]),
                            (&3_000.into(), &state.into()),
                            "{shown}"
                        );
                        assert_eq!(report["errors"], serde_json::json!({}), "{shown}");
                        let waf = report["waf"].as_f64().expect("there are writes");
                        assert!(waf < 50.0, "{shown}: {waf}");
                        // A new drive has nothing to collect: it programs what was written, and at most
                        // once more to fill pages.
                        assert!(state != "none" || report["gc"]["pages_moved"] == 0, "{shown}");
                    }
                }
            });
        }
    });
}

#[test]
fn every_workload_runs() {
    let small = ["--drive", "default", "--set", "capacity=256MiB", "--io-count", "2000"];
    for workload in workloads() {
        let report = report(&[&small[..], &["--workload", &workload]].concat());
        assert_eq!((&report["requests"], &report["workload"]), (&2_000.into(), &workload.as_str().into()));
        assert_eq!(report["errors"], serde_json::json!({}), "{workload}");
        // Threads have operations, jobs have none.
        let has_threads = PERSONALITIES.contains(&&*workload) || YCSB.contains(&&*workload);
        assert_eq!(report.get("operations_us").is_some(), has_threads, "{workload}");
    }
}

/// OX-Block takes every kind of load, at odd sizes too.
#[test]
fn ox_block_runs_every_workload_and_pattern() {
    let small = ["--drive", "ox-block", "--set", "capacity=256MiB", "--io-count", "1000"];
    for workload in ["mixed", "bursts", "zipf-oltp", "varmail", "fileserver", "ycsb-a", "teafa-tpcc", "bfs"] {
        let workload = if workload == "bfs" { "flashshare-bfs" } else { workload };
        let report = report(&[&small[..], &["--workload", workload]].concat());
        assert_eq!(report["errors"], serde_json::json!({}), "{workload}");
    }
    for rw in ["read", "write", "rw", "trim", "randread", "randwrite", "randrw", "randtrim"] {
        for (mode, store) in [("capacitor", "none"), ("through", "ram")] {
            let mode = format!("buffer.mode={mode}");
            let load = ["--rw", rw, "--bs", "512/1:4k/2:96k/1", "--store", store, "--iodepth", "37", "--set", &mode];
            let report = report(&[&small[..], &load].concat());
            assert_eq!(
                (&report["requests"], &report["errors"]),
                (&1_000.into(), &serde_json::json!({})),
                "{rw} {mode}"
            );
        }
    }
    for changes in [
        ["capacity=65540KiB", "geometry.channels=3", "geometry.dies_per_channel=5"],
        ["capacity=300MiB", "buffer.size=64KiB", "ftl.over_provisioning=7%"],
        ["capacity=1000MiB", "ftl.mapping_unit=16KiB", "ftl.ox_block.transactions=true"],
        ["capacity=200MiB", "geometry.page_size=4KiB", "ftl.ox_block.map_memory=4KiB"],
        ["capacity=100MiB", "geometry.planes_per_die=2", "geometry.pages_per_block=100"],
    ] {
        let sets: Vec<&str> = changes.iter().flat_map(|change| ["--set", *change]).collect();
        let load = ["--drive", "ox-block", "--precondition", "steady", "--rw", "randrw", "--iodepth", "200"];
        let report = report(&[&load[..], &["--io-count", "3000"], &sets].concat());
        assert_eq!(report["errors"], serde_json::json!({}), "{changes:?}");
    }
}

/// A job for each FTL of a drive with two, and a missing namespace.
#[test]
fn jobs_run_on_the_ftl_of_their_namespace() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("both.toml");
    let text = "version = 1\n[[job]]\nrw = \"randwrite\"\n[[job]]\nrw = \"randrw\"\nnamespace = 2\n";
    std::fs::write(&file, text).expect("a workload");
    let file = file.display().to_string();
    let small = ["--drive", "two-ftls", "--set", "capacity=512MiB", "--precondition", "steady", "--io-count", "4000"];
    let out = folder.path().join("out").display().to_string();
    let report = report(&[&small[..], &["--workload", &file, "--out", &out]].concat());
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    let (_, table) = page.split_once("<table class=\"data\" id=\"parts\">").expect("a table of the FTLs");
    let (table, _) = table.split_once("</table>").expect("its end");
    assert!(["<td>page</td>", "<td>ox_block</td>", "<td>0-"].iter().all(|cell| table.contains(cell)), "{table}");
    assert_eq!(report["errors"], serde_json::json!({}));
    let parts = report["parts"].as_array().expect("a list");
    let written = |part: usize| parts[part]["host_written_bytes"].as_u64().expect("bytes");
    assert!(written(0) > 0 && written(1) > 0, "{parts:?}");
    assert_eq!((&parts[0]["kind"], &parts[1]["kind"]), (&"page".into(), &"ox_block".into()));
    assert!(parts[1]["units_metadata"].as_u64() > Some(0), "{parts:?}");
    let one = ["--rw", "randread", "--namespace", "3"];
    refuse(&[&["sim"], &small[..], &one].concat(), &["namespace = 3 is not there; from 1 to 2 is valid"]);
}

#[test]
fn operations_are_shown_and_wait_for_their_requests() {
    let small =
        ["--drive", "default", "--set", "capacity=256MiB", "--set", "buffer.mode=volatile", "--io-count", "4000"];
    let report = report(&[&small[..], &["--workload", "varmail", "--seed", "3"]].concat());
    // On a drive with a volatile cache, each fsync is a write to the journal and a flush.
    let mean = |of: &str, name: &str| report[of][name]["mean"].as_f64().expect("a mean");
    assert!(mean("operations_us", "fsync") > mean("latency_us", "flush"), "{report:#}");
    assert!(report["latency_us"]["flush"]["count"].as_u64() > Some(100), "{report:#}");
    assert_eq!(report["requests"], 4_000, "flushes count as requests");
    let table = succeed(&[&["sim"], &small[..], &["--workload", "varmail"]].concat());
    assert!(table.contains("operation, us") && table.contains("fsync"), "{table}");
}

#[test]
fn padding_and_suspensions_are_in_the_table() {
    let small = ["sim", "--drive", "default", "--set", "capacity=256MiB", "--io-count", "4000", "--iodepth", "4"];
    let load = ["--rw", "randrw", "--fsync", "1", "--set", "buffer.mode=volatile"];
    let table = succeed(&[&small[..], &load, &["--set", "timing.suspend.program=20us"]].concat());
    let line = |begin: &str| table.lines().find(|line| line.starts_with(begin)).map(str::to_owned);
    assert!(line("padding ").is_some_and(|line| line.contains(" mapping units programmed (")), "{table}");
    assert!(line("suspended for reads: programs ").is_some_and(|line| line.ends_with(" times")), "{table}");
    let plain = succeed(&[&small[..], &["--rw", "randread"]].concat());
    assert!(!plain.contains("padding ") && !plain.contains("suspended"), "{plain}");
}

#[test]
fn suspensions_are_reported_if_any_part_suspends() {
    let part = |number: u32, timing: &str| format!("{{channels=\"{}-{}\"{timing}}}", 4 * number, 4 * number + 3);
    let of = |second: &str| {
        let parts = format!("ftl.parts=[{}, {}]", part(0, ""), part(1, second));
        sim(&["--rw", "randread", "--io-count", "100", "--set", &parts])["flash"].clone()
    };
    let flash = of(", timing={suspend={program=\"20us\"}}");
    assert!(flash["program_suspensions"] == 0 && flash.get("erase_suspensions").is_none(), "{flash}");
    assert!(of("").get("program_suspensions").is_none());
}

#[test]
fn every_pattern_runs_with_a_store_and_without() {
    for store in ["none", "ram"] {
        for rw in ["read", "write", "rw", "trim", "randread", "randwrite", "randrw", "randtrim"] {
            let report = report(&[
                "--drive",
                "default",
                "--set",
                "capacity=64MiB",
                "--store",
                store,
                "--rw",
                rw,
                "--bs",
                "512/1:4k/2:96k/1",
                "--io-count",
                "2000",
            ]);
            assert_eq!(report["requests"], 2_000, "{store} {rw}");
            assert_eq!(report["errors"], serde_json::json!({}), "{store} {rw}");
        }
    }
}

#[test]
fn components_are_listed_with_the_key_that_chooses_them() {
    let listed = succeed(&["drives", "components"]);
    for words in [["ftl.ox.gc", "most_garbage"], ["ftl.ox.gc", "oldest"], ["ftl.ox.write_cache", "half_full"]] {
        let is_listed = |line: &str| words.iter().all(|word| line.split_whitespace().any(|part| part == *word));
        assert!(listed.lines().any(is_listed), "{words:?} in\n{listed}");
    }
}

/// The FTLs that keep or find their tables in flash run from the command line, and report their memory.
#[test]
fn ftls_of_components_run_and_report_their_memory() {
    for kind in ["ox_block", "pblk", "spdk"] {
        let kind = format!("ftl.kind={kind}");
        let changes = ["capacity=64MiB", "geometry.channels=2", "geometry.dies_per_channel=2", &kind];
        let mut command = vec![
            "sim",
            "--drive",
            "default",
            "--rw",
            "randwrite",
            "--io-count",
            "3000",
            "--precondition",
            "none",
            "--json",
        ];
        command.extend(changes.iter().flat_map(|change| ["--set", change]));
        let report: serde_json::Value = serde_json::from_str(&succeed(&command)).expect("a report");
        assert!(report["memory_bytes"]["block_tables"].as_u64() > Some(0), "{kind}: {}", report["memory_bytes"]);
        assert_eq!(report["errors"], serde_json::json!({}), "{kind}");
    }
}
