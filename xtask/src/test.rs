//! `cargo xtask test`: everything that must pass before a change is accepted. The fastest checks run first. The first
//! check that fails ends the run; the tests of all crates run to their end, so that one run names all that fail. Tests that hang are ended and named ([`watchdog`](crate::watchdog)).

use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::clock::Moment;
use crate::lint::{self, LintArgs};
use crate::run::cargo;
use crate::watchdog::step_within;
use crate::{layering, python, say, tidy, tools};

/// Run everything that must pass: layering, tidy, lint, then the tests of all crates, their command lines and their
/// documentation.
///
/// It needs the toolchain, the crates' registry, and the clients for the tests of live drives, which it installs if it
/// may. It stops at the first step that fails; a step of tests names all that fail.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask test                       what continuous integration runs
  cargo xtask test --quick               default features only, without documentation and its examples
  cargo xtask test -p nandscape-sim      one crate
  cargo xtask test -p nandscape-cli bad  tests with `bad` in their name
  cargo xtask test -p nandscape-python   the Python package: its types with mypy, its tests with pytest")]
pub(crate) struct TestArgs {
    /// Only this crate; may be repeated
    #[arg(long, short, value_name = "CRATE")]
    package: Vec<String>,
    /// Leave out the documentation, its examples, and what is behind features
    #[arg(long)]
    quick: bool,
    /// The most minutes that the tests may take once they are compiled; what hangs is ended and named
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    limit: u64,
    /// Only tests with this in their name
    filter: Option<String>,
}

/// Runs it all.
pub(crate) fn run(args: &TestArgs) -> anyhow::Result<()> {
    let begun = Moment::now();
    layering::run()?;
    tidy::run()?;
    if needs_tools(args) {
        tools::run()?;
    }
    lint::run(&LintArgs { package: args.package.clone(), quick: args.quick })?;
    let limit = Duration::from_secs(args.limit * 60);
    commands(args).into_iter().try_for_each(|command| step_within(limit, command))?;
    if has_python(args) {
        python::test(args.package.is_empty())?;
    }
    say::line(&format!("\nall passed in {:.0} s", begun.passed().as_secs_f64()));
    Ok(())
}

/// Only the tests of the command line run clients, and those of the Python package its interpreter.
fn needs_tools(args: &TestArgs) -> bool {
    let has_tools = |name: &String| name == "nandscape-cli" || name == python::PACKAGE;
    cfg!(target_os = "linux") && (args.package.is_empty() || args.package.iter().any(has_tools))
}

/// Whether the Python package is tested: in a whole run, and where it is named.
fn has_python(args: &TestArgs) -> bool {
    let is_named = args.package.iter().any(|name| name == python::PACKAGE);
    is_named || !args.quick && args.package.is_empty() && args.filter.is_none()
}

fn commands(args: &TestArgs) -> Vec<Command> {
    let test = |what: &str| {
        let mut command = cargo();
        command.arg("test");
        lint::select(&mut command, &args.package, args.quick).args(["--no-fail-fast", what]).args(&args.filter);
        command
    };
    // Cargo refuses examples in documentation of crates that have no library.
    let documented = !args.quick && args.package.is_empty();
    let mut commands = vec![test("--all-targets")];
    if documented {
        commands.push(test("--doc"));
    }
    if documented && args.filter.is_none() {
        commands.extend(EXAMPLES.map(example));
    }
    commands
}

/// The programs that the documentation has its readers run. Each checks what it shows, and fails otherwise.
const EXAMPLES: [&str; 3] = ["page_store", "bw_tree", "ftl_component"];

fn example(name: &str) -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "nandscape", "--example", name]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::words;

    fn shown(args: &TestArgs) -> Vec<String> {
        commands(args).iter().map(words).collect()
    }

    #[test]
    fn all_tests_run() {
        let all = TestArgs { package: Vec::new(), quick: false, limit: 20, filter: None };
        let whole =
            "cargo test --workspace --features nandscape-cli/parquet,nandscape-python/module,nandscape-python/parquet";
        let tests = ["--all-targets", "--doc"].map(|what| format!("{whole} --no-fail-fast {what}"));
        let examples = EXAMPLES.map(|name| format!("cargo run --quiet --package nandscape --example {name}"));
        assert_eq!(shown(&all), [&tests[..], &examples].concat());
        let some = TestArgs { filter: Some("bad".to_owned()), ..all };
        assert_eq!(shown(&some).len(), 2, "what is filtered are tests");
    }

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
    fn a_quick_run_has_the_features_of_users() {
        let quick = TestArgs { package: Vec::new(), quick: true, limit: 20, filter: None };
        assert_eq!(shown(&quick), ["cargo test --workspace --no-fail-fast --all-targets"]);
    }

    #[test]
    fn a_part_can_run() {
        let (package, filter) = (vec!["xtask".to_owned()], Some("bad".to_owned()));
        let part = TestArgs { package, quick: false, limit: 20, filter };
        assert_eq!(shown(&part), ["cargo test --package xtask --no-fail-fast --all-targets bad"]);
        assert!(!has_python(&part));
    }

    #[test]
    fn the_python_package_is_tested_in_whole_runs_and_where_it_is_named() {
        let with = |package: &[&str], quick| {
            let package = package.iter().map(|name| (*name).to_owned()).collect();
            has_python(&TestArgs { package, quick, limit: 20, filter: None })
        };
        assert!(with(&[], false) && with(&[python::PACKAGE], true));
        assert!(!with(&[], true) && !with(&["xtask"], false));
    }
}
