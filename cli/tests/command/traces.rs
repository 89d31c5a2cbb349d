//! Traces described, converted and replayed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::program::{command, number, run, sim, succeed};

/// 300 requests of 4 KiB, one a millisecond, two reads to a write, over 1 GiB; and where it lies.
fn trace(folder: &Path) -> String {
    let line = |n: u64| {
        let (offset, read) = (n * 7_919 % 262_144 * 4_096, u8::from(n % 3 != 2));
        format!("{n}.250 0 {offset} {} {read}\n", if n == 0 { 65_536 } else { 4_096 })
    };
    let path = folder.join("made.trace");
    std::fs::write(&path, (0..300).map(line).collect::<String>()).expect("a trace");
    path.display().to_string()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

/// 300 requests over 299 ms, and a mean gap of 1 ms between repetitions.
#[test]
fn a_trace_is_repeated() {
    let folder = folder();
    let path = trace(folder.path());
    let report = sim(&["--set", "capacity=2GiB", "--trace", &path, "--trace-repeat", "3"]);
    assert_eq!((number(&report, "/requests"), number(&report, "/latency_us/read/count")), (900.0, 600.0));
    let span = number(&report, "/virtual_s");
    assert!((0.899..0.900).contains(&span), "{span}");
    assert!(
        notes(&report).contains("replayed 3 times, each 300ms of its time after the one before"),
        "{}",
        notes(&report)
    );
    let fast = sim(&["--set", "capacity=2GiB", "--trace", &path, "--trace-repeat", "2", "--time-scale", "10"]);
    assert!((0.0599..0.0605).contains(&number(&fast, "/virtual_s")), "{fast}");
    let no_stall = ["--set", "capacity=2GiB", "--trace", &path, "--trace-repeat", "2", "--replay-no-stall"];
    assert_eq!(number(&sim(&no_stall), "/requests"), 600.0);
    let refused = |repeat: &str| run(&["sim", "--drive", "default", "--trace", &path, "--trace-repeat", repeat]);
    assert!(refused("0").err.contains("cannot be repeated 0 times; from 1 on is valid"), "{}", refused("0").err);
}

/// The commits of a traced journal: a flush, then a write with Force Unit Access.
#[test]
fn a_traced_log_keeps_its_flushes_and_forced_writes() {
    let folder = folder();
    let path = folder.path().join("log.txt").display().to_string();
    let line = |n: u64| match n % 4 {
        3 => format!("8,0 0 {n} 0.{:09} 9 Q FWFS {} + 8 [jbd2]\n", n * 1_000_000, n * 8),
        _ => format!("8,0 0 {n} 0.{:09} 9 Q WS {} + 8 [jbd2]\n", n * 1_000_000, n * 8),
    };
    std::fs::write(&path, (0..400).map(line).collect::<String>()).expect("a trace");
    let report = sim(&["--set", "capacity=64MiB", "--set", "buffer.mode=volatile", "--trace", &path]);
    let counts = ["write", "fua", "flush"].map(|way| number(&report, &format!("/latency_us/{way}/count")));
    assert_eq!((counts, number(&report, "/requests")), ([400.0, 100.0, 100.0], 500.0));
    // Both wait for a program of the flash, the flush for that of the writes before it.
    let means = ["flush", "fua"].map(|way| number(&report, &format!("/latency_us/{way}/mean")));
    assert!(means.iter().all(|mean| *mean > 100.0), "{report:#}");
    assert!(notes(&report).contains("flushes before writes of the trace: 100"), "{}", notes(&report));
}

#[test]
fn a_trace_is_replayed_at_its_times() {
    let folder = folder();
    let path = trace(folder.path());
    let report = sim(&["--set", "capacity=2GiB", "--trace", &path]);
    assert_eq!(report["workload"], "made.trace");
    assert_eq!((number(&report, "/requests"), number(&report, "/latency_us/read/count")), (300.0, 200.0));
    // The last arrives 299 ms after the first.
    let span = number(&report, "/virtual_s");
    assert!((0.299..0.300).contains(&span), "{span}");
    assert_eq!(notes(&report).matches("trace").count(), 0, "nothing was changed: {}", notes(&report));
}

#[test]
fn times_are_scaled_and_rates_set() {
    let folder = folder();
    let path = trace(folder.path());
    let span = |more: &[&str]| {
        let report = sim(&[&["--set", "capacity=2GiB", "--trace", &path], more].concat());
        assert_eq!(number(&report, "/requests"), 300.0);
        (number(&report, "/virtual_s"), notes(&report))
    };
    let (fast, said) = span(&["--time-scale", "2"]);
    assert!((0.1495..0.1505).contains(&fast) && said.contains("replayed 2 times as fast"), "{fast}, {said}");
    let (slow, _) = span(&["--time-scale", "0.5"]);
    assert!((0.598..0.599).contains(&slow), "{slow}");
    let (rated, said) = span(&["--rate-iops", "3000"]);
    assert!((0.0999..0.1010).contains(&rated) && said.contains("at 3000 requests a second"), "{rated}, {said}");
}

#[test]
fn latency_of_a_replay_counts_from_arrival() {
    let folder = folder();
    let path = trace(folder.path());
    // All within 3 us: with one plane, the last waits for the 200 reads before it.
    let one = ["geometry.channels=1", "geometry.dies_per_channel=1", "geometry.planes_per_die=1"];
    let sets = one.iter().flat_map(|set| ["--set", set]);
    let args: Vec<&str> = sets.chain(["--trace", &path, "--time-scale", "100000"]).collect();
    let max = number(&sim(&args), "/latency_us/read/max");
    assert!(max > 200.0 * 30.0, "{max}");
}

#[test]
fn without_stalls_so_many_are_outstanding() {
    let folder = folder();
    let path = trace(folder.path());
    let report = sim(&["--trace", &path, "--replay-no-stall", "--iodepth", "4"]);
    let outstanding = ["read", "write"].map(|way| {
        number(&report, &format!("/latency_us/{way}/mean")) * number(&report, &format!("/latency_us/{way}/count"))
    });
    let outstanding = outstanding.iter().sum::<f64>() / 1e6 / number(&report, "/virtual_s");
    assert!((outstanding / 4.0 - 1.0).abs() < 0.05, "Little's law: {outstanding}");
    assert!(notes(&report).contains("4 requests are outstanding at a time"));
}

#[test]
fn addresses_wrap_or_scale_with_a_note() {
    let folder = folder();
    let path = trace(folder.path());
    let wrapped = notes(&sim(&["--trace", &path]));
    assert!(
        wrapped.contains("of 300 requests lie beyond the drive's 64MiB and wrap; the trace spans 1.0 GiB"),
        "{wrapped}"
    );
    let scaled = notes(&sim(&["--trace", &path, "--address", "scale"]));
    assert!(scaled.contains("addresses are scaled to the drive's 64MiB") && !scaled.contains("wrap"), "{scaled}");
}

#[test]
fn limits_and_warm_up_count_requests_of_the_trace() {
    let folder = folder();
    let path = trace(folder.path());
    let requests = |more: &[&str]| number(&sim(&[&["--trace", &path], more].concat()), "/requests");
    assert_eq!(requests(&["--io-count", "100"]), 100.0);
    assert_eq!(requests(&["--warmup-count", "100"]), 200.0);
    assert_eq!(requests(&["--limit", "50", "--warmup-count", "10"]), 40.0);
    assert_eq!(requests(&["--window", "100ms..200ms"]), 100.0);
    assert_eq!(requests(&["--runtime", "100ms"]), 100.0);
    assert_eq!(requests(&["--io-count", "1000000"]), 300.0);
}

#[test]
fn a_replay_is_the_same_again_whatever_the_seed_of_others() {
    let folder = folder();
    let path = trace(folder.path());
    let figures = || {
        let mut report = sim(&["--trace", &path, "--precondition", "steady", "--time-scale", "30"]);
        report.as_object_mut().expect("an object").remove("host");
        report
    };
    assert_eq!(figures(), figures());
}

#[test]
fn a_log_of_fio_flushes_and_trims() {
    let folder = folder();
    let path = folder.path().join("log");
    let log = "fio version 2 iolog\na add\na open\na write 0 65536\na wait 10\na sync\na wait 900\na trim 0 1048576\na close\n";
    std::fs::write(&path, log).expect("a log");
    let report = sim(&["--trace", &path.display().to_string(), "--set", "buffer.mode=volatile"]);
    for way in ["write", "flush", "trim"] {
        assert_eq!(number(&report, &format!("/latency_us/{way}/count")), 1.0, "{way}");
    }
    // The flush waits for the write to be on flash.
    assert!(number(&report, "/latency_us/flush/max") > 100.0, "{report:#}");
}

#[test]
fn info_describes() {
    let folder = folder();
    let path = trace(folder.path());
    let text = succeed(&["trace", "info", &path]);
    let lines = ["made.trace: replay, 300 requests, 1.29 MB in 0.299 s", "1 disk: 0; addresses to 1020.81 MiB"];
    lines.iter().for_each(|line| assert!(text.contains(line), "{text}"));
    let info: Value = serde_json::from_str(&succeed(&["trace", "info", &path, "--json"])).expect("JSON");
    assert_eq!((&info["schema"], &info["format"]), (&1.into(), &"replay".into()));
    assert_eq!((number(&info, "/all/requests"), number(&info, "/by/read/requests")), (300.0, 200.0));
    assert_eq!((number(&info, "/duration_s"), number(&info, "/all/gap_us/mean")), (0.299, 1_000.0));
}

#[test]
fn traces_come_from_pipes_and_compressed_files() {
    let folder = folder();
    let path = trace(folder.path());
    let plain = succeed(&["trace", "info", &path, "--json"]);
    let mut child = command(&["trace", "info", "-", "--json"]).stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(&std::fs::read(&path).expect("a trace")).expect("it reads");
    let piped = String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("UTF-8");
    assert_eq!(piped.replace("standard input", "made.trace"), plain);
    for end in ["gz", "zst", "bz2"] {
        let packed = folder.path().join(format!("made.trace.{end}")).display().to_string();
        assert_eq!(succeed(&["trace", "convert", &path, &packed, "--to", "replay"]), "");
        assert!(std::fs::metadata(&packed).expect("a file").len() < 5_000, "{end} is compressed");
        let again = succeed(&["trace", "info", &packed, "--json"]);
        assert_eq!(again.replace(&format!(".{end}"), ""), plain);
        assert_eq!(number(&sim(&["--trace", &packed]), "/requests"), 300.0);
    }
}

#[test]
fn a_trace_is_converted_to_standard_output_and_to_a_file_but_not_over_itself() {
    let folder = folder();
    let path = trace(folder.path());
    let text = succeed(&["trace", "convert", &path, "-", "--to", "alibaba", "--limit", "2"]);
    assert_eq!(text, "0,R,0,65536,0\n0,R,32436224,4096,1000\n");
    let whole = std::fs::read(&path).expect("a trace");
    let refused = run(&["trace", "convert", &path, &path, "--to", "mqsim"]);
    assert!(refused.code == 2 && refused.err.contains("would overwrite"), "{}", refused.err);
    assert!(std::fs::read(&path).expect("a trace") == whole);
    let other = folder.path().join("other").display().to_string();
    succeed(&["trace", "convert", &path, &other, "--to", "mqsim"]);
    let text = std::fs::read_to_string(&other).expect("a trace");
    assert!(text.starts_with("0 0 0 128 1\n1000000 0 63352 8 1\n") && text.lines().count() == 300, "{text}");
    let left: Vec<PathBuf> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|it| it.expect("it").path()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn what_a_format_does_not_express_is_noted_or_refused() {
    let folder = folder();
    let path = trace(folder.path());
    let ran = run(&["trace", "convert", &path, "-", "--to", "tencent"]);
    assert_eq!(ran.err, "note: 299 of 300 times are rounded to the unit of the format tencent, 1s\n");
    assert!(ran.out.starts_with("0,0,128,0,0\n"));
}

/// The cut of a server's trace that the papers use; without that file the test does nothing.
#[test]
fn the_cut_of_a_server_is_replayed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces/msr-40-60.trace");
    if !path.exists() {
        return;
    }
    let path = path.display().to_string();
    let report = sim(&["--set", "capacity=16GiB", "--trace", &path]);
    let (reads, writes) = (number(&report, "/latency_us/read/count"), number(&report, "/latency_us/write/count"));
    assert_eq!((reads, writes), (4_054.0, 5_946.0));
    let span = number(&report, "/virtual_s");
    assert!((85.915..85.916).contains(&span), "{span}");
    assert!(!notes(&report).contains("wrap"), "{}", notes(&report));
}
