//! `--assign`: classes and tenants of commands that state none, and the errors of rules.

use std::fs;

use crate::program::{number, refuse, succeed};

const JOBS: &str = r#"version = 1
io_count = "6k"
[[job]]
name = "one"
rw = "randread"
iodepth = 1
[[job]]
name = "two"
rw = "randread"
iodepth = 128
numjobs = 2
[[job]]
name = "three"
rw = "randread"
iodepth = 128
tenant = 77
"#;

/// Rules of the command line give the jobs of a simulation what they do not state, over a drive and over layers.
#[test]
fn rules_give_jobs_their_class_and_tenant() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.toml");
    fs::write(&path, JOBS).expect("a file");
    let jobs = path.display().to_string();
    let drive = ["sim", "--drive", "default", "--set", "capacity=1GiB", "--precondition", "full", "--workload", &jobs];
    let rules = ["--assign", "class=15", "--assign", "queue=1,class=1 queue=1,tenant=3", "--json"];
    let layers = ["--over", "block,scheduler=cfq,depth=8"];
    let arbiter = ["--set", "controller.arbiter=class", "--set", "controller.command_slots=8"];
    for more in [&layers[..], &arbiter] {
        let run = |rules: &[&str]| {
            let text = succeed(&[&drive[..], more, rules].concat());
            serde_json::from_str::<serde_json::Value>(&text).expect("one JSON object")
        };
        let (ruled, plain) = (run(&rules), run(&["--json"]));
        let flows = &ruled["flows"];
        assert_eq!([0, 1, 2].map(|job| flows[job]["class"].as_u64()), [Some(1), Some(15), Some(15)], "{flows}");
        assert_eq!([0, 1, 2].map(|job| flows[job]["tenant"].as_u64()), [Some(3), None, Some(77)], "{flows}");
        let mean = |report| number(report, "/flows/0/mean_us");
        assert!(2.0 * mean(&ruled) < mean(&plain), "{more:?}: {} and {}", mean(&ruled), mean(&plain));
    }
    // The rules of the drive complete those of the command line.
    let both = ["--assign", "queue=1,class=1", "--set", "controller.assign=class=9,tenant=4", "--json"];
    let text = succeed(&[&drive[..], &both].concat());
    let report: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
    let flow = |job: usize, key: &str| report["flows"][job][key].as_u64();
    assert_eq!([0, 1, 2].map(|job| flow(job, "class")), [Some(1), Some(9), Some(9)], "{}", report["flows"]);
    assert_eq!([0, 1, 2].map(|job| flow(job, "tenant")), [Some(4), Some(4), Some(77)], "{}", report["flows"]);
    // Clones may differ.
    let text = succeed(&[&drive[..], &["--assign", "queue=2,class=3", "--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
    assert!(report["inputs"].to_string().contains("class and tenant by queue"), "{}", report["inputs"]);
}

#[test]
fn rules_that_are_none_are_refused_with_what_would_be() {
    let sim = ["sim", "--drive", "default", "--rw", "randread", "--io-count", "1"];
    let bench = ["bench", "--to", "ring://default", "--rw", "randread", "--io-count", "1"];
    let serve = ["serve", "--drive", "a=default", "--drive", "b=default", "--nbd", "unix:n.sock"];
    for (rule, problem) in [
        ("queue=0,class=1", "queue = 0 is out of range; from 1 to 65535 is valid"),
        ("class=16", "class = 16 is out of range; from 1 to 15 is valid"),
        ("nqn=x,class=1", "\"nqn\" is no key of a rule; host, function, via, queue, namespace, class and tenant are"),
        ("queue=1", "it sets neither class nor tenant; class=1 to 15 and tenant=1 to 4095 are valid"),
        (
            "queue=1,class=1 queue=1,class=2",
            "an earlier rule has the same conditions and sets the class; one rule for each set",
        ),
    ] {
        for command in [&sim[..], &bench, &serve] {
            refuse(&[command, &["--assign", rule]].concat(), &["--assign", problem]);
        }
        let key = format!("controller.assign={rule}");
        refuse(&[&sim[..], &["--set", &key]].concat(), &["controller.assign", problem]);
    }
    refuse(&[&serve[..], &["--assign", "c=class=1"]].concat(), &["NAME=RULE is a rule of one of a, b"]);
    refuse(
        &[&sim[..], &["--assign", "class=1", "--assign", "class=2"]].concat(),
        &["--assign: \"class=2\": an earlier"],
    );
}
