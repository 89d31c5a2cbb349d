//! `cargo xtask test`: everything that must pass before a change is taken. The quickest checks run first, and the first
//! that fails ends it.

use std::process::Command;

use clap::Args;

use crate::clock::Moment;
use crate::lint::{self, LintArgs};
use crate::run::{cargo, step};
use crate::{layering, say, tidy, tools};

/// Run everything that must pass: layering, tidy, lint, then the tests of all crates, their command lines and their
/// documentation.
///
/// It needs the toolchain, the crates' registry, and the clients that live drives are tested with, which it installs where it
/// may. It stops at the first failure.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask test                       what continuous integration runs
  cargo xtask test --quick               without documentation and its examples
  cargo xtask test -p nandscape-sim      one crate
  cargo xtask test -p nandscape-cli bad  tests with `bad` in their name")]
pub(crate) struct TestArgs {
    /// Only this crate; may be repeated
    #[arg(long, short, value_name = "CRATE")]
    package: Vec<String>,
    /// Leave the documentation and its examples out
    #[arg(long)]
    quick: bool,
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
    commands(args).into_iter().try_for_each(step)?;
    say::line(&format!("\nall passed in {:.0} s", begun.passed().as_secs_f64()));
    Ok(())
}

/// Only the command line's tests run clients.
fn needs_tools(args: &TestArgs) -> bool {
    cfg!(target_os = "linux") && (args.package.is_empty() || args.package.iter().any(|name| name == "nandscape-cli"))
}

fn commands(args: &TestArgs) -> Vec<Command> {
    let test = |what: &str| {
        let mut command = cargo();
        command.arg("test");
        lint::select(&mut command, &args.package).arg(what).args(&args.filter);
        command
    };
    // Cargo refuses examples in documentation of crates that have no library.
    let documented = !args.quick && args.package.is_empty();
    if !documented {
        return vec![test("--all-targets")];
    }
    // What is behind features is tested there.
    let mut parquet = cargo();
    parquet.args(["test", "--package", "nandscape-lab-report", "--features", "parquet"]).args(&args.filter);
    vec![test("--all-targets"), test("--doc"), parquet]
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
        let all = TestArgs { package: Vec::new(), quick: false, filter: None };
        let features = "cargo test --package nandscape-lab-report --features parquet";
        assert_eq!(shown(&all), ["cargo test --workspace --all-targets", "cargo test --workspace --doc", features]);
    }

    #[test]
    fn a_part_can_run() {
        let part = TestArgs { package: vec!["xtask".to_owned()], quick: false, filter: Some("bad".to_owned()) };
        assert_eq!(shown(&part), ["cargo test --package xtask --all-targets bad"]);
    }
}
