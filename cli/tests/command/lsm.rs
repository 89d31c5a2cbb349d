//! `nandscape paper lsm`: figures of both forms, and what is refused.

use serde_json::Value;

use crate::program::{number, refuse, succeed};

const SMALL: [&str; 11] = [
    "lsm",
    "--keys",
    "20000",
    "--operations",
    "5000",
    "--warm-up",
    "5000",
    "--memtable",
    "256KiB",
    "--run-size",
    "512KiB",
];

#[test]
fn both_forms_have_the_same_operations_and_their_own_figures() {
    for (benchmark, operations) in
        [("overwrite", &["put"][..]), ("readwhilewriting", &["get"]), ("seekrandom", &["seek"])]
    {
        let args = [&SMALL[..], &["--benchmark", benchmark]].concat();
        let report: Value =
            serde_json::from_str(&succeed(&[&args[..], &["--json"]].concat())).expect("one JSON object");
        for (run, form) in ["generic", "lsm"].iter().enumerate() {
            assert_eq!(report["runs"][run]["form"], *form);
            let count = |operation| number(&report, &format!("/runs/{run}/latency_us/{operation}/count"));
            assert_eq!(operations.iter().map(count).sum::<f64>(), 5_000.0, "{benchmark} {form}");
            let of = |what: &str| number(&report, &format!("/runs/{run}/{what}"));
            assert!(of("operations_per_s") > 0.0 && of("memory_bytes/store") > 0.0);
            assert!(of("host_cpu_us_per_operation") > 1.0 && of("device_cpu_us_per_operation") > 1.0);
            assert!(of("device_busy") > 0.0 && of("device_busy") <= 1.0, "{}", of("device_busy"));
        }
        // The others take longer.
        if benchmark != "overwrite" {
            continue;
        }
        let text = succeed(&args);
        assert_eq!(text, succeed(&args), "the same seed");
        assert!(operations.iter().all(|operation| text.contains(operation)) && text.contains("WAF store"), "{text}");
    }
    let report: Value = serde_json::from_str(&succeed(&[&SMALL[..], &["--json"]].concat())).expect("one JSON object");
    for run in 0..2 {
        let of = |what| number(&report, &format!("/runs/{run}/{what}"));
        assert!((of("waf_store") * of("waf_drive") / of("waf_total") - 1.0).abs() < 1e-9);
        assert_eq!(of("store_bytes"), of("drive_bytes"));
    }
}

/// Each workload of YCSB has its operations, in its shares.
#[test]
fn workloads_of_ycsb_have_their_shares_of_operations() {
    for (workload, shares) in [
        ("a", &[("read", 0.5), ("update", 0.5)][..]),
        ("b", &[("read", 0.95), ("update", 0.05)]),
        ("c", &[("read", 1.0)]),
        ("d", &[("read", 0.95), ("insert", 0.05)]),
        ("e", &[("scan", 0.95), ("insert", 0.05)]),
        ("F", &[("read", 0.5), ("read_modify_write", 0.5)]),
    ] {
        // Scans are long.
        let operations = if workload == "e" { "1000" } else { "5000" };
        let args = [&SMALL[..3], &SMALL[5..], &["--operations", operations, "--workload", workload, "--json"]].concat();
        let report: Value = serde_json::from_str(&succeed(&args)).expect("one JSON object");
        for (run, form) in ["generic", "lsm"].iter().enumerate() {
            let figures = report["runs"][run]["latency_us"].as_object().expect("operations");
            assert_eq!(figures.len(), shares.len(), "{workload} {form}: {figures:?}");
            let counts = shares.iter().map(|(name, share)| {
                let count = number(&report, &format!("/runs/{run}/latency_us/{name}/count"));
                let of_all = count / operations.parse::<f64>().unwrap();
                assert!((of_all - share).abs() < 0.03, "{workload} {form}: {of_all} are {name}, not {share}");
                count
            });
            assert_eq!(counts.sum::<f64>().to_string(), operations, "{workload} {form}");
        }
    }
    refuse(&["lsm", "--workload", "g"], &["possible values: a, b, c, d, e, f"]);
    refuse(&["lsm", "--workload", "a", "--benchmark", "overwrite"], &["--benchmark", "cannot be used with"]);
    refuse(&["lsm", "--max-scan", "5"], &["--workload"]);
}

#[test]
fn a_store_lies_on_layers_over_several_drives() {
    let generic = [&SMALL[..], &["--form", "generic", "--json"]].concat();
    let of = |over: &[&str], what: &str| {
        let text = succeed(&[&generic[..], over].concat());
        number(&serde_json::from_str(&text).expect("one JSON object"), &format!("/runs/0/{what}"))
    };
    let alone = of(&[], "drive_bytes");
    // A mirror programs everything twice, a stripe once.
    let mirrored = of(&["--over", "raid1:2", "--over", "cache,memory=1MiB"], "drive_bytes");
    assert!((mirrored / alone - 2.0).abs() < 0.2, "{mirrored} of {alone}");
    // Merges depend on latencies, so the store does not write the same bytes on a stripe.
    let striped = of(&["--over", "raid0:4", "--set", "array.chunk=16KiB"], "drive_bytes");
    assert!((striped / alone - 1.0).abs() < 0.2, "{striped} of {alone}");
    for (words, told) in [
        (&["--form", "both", "--over", "raid5:4"][..], "--form generic is valid"),
        (&["--form", "lsm", "--over", "cache"], "--form generic is valid"),
        (
            &["--seeds", "2", "--experiment", "1000", "--form", "generic", "--chrome-trace", "x.json"],
            "there are 2 runs",
        ),
        (&["--over", "raid1:2", "--fault", "drive-2=slow"], "NAME=RULE names one of drive-0, drive-1"),
        (&["--form", "generic", "--over", "raid9:4"], "raid9:4"),
        (&["--form", "generic", "--over", "raid0:2", "--set", "array.chunk=1"], "array.chunk"),
        (&["--form", "generic", "--over", "ftl"], "that of an open-channel drive"),
        (&["--form", "generic", "--over", "cache", "--to", "vfio-user://f.sock"], "cannot be used with"),
    ] {
        refuse(&[&["lsm"], words].concat(), &[told]);
    }
}

#[test]
fn an_experiment_tells_both_forms_at_each_number_of_keys() {
    let small =
        ["lsm", "--experiment", "10000,20000", "--operations", "5000", "--memtable", "256KiB", "--run-size", "512KiB"];
    let seeds = [&small[..], &["--seeds", "2", "--warm-up", "5000"]].concat();
    let report: Value = serde_json::from_str(&succeed(&[&seeds[..], &["--json"]].concat())).expect("one JSON object");
    for (row, (keys, form)) in
        [(10_000, "generic"), (10_000, "lsm"), (20_000, "generic"), (20_000, "lsm")].into_iter().enumerate()
    {
        let row = &report["rows"][row];
        assert_eq!((&row["keys"], &row["form"]), (&Value::from(keys), &Value::from(form)));
        assert!(
            number(row, "/waf_total/low") <= number(row, "/waf_total/high") && number(row, "/utilisation/mean") > 0.0
        );
    }
    let text = succeed(&seeds);
    assert!(text.contains("of moves") && text.lines().count() >= 5, "{text}");
    // The named drive, at the size that is set unless it is told.
    let named = [&small[..], &["--drive", "lsm", "--form", "lsm", "--json"]].concat();
    let report: Value = serde_json::from_str(&succeed(&named)).expect("one JSON object");
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_cannot_be_run_is_told() {
    for (words, told) in [
        (&["--keys", "0"][..], "0 is not in 1..=1000000000"),
        (&["--key-size", "4"], "4 is not in 8..=1024"),
        (&["--ratio", "1"], "1 is not in 2..=1000"),
        (&["--benchmark", "fillsync"], "possible values: fillrandom, overwrite"),
        (&["--form", "generic", "--memtable", "1KiB"], "--form generic: a memtable of 1024 bytes"),
        (&["--form", "lsm", "--set", "ftl.kind=page"], "--form lsm: the drive knows no sorted runs"),
        (&["--form", "lsm", "--set", "buffer.mode=volatile"], "buffer.mode: ftl.kind = \"lsm\" needs \"capacitor\""),
        (&["--form", "lsm", "--set", "ftl.zone.zrwa_size=64KiB"], "is for ftl.kind = \"zone\""),
        (&["--form", "lsm", "--set", "ftl.lsm.reserve_zones=1"], "ftl.lsm.reserve_zones: 1 of "),
        (&["--form", "lsm", "--set", "ftl.lsm.reserve_zones=4294967295"], "ftl.lsm.reserve_zones: 4294967295 of "),
        (&["--experiment", "0"], "0 is not in 1..=1000000000"),
        (&["--experiment", "9", "--keys", "9"], "cannot be used with"),
        (&["--seeds", "2"], "--experiment"),
        (&["--form", "lsm", "--set", "ftl.lsm.run_size=4KiB"], "(ftl.lsm.run_size); 131072 or more are valid"),
        (&["--form", "lsm", "--set", "ftl.lsm.run_size=5000"], "ftl.lsm.run_size: "),
        (&["--keys", "900000", "--form", "lsm"], "fewer --keys or a larger capacity is valid"),
        (
            &["--form", "generic", "--set", "ftl.kind=zone"],
            "has zones, and the store writes blocks in any order; `--drive default --set ftl.kind=ox_block` is valid",
        ),
        (&["--form", "generic", "--set", "ftl.kind=lsm"], "ftl.kind = \"lsm\" has sorted runs, and the store"),
        (&["--to", "http://x"], "valid are nvme-tcp://HOST:PORT/NQN and vfio-user://PATH"),
        (&["--to", "vfio-user://nothing.sock"], "--form generic or --form lsm is valid"),
        (&["--to", "vfio-user://nothing.sock", "--form", "lsm"], "--to vfio-user://nothing.sock: "),
        (&["--overwrite"], "--to <URL>"),
    ] {
        refuse(&[&["lsm"], words].concat(), &[told]);
    }
}

#[test]
fn a_drive_with_runs_takes_no_workload_of_blocks() {
    let drive = ["--drive", "default", "--set", "capacity=208MiB", "--set", "ftl.kind=lsm", "--set", "lba_size=4KiB"];
    let small =
        ["--set", "geometry.channels=2", "--set", "buffer.mode=capacitor", "--rw", "randwrite", "--io-count", "10"];
    let words = [&["sim"], &drive[..], &small].concat();
    refuse(&words, &["ftl.kind = \"lsm\" has runs", "`nandscape paper lsm` has loads for it"]);
    refuse(&[&words[..], &["--array", "raid1:2"]].concat(), &["drives of default have runs"]);
}
