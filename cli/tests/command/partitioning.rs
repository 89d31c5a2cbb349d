//! Tenants with their own dies, in a profile and two jobs: the output about them, and that the reads of one tenant do not wait
//! for flash that the other writes.

use std::fs;

use serde_json::Value;

use crate::program::{number, refuse, run, succeed};

const WHOLE: &str = r#"version = 1
base = "default"
capacity = "1GiB"
[geometry]
channels = 4
dies_per_channel = 4
"#;

const TENANTS: &str = r#"
[[ftl.parts]]
name = "reader"
channels = "0-3"
dies = "0-1"
[[ftl.parts]]
name = "writer"
channels = "0-3"
dies = "2-3"
"#;

const JOBS: &str = r#"version = 1
io_count = "20k"
[[job]]
name = "reads"
rw = "randread"
size = "40%"
[[job]]
name = "writes"
rw = "randwrite"
size = "40%"
rate_iops = "8k"
namespace = NSID
"#;

/// A run of both jobs; the second in this namespace.
fn both(folder: &std::path::Path, parts: &str, nsid: u32) -> (Value, String) {
    let path = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let drive = path("drive.toml", &format!("{WHOLE}{parts}"));
    let jobs = path("jobs.toml", &JOBS.replace("NSID", &nsid.to_string()));
    let args = ["sim", "--drive", &drive, "--workload", &jobs, "--precondition", "steady", "--check"];
    let report = serde_json::from_str(&succeed(&[&args[..], &["--json"]].concat())).expect("one JSON object");
    (report, succeed(&args))
}

#[test]
fn tenants_do_not_wait_for_each_others_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, _) = both(folder.path(), "", 1);
    let (apart, text) = both(folder.path(), TENANTS, 2);
    for cause in ["gc", "host_write"] {
        let waits = |report| number(report, &format!("/breakdown_us/read/die_wait_by/{cause}"));
        assert!(waits(&whole) > 1.0 && waits(&apart) == 0.0, "{cause}: {} and {}", waits(&whole), waits(&apart));
    }
    assert!(number(&whole, "/latency_us/read/p99") > 2.0 * number(&apart, "/latency_us/read/p99"));
    for (part, dies) in [(0, [0, 1]), (1, [2, 3])] {
        assert_eq!(apart["parts"][part]["dies"], serde_json::json!(dies));
        assert_eq!(apart["parts"][part]["channels"], serde_json::json!([0, 1, 2, 3]));
    }
    assert_eq!(number(&apart, "/parts/0/host_written_bytes"), 0.0);
    assert!(text.contains("0,1,2,3, dies 2,3"), "{text}");
}

#[test]
fn dies_that_belong_to_nobody_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("drive.toml");
    fs::write(&path, format!("{WHOLE}{}", TENANTS.replace("2-3", "2"))).expect("a file");
    let drive = path.display().to_string();
    let expected = ["ftl.parts.dies", "die 3 of channel 0 belongs to no part"];
    refuse(&["sim", "--drive", &drive, "--rw", "randread", "--io-count", "1"], &expected);
    assert!(run(&["drives", "show", &drive]).code == 0, "the file itself is well-formed");
}
