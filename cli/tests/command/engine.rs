//! `nandscape paper engine` and `nandscape memcached`: figures of each policy, and what is refused.

use serde_json::Value;

use crate::browser;
use crate::program::{number, refuse, succeed};

const SMALL: [&str; 9] =
    ["engine", "--reads", "3000", "--set", "capacity=32MiB", "--write-size", "64KiB", "--dirty", "2MiB"];

#[test]
fn each_policy_has_its_figures_and_reads_keep_away_from_tokens() {
    let json = [&SMALL[..], &["--json"]].concat();
    let report: Value = serde_json::from_str(&succeed(&json)).expect("one JSON object");
    for (run, policy) in ["mixed", "epochs", "gc_control", "raid0", "rails"].iter().enumerate() {
        let of = |what: &str| number(&report, &format!("/runs/{run}/{what}"));
        assert_eq!(report["runs"][run]["policy"], *policy);
        assert_eq!(of("read_latency_us/count"), 3_000.0);
        assert!(of("read_latency_us/p50") <= of("read_latency_us/p99_9"));
        assert!(
            of("reads_per_s") > 0.0
                && of("put_bytes_per_s") > 0.0
                && of("drive_bytes_written_per_s") > 0.0
                && of("epochs") > 0.0
        );
        assert_eq!((of("reads_at_tokens"), of("evictions")), (0.0, 0.0));
    }
    let one = [&SMALL[..], &["--policy", "gc_control", "--threads", "2", "--uplink", "1500MB"]].concat();
    let text = succeed(&one);
    assert_eq!(text, succeed(&one), "the same seed");
    let row = text.lines().find(|line| line.trim_start().starts_with("gc_control")).unwrap_or_default();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert!(text.contains("p99.99") && cells.iter().filter(|cell| **cell == "-").count() == 2, "{text}");
}

#[test]
fn a_page_has_the_turns_of_each_drive_under_each_policy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("turns.html");
    let page = file.to_str().unwrap();
    let words = [&SMALL[..], &["--policy", "mixed,gc_control", "--page", page]].concat();
    assert_eq!(succeed(&words), succeed(&words[..words.len() - 2]), "a page changes no figure");
    let data = browser::data(&std::fs::read_to_string(&file).unwrap());
    for (run, policy) in ["mixed", "gc_control"].iter().enumerate() {
        let turns = &data["runs"][run]["turns"];
        let lines: Vec<&str> = turns["lines"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let of_drive = |drive| ["token", "reads", "flash"].map(|what| format!("drive {drive} {what}"));
        assert_eq!(lines, (0..4).flat_map(of_drive).collect::<Vec<_>>(), "{policy}");
        // Times of reads and tokens of a drive do not overlap where drives take turns.
        let total = |kind: &str, line: usize| {
            let shares = turns["parts_per_million"][kind][line].as_array().unwrap();
            shares.iter().filter_map(Value::as_f64).sum::<f64>() / shares.len() as f64 / 1e6
        };
        let begun: f64 = turns["tokens_s"][0]
            .as_array()
            .unwrap()
            .iter()
            .map(|token| token[1].as_f64().unwrap() - token[0].as_f64().unwrap())
            .sum();
        let token = begun / turns["took_s"].as_f64().unwrap();
        assert!(total("write", 0) > 0.0 && total("reads of clients", 1) > 0.0 && total("program", 2) > 0.0);
        assert_eq!(*policy == "gc_control", token + total("reads of clients", 1) < 1.05, "{policy}: {token}");
    }
    browser::open(&file);
    // Reads that never pause are under way at the end.
    let many = ["engine", "--policy", "mixed", "--readers", "64", "--reads", "600", "--page", page];
    succeed(&[&many[..], &SMALL[3..]].concat());
    let data = browser::data(&std::fs::read_to_string(&file).unwrap());
    for line in [1, 4, 7, 10] {
        let shares = data["runs"][0]["turns"]["parts_per_million"]["reads of clients"][line].as_array().unwrap();
        let busy = shares.iter().filter_map(Value::as_f64).sum::<f64>() / shares.len() as f64;
        assert!(busy > 700_000.0, "line {line}: {busy}");
    }
    std::fs::write(&file, "my notes").unwrap();
    refuse(&words, &["turns.html exists and was not made by nandscape"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "my notes");
}

#[test]
fn wrong_usage_is_answered_with_what_is_valid() {
    for (words, reason) in [
        (&["--drives", "3"][..], "2, 4, 6 and so on are valid"),
        (&["--policy", "turns"], "mixed, epochs, gc_control, raid0, rails, predictable_latency, fdp, zoned are valid"),
        (&["--uplink", "1"], "--uplink: 1MB or more is valid"),
        (&["--write-size", "1MiB"], "--write-size: on drives of this size 131056 bytes or less are valid"),
        (&["--dirty", "1KiB"], "64KiB to 4GiB are valid"),
        (&["--read-size", "0"], "1 byte or more is valid"),
        (&["--read-size", "18446744073709551615"], "1GiB or less is valid"),
        (&["--small-items", "2KiB"], "2KiB is too much; 0 to 1024 are valid"),
        (&["--placement", "mirrors"], "copies and parity are valid"),
        (&["--placement", "parity", "--drives", "2", "--policy", "epochs"], "--placement parity 3 to 16 are valid"),
        (&["--placement", "parity", "--policy", "raid0"], "with --placement parity any other policy is valid"),
        (&["--tenants", "4"], "READERS:CLASS, with 1 to 4096 readers"),
        (&["--tenants", "4:16"], "a class from 0 to 15, is valid"),
        (&["--tenants", "4000:1,4000:2"], "4096 readers at most"),
        (&["--scheduler", "bfq"], "none, noop, ssd, cfq are valid"),
        (&["--set", "block.depth=4"], "no run has a block layer; --scheduler"),
        (&["--set", "block.deadline=1ms", "--scheduler", "cfq"], "block.depth and block.slice are valid here"),
        (&["--set", "block.depth=0", "--scheduler", "cfq"], "block.depth=1 and more are valid"),
        (
            &["--set", "ftl.kind=zone", "--set", "controller.max_transfer=1MiB"],
            "--policy mixed writes blocks in any order; --policy zoned, or a drive without zones",
        ),
        (&["--set", "ftl.zone.width=8", "--policy", "zoned"], "19 or more are valid"),
        (&["--set", "ftl.kind=ox_block", "--policy", "gc_control"], "takes no orders for its garbage collection"),
    ] {
        // A flag is given once.
        let kept = SMALL[1..].chunks(2).filter(|pair| pair[0] == "--set" || !words.contains(&pair[0]));
        let kept: Vec<&str> = kept.flatten().copied().collect();
        refuse(&[&["engine"], &kept[..], words].concat(), &[reason]);
    }
}

/// Small items take few bytes of the index, and most keys without an item cost no read.
#[test]
fn small_items_have_no_entries_in_the_index() {
    let words = [&SMALL[..], &["--policy", "gc_control", "--read-size", "200", "--absent", "20"]].concat();
    let run = |limit: &str| -> Value {
        let json = succeed(&[&words[..], &["--fill", "20", "--json", "--small-items", limit]].concat());
        serde_json::from_str(&json).expect("one JSON object")
    };
    let [with, without] = [run("300"), run("0")];
    let of = |report: &Value, what: &str| number(report, &format!("/runs/0/{what}"));
    assert!(of(&with, "index_bytes_an_item") < 8.0 && of(&without, "index_bytes_an_item") > 150.0);
    assert_eq!([&with, &without].map(|report| of(report, "read_latency_us/count")), [3_000.0; 2]);
    assert!(of(&with, "miss_latency_us/p50") < 10.0, "{with}");
    assert_eq!(of(&with, "reads_at_tokens"), 0.0);
    let text = succeed(&[&words[..], &["--small-items", "0"]].concat());
    assert!(text.contains("index bytes/item") && text.contains("without an item, us"), "{text}");
}

/// The same items under both placements: parity has the greater room, and reads the others for the drive that is written.
#[test]
fn parity_has_more_room_than_copies_and_reads_around_tokens() {
    let words = ["--placement", "copies,parity", "--policy", "gc_control"];
    let report: Value = serde_json::from_str(&succeed(&[&SMALL[..], &words, &["--json"]].concat())).expect("JSON");
    let of = |run: usize, what: &str| number(&report, &format!("/runs/{run}/{what}"));
    assert_eq!([0, 1].map(|run| of(run, "read_latency_us/count")), [3_000.0; 2]);
    assert_eq!(of(0, "items"), of(1, "items"));
    assert_eq!(of(1, "room_bytes") * 2.0, of(0, "room_bytes") * 3.0, "three drives of four against two");
    assert_eq!([0, 1].map(|run| of(run, "reads_at_tokens") + of(run, "evictions")), [0.0; 2]);
    assert!(of(0, "reconstructed") == 0.0 && of(1, "reconstructed") > 100.0, "{report}");
    assert!(of(1, "cpu_us_per_read") > of(0, "cpu_us_per_read"), "{report}");
    let text = succeed(&[&SMALL[..], &words].concat());
    assert!(text.contains("parity") && text.contains("CPU, us/read") && text.contains("room"), "{text}");
}

/// Rows of moved items take no more room than reclaim frees, whatever waits with them: nothing is evicted from a log with room.
#[test]
fn parity_keeps_all_items_over_several_passes() {
    for (policy, passes) in [("epochs", "2"), ("epochs", "3"), ("mixed", "3")] {
        let words = ["--placement", "parity", "--policy", policy, "--passes", passes, "--json"];
        let report: Value = serde_json::from_str(&succeed(&[&SMALL[..], &words].concat())).expect("JSON");
        let of = |what: &str| number(&report, &format!("/runs/0/{what}"));
        assert_eq!((of("evictions"), of("read_latency_us/count")), (0.0, 3_000.0), "{policy}, {passes} passes");
        assert!(of("moved_items") > 0.0, "{report}");
    }
}

/// Two tenants at drives that neither keep apart: the scheduler with classes serves the one of the higher class first.
#[test]
fn a_tenant_of_a_higher_class_has_the_shorter_tail_with_a_scheduler() {
    let words = ["--tenants", "2:1,48:12", "--policy", "gc_control", "--scheduler", "none,noop,cfq", "--writers", "1"];
    let report: Value = serde_json::from_str(&succeed(&[&SMALL[..], &words, &["--json"]].concat())).expect("JSON");
    let of = |run: usize, what: &str| number(&report, &format!("/runs/{run}/{what}"));
    let tail = |run: usize, tenant: usize| of(run, &format!("tenants/{tenant}/read_latency_us/p99"));
    for run in 0..3 {
        let counts = [0, 1].map(|tenant| of(run, &format!("tenants/{tenant}/read_latency_us/count")));
        assert!(counts[0] > 0.0 && counts[0] + counts[1] == 3_000.0, "{report}");
        assert_eq!(of(run, "reads_at_tokens"), 0.0);
    }
    assert!(tail(2, 0) * 2.0 < tail(1, 0), "cfq against noop: {report}");
    assert!(tail(2, 0) * 2.0 < tail(0, 0), "cfq against none: {report}");
    let text = succeed(&[&SMALL[..], &words].concat());
    assert!(text.contains("of a tenant, us") && text.contains("scheduler"), "{text}");
}

#[test]
fn a_timeline_has_the_tokens_and_reads_of_each_drive_and_its_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("turns.json");
    let words = ["--policy", "gc_control", "--chrome-trace", file.to_str().expect("a name")];
    succeed(&[&SMALL[..], &words].concat());
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("a file")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    for name in ["token", "write", "reads"] {
        assert!(named(name) > 4, "{name}");
    }
    let tracks: Vec<&str> = events.iter().filter_map(|event| event["args"]["name"].as_str()).collect();
    for track in ["engine drive 3 token", "engine drive 0 reads"] {
        assert!(tracks.contains(&track), "{track}: {tracks:?}");
    }
    assert!(tracks.iter().any(|track| track.starts_with("drive 2 ")), "{tracks:?}");
    refuse(&[&SMALL[..], &words[2..]].concat(), &["--chrome-trace: the file has one run; one --policy is valid"]);
}

/// Items that would all fit in memory: the load is below the cache, so that reads are at drives.
#[test]
fn a_load_that_fits_in_memory_ends() {
    let words = [&SMALL[..], &["--fill", "1", "--writers", "0", "--policy", "mixed", "--json"]].concat();
    let report: Value = serde_json::from_str(&succeed(&words)).expect("one JSON object");
    assert_eq!(number(&report, "/runs/0/read_latency_us/count"), 3_000.0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_refuses_what_it_cannot_serve() {
    for (words, reason) in [
        (&["--drives", "5"][..], "2, 4, 6 and so on are valid"),
        (&["--drives", "17", "--placement", "parity"], "--placement parity 3 to 16 are valid"),
        (&["--placement", "parity", "--policy", "raid0"], "any other policy is valid"),
        (&["--memory", "4KiB"], "1MiB or more is valid"),
        (&["--store-sync"], "give --store FOLDER"),
        (&["--dirty", "1GiB"], "64KiB to half of --memory are valid"),
        (&["--listen", "0.0.0.0:11211"], "--allow-remote"),
        (&["--listen", "11211"], "HOST:PORT as in 127.0.0.1:11211"),
        (&["--over", "block"], "--over block: memcached takes no layers; `nandscape paper engine --over` does"),
        (&["--flush-after", "1us"], "whole milliseconds from 1ms to 3600s are valid"),
        (&["--set", "ftl.kind=ox_block"], "--policy epochs or mixed is valid"),
        (
            &["--drive", "wd-zn540"],
            "--policy gc_control writes blocks in any order; --policy zoned, or a drive without zones",
        ),
        (&["--policy", "zoned", "--set", "ftl.kind=page"], "has no zones, and --policy zoned needs them"),
        (&["--policy", "zoned", "--placement", "parity"], "with --policy zoned copies are valid"),
        (&["--policy", "zoned", "--store", "cache"], "a drive with zones cannot be in a file, only one whose FTL is"),
        (&["--policy", "zoned", "--set", "ftl.zone.width=6"], "19 or more are valid"),
    ] {
        let all = [&["memcached", "--listen", "unix:refused.sock"][..], words].concat();
        let all = if words[0] == "--listen" { [&["memcached"][..], words].concat() } else { all };
        refuse(&all, &[reason]);
    }
}

/// A drive with an FTL for each half of its channels, in a file.
fn halves(folder: &std::path::Path, second: &str) -> String {
    let profile = format!(
        "version = 1\nbase = \"default\"\ncapacity = \"64MiB\"\nlba_size = \"4KiB\"\n[geometry]\nchannels = 4\ndies_per_channel = 1\n\
         planes_per_die = 2\npages_per_block = 64\n[buffer]\nsize = \"2MiB\"\n[[ftl.parts]]\nname = \"even\"\nchannels = \"0-1\"\n\
         [[ftl.parts]]\nname = \"odd\"\nchannels = \"2-3\"\n{second}"
    );
    let path = folder.join("halves.toml");
    std::fs::write(&path, profile).expect("a profile");
    path.display().to_string()
}

/// Tokens and orders are for a half of a drive: while it is written and collects, the other half is read.
#[test]
fn the_ftls_of_one_drive_take_turns() {
    let folder = tempfile::tempdir().expect("a folder");
    let drive = halves(folder.path(), "");
    let base =
        ["engine", "--reads", "3000", "--write-size", "64KiB", "--dirty", "2MiB", "--drives", "1", "--drive", &drive];
    let words = [&base[..], &["--policy", "mixed,gc_control", "--passes", "3", "--json"]].concat();
    let report: Value = serde_json::from_str(&succeed(&words)).expect("one JSON object");
    let of = |run: usize, what: &str| number(&report, &format!("/runs/{run}/{what}"));
    for run in [0, 1] {
        assert_eq!((of(run, "reads_at_tokens"), of(run, "read_latency_us/count")), (0.0, 3_000.0));
    }
    assert!(of(1, "epochs") > 1.0 && of(1, "read_latency_us/p99") < 0.5 * of(0, "read_latency_us/p99"), "{report}");
    refuse(&[&base[..9], &["--drive", "default"]].concat(), &["2, 4, 6 and so on are valid"]);
    let text = succeed(&[&base[..10], &[drive.as_str(), "--policy", "epochs"]].concat());
    assert!(text.contains("put/s") && text.contains("to drives/s"), "{text}");
    let with = |more: &[&'static str]| [&base[..7], &["--drive", drive.as_str()], more].concat();
    refuse(
        &with(&["--drives", "3", "--policy", "raid0,epochs"]),
        &["--drives 3: each drive has 2 FTLs", "an even number, or 1"],
    );
    let parity = ["--drives", "2", "--policy", "epochs", "--placement", "parity"];
    refuse(
        &with(&parity),
        &["each drive has 2 FTLs, and parity repairs the loss of one; --drives 1, or copies, is valid"],
    );
    let odd = halves(folder.path(), "capacity = \"16MiB\"\n");
    refuse(&[&base[..10], &[odd.as_str()]].concat(), &["its FTLs have", "parts of the same capacity are valid"]);
    let listen = format!("unix:{}", folder.path().join("m.sock").display());
    let drive = halves(folder.path(), "");
    let serves = ["memcached", "--listen", &listen, "--drive", &drive, "--drives"];
    refuse(&[&serves[..], &["3"]].concat(), &["--drives 3: each drive has 2 FTLs", "an even number, or 1"]);
    refuse(&[&serves[..], &["40"]].concat(), &["--drives 40: each drive has 2 FTLs; at most 32 drives are valid"]);
}

#[test]
fn a_trace_of_a_cache_has_its_hit_ratio_and_drive_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    // 40 gets a second of 400 keys in turn: each is missed once, and found from then on.
    let line = |number: u64| format!("{},key{},6,1000,1,get,0\n", number / 40, number % 400);
    let lines: String = (0..1_200).map(line).collect();
    let (plain, packed) = (path("trace.csv"), path("trace.zst"));
    std::fs::write(&plain, &lines).expect("a file");
    std::fs::write(&packed, zstd::encode_all(lines.as_bytes(), 0).expect("compressed")).expect("a file");
    let small = ["engine", "--set", "capacity=32MiB", "--policy", "epochs,gc_control", "--speed", "10"];
    let run = |more: &[&str]| -> Value {
        serde_json::from_str(&succeed(&[&small[..], more, &["--json"]].concat())).expect("one JSON object")
    };
    let whole = run(&["--cache-trace", &plain, "--warm-up", "0"]);
    assert_eq!(whole, run(&["--cache-trace", &packed, "--warm-up", "0"]));
    for run in [0, 1] {
        let of = |what: &str| number(&whole, &format!("/runs/{run}/{what}"));
        assert!((of("hit_ratio") - 2.0 / 3.0).abs() < 1e-9 && of("drive_writes_a_day") > 0.0, "{whole}");
        assert_eq!((of("items"), of("put_bytes"), of("measured_s")), (400.0, 400.0 * 1_006.0, 30.0));
        assert_eq!((of("latency_us/get, not found/count"), of("latency_us/change/count")), (400.0, 400.0));
    }
    let half = run(&["--cache-trace", &plain]);
    assert_eq!((number(&half, "/runs/0/hit_ratio"), number(&half, "/runs/0/measured_s")), (1.0, 15.0));
    let text = succeed(&[&small[..], &["--cache-trace", &plain, "--requests", "800"]].concat());
    assert!(text.contains("drive writes/day") && text.contains("get, found"), "{text}");
    std::fs::write(&plain, "1,a,1,1,1,get,0\n1,a,1,1,1,fetch,0\n").expect("a file");
    let wrong = [&small[..], &["--cache-trace", &plain]].concat();
    refuse(&wrong, &["trace.csv: line 2: the operation \"fetch\" is none of get, gets, set", "valid is TIME,KEY"]);
    let nowhere = path("nowhere");
    refuse(&[&small[..], &["--cache-trace", &nowhere]].concat(), &["nowhere", "No such file"]);
    refuse(&["engine", "--speed", "2"], &["--cache-trace"]);
    refuse(&[&small[..5], &["--cache-trace", &nowhere, "--speed", "0"]].concat(), &["0.001 to 1000000 is valid"]);
}

#[test]
fn ycsb_runs_behind_the_protocol() {
    let words = ["--policy", "mixed,gc_control", "--ycsb", "b", "--read-size", "1000", "--readers", "8", "--json"];
    let report: Value = serde_json::from_str(&succeed(&[&SMALL[..5], &words].concat())).expect("one JSON object");
    for run in [0, 1] {
        let of = |what: &str| number(&report, &format!("/runs/{run}/{what}"));
        assert_eq!((of("latency_us/operation/count"), of("reads_at_tokens")), (3_000.0, 0.0));
        // Two messages on each of two machines.
        assert!(of("latency_us/operation/p50") > 48.0 && of("operations_per_s") > 0.0, "{report}");
    }
    refuse(&["engine", "--cached", "50"], &["--ycsb"]);
}
