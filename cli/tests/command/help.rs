//! The help of the program.

use crate::program::{refuse, succeed};

#[test]
fn every_command_has_help() {
    let commands = commands(&[]);
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let help = help_of(&command);
        assert!(help.contains("Usage: nandscape"), "{command:?}: {help}");
        assert!(help.contains("\nExit status: 0 "), "{command:?} does not say its exit status: {help}");
        // A terminal of 80 columns does not tear a command apart.
        let examples = help.split_once("\nExamples:\n").map_or("", |(_, rest)| rest);
        let wide = examples.lines().find(|line| line.starts_with("  ") && line.chars().count() > 80);
        assert_eq!(wide, None, "{command:?}");
    }
}

fn help_of(command: &[String]) -> String {
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    succeed(&words)
}

/// A command and all below it, as its help lists them.
fn commands(above: &[String]) -> Vec<Vec<String>> {
    let help = help_of(above);
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
    let named = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let below = names.flat_map(|name| commands(&[above, &[name.to_owned()]].concat()));
    [above.to_vec()].into_iter().chain(below).collect()
}

#[test]
fn help_gives_examples_that_run() {
    // A long example continues on the next line.
    let help = succeed(&["sim", "--help"]).replace(" \\\n", " ");
    let examples = help.lines().filter_map(|line| line.trim().strip_prefix("nandscape sim "));
    // A server makes recordings, and the tests of servers replay them.
    let examples: Vec<&str> = examples.filter(|example| !example.contains("--replay")).collect();
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
    // One example saves the state, and the next one takes it.
    let state = folder.path().join("worn.state").display().to_string();
    for example in examples {
        let example = example
            .replace("mine.toml", &file)
            .replace("results/", &out)
            .replace("server.trace", &trace)
            .replace("server.fio", &jobs)
            .replace("worn.state", &state)
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
        "zonemode",
        "max-open-zones",
        "zone-append",
        "zone-fill",
        "zone-finish",
        "offset",
        "fdp",
        "dataplacement",
        "plids",
        "plid-select",
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
    let (help, _) = help.split_once("\nExamples:\n").expect("examples");
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
    let said = succeed(&["--version"]);
    let (first, sources) = said.split_once('\n').expect("two lines");
    let version = concat!("nandscape ", env!("CARGO_PKG_VERSION"));
    // From an archive there is no commit.
    let commit = first.strip_prefix(version).unwrap_or_else(|| panic!("{said}"));
    let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let is_commit = |text: &str| text.split_once(' ').is_some_and(|(hash, day)| is_hex(hash) && day.len() == 10);
    assert!(commit.is_empty() || is_commit(commit.trim_start_matches(" (").trim_end_matches(')')), "{said}");
    assert!(sources.trim_end().strip_prefix("sources ").is_some_and(is_hex), "{said}");
}

#[test]
fn no_command_and_unknown_ones_are_bad_usage() {
    refuse(&[], &["Usage: nandscape", "Start here", "Exit status: 0 when done"]);
    refuse(&["simulate"], &["unrecognized subcommand 'simulate'", "sim"]);
    refuse(&["sim", "--drive", "default", "--rw", "read", "--depth", "3"], &["unexpected argument '--depth'"]);
}
