//! `paper engine` and `kv sim` over layers, and on drives with faults.

use serde_json::Value;

use crate::program::{number, refuse, run, succeed};

const ENGINE: [&str; 11] = [
    "engine",
    "--reads",
    "1000",
    "--set",
    "capacity=32MiB",
    "--write-size",
    "64KiB",
    "--dirty",
    "2MiB",
    "--drives",
    "2",
];
const KV: [&str; 10] =
    ["kv", "sim", "--requests", "500", "--records", "500", "--set", "capacity=1GiB", "--noise", "none"];

fn report(words: &[&str]) -> Value {
    serde_json::from_str(&succeed(&[words, &["--json"]].concat())).expect("one JSON object")
}

/// The names of the layers of a run, in the order of their sections.
fn layers(report: &Value, run: usize) -> Vec<&str> {
    let chain = report["runs"][run]["chain"].as_array().expect("sections");
    chain.iter().filter_map(|section| section["layer"].as_str()).collect()
}

#[test]
fn each_drive_of_the_engine_is_a_chain_with_its_sections() {
    let words =
        [&ENGINE[..], &["--policy", "epochs", "--over", "block", "--over", "raid1:2", "--over", "cache,memory=1MiB"]]
            .concat();
    let found = report(&words);
    let names = ["block/0", "block/1", "block/2", "block/3", "array/0", "array/1", "cache/0", "cache/1"];
    assert_eq!(layers(&found, 0), names);
    assert_eq!(found, report(&words), "the same seed");
    let of = |what: &str| number(&found, &format!("/runs/0/{what}"));
    assert!(of("read_latency_us/count") == 1_000.0 && of("chain/6/cache/misses") > 0.0, "{found}");
    assert_eq!(of("reads_at_tokens"), 0.0);
    assert!(found["runs"][0].get("drives").is_none() && found["runs"][0].get("events").is_none());
    let text = succeed(&words);
    assert!(text.contains("\nepochs:\nblock/0 over drive-0:\n") && text.contains("cache/1 over array/1:"), "{text}");
    let ycsb = report(&[&words[..3], &words[9..], &["--ycsb", "b", "--set", "capacity=32MiB"]].concat());
    assert_eq!(layers(&ycsb, 0), names);
}

#[test]
fn a_scheduler_is_a_short_form_of_a_block_layer() {
    let load = ["--policy", "gc_control", "--tenants", "2:1,16:12"];
    let short = report(&[&ENGINE[..], &load, &["--scheduler", "cfq"]].concat());
    let layer = ["--over", "block,predictor=none,depth=8,slice=1ms,scheduler=cfq"];
    let mut long = report(&[&ENGINE[..], &load, &layer].concat());
    let run = long["runs"][0].as_object_mut().expect("a run");
    assert_eq!(run.remove("chain").map(|chain| chain.as_array().map(Vec::len)), Some(Some(2)));
    run.insert("scheduler".to_owned(), "cfq".into());
    assert_eq!(short, long);
    // Keys of block change only the runs that have a block layer.
    let both = ["--policy", "mixed", "--scheduler", "none,cfq", "--set", "block.depth=4"];
    assert_eq!(report(&[&ENGINE[..], &both].concat())["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn policies_that_layers_do_not_serve_are_refused_or_left_out() {
    for (words, parts) in [
        (
            &["--policy", "mixed,gc_control", "--over", "mirror=raid1:2"][..],
            &["--policy gc_control: layer mirror passes no admin commands to drives", "policies mixed, epochs, raid0"]
                [..],
        ),
        (&["--policy", "fdp", "--over", "ahci:2"], &["--policy fdp: layer ahci passes no admin commands"]),
        (&["--policy", "predictable_latency", "--over", "raid1:2"], &["--policy predictable_latency: layer array"]),
        (
            &["--policy", "zoned", "--over", "cache"],
            &["--policy zoned: layer cache passes no commands of zones; block"],
        ),
        (&["--policy", "mixed", "--over", "ftl"], &["--over: drive default has its own FTL"]),
        (&["--policy", "mixed", "--over", "blok"], &["there is no layer \"blok\""]),
        (&["--policy", "mixed", "--over", "cache", "--scheduler", "cfq"], &["cannot be used with"]),
        (
            &["--policy", "mixed", "--over", "block,scheduler=cfq,depth=0"],
            &["--over: block: block.scheduler: cfq has nothing", "block.depth=1 and more are valid"],
        ),
        (
            &["--policy", "mixed", "--fault", "drive-2=dead"],
            &["there is no drive \"drive-2\"; NAME=RULE names one of drive-0, drive-1,"],
        ),
        (
            &["--policy", "mixed", "--over", "raid0:8", "--fault", "drive-16=dead"],
            &["one of drive-0 to drive-15, a RULE"],
        ),
        (
            &[
                "--policy",
                "mixed",
                "--uplink",
                "1GB",
                "--drive",
                "dfc-mlc",
                "--set",
                "buffer.mode=through",
                "--over",
                "ftl",
            ],
            &["--uplink: the layer ftl lies directly over its drive"],
        ),
    ] {
        refuse(&[&ENGINE[..], words].concat(), parts);
    }
    let ran = run(&[&["engine", "--reads", "200"], &ENGINE[3..], &["--over", "raid0:2"]].concat());
    assert!(
        ran.code == 0 && ran.err.contains("which is left out: gc_control") && !ran.out.contains("gc_control"),
        "{}",
        ran.err
    );
}

#[test]
fn a_drive_that_vanishes_is_reported_and_its_twin_serves() {
    let dead = ["--fault", "drive-1=dead channel=0-3 from=60ms"];
    let words = [&ENGINE[..], &["--policy", "epochs"], &dead].concat();
    let ran = run(&words);
    assert!(
        ran.code == 0 && ran.err.contains("epochs: drive d1: ") && ran.err.contains("drive d0 serves its items"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("drive-1: fault \"dead timeout=0ns channel=0-3 from=60ms\": struck "), "{}", ran.out);
    let found = report(&words);
    assert_eq!(
        (number(&found, "/runs/0/read_latency_us/count"), &found["runs"][0]["drives"][0]["drive"]),
        (1_000.0, &"drive-1".into())
    );
    assert!(found["runs"][0]["events"][0].as_str().is_some_and(|event| event.contains("without a mirror")), "{found}");
    assert_eq!(found, report(&words), "the same seed");
    let ran = run(&[&ENGINE[..], &["--policy", "raid0"], &dead].concat());
    assert!(ran.code == 1 && ran.err.contains("--policy raid0: the engine has stopped: drive d1: "), "{}", ran.err);
}

#[test]
fn servers_of_the_store_have_layers_and_drives_with_faults() {
    let words =
        [&KV[..], &["--policy", "base,mitt", "--deadline", "300us", "--over", "block", "--over", "cache,memory=1MiB"]]
            .concat();
    let found = report(&words);
    assert_eq!(layers(&found, 2), ["block/0", "block/1", "block/2", "cache/0", "cache/1", "cache/2"]);
    assert_eq!(found, report(&words), "the same seed");
    let text = succeed(&words);
    assert!(text.contains("\nmitt:\nblock/0 over drive-0:\n"), "{text}");
    let ran = run(&[&KV[..], &["--over", "raid1:2"]].concat());
    assert!(ran.code == 0 && ran.err.contains("mitt, mitt-wait, hedged-mitt are left out"), "{}", ran.err);
    assert!(ran.out.contains("\nhedged:\n") && !ran.out.contains("\nmitt"), "{}", ran.out);
    let slow = [&KV[..], &["--policy", "base", "--fault", "drive-2=slow read by=2ms every=10"]].concat();
    assert!(succeed(&slow).contains("\nbase:\ndrive-2: fault \"slow read"), "no line of the fault");
    for (words, parts) in [
        (&["--policy", "base,mitt", "--over", "raid1:2"][..], &["--policy mitt: no layer", "--over block"][..]),
        (&["--over", "block,deadline=2ms"], &["--over: block.deadline: the clients' policies have deadlines"]),
        (&["--over", "block", "--set", "block.predict_only=true"], &["--over: block.predict_only"]),
        (&["--over", "block", "--set", "block.hop=-1"], &["--over: ", "hop"]),
        (&["--over", "raid1:2,over=drive-0+drive-0"], &["it is there twice"]),
        (&["--drive", "wd-zn540", "--over", "cache"], &["--over: drives of wd-zn540 have zones"]),
        (&["--fault", "drive-3=dead"], &["there is no drive \"drive-3\""]),
    ] {
        refuse(&[&KV[..], words].concat(), parts);
    }
}
