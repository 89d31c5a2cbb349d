//! `nandscape ycsb` in virtual time: figures of both forms, and what is refused.

use serde_json::Value;

use crate::program::{number, refuse, succeed};

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
        }
        let text = succeed(&args);
        assert_eq!(text, succeed(&args), "the same seed");
        assert!(operations.iter().all(|operation| text.contains(operation)) && text.contains("WAF store"), "{text}");
    }
    // The places of pages are the host's in one form, and the drive's in the other.
    let report: Value = serde_json::from_str(&succeed(&[&SMALL[..], &["--json"]].concat())).expect("one JSON object");
    let places = |run| number(&report, &format!("/runs/{run}/memory_bytes/places"));
    assert!(places(0) > 0.0 && places(1) == 0.0);
}

#[test]
fn what_cannot_be_run_is_told() {
    for (words, told) in [
        (&["--records", "0"][..], "--records 0: 1 and more are valid"),
        (&["--operations", "0"], "--operations 0: 1 and more are valid"),
        (&["--workload", "g"], "possible values: a, b, c, d, e, f"),
        (&["--page", "100KiB"], "--cache, --page, --pieces and the drive's capacity: the tree: pages of 102400 bytes"),
        (
            &["--value-size", "100000"],
            "--records, --value-size and the drive's capacity: an operation: a key of 8 and a value of 100000",
        ),
        (&["--set", "ftl.kind=page", "--form", "offloaded"], "ox_block"),
        (&["--set", "capacity=16MiB", "--records", "100000"], "16"),
        (&["--to", "http://x"], "valid are nvme-tcp://HOST:PORT/NQN and vfio-user://PATH"),
        (&["--to", "vfio-user://nothing.sock"], "--form conventional or --form offloaded is valid"),
        (&["--to", "vfio-user://nothing.sock", "--form", "offloaded"], "--to vfio-user://nothing.sock: "),
    ] {
        refuse(&[&["ycsb"], words].concat(), &[told]);
    }
}
