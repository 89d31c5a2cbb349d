//! `nandscape paper ycsb` in simulated time: figures of both forms, and what is refused.

use serde_json::Value;

use crate::program::{number, refuse, run, succeed};

const SMALL: [&str; 7] = ["ycsb", "--records", "2000", "--operations", "4000", "--cache", "1MiB"];

#[test]
fn both_forms_have_the_same_operations_and_their_own_figures() {
    for (workload, operations) in
        [("a", &["read", "update"][..]), ("e", &["insert", "scan"]), ("f", &["read", "read_modify_write"])]
    {
        let args = [&SMALL[..], &["--workload", workload]].concat();
        let report: Value =
            serde_json::from_str(&succeed(&[&args[..], &["--json"]].concat())).expect("one JSON object");
        for (run, form) in ["conventional", "offloaded"].iter().enumerate() {
            assert_eq!(report["runs"][run]["form"], *form);
            let count = |operation| number(&report, &format!("/runs/{run}/latency_us/{operation}/count"));
            assert_eq!(operations.iter().map(count).sum::<f64>(), 4_000.0, "{workload} {form}");
            assert!(number(&report, &format!("/runs/{run}/operations_per_s")) > 0.0);
            assert!(number(&report, &format!("/runs/{run}/host_cpu_us_per_operation")) > 3.0);
            assert!(number(&report, &format!("/runs/{run}/device_cpu_us_per_operation")) > 1.0);
            let busy = number(&report, &format!("/runs/{run}/device_busy"));
            assert!(busy > 0.0 && busy <= 1.0, "{busy}");
        }
        if workload != "a" {
            continue;
        }
        let text = succeed(&args);
        assert_eq!(text, succeed(&args), "the same seed");
        assert!(operations.iter().all(|operation| text.contains(operation)) && text.contains("WAF store"), "{text}");
    }
    let layers = ["--form", "conventional", "--over", "block", "--over", "raid5:3", "--json"];
    let report: Value = serde_json::from_str(&succeed(&[&SMALL[..], &layers].concat())).expect("one JSON object");
    assert_eq!(report["runs"][0]["form"], "conventional");
    // Other forms need the drive itself, and are left out by default.
    assert_eq!(succeed(&[&SMALL[..], &layers[2..]].concat()), succeed(&[&SMALL[..], &layers].concat()));
    refuse(&[&SMALL[..], &["--form", "both", "--over", "raid5:3"]].concat(), &["--form conventional is valid"]);
    let chunks = ["--drive", "dfc-mlc", "--set", "buffer.mode=through", "--set", "geometry.blocks_per_plane=32"];
    succeed(&[&SMALL[..], &["--form", "conventional", "--over", "ftl"], &chunks].concat());
    // The bytes of the two write amplifications are the same.
    let report: Value = serde_json::from_str(&succeed(&[&SMALL[..], &["--json"]].concat())).expect("one JSON object");
    for run in 0..2 {
        let waf = |what| number(&report, &format!("/runs/{run}/waf_{what}"));
        assert!((waf("store") * waf("drive") / waf("total") - 1.0).abs() < 1e-9);
    }
    // The places of pages are the host's in one form, and the drive's in the other.
    let places = |run| number(&report, &format!("/runs/{run}/memory_bytes/places"));
    assert!(places(0) > 0.0 && places(1) == 0.0);
}

#[test]
fn chains_have_pages_at_their_true_length_or_deltas() {
    let waf = |words: &[&str]| {
        let report: Value = serde_json::from_str(&succeed(&[&SMALL[..], words, &["--json"]].concat())).expect("JSON");
        let last = report["runs"].as_array().expect("runs").len() - 1;
        (report["runs"][last]["form"].clone(), number(&report, &format!("/runs/{last}/waf_total")))
    };
    let (_, fixed) = waf(&["--form", "offloaded"]);
    let (variable, less) = waf(&["--form", "chains", "--pieces", "1"]);
    let (deltas, least) = waf(&["--form", "all"]);
    assert_eq!((variable, deltas), ("offloaded, variable".into(), "offloaded, deltas".into()));
    assert!(less < fixed && least < less, "{fixed}, {less} and {least}");
}

#[test]
fn what_cannot_be_run_is_told() {
    let size = "--cache, --page, --pieces and the drive's capacity: ";
    let load = "--records, --value-size and the drive's capacity: ";
    for (words, told) in [
        (&["--records", "0"][..], "0 is not in 1..=1000000000"),
        (&["--operations", "18446744073709551615"], "is not in 1..=1000000000000"),
        (&["--clients", "0"], "0 is not in 1..=65536"),
        (&["--cores", "0"], "0 is not in 1..=1024"),
        (&["--value-size", "18446744073709551615"], "is not in 0..=65536"),
        (&["--workload", "g"], "possible values: a, b, c, d, e, f"),
        (&["--page", "100KiB"], &format!("{size}pages of 102400 bytes")),
        (&["--pieces", "0"], &format!("{size}pages of 4096 bytes in 0 pieces")),
        (&["--cache", "0"], &format!("{size}a memory of 0 bytes")),
        (&["--value-size", "50000"], &format!("{load}a key of 8 and a value of 50000 bytes")),
        (&["--page", "4KiB", "--form", "offloaded"], "--page and --pieces are of the conventional form and of chains"),
        (&["--checkpoint", "1s", "--form", "chains"], "--checkpoint is of the conventional form; chains have"),
        (&["--pieces", "33", "--form", "chains"], &format!("{size}33 pieces of a page; 1 to 32 are valid")),
        (&["--page", "64KiB", "--form", "chains"], &format!("{size}pages of 65536 bytes; 1024 to 43690 are valid")),
        (&["--set", "ftl.kind=page", "--form", "chains"], "the drive: the drive knows no pages"),
        (
            &["--set", "ftl.kind=page", "--form", "offloaded"],
            "the drive: the drive knows no pages of a log-structured store",
        ),
        (&["--set", "capacity=16MiB"], "8 are the least"),
        (
            &["--set", "ftl.kind=zone", "--set", "buffer.mode=capacitor", "--set", "lba_size=4KiB"],
            "ftl.kind = \"zone\" has zones, and the store writes blocks in any order; `--drive default --set ftl.kind=ox_block` is valid",
        ),
        (
            &["--set", "ftl.kind=open_channel", "--set", "buffer.mode=through", "--set", "lba_size=4KiB"],
            "ftl.kind = \"open_channel\" has chunks",
        ),
        (&["--to", "http://x"], "valid are nvme-tcp://HOST:PORT/NQN and vfio-user://PATH"),
        (&["--to", "vfio-user://nothing.sock"], "--form conventional, offloaded or chains is valid"),
        (&["--to", "vfio-user://nothing.sock", "--form", "offloaded"], "--to vfio-user://nothing.sock: "),
        (&["--control", "n.control"], "--to <URL>"),
        (
            &["--to", "vfio-user://nothing.sock", "--form", "offloaded", "--control", "nothing.control"],
            "--control nothing.control: ",
        ),
    ] {
        refuse(&[&["ycsb"], words].concat(), &[told]);
    }
}

/// A drive that fails is a failed run, with the drive's word for it.
#[test]
fn a_drive_that_fails_fails_the_run() {
    let faults = "faults=['uncorrectable read every=30']";
    let ran = run(&["ycsb", "--records", "20000", "--operations", "500", "--cache", "2MiB", "--set", faults]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("Unrecovered Read Error (2:81h)") && !ran.err.contains("--records"), "{}", ran.err);
}

/// A mirror hides the faults of one of its drives, which the record of events has by name.
#[test]
fn a_store_on_a_mirror_outlives_a_drive() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.json").display().to_string();
    let load = ["ycsb", "--records", "20000", "--operations", "500", "--cache", "2MiB"];
    let fault = ["--fault", "drive-1=uncorrectable read every=30"];
    let text = succeed(&[&load[..], &["--over", "raid1:2", "--chrome-trace", &file], &fault].concat());
    assert!(text.contains("conventional"), "{text}");
    let events = std::fs::read_to_string(&file).unwrap();
    assert!(["drive-0 ", "drive-1 "].iter().all(|drive| events.contains(drive)), "both drives have tracks");
    refuse(&[&load[..], &fault].concat(), &["there is no drive \"drive-1\"; NAME=RULE names one of drive-0"]);
    refuse(
        &[&load[..], &["--chrome-trace", &file]].concat(),
        &["a file has one of them; --form conventional is valid"],
    );
}

/// A profile file keeps its own settings.
#[test]
fn defaults_are_for_built_in_drives() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.toml");
    std::fs::write(&file, "version = 1\nbase = \"default\"\ncapacity = \"512MiB\"\n[ftl]\nkind = \"page\"\n").unwrap();
    let drive = ["--drive", file.to_str().unwrap(), "--form"];
    refuse(&[&SMALL[..], &drive, &["offloaded"]].concat(), &["knows no pages"]);
    succeed(&[&SMALL[..], &drive, &["conventional"]].concat());
}
