//! This machine, measured in a few rounds: the structure of what comes of it. Times are not asserted: other work decides them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use nandscape_host_path::{Config, Profile};
use nandscape_lab_host::{Finding, MEASUREMENTS, Measured, measure, profile};
use nandscape_sim::Span;

/// Keys whose values are no times.
const NO_TIMES: [&str; 6] = ["cores", "threads", "speed", "sched", "nodes", "distance"];

#[test]
fn each_key_has_a_value_with_its_method_or_a_reason() {
    let told = RefCell::new(Vec::new());
    let findings = measure(4, &|name, index| told.borrow_mut().push((name.to_owned(), index))).expect("figures");
    let expected: Vec<(String, usize)> = MEASUREMENTS.iter().map(|name| (*name).to_owned()).zip(0..).collect();
    assert_eq!(told.into_inner(), expected, "progress");

    let keys: BTreeSet<&str> = findings.iter().map(|finding| finding.key).collect();
    assert_eq!(keys.len(), findings.len(), "each key once");
    for key in &keys {
        assert!(Config::keys().any(|(known, _)| known.strip_prefix("host.") == Some(key)), "{key}");
    }
    for Finding { key, found } in &findings {
        match found {
            Err(why) => assert!(!why.is_empty(), "{key}"),
            Ok(Measured { value, spread, how }) if NO_TIMES.contains(key) => {
                assert!(!value.is_empty() && spread.is_empty() && !how.is_empty(), "{key}");
            }
            Ok(Measured { value, spread, how }) => {
                let span: Span = if value == "0ns" { Span::ZERO } else { value.parse().expect("a time") };
                assert!(span < Span::from_s(1) && !how.is_empty(), "{key}: {value}");
                assert!(
                    spread.starts_with("median of ") && spread.contains("10th and 90th percentiles"),
                    "{key}: {spread}"
                );
            }
        }
    }
    for key in ["cores", "threads", "nodes", "sched", "syscall", "lock"] {
        assert!(findings.iter().any(|finding| finding.key == key && finding.found.is_ok()), "{key}");
    }
}

fn example() -> Vec<Finding> {
    let measured = |value: &str| Measured {
        value: value.to_owned(),
        spread: "median of 9 samples, 10th and 90th percentiles 1us and 3us".to_owned(),
        how: "a \"method\"".to_owned(),
    };
    vec![
        Finding { key: "cores", found: Ok(Measured { spread: String::new(), ..measured("3") }) },
        Finding { key: "switch", found: Ok(measured("2us")) },
        Finding { key: "interrupt", found: Err("it is not seen".to_owned()) },
        Finding { key: "handler", found: Err("it is not seen".to_owned()) },
    ]
}

#[test]
fn the_profile_keeps_what_was_not_measured_from_its_base_with_the_source() {
    let mut base = Profile::load("i7-4770").expect("a host");
    base.set_all(["host.interrupt=777ns"]).expect("a setting");
    let text = profile(&example(), &base, "nandscape").expect("a profile");
    let made = Profile::parse("made", &text).expect("it can be read");
    let given = |key: &str| made.given[key].as_str();
    assert_eq!((given("cores"), given("switch"), given("interrupt"), given("handler")), ("3", "2us", "777ns", "100ns"));
    assert_eq!((given("midlayer"), given("threads")), ("4us", "2"), "the base gives them");
    assert_eq!(made.sources["cores"], "a \"method\"");
    assert!(made.sources["switch"].contains("a \"method\": median of 9 samples"), "{}", made.sources["switch"]);
    let interrupt = &made.sources["interrupt"];
    let words = "not measured: it is not seen; i7-4770: the thesis gives none; as server: estimate for 3 GHz";
    assert!(interrupt.starts_with(words), "{interrupt}");
    assert!(made.given.keys().all(|key| made.sources.contains_key(key)), "{text}");
    assert!(made.description.contains("Linux") && made.description.ends_with("other costs of i7-4770"));
}

#[test]
fn what_is_no_possible_host_is_refused_with_the_key() {
    let base = Profile::load("server").expect("a host");
    let mut findings = example();
    findings[0].found = Ok(Measured { value: "0".to_owned(), spread: String::new(), how: "nothing".to_owned() });
    let error = profile(&findings, &base, "nandscape").expect_err("no core");
    assert!(error.contains("host.cores: 0 is not valid"), "{error}");
}

/// Profiles that were measured and are kept for reference.
#[test]
fn the_profiles_that_are_kept_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/hosts");
    let files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let profile = Profile::load(file.to_str().expect("UTF-8")).expect("a host");
        assert!(profile.given.keys().all(|key| profile.sources.contains_key(key)), "{}", file.display());
    }
}
