//! Questions to `nandscape sim`: chosen percentiles, the rate at which a bound holds, job files of fio, requests
//! one by one, and several concurrent jobs.

use serde_json::Value;

use crate::program::{number, refuse, run, sim, succeed};

const SMALL: [&str; 5] = ["sim", "--drive", "default", "--set", "capacity=64MiB"];

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

#[test]
fn percentiles_are_chosen() {
    let load = ["--rw", "randread", "--io-count", "20k"];
    let report = sim(&[&load[..], &["--percentiles", "95,99.95,99.9,99.9999"]].concat());
    let read = &report["latency_us"]["read"];
    let [p90, p95, p99] = ["/p90", "/p95", "/p99"].map(|path| number(read, path));
    assert!(p90 <= p95 && p95 <= p99, "{read}");
    assert!(number(read, "/p99_95") >= number(read, "/p99_9") && read["p99_9999"].is_null());
    assert_eq!(number(&report, "/requests"), 20_000.0);
    // The other figures are the same.
    let plain = sim(&load);
    assert_eq!(number(&plain, "/latency_us/read/p99_9"), number(read, "/p99_9"));
    assert!(plain["latency_us"]["read"].get("p95").is_none());
    let table = succeed(&words(&[&load[..], &["--percentiles", "95"]].concat()));
    assert!(table.contains(" p95"), "{table}");
    refuse(&words(&[&load[..], &["--percentiles", "100"]].concat()), &["not a percentile such as 95"]);
}

#[test]
fn reads_and_writes_have_words_of_their_own() {
    let mix = ["--rw", "randrw", "--bs", "4k,16k", "--random-distribution", "zipf:0.9,uniform", "--io-count", "20k"];
    let report = sim(&mix);
    let (reads, writes) = (number(&report, "/latency_us/read/count"), number(&report, "/latency_us/write/count"));
    assert_eq!(number(&report, "/bytes"), reads * 4_096.0 + writes * 16_384.0);
    let line = report["inputs"]["workload_lines"][0].as_str().expect("a line").to_owned();
    assert!(line.contains("bs=4KiB,16KiB") && line.contains("random_distribution=zipf:0.9,uniform"), "{line}");

    let rates = sim(&[&mix[..], &["--rate-iops", "800,200"]].concat());
    let flow = |number: usize, name: &str, iops: f64| {
        let flow = &rates["flows"][number];
        assert_eq!(flow["name"], name);
        let reached = flow["iops"].as_f64().expect("a rate");
        assert!((0.9..1.1).contains(&(reached / iops)), "{name}: {reached} instead of {iops}");
    };
    flow(0, "randrw-reads", 800.0);
    flow(1, "randrw-writes", 200.0);

    let two = "has a value for reads and one for writes, which is for rw and randrw, and not for randread";
    refuse(&words(&["--rw", "randread", "--bs", "4k,8k"]), &["--bs = 4KiB,8KiB", two]);
    refuse(&words(&["--rw", "randread", "--rate-iops", "1,2"]), &["--rate-iops = 1,2", two]);
    refuse(&words(&["--rw", "randrw", "--bs", "4k,8k,16k"]), &["\"8k,16k\" is not a size"]);
}

#[test]
fn numbers_are_written_as_people_write_them() {
    let load =
        ["--rw", "randrw", "--rwmixread", "99.5", "--rate-iops", "10k", "--runtime", "1", "--warmup-count", "1k"];
    let report = sim(&load);
    let (reads, writes) = (number(&report, "/latency_us/read/count"), number(&report, "/latency_us/write/count"));
    assert!((9_000.0..11_000.0).contains(&(reads + writes)), "{reads} {writes}");
    assert!((0.002..0.009).contains(&(writes / (reads + writes))), "{reads} {writes}");
    refuse(&words(&["--rw", "randread", "--rate-iops", "10x"]), &["--rate-iops", "500, 10k or 1.5M"]);
    refuse(&words(&["--rw", "randread", "--io-count", "1.5"]), &["--io-count", "a whole number"]);
}

#[test]
fn the_highest_rate_is_found() {
    let load = ["--rw", "randread", "--io-count", "5k", "--find-rate", "read.p99 < 200us"];
    let json: Value = serde_json::from_str(&succeed(&words(&[&load[..], &["--json"]].concat()))).expect("JSON");
    let (low, high) = (number(&json, "/search/holds_iops"), number(&json, "/search/exceeds_iops"));
    assert!(low < high && high <= 1.01 * low, "{low} {high}");
    assert!(number(&json, "/report/latency_us/read/p99") < 200.0);
    assert!((number(&json, "/report/arrivals/asked_iops") / low - 1.0).abs() < 0.1);
    // A run at the higher rate shows the bound exceeded.
    let beyond = sim(&["--rw", "randread", "--io-count", "5k", "--rate-iops", &high.to_string()]);
    assert!(number(&beyond, "/latency_us/read/p99") >= 200.0);
    let text = succeed(&words(&load));
    assert!(text.contains("read.p99 < 200us holds up to") && text.contains("exceeds"), "{text}");
    let none = succeed(&words(&["--rw", "randread", "--io-count", "1000", "--find-rate", "read.p50 < 1us"]));
    assert!(none.contains("no rate holds"), "{none}");
    let few = ["--rw", "randread", "--io-count", "99", "--find-rate", "read.p99 < 1ms"];
    refuse(&words(&few), &["is judged by 1000 reads or more", "--io-count"]);
    refuse(&words(&["--rw", "randread", "--find-rate", "read.p99"]), &["is not a bound such as"]);
}

#[test]
fn job_files_of_fio_are_workloads() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("server.fio");
    let jobs = "[global]\nioengine=libaio\nbs=8k\ntime_based\nruntime=1\n[reads]\nrw=randread\niodepth=2\n[writes]\nrw=write\nrate_iops=500\n";
    std::fs::write(&file, jobs).expect("a file");
    let path = file.to_str().expect("UTF-8");
    let ran = run(&words(&[path, "--json", "--runtime", "50ms"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("left out") && ran.err.contains("ioengine"), "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(report["workload"], "server");
    assert!(report["inputs"]["workload_lines"][0].as_str().expect("a line").contains("bs=8KiB iodepth=2"));
    std::fs::write(&file, "[reads]\nrw=randread\nzone_reset_threshold=1\n").expect("a file");
    refuse(
        &words(&[path]),
        &["server.fio:3: zone_reset_threshold is not understood. Understood: rw, ", "thinktime, ", "stonewall, "],
    );
    refuse(&words(&[path, "--rw", "read"]), &["cannot be used with"]);
    refuse(&words(&["nowhere.fio"]), &["nowhere.fio: cannot be read"]);
}

/// fio's words on the command line and in job files, with the counts that follow from them.
#[test]
fn flushes_pauses_and_groups_have_fios_meaning() {
    let volatile = ["--set", "buffer.mode=volatile", "--rw", "randwrite", "--iodepth", "1"];
    let report = sim(&[&volatile[..], &["--fsync", "32", "--io-count", "200", "--ramp-time", "5ms"]].concat());
    assert_eq!(number(&report, "/latency_us/write/count"), 200.0);
    // What was written before the measured phase counts: 6 or 7 multiples of 32 lie within 200 writes.
    assert!((6.0..=7.0).contains(&number(&report, "/latency_us/flush/count")), "{report}");
    let commits = ["/operations_us/commit/count", "/latency_us/flush/count"].map(|path| number(&report, path));
    assert!((0.0..=1.0).contains(&(commits[1] - commits[0])), "{report}");
    let lines = report["inputs"]["workload_lines"].to_string();
    assert!(lines.contains(" fsync=32") && lines.contains(" ramp_time=5ms"), "{lines}");
    let idle = sim(&["--rw", "randwrite", "--fsync", "1", "--io-count", "50"]);
    assert!(idle["notes"].to_string().contains("fsync=1 of job randwrite has no effect"), "{}", idle["notes"]);
    let paused = sim(&["--rw", "randread", "--iodepth", "1", "--thinktime", "1ms", "--io-count", "100"]);
    let expected = 100.0 * number(&paused, "/latency_us/read/mean") / 1e6 + 99.0 * 1e-3;
    assert!((number(&paused, "/virtual_s") - expected).abs() < 1e-6, "{paused}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("groups.fio");
    let jobs = "[global]\nsize=1%\nbs=1m\nrandseed=3\n[writes]\nrw=write\n[reads]\nstonewall\nrw=read\nio_size=50%\n";
    std::fs::write(&file, jobs).expect("a file");
    let report = sim(&["--set", "capacity=1GiB", file.to_str().expect("UTF-8")]);
    let counts = ["/latency_us/write/count", "/latency_us/read/count"].map(|path| number(&report, path));
    assert_eq!(counts, [10.0, 5.0]);
    // Each job's rate is over the time of its group, and one group follows the other.
    let times = 10.0 / number(&report, "/flows/0/iops") + 5.0 / number(&report, "/flows/1/iops");
    assert!((times / number(&report, "/virtual_s") - 1.0).abs() < 1e-3, "{report}");
    refuse(&words(&["--rw", "randread", "--fsync", "4"]), &["--fsync is for jobs that write, which randread does not"]);
    refuse(
        &words(&["--rw", "write", "--sync", "maybe"]),
        &["--sync = maybe is not known; none, sync and dsync are valid"],
    );
}

/// A line for fio: underscores, and options without effect here.
#[test]
fn a_command_line_in_fios_spelling_is_understood() {
    let words =
        ["--rw=randwrite", "--iodepth=4", "--direct=1", "--ioengine=io_uring", "--randseed=7", "--group_reporting"];
    let of = |more: &[&str]| sim(&[&["--set", "buffer.mode=volatile"][..], &words, more].concat());
    let report = of(&["--time_based", "--runtime=2ms", "--ramp_time=1ms", "--end_fsync=1"]);
    assert_eq!(number(&report, "/latency_us/flush/count"), 1.0);
    let lines = report["inputs"]["workload_lines"].to_string();
    assert!(lines.contains(" ramp_time=1ms") && lines.contains(" end_fsync=1"), "{lines}");
    assert_eq!(of(&["--io_count=50", "--fsync_on_close"])["latency_us"]["flush"]["count"], 1);
    let ran = run(&["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw=read", "--io_count=9", "--direct=1"]);
    assert!(
        ran.code == 0 && ran.err.contains("left out, as requests do not depend on them: --direct\n"),
        "{}",
        ran.err
    );
    refuse(
        &["sim", "--drive", "default", "--rw=read", "--direct=0"],
        &["no page cache is modelled; --direct=1 is valid"],
    );
    refuse(&["sim", "--drive", "default", "--rw=read", "--ioengine=psync"], &["psync has one request outstanding"]);
}

#[test]
fn requests_are_written_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("requests.csv");
    let path = file.to_str().expect("UTF-8");
    let report = sim(&["--rw", "randrw", "--io-count", "70k", "--warmup-count", "100", "--requests", path]);
    let text = std::fs::read_to_string(&file).expect("a table");
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let at =
        |name: &str| heads.iter().position(|head| *head == name).unwrap_or_else(|| panic!("no {name} in {heads:?}"));
    let stages: Vec<usize> = ["queue", "firmware", "die_wait", "array", "channel_wait", "transfer", "ecc", "link"]
        .map(|stage| at(&format!("{stage}_ns")))
        .to_vec();
    let (mut reads, mut sum) = (0u64, 0u64);
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |at: usize| cells[at].parse::<u64>().expect("a number");
        let latency = cell(at("latency_ns"));
        assert_eq!(latency, cell(at("completion_ns")) - cell(at("arrival_ns")));
        assert_eq!(latency, stages.iter().map(|stage| cell(*stage)).sum::<u64>(), "{line}");
        assert!(cell(at("offset_bytes")) < 64 << 20 && cells[at("status")] == "ok");
        if cells[at("direction")] == "read" {
            (reads, sum) = (reads + 1, sum + latency);
        }
    }
    assert_eq!(reads as f64, number(&report, "/latency_us/read/count"));
    let mean = number(&report, "/latency_us/read/mean");
    assert!((sum as f64 / reads as f64 / 1e3 - mean).abs() < 1e-6 * mean);
    assert_eq!(text.lines().count(), 70_001);
    refuse(&words(&["--rw", "read", "--requests", "/nowhere/x.csv"]), &["/nowhere/x.csv"]);
    // Bad input is found before the file is touched.
    for wrong in [["--size", "1TiB"], ["--fairness", "--check"]] {
        refuse(&words(&[&["--rw", "read", "--requests", path][..], &wrong].concat()), &[]);
        assert_eq!(std::fs::read_to_string(&file).expect("a table"), text);
    }
    let words = format!(
        "ulimit -f 1; exec '{}' {}",
        env!("CARGO_BIN_EXE_nandscape"),
        words(&["--rw", "read", "--requests", path]).join(" ")
    );
    let full = std::process::Command::new("sh").args(["-c", &words]).output().expect("a shell");
    assert_eq!(full.status.code(), Some(1), "{full:?}");
}

#[cfg(feature = "parquet")]
#[test]
fn requests_are_written_as_parquet() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("requests.parquet");
    sim(&["--rw", "randread", "--io-count", "1000", "--requests", file.to_str().expect("UTF-8")]);
    let bytes = std::fs::read(&file).expect("a file");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn several_jobs_have_their_own_figures() {
    let load = ["--workload", "noisy-neighbour", "--io-count", "20k"];
    let report = sim(&[&load[..], &["--fairness"]].concat());
    let flows = report["flows"].as_array().expect("a list");
    assert_eq!(flows.iter().map(|flow| number(flow, "/requests")).sum::<f64>(), number(&report, "/requests"));
    let of = |path: &str| flows.iter().map(|flow| number(flow, path)).collect::<Vec<_>>();
    let slowdowns = of("/slowdown");
    assert!(slowdowns.iter().all(|slowdown| *slowdown > 0.5), "{slowdowns:?}");
    let (least, most) =
        (slowdowns.iter().copied().fold(f64::MAX, f64::min), slowdowns.iter().copied().fold(0.0, f64::max));
    assert_eq!(number(&report, "/fairness"), least / most);
    let plain = sim(&load);
    assert_eq!(plain["latency_us"], report["latency_us"]);
    assert!(plain.get("fairness").is_none() && plain["flows"][0].get("slowdown").is_none());
    assert!(sim(&["--rw", "randread", "--io-count", "100"]).get("flows").is_none());
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    assert!(succeed(&words(&[&load[..], &["--fairness", "--out", out]].concat())).contains("fairness 0."));
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("<h2 id=\"jobs\">Its jobs</h2>") && page.contains("the smallest slowdown over the largest"));
    assert!(flows.iter().all(|flow| flow["breakdown_us"].is_object()));
    let few = succeed(&words(&["--rw", "randread", "--io-count", "500"]));
    assert!(few.contains("500 reads are too few for p99.9, which needs 1,000"), "{few}");
    refuse(&words(&["--rw", "read", "--fairness"]), &["--fairness", "no second job"]);
}
