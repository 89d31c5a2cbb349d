//! `cargo xtask test`: everything that must pass before a change is accepted, or the tests of a part. The fastest checks run
//! first. The first check that fails ends the run. The tests of all crates run to their end, so that one run names all failed
//! tests. Documentation and the Python package are tested at the same time. Hanging tests are ended and named
//! ([`watchdog`](crate::watchdog)).

use std::process::Command;

use anyhow::bail;
use cargo_metadata::MetadataCommand;
use clap::Args;

use crate::clock::Moment;
use crate::lint::{self, LintArgs};
use crate::run::{cargo, root, target};
use crate::suites::{self, Choice, Part};
use crate::watchdog::{Patience, step};
use crate::{layering, python, say, tidy, tools};

/// Run everything that must pass: layering, tidy, lint, then the tests of all crates, their command lines and their
/// documentation. With a PART, run the tests of that part alone.
///
/// It needs the toolchain, the crates' registry, and the clients for the tests of live drives, which it installs if it
/// may. It stops at the first step that fails; a step of tests names all that fail. It takes as long as the machine
/// needs: only a test that makes no progress is ended.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask test                       what continuous integration runs
  cargo xtask test --quick               without documentation, its examples, the Python package, and what is behind features
  cargo xtask test sim                   one crate, by its folder or its name; cargo xtask lint -p checks its form
  cargo xtask test device/ftl            all crates in a folder
  cargo xtask test cli/live              one suite, by the name of its file or folder under tests
  cargo xtask test cli/live/arrays       one module of a suite, by its file or folder
  cargo xtask test cli --filter bad      tests with `bad` in their name
  cargo xtask test python                the Python package: its types with mypy, its tests with pytest")]
pub(crate) struct TestArgs {
    /// Crates, suites and modules of suites; without one, everything
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    /// Leave out the documentation, its examples, the Python package, and what is behind features
    #[arg(long, conflicts_with = "parts")]
    quick: bool,
    /// Only tests with this in their name
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// Runs it all.
pub(crate) fn run(args: &TestArgs) -> anyhow::Result<()> {
    let begun = Moment::now();
    if args.parts.is_empty() {
        all(args)?
    } else {
        parts(args)?
    }
    say::line(&format!("\nall passed in {:.0} s", begun.passed().as_secs_f64()));
    Ok(())
}

/// What continuous integration runs.
fn all(args: &TestArgs) -> anyhow::Result<()> {
    layering::run()?;
    tidy::run()?;
    if cfg!(target_os = "linux") {
        tools::run()?;
    }
    lint::run(&LintArgs { package: Vec::new(), quick: args.quick })?;
    let mut tests = test();
    lint::select(&mut tests, &[], args.quick).arg("--all-targets");
    let suites = suites::compile(tests)?;
    if args.quick || args.filter.is_some() {
        return suites::run(suites, Choice::of(args.filter.as_deref()));
    }
    // They compile more than they run, while the longest suites wait for guests and sockets.
    let others = || documented().into_iter().try_for_each(|command| step(Patience::default(), command));
    side_by_side(|| suites::run(suites, Choice::default()), || others().and_then(|()| python::test(true)))
}

/// Runs both to their ends; the error names what failed of either.
fn side_by_side(
    one: impl FnOnce() -> anyhow::Result<()>,
    other: impl FnOnce() -> anyhow::Result<()> + Send,
) -> anyhow::Result<()> {
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(other);
        (one(), other.join().expect("no step panics"))
    });
    match (one, other) {
        (Err(one), Err(other)) => bail!("{one:#}\n{other:#}"),
        (one, other) => one.and(other),
    }
}

/// The tests of parts alone.
fn parts(args: &TestArgs) -> anyhow::Result<()> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec()?;
    let found = args.parts.iter().map(|name| Part::find(name, &metadata)).collect::<anyhow::Result<Vec<_>>>()?;
    let (python, others): (Vec<Part>, Vec<Part>) =
        found.into_iter().flatten().partition(|part| part.package == python::PACKAGE);
    if cfg!(target_os = "linux") && (!python.is_empty() || others.iter().any(needs_tools)) {
        tools::run()?;
    }
    for part in &others {
        let mut suites = suites::compile(selection(part))?;
        suites.retain(|suite| part.has(suite));
        suites::run(suites, Choice { module: part.module.as_deref(), filter: args.filter.as_deref() })?;
    }
    match python[..] {
        [] => Ok(()),
        _ if args.filter.is_some() => {
            bail!("--filter is for tests of crates; {} has none: leave it out", python::PACKAGE)
        }
        _ => python::test(false),
    }
}

/// Only the tests of the command line and of guests run clients and QEMU.
fn needs_tools(part: &Part) -> bool {
    ["nandscape-cli", "nandscape-lab-guest"].contains(&part.package.as_str())
}

fn test() -> Command {
    let mut command = cargo();
    command.arg("test");
    command
}

fn selection(part: &Part) -> Command {
    let mut command = test();
    command.args(part.words());
    command
}

/// The examples of the documentation: those in comments, and the programs that its readers run.
fn documented() -> Vec<Command> {
    let mut comments = test();
    lint::select(&mut comments, &[], false).arg("--doc");
    // `cargo run` would select the features of one crate alone, and compile most crates once more.
    let mut examples = cargo();
    lint::select(examples.arg("build"), &[], false).arg("--examples");
    [comments, examples].into_iter().chain(EXAMPLES.map(example)).collect()
}

/// The programs that the documentation has its readers run. Each checks what it shows, and fails otherwise.
const EXAMPLES: [&str; 4] = ["page_store", "bw_tree", "ftl_component", "victim_policy"];

fn example(name: &str) -> Command {
    let mut command = Command::new(target().join("debug/examples").join(name));
    command.current_dir(root());
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::words;

    #[test]
    fn every_example_of_the_documentation_runs() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../facade/examples");
        let files = std::fs::read_dir(folder).expect("the folder of examples").map(|file| file.expect("a file").path());
        let mut names: Vec<_> = files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
        names.sort_unstable();
        let mut run = EXAMPLES;
        run.sort_unstable();
        assert_eq!(names, run);
    }

    #[test]
    fn examples_of_all_features_run() {
        let all = "nandscape-cli/parquet,nandscape-python/module,nandscape-python/parquet";
        let shown: Vec<String> = documented().iter().map(words).collect();
        assert_eq!(shown[0], format!("cargo test --workspace --features {all} --doc"));
        assert_eq!(shown[1], format!("cargo build --workspace --features {all} --examples"));
        assert_eq!(shown[2], "page_store");
    }

    #[test]
    fn what_runs_side_by_side_ends_and_both_failures_are_named() {
        let ended = |one: Result<(), &'static str>, other: Result<(), &'static str>| {
            let of = |result: Result<(), &'static str>| move || result.map_err(anyhow::Error::msg);
            side_by_side(of(one), of(other)).map_err(|error| error.to_string())
        };
        assert_eq!(ended(Ok(()), Ok(())), Ok(()));
        assert_eq!(ended(Err("suites"), Ok(())), Err("suites".to_owned()));
        assert_eq!(ended(Ok(()), Err("pages")), Err("pages".to_owned()));
        assert_eq!(ended(Err("suites"), Err("pages")), Err("suites\npages".to_owned()));
    }

    #[test]
    fn a_part_is_a_crate_or_a_suite() {
        let part = |package: &str, targets: &[&str]| {
            let targets = targets.iter().map(|&word| word.to_owned()).collect();
            Part { package: package.to_owned(), suite: None, module: None, targets }
        };
        let xtask = part("xtask", &["--bin", "xtask"]);
        let expected =
            "cargo test --package xtask --package nandscape-cli --features nandscape-cli/parquet --bin xtask";
        assert_eq!(words(&selection(&xtask)), expected);
        let live = part("nandscape-cli", &["--test", "live"]);
        assert!(needs_tools(&live) && !needs_tools(&xtask));
    }
}
