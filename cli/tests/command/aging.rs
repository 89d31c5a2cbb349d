//! `--age` and the keys of `wear`: what a life before the run leaves, in the report and in text.

use serde_json::Value;

use crate::program::{number, refuse, run, sim, succeed};

const READS: [&str; 4] = ["--rw", "randread", "--io-count", "5000"];
const SMALL: [&str; 5] = ["sim", "--drive", "default", "--set", "capacity=64MiB"];

fn aged(more: &[&str]) -> Value {
    sim(&[&READS[..], more].concat())
}

/// A drive write a day; over-provisioned flash takes a share: 547 days are some 430 to 547 of 3,000 erases.
#[test]
fn a_life_shows_in_the_figures_of_wear() {
    let report = aged(&["--age", "18months"]);
    let used = number(&report, "/aging/percentage_used");
    assert!((10.0..=19.0).contains(&used), "{used}%");
    let (least, most) = (number(&report, "/erases/min"), number(&report, "/erases/max"));
    assert!(least == most && (used - 1.0..=used).contains(&(least * 100.0 / 3_000.0)), "{least} to {most}, {used}%");
    let twice = aged(&["--age", "18months", "--set", "wear.writes_per_day=2"]);
    assert!((number(&twice, "/erases/max") / most - 2.0).abs() < 0.01);
    assert!(number(&twice, "/aging/rber_mean") > number(&report, "/aging/rber_mean"));

    let spread = aged(&["--set", "wear.cycles=1500", "--set", "wear.cycles_spread=10%"]);
    let (least, most) = (number(&spread, "/erases/min"), number(&spread, "/erases/max"));
    assert!(least < 1_400.0 && most > 1_600.0, "{least} to {most}");
    assert!((48.0..=52.0).contains(&number(&spread, "/aging/percentage_used")));
    // Nothing has failed yet.
    assert_eq!(number(&spread, "/damage/spare_blocks"), number(&spread, "/damage/spare_blocks_new"));
    assert_eq!((number(&spread, "/damage/retired_blocks"), number(&spread, "/aging/uncorrectable")), (0.0, 0.0));
    assert!(aged(&[]).get("aging").is_none(), "flash does not age without keys of wear");
}

/// `--age` is the key, and the key again in the inputs.
#[test]
fn age_is_a_key() {
    let (option, key) = (aged(&["--age", "90days"]), aged(&["--set", "wear.age=90days"]));
    for pointer in ["/aging", "/latency_us", "/erases", "/inputs/profile"] {
        assert_eq!(option.pointer(pointer), key.pointer(pointer), "{pointer}");
    }
    for (age, told) in
        [("soon", "\"soon\" is not a time such as \"18months\""), ("0", "\"0\" has no unit; \"0months\" is")]
    {
        refuse(&[&SMALL[..], &["--age", age], &READS].concat(), &["--age", told]);
    }
    refuse(
        &[&SMALL[..], &["--age", "-1h"], &READS].concat(),
        &["--age", "\"-1h\" is negative, and an age is not; \"1h\" is valid"],
    );
    let writes = ["--age", "90years", "--set", "wear.writes_per_day=1000"];
    refuse(
        &[&SMALL[..], &writes, &READS].concat(),
        &[
            "wear.age (--age): 90years with wear.writes_per_day = 1000 would erase each block",
            "times is the most; up to ",
        ],
    );
    let failing = ["--age", "90years", "--set", "wear.writes_per_day=100", "--set", "wear.erase_failures=50%"];
    refuse(&[&SMALL[..], &failing, &READS].concat(), &["wear.age (--age): in such a life", "a lower wear.age (--age)"]);
}

/// Retries and reads that fail: more of them the longer the drive has lain, the same sums in text and in the report.
#[test]
fn old_data_takes_retries_and_is_lost_in_the_end() {
    let worn = |shelf: &str| aged(&["--set", "wear.cycles=3000", "--set", &format!("wear.shelf={shelf}")]);
    let (new, year, years) = (worn("0h"), worn("1year"), worn("20years"));
    let retries = |report: &Value| number(report, "/aging/mean_retries");
    assert!(retries(&new) < retries(&year), "{} and {}", retries(&new), retries(&year));
    assert!(number(&new, "/latency_us/read/mean") < number(&year, "/latency_us/read/mean"));
    for report in [&new, &year, &years] {
        let counts = report.pointer("/aging/retries").and_then(Value::as_array).expect("a list");
        let corrected: f64 = counts.iter().filter_map(Value::as_f64).sum();
        assert_eq!(corrected + number(report, "/aging/uncorrectable"), number(report, "/aging/page_reads"));
        let failed: f64 = report["errors"].as_object().expect("by status").values().filter_map(Value::as_f64).sum();
        assert_eq!(failed + number(report, "/requests"), 5_000.0);
        assert_eq!(failed > 0.0, number(report, "/aging/uncorrectable") > 0.0);
    }
    assert!(number(&years, "/aging/uncorrectable") > 0.0);
}

#[test]
fn the_table_tells_of_age() {
    let life = ["--set", "wear.cycles=1500", "--set", "wear.shelf=1month"];
    let text = succeed(&[&SMALL[..], &READS, &life].concat());
    let line = text.lines().find(|line| line.starts_with("aging: ")).unwrap_or_else(|| panic!("{text}"));
    for part in [
        "50% of the rated erases used",
        "bit error rate",
        "page reads by retries: ",
        "uncorrectable ",
        "erases failed 0",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!succeed(&[&SMALL[..], &READS].concat()).contains("aging: "));
}

/// Blocks that wear out use up the spare blocks, and the drive reports why it accepts no more writes.
#[test]
fn a_worn_drive_ends_read_only_with_its_reason() {
    let worn = [
        "timing.rated_erases=100",
        "wear.cycles=50",
        "wear.erase_failures=90%",
        "wear.failure_shape=12",
        "wear.rber=[0,0,0,0,0,0,0,0,0]",
    ];
    let keys: Vec<&str> = worn.iter().flat_map(|key| ["--set", key]).collect();
    let writes = ["--rw", "randwrite", "--io-count", "400000"];
    let report = sim(&[&writes[..], &keys].concat());
    assert_eq!(report.pointer("/damage/read_only_because").and_then(Value::as_str), Some("no spare blocks are left"));
    assert_eq!(number(&report, "/damage/spare_blocks"), 0.0);
    assert_eq!(number(&report, "/damage/lost_units"), 0.0);
    assert!(number(&report, "/aging/failed_erases") > 0.0 && number(&report, "/aging/percentage_used") >= 50.0);
    let ran = run(&[&SMALL[..], &writes, &keys].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("note: requests failed because of the age of the flash"), "{}", ran.err);
    assert!(ran.err.contains("note: the drive is read-only: no spare blocks are left"), "{}", ran.err);
}

/// A life without a spare block left is rejected, with the keys that determine it; other lives take their share of spare blocks.
#[test]
fn a_life_before_the_run_takes_spare_blocks_or_is_refused() {
    let lived = |cycles| {
        let small = ["geometry.channels=2", "geometry.dies_per_channel=1", "ftl.over_provisioning=40%"];
        small
            .into_iter()
            .chain(["wear.erase_failures=5%", cycles])
            .flat_map(|key| ["--set", key])
            .collect::<Vec<&str>>()
    };
    let over = [&SMALL[..], &lived("wear.cycles=30000"), &READS].concat();
    refuse(&over, &["error: wear.cycles", "spare ones", "ftl.over_provisioning"]);
    let report = aged(&lived("wear.cycles=3000"));
    let retired = number(&report, "/damage/retired_blocks");
    assert!(retired > 0.0, "{report}");
    let (left, new) = (number(&report, "/damage/spare_blocks"), number(&report, "/damage/spare_blocks_new"));
    assert_eq!(new - left, retired);
}
