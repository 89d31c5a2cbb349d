//! `nandscape paper mitt`: tables and JSON of small experiments, keys, and what is refused.

use serde_json::Value;

use crate::program::{refuse, succeed};

#[test]
fn each_subject_has_a_row_for_each_policy_and_predictions_under_three_loads() {
    for subject in ["cache", "smr", "vm", "runtime"] {
        let words = ["mitt", subject, "--requests", "600", "--policy", "base,tied,mitt", "--json"];
        let object: Value = serde_json::from_str(&succeed(&words)).expect("JSON");
        assert_eq!((object["schema"].as_u64(), object["subject"].as_str()), (Some(1), Some(subject)));
        let names: Vec<&str> =
            object["runs"].as_array().unwrap().iter().filter_map(|run| run["policy"].as_str()).collect();
        assert_eq!(names, ["no noise", "base", "tied", "mitt"]);
        for run in object["runs"].as_array().unwrap() {
            assert_eq!((&run["get_latency_us"]["count"], &run["failed"]), (&600.into(), &0.into()), "{subject}");
        }
        let predictions = object["predictions"].as_array().unwrap();
        assert_eq!(predictions.len(), 3);
        assert!(predictions.iter().all(|one| one["compared"].as_u64() >= Some(600)), "{subject}: {predictions:?}");
        assert_eq!(succeed(&words), succeed(&words), "{subject}");
    }
}

#[test]
fn the_table_says_what_it_is_of() {
    let text = succeed(&["mitt", "vm", "--requests", "300", "--deadline", "5ms"]);
    for part in ["vm: 3 servers, 1 next to a tenant", "deadline 5000.0 us", "no noise", "hedged", "false negatives"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    // Base tries each get once.
    let base = text.lines().find(|line| line.trim_start().starts_with("base ")).expect("a row of Base");
    assert_eq!(base.split_whitespace().rev().nth(2), Some("1.00"), "{base}");
}

#[test]
fn keys_are_listed_and_bad_ones_refused() {
    assert!(succeed(&["mitt", "smr", "--keys"]).contains("smr.band  "));
    let refused = |words: &[&str], told: &str| refuse(&[&["mitt"], words].concat(), &[told]);
    refused(&["gpu"], "possible values: cache, smr, vm, runtime");
    refused(&["vm", "--set", "vm.slice=0ms"], "--set vm.slice: \"0ms\" is not valid; a time such as 30ms is");
    refused(&["vm", "--set", "smr.band=3"], "there is no such key; valid are vm.scheduler");
    refused(&["cache", "--set", "cache.replacement=fifo"], "valid are lru, clock");
    refused(&["cache", "--set", "cache.predict_only=true"], "there is no such key");
    refused(&["runtime", "--set", "heap.kept=1TiB"], "set heap.old first");
    refused(&["smr", "--set", "smr.cache=5"], "6 to 100000");
    refused(&["vm", "--noisy", "4"], "noise next to at most as many");
    refused(&["vm", "--policy", "fast"], "is no policy");
}
