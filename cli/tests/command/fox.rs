//! `nandscape paper fox`.

use serde_json::Value;

use crate::program::{refuse, succeed};

const SMALL: [&str; 8] =
    ["--drive", "dfc-mlc", "--set", "geometry.blocks_per_plane=32", "--blocks", "1", "--pages", "32"];

fn fox(what: &str, args: &[&str]) -> String {
    succeed(&[&["fox", what][..], &SMALL, args].concat())
}

fn json(what: &str, args: &[&str]) -> Value {
    serde_json::from_str(&fox(what, &[args, &["--json"]].concat())).expect("a JSON object")
}

#[test]
fn every_benchmark_gives_its_table_and_the_same_one_again() {
    for (what, table) in [
        ("oc-0", "mixes on one parallel unit"),
        ("oc-0-units", "channel 7"),
        ("oc-2", "writes on one channel, one thread"),
        ("oc-3", "32 threads"),
        ("round-robin", "scaling"),
    ] {
        let text = fox(what, &[]);
        assert!(text.contains(table), "{what}: {text}");
        assert_eq!(text, fox(what, &[]), "the same inputs");
    }
    let mixes = json("oc-0", &[]);
    assert_eq!(mixes["runs"].as_array().expect("runs").len(), 5);
    // A page of 32 KiB in 1,949 us on average.
    let rate = mixes["runs"][0]["write"]["mb_s"].as_f64().expect("a rate");
    assert!((15.0..19.0).contains(&rate), "{rate}");
}

#[test]
fn a_folder_gets_tables_and_a_block_is_worn() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let isolated = ["--channels", "2", "--threads", "2", "--mix", "WR", "--out", out];
    fox("isolation", &isolated);
    let lines = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap().lines().count();
    assert_eq!((lines("runs.csv"), lines("units.csv"), lines("latencies.csv")), (2, 3, 65));
    let worn = [
        "fox",
        "oc-1",
        "--drive",
        "dfc-mlc",
        "--set",
        "geometry.blocks_per_plane=32",
        "--set",
        "geometry.pages_per_block=8",
        "--set",
        "wear.rber=tlc-72-layers",
        "--set",
        "wear.erase_growth=50%",
        "--cycles",
        "20",
        "--every",
        "10",
        "--json",
    ];
    let worn: Value = serde_json::from_str(&succeed(&worn)).unwrap();
    assert_eq!(worn["wear"]["points"][1]["erases"], 20);
}

#[test]
fn what_does_not_fit_is_told() {
    for (args, told) in [
        (&["oc-9", "--drive", "dfc-mlc"][..], "there are oc-0, oc-0-units, oc-2, oc-3, oc-1, sequential"),
        (&["oc-0", "--drive", "dfc-mlc", "--threads", "2"], "--threads is for an engine alone"),
        (&["oc-0", "--drive", "default"], "it is no open-channel drive"),
        (&["sequential", "--drive", "dfc-mlc", "--channels", "9"], "9 channels: there are 8"),
        (&["sequential", "--drive", "dfc-mlc", "--threads", "2"], "no unit has two threads"),
        (&["sequential", "--drive", "dfc-mlc", "--mix", "WX"], "such as WWWR"),
        (&["isolation", "--drive", "dfc-mlc", "--mix", "WR"], "give a multiple of 2"),
        (&["sequential", "--drive", "dfc-mlc", "--pages-per-command", "9"], "64 addresses"),
    ] {
        refuse(&[&["fox"][..], args].concat(), &[told]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_drive_is_a_profile_or_a_url_with_an_admin_queue() {
    refuse(&["fox", "oc-0"], &["--drive <P>", "--to <URL>"]);
    refuse(&["fox", "oc-0", "--drive", "dfc-mlc", "--to", "vfio-user://f.sock"], &["cannot be used with"]);
    for url in ["http://x", "nbd://127.0.0.1:1/x", "ring://dfc-mlc"] {
        let valid = "no drive with an admin queue; valid are nvme-tcp://HOST:PORT/NQN and vfio-user://PATH\n";
        refuse(&["fox", "oc-0", "--to", url], &["--to <URL>", valid]);
    }
}
