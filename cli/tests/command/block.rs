//! The host's block layer over the drive of a simulation: what is rejected, how right predictions were, and what is refused.

use serde_json::Value;

use crate::program::{number, refuse, run, succeed};

/// Reads among writes of a small drive in steady state, whose collections make reads late.
const RUN: [&str; 15] = [
    "sim",
    "--drive",
    "default",
    "--set",
    "capacity=1GiB",
    "--precondition",
    "steady",
    "--rw",
    "randrw",
    "--rwmixread",
    "90",
    "--iodepth",
    "4",
    "--io-count",
    "20000",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RUN[..], more].concat()
}

fn report(more: &[&str]) -> Value {
    serde_json::from_str(&succeed(&with(&[more, &["--json"]].concat()))).unwrap()
}

#[test]
fn reads_that_would_be_late_are_rejected_and_are_no_failure() {
    let report = report(&["--set", "block.deadline=500us"]);
    let [rejected, reads, compared, late, attached, deadline] =
        ["rejected", "reads", "compared", "false_negatives", "attached", "deadline_us"]
            .map(|name| number(&report, &format!("/block/{name}")));
    assert!(rejected > 100.0 && rejected < reads, "{rejected} of {reads}");
    assert_eq!((deadline, attached), (500.0, 0.0));
    let errors = report["errors"].as_object().unwrap();
    assert_eq!(errors.values().filter_map(Value::as_f64).sum::<f64>(), rejected, "{errors:?}");
    // Those that were served made it, but for wrong predictions.
    assert!(late < 0.05 * compared, "{late} of {compared}");

    let text = succeed(&with(&["--set", "block.deadline=500us"]));
    assert!(text.contains("block layer: scheduler noop, predictor ssd, deadline 500.0 us"), "{text}");
    assert!(text.contains("wrong about the deadline") && !text.contains("failed:"), "{text}");
}

#[test]
fn predictions_are_attached_on_request_and_a_run_without_the_layer_has_none() {
    let attached = report(&["--set", "block.deadline=500us", "--set", "block.predict_only=true"]);
    let of = |name: &str| number(&attached, &format!("/block/{name}"));
    assert!(of("attached") > 100.0 && of("inaccuracy") < 0.1, "{}", attached["block"]);
    assert_eq!((of("rejected"), of("cancelled"), of("compared")), (0.0, 0.0, of("reads")));
    assert!(attached["errors"].as_object().unwrap().is_empty());
    assert!(report(&[]).get("block").is_none());
}

#[test]
fn what_the_layer_does_not_know_is_told() {
    for (more, words) in [
        (&["--set", "block.deadlin=1ms"][..], "block.deadlin: there is no such key; valid are block.scheduler"),
        (&["--set", "block.deadline=soon"], "a time such as 300us"),
    ] {
        refuse(&with(more), &[words]);
    }
    let chunks = ["sim", "--drive", "dfc-mlc", "--rw", "randread", "--set", "block.deadline=1ms"];
    refuse(&chunks, &["chunks are for hosts that know them"]);
    let zones = ["sim", "--drive", "wd-zn540", "--set", "capacity=4GiB", "--zonemode", "zbd", "--rw", "randread"];
    refuse(&[&zones[..], &["--set", "block.deadline=1ms"]].concat(), &["none and told are valid for this drive"]);
    let told = run(&[&zones[..], &["--io-count", "100", "--set", "block.predictor=none"]].concat());
    assert_eq!(told.code, 0, "{}", told.err);
}
