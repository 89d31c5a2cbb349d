//! What the program says of itself.

use crate::program::{refuse, succeed};

#[test]
fn every_command_has_help() {
    let commands: [&[&str]; 23] = [
        &[],
        &["sim"],
        &["sweep"],
        &["demo"],
        &["serve"],
        &["bench"],
        &["guest"],
        &["compare"],
        &["inspect"],
        &["fsck"],
        &["drives"],
        &["drives", "show"],
        &["drives", "keys"],
        &["drives", "components"],
        &["workloads"],
        &["workloads", "show"],
        &["trace"],
        &["trace", "info"],
        &["trace", "convert"],
        &["lab"],
        &["lab", "list"],
        &["lab", "run"],
        &["lab", "report"],
    ];
    for command in commands {
        let help = succeed(&[command, &["--help"]].concat());
        assert!(help.contains("Usage: nandscape"), "{command:?}: {help}");
    }
}

#[test]
fn help_gives_examples_that_run() {
    let help = succeed(&["sim", "--help"]);
    let examples: Vec<&str> = help.lines().filter_map(|line| line.trim().strip_prefix("nandscape sim ")).collect();
    assert!(examples.len() >= 3, "{help}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, "version = 1\nbase = \"default\"\n").expect("a profile");
    let trace = folder.path().join("server.trace");
    std::fs::write(&trace, "0.000 0 0 65536 1\n0.100 0 65536 512 0\n").expect("a trace");
    let (file, out) = (file.display().to_string(), folder.path().display().to_string());
    let jobs = folder.path().join("server.fio");
    std::fs::write(&jobs, "[reads]\nrw=randread\n").expect("a job file");
    let (trace, jobs) = (trace.display().to_string(), jobs.display().to_string());
    for example in examples {
        let example = example
            .replace("mine.toml", &file)
            .replace("results/", &out)
            .replace("server.trace", &trace)
            .replace("server.fio", &jobs)
            .replace('\'', "")
            .replace("=1TiB", "=1GiB");
        let mut args = vec!["sim"];
        args.extend(example.split_whitespace());
        args.extend(["--set", "capacity=64MiB"]);
        if !args.contains(&"--runtime") {
            args.extend(["--io-count", "1000"]);
        }
        succeed(&args);
    }
}

#[test]
fn help_says_what_every_flag_of_the_contract_does() {
    let help = succeed(&["sim", "--help"]);
    for flag in [
        "drive",
        "set",
        "fault",
        "seed",
        "json",
        "out",
        "workload",
        "rw",
        "bs",
        "iodepth",
        "numjobs",
        "rwmixread",
        "size",
        "random-distribution",
        "rate-iops",
        "rate-process",
        "io-count",
        "runtime",
        "warmup-count",
        "precondition",
        "no-delay",
        "trace",
        "format",
        "time-scale",
    ] {
        assert!(help.contains(&format!("--{flag}")), "--{flag}");
    }
}

#[test]
fn words_of_the_workload_and_options_are_under_their_own_headings() {
    let help = succeed(&["sim", "--help"]);
    let (options, workload) = help.split_once("Workload:\n").expect("the heading");
    for flag in ["--drive", "--set", "--precondition", "--seed", "--json", "--out"] {
        assert!(options.contains(&format!("  {flag}")) && !workload.contains(&format!("  {flag} ")), "{flag}: {help}");
    }
    for word in ["--workload", "--rw", "--runtime", "--warmup-count"] {
        assert!(workload.contains(&format!("  {word} ")) && !options.contains(&format!("  {word} ")), "{word}: {help}");
    }
}

#[test]
fn the_version_is_told() {
    assert_eq!(succeed(&["--version"]), format!("nandscape {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_command_and_unknown_ones_are_bad_usage() {
    refuse(&[], &["Usage: nandscape", "Start here", "Exit status: 0 when done"]);
    refuse(&["simulate"], &["unrecognized subcommand 'simulate'", "sim"]);
    refuse(&["sim", "--drive", "default", "--rw", "read", "--depth", "3"], &["unexpected argument '--depth'"]);
}
