//! States of drives: preconditioning under a load, and files that states are saved to and taken from.

use std::path::Path;

use serde_json::Value;

use crate::program::{refuse, run, sim, succeed};

const DRIVE: [&str; 4] = ["--drive", "default", "--set", "capacity=64MiB"];
const LOAD: [&str; 4] = ["--rw", "randrw", "--io-count", "3000"];

/// A report without what depends on the machine.
fn report(args: &[&[&str]]) -> Value {
    let args = [&[&["sim", "--json"][..]], args].concat().concat();
    let mut report: Value = serde_json::from_str(&succeed(&args)).expect("one JSON object");
    report.as_object_mut().expect("an object").remove("host");
    report
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of UTF-8")
}

#[test]
fn a_run_from_a_file_is_the_run_that_wrote_it() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("worn.state");
    let file = text(&state);
    let plain = report(&[&DRIVE, &LOAD, &["--precondition", "steady"]]);
    let saving = report(&[&DRIVE, &LOAD, &["--precondition", "steady", "--save-state", file]]);
    let with_drive = report(&[&DRIVE, &LOAD, &["--from-state", file]]);
    let mut without = report(&[&LOAD, &["--from-state", file]]);
    assert_eq!((&plain, &plain), (&saving, &with_drive));
    without["inputs"]["set"] = plain["inputs"]["set"].clone();
    assert_eq!(plain, without, "the profile is in the file");
    let json: Value = serde_json::from_str(&succeed(&["sim", "--json", "--from-state", file, "--rw", "read"])).unwrap();
    assert_eq!(json["host"]["state_file"], file);
    let changed = report(&[&LOAD, &["--from-state", file, "--set", "ftl.gc.victim=cost_benefit", "--seed", "2"]]);
    assert_eq!(changed["precondition"], "steady");
    assert!(changed["initial_state"].as_str().unwrap().ends_with("(seed 1)"), "{}", changed["initial_state"]);

    let after = folder.path().join("after.state");
    assert_eq!(plain, report(&[&DRIVE, &LOAD, &["--precondition", "steady", "--save-state-after", text(&after)]]));
    let next = report(&[&LOAD, &["--from-state", text(&after)]]);
    assert!(next["initial_state"].as_str().unwrap().ends_with(", then randrw with 3000 requests measured"), "{next:#}");
    refuse(&["sim", "--from-state", file, "--rw", "read", "--save-state-after", file], &["would overwrite"]);

    let shown = succeed(&["inspect", file]);
    assert!(shown.contains("state of a drive default, 64MiB, without data"), "{shown}");
    assert!(shown.contains("steady state of uniform random 4KiB overwrites") && shown.contains("seed 1"), "{shown}");
    let blocks = shown.lines().find_map(|line| line.strip_prefix(" blocks ")).expect("a line of blocks");
    assert!(blocks.contains(" full") && shown.contains(" erases a block, mean "), "{shown}");
    let other = ["sim", "--drive", "default", "--set", "capacity=128MiB", "--rw", "read", "--from-state", file];
    refuse(&other, &["--from-state", "worn.state: it is of another drive: capacity is", "128MiB"]);
    refuse(&["sim", "--from-state", file, "--precondition", "full", "--rw", "read"], &["cannot be used with"]);
    let mine = folder.path().join("mine.toml");
    std::fs::write(&mine, "version = 1\nbase = \"default\"\ncapacity = \"64MiB\"\n").unwrap();
    refuse(&["sim", "--drive", text(&mine), "--rw", "read", "--save-state", text(&mine)], &["would overwrite"]);
    let trace = ["sim", "--from-state", file, "--rw", "read", "--chrome-trace", file];
    refuse(&trace, &["--chrome-trace", "would overwrite --from-state"]);

    let mut bytes = std::fs::read(&state).unwrap();
    bytes[5_000] ^= 1;
    std::fs::write(&state, &bytes).unwrap();
    refuse(&["sim", "--from-state", file, "--rw", "read"], &["it is damaged: the map, bytes 4096 to"]);
    refuse(&["inspect", file], &["it is damaged: the map"]);
    refuse(
        &["sim", "--from-state", folder.path().to_str().unwrap(), "--rw", "read"],
        &["it is a directory; a regular file is valid"],
    );
    std::fs::write(&state, "something else").unwrap();
    refuse(&["sim", "--from-state", file, "--rw", "read"], &["it is no state of a drive", "--save-state"]);
}

/// A state shows its drive as the file of a drive does: blocks, wear, valid units, the map, the log of an OX-Block.
#[test]
fn a_state_is_inspected_like_the_file_of_a_drive() {
    let folder = tempfile::tempdir().unwrap();
    let saved = |name: &str, more: &[&str]| {
        let file = folder.path().join(name);
        let write = ["--rw", "randwrite", "--io-count", "3000", "--save-state-after", text(&file)];
        succeed(&[&["sim"], &DRIVE[..], &write, more].concat());
        text(&file).to_owned()
    };
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(&succeed(&[&["inspect"], args, &["--json"]].concat())).expect("one JSON object")
    };
    let page = saved("page.state", &["--precondition", "steady", "--age", "6months"]);
    let ox = saved("ox.state", &["--set", "ftl.kind=ox_block", "--set", "ftl.over_provisioning=150%"]);
    for file in [&page, &ox] {
        let state = json(&[file, "--blocks"]);
        let drive = &state["contents"][0];
        let blocks = drive["block_list"].as_array().expect("blocks");
        let sum = |of: &dyn Fn(&Value) -> u64| blocks.iter().map(of).sum::<u64>();
        let counted: u64 = drive["blocks"].as_object().expect("by state").values().filter_map(Value::as_u64).sum();
        assert_eq!(counted, blocks.len() as u64, "{file}");
        assert_eq!(sum(&|block| block["erases"].as_u64().unwrap()), drive["erases"]["sum"].as_u64().unwrap(), "{file}");
        let current = sum(&|block| block["current_units"].as_u64().unwrap());
        assert!(current > 0 && current >= drive["map"]["on_flash"].as_u64().unwrap(), "{file}: {current}");
        let lba = json(&[file, "--lba", "0"]);
        assert_eq!((&lba["logical_unit"], &lba["in_buffer"]), (&0.into(), &false.into()), "{file}: {lba}");
        let table = succeed(&["inspect", file, "--blocks"]);
        assert!(table.contains("current units") && table.lines().count() > blocks.len(), "{file}");
        // Where the map has a unit, its page has it.
        let lba = (0..1_000)
            .map(|lba| json(&[file, "--lba", &(lba * 8).to_string()]))
            .find(|lba| lba["on_flash"].is_object());
        let lba = lba.unwrap_or_else(|| panic!("{file}: nothing is on flash"));
        let at = json(&[file, "--page", lba["on_flash"]["address"].as_str().unwrap()]);
        let unit = &at["units"][lba["on_flash"]["unit"].as_u64().unwrap() as usize];
        assert_eq!((&at["status"], &unit["tag"]), (&"programmed".into(), &lba["logical_unit"]), "{file}: {at}");
    }
    let shown = succeed(&["inspect", &page]);
    for row in ["memory of the FTL", "days with power", "0 sectors unreadable", "state of a drive default"] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    for absent in ["subsystem", "starts, ", "written"] {
        assert!(!shown.lines().any(|line| line.trim_start().starts_with(absent)), "{absent}: {shown}");
    }
    refuse(&["inspect", &page, "--log"], &["--log: an FTL of kind page has no log"]);
    refuse(&["inspect", &page, "--drive", "1"], &["--drive 1: there is no such drive; 0 is valid"]);
    assert!(succeed(&["inspect", &ox, "--log"]).contains("pages of the log: "));
    assert!(succeed(&["inspect", &ox]).contains("checkpoint"));
}

/// Without a key of `wear` the flash of a drive does not age, and would lose its age unseen.
#[test]
fn the_age_of_a_state_is_not_lost_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("old.state");
    let file = text(&state);
    report(&[&DRIVE, &LOAD, &["--age", "18months", "--save-state", file]]);
    let read = ["--rw", "read", "--io-count", "10", "--from-state", file];
    refuse(&[&["sim"], &DRIVE[..], &read].concat(), &["its flash ages there", "wear.rber = \"none\" leaves it out"]);
    for rates in ["tlc-72-layers", "none"] {
        let with = report(&[&DRIVE, &read, &["--set", &format!("wear.rber={rates}")]]);
        assert_eq!(with["aging"].is_null(), rates == "none", "{rates}: {with:#}");
    }
}

#[test]
fn a_load_settles_before_the_run_and_the_report_says_how() {
    let report = sim(&["--rw", "randwrite", "--io-count", "3000", "--precondition", "load"]);
    let windows = report["settled"]["waf"].as_array().expect("windows").len();
    assert!((3..=32).contains(&windows) && report["settled"]["stood_still"].is_boolean(), "{report:#}");
    assert_eq!((&report["precondition"], &report["settled"]["workload"]), (&"load".into(), &"randwrite".into()));
    let other =
        sim(&["--rw", "read", "--io-count", "100", "--precondition", "load", "--precondition-workload", "mixed"]);
    assert_eq!(other["workload"], "read");
    assert!(other["initial_state"].as_str().unwrap().contains("written full, then mixed "), "{other:#}");
    // An open load ends with its next request outstanding.
    let open = ["--rw", "randwrite", "--rate-iops", "2000", "--io-count", "1000", "--precondition", "load"];
    assert_eq!(sim(&open)["settled"]["workload"], "randwrite");
    let args = |more: &[&'static str]| [&["sim"], &DRIVE[..], &["--rw", "randread"], more].concat();
    refuse(&args(&["--precondition", "load"]), &["writes nothing", "--precondition-workload"]);
    refuse(&args(&["--precondition-workload", "mixed"]), &["--precondition-workload is for --precondition load"]);
}

#[test]
fn a_state_that_cannot_be_had_here_is_refused_with_the_way_to_it() {
    let way = ["a load takes drive time", "--save-state FILE", "--from-state FILE", "none, full and steady are valid"];
    let address = ["--nbd", "unix:never.sock"];
    refuse(&[&["serve", "--drive", "default", "--precondition", "load"], &address[..]].concat(), &way);
    refuse(&["bench", "--to", "ring://default", "--rw", "read", "--precondition", "load"], &way);
    refuse(&["bench", "--to", "ring://default", "--rw", "read", "--precondition", "worn"], &["none, full and steady"]);
    let ways = ["nandscape sim --from-state worn.state", "nandscape sweep --set from_state=worn.state"];
    refuse(&["compare", "a", "b", "--from-state", "worn.state"], &ways);
}

#[test]
fn what_was_decided_for_a_saved_state_is_said_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("small.state");
    let file = file.to_str().expect("UTF-8");
    let small = ["sim", "--drive", "default", "--set", "capacity=1GiB", "--rw", "read", "--io-count", "10"];
    succeed(&[&small[..], &["--save-state", file]].concat());
    let ran = run(&["sim", "--from-state", file, "--rw", "read", "--io-count", "10"]);
    let notes = ran.err.matches("small drive: ").count();
    assert!(ran.code == 0 && notes == 1, "{}", ran.err);
}
