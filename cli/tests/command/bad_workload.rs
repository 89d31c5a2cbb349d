//! Workloads that cannot be, in words and in files.

use crate::program::refuse;

fn words(words: &[&str], parts: &[&str]) {
    let mut args = vec!["sim", "--drive", "default", "--set", "capacity=64MiB"];
    if !words.contains(&"--rw") {
        args.extend(["--rw", "randread"]);
    }
    args.extend(words);
    refuse(&args, parts);
}

fn file(text: impl AsRef<[u8]>, parts: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, text).expect("a workload");
    let path = path.display().to_string();
    let parts = [&["mine.toml"], parts].concat();
    refuse(&["sim", "--drive", "default", "--set", "capacity=64MiB", "--workload", &path], &parts);
}

#[test]
fn patterns_and_sizes_are_checked() {
    words(&["--rw", "random"], &["--rw", "\"random\" is not a pattern: read, write,"]);
    for bs in ["0", "100", "4k/0", "", "4k:", "big", "-4k", "99999999999999999999T"] {
        words(&[&format!("--bs={bs}")], &["--bs", "is not a size such as \"4k\" in multiples of 512"]);
    }
    words(
        &["--set", "lba_size=4096", "--bs", "512"],
        &["bs = 512B is not a multiple of the drive's logical block, 4096B"],
    );
    words(&["--bs", "128MiB"], &["has no room for a request of 128MiB"]);
}

#[test]
fn the_part_of_the_drive_is_checked() {
    for size in ["0", "0%", "512"] {
        words(&["--size", size], &["size = ", "has no room for a request of 4KiB"]);
    }
    words(&["--size", "1TiB"], &["size = 1TiB is more than the drive has, 64MiB"]);
    for size in ["101%", "-1", "half", "nan%"] {
        words(&[&format!("--size={size}")], &["--size", "a share such as \"50%\", up to \"100%\""]);
    }
}

/// A workload of several namespaces is for drives of several parts.
#[test]
fn namespaces_are_checked() {
    let valid =
        "namespace = 2 is not there; 1 is valid (a drive has a namespace for each of its ftl.parts: --drive two-ftls";
    words(&["--namespace", "2"], &[valid]);
    let text = "version = 1\n[[job]]\nname = \"writes\"\nrw = \"randwrite\"\nnamespace = 2\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, text).expect("a workload");
    let path = path.display().to_string();
    refuse(&["sim", "--drive", "default", "--workload", &path], &["job \"writes\": ", valid]);
}

#[test]
fn counts_are_checked() {
    words(&["--iodepth", "0"], &["--iodepth = 0 is out of range; from 1 to 65535"]);
    words(&["--iodepth", "65536"], &["--iodepth = 65536 is out of range"]);
    words(&["--iodepth", "99999999999"], &["--iodepth"]);
    words(&["--iodepth=-1"], &["--iodepth"]);
    words(&["--numjobs", "0"], &["--numjobs = 0 is out of range"]);
    words(&["--numjobs", "65"], &["no room for queue pair 65", "raise controller.queue_pairs, or run fewer jobs"]);
    words(&["--rw", "randrw", "--rwmixread", "101"], &["--rwmixread = 101 is out of range; from 0 to 100"]);
    words(&["--io-count", "99999999999999999999"], &["--io-count"]);
    words(&["--io-count", "18446744073709551615", "--warmup-count", "1"], &["more than can be counted"]);
    words(&["--io-count=-1"], &["--io-count"]);
    words(&["--rate-iops", "1e300"], &["--rate-iops = 1e300 is out of range; from 0.000001 to 1e9 is valid"]);
    words(&["--io-count", "0"], &["io_count = 0 is out of range; it must be 1 or more"]);
}

#[test]
fn rates_and_times_are_checked() {
    for rate in ["-5", "0", "nan", "inf", "1e10", "1e-300"] {
        words(&["--rate-iops", rate], &["--rate-iops = ", "is out of range; from 0.000001 to 1e9"]);
    }
    words(&["--rate-iops", "many"], &["--rate-iops"]);
    words(&["--rate-iops", "0.00001"], &["years of drive time; at most 300"]);
    words(&["--rate-iops", "10", "--rate-process", "bursty"], &["\"bursty\" is not a process: linear or poisson"]);
    words(&["--runtime", "10x"], &["--runtime", "a time such as \"10s\""]);
    words(&["--runtime=-1s"], &["--runtime"]);
    words(&["--runtime", "0s"], &["runtime = 0ns is out of range; it must be above 0"]);
    words(&["--runtime", "18446744073s"], &["years of drive time"]);
    words(&["--burst", "10ms"], &["--burst", "such as \"10ms/90ms\""]);
    words(&["--burst", "0ms/1ms"], &["--burst"]);
    words(&["--burst", "1ns/18446744073s"], &["years of drive time"]);
}

#[test]
fn distributions_are_checked() {
    for text in [
        "zipf",
        "zipf:",
        "zipf:0",
        "zipf:-1",
        "zipf:nan",
        "zipf:inf",
        "zipf:x",
        "zipf:1e9",
        "pareto:1",
        "pareto:0",
        "normal:0",
        "zoned:50/50",
        "zoned:60/40:40/61",
        "zoned:-10/50:110/50",
        "zoned:nan/50:50/50",
        "uniform:1",
        "flat",
    ] {
        words(&["--random-distribution", text], &["--random-distribution", "uniform, zipf:1.1, pareto:0.2"]);
    }
}

#[test]
fn files_are_refused_with_their_line() {
    let head = "version = 1\n[[job]]\n";
    file(format!("{head}rw = \"read\"\ndepth = 3\n"), &["mine.toml:4: unknown field `depth`, expected one of `name`"]);
    file(format!("{head}rw = \"reed\"\n"), &["job \"job0\": rw: \"reed\" is not a pattern"]);
    file(format!("{head}rw = 3\n"), &["mine.toml:3: invalid type"]);
    file(format!("{head}bs = \"4k\"\n"), &["missing field `rw`"]);
    file(format!("{head}rw = \"read\"\niodepth = 0\n"), &["job \"job0\": iodepth = 0 is out of range"]);
    file(format!("{head}rw = \"read\"\niodepth = -1\n"), &["mine.toml:4:"]);
    file(format!("{head}rw = \"read\"\nrate_iops = nan\n"), &["rate_iops = NaN is out of range"]);
    file(
        format!("{head}rw = \"read\"\nrandom_distribution = \"zipf:x\"\n"),
        &["random_distribution: \"zipf:x\" is not"],
    );
    file("version = 1\njob = []\n", &["has no [[job]]"]);
    file("version = 1\n", &["has no [[job]], [[characteristics]], [[filebench]] or [[ycsb]]"]);
    file("version = 1\n[[filebench]]\npersonality = \"mail\"\n", &["filebench \"mail\": personality: \"mail\" is not"]);
    file("version = 1\n[[ycsb]]\nworkload = \"a\"\nrecord = 3\n", &["mine.toml:4:", "unknown field `record`"]);
    file("version = 1\n[[characteristics]]\nreads = \"1\"\n", &["characteristics \"load0\": has no read_size"]);
    file("version = 9\n[[job]]\nrw = \"read\"\n", &["version = 9 is not known"]);
    file("version = 1\nio_count = 1\nruntime = \"1s\"\n[[job]]\nrw = \"read\"\n", &["io_count or runtime, not both"]);
    file("version = 1\nruntime = \"soon\"\n[[job]]\nrw = \"read\"\n", &["runtime: \"soon\" is not a time"]);
    file("version = 1\n[[job]\n", &["mine.toml:2"]);
    file("", &["missing field `version`"]);
    file(b"\xff", &["valid UTF-8"]);
}

#[test]
fn what_is_not_there_or_no_file_is_refused() {
    let workload = |name: &str, parts: &[&str]| refuse(&["sim", "--drive", "default", "--workload", name], parts);
    workload("nothing", &["nothing: no such workload; there are mixed,"]);
    workload("./nowhere.toml", &["./nowhere.toml: cannot be read"]);
    refuse(&["workloads", "show", "nothing"], &["no such workload"]);
    let folder = tempfile::tempdir().expect("a folder");
    workload(&folder.path().display().to_string(), &["cannot be read"]);
}

/// If nothing takes time, a limit in drive time is never reached; a drive whose flash is all dead is such a case.
#[test]
fn a_run_that_would_never_end_is_given_up() {
    let problem = ["no drive time passes, so --runtime would never be reached: limit the run by requests (--io-count)"];
    words(&["--no-delay", "--runtime", "1ms"], &problem);
    let dead = ["sim", "--drive", "femu-blackbox", "--set", "capacity=64MiB", "--fault", "dead", "--runtime", "1ms"];
    refuse(&[&dead[..], &["--rw", "randrw"]].concat(), &problem);
}

#[test]
fn files_that_do_not_fit_the_drive_are_told() {
    let problem = ["the files drawn for oltp do not fit the drive; take a smaller size"];
    let args = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--workload", "oltp", "--seed", "241"];
    refuse(&args, &problem);
}
