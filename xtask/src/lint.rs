//! `cargo xtask lint`: formatting, Clippy, documentation. Warnings are errors.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::python::PACKAGE;
use crate::run::{cargo, output, root, step};

/// Check formatting, Clippy's lints and the documentation. Warnings are errors.
#[derive(Args, Clone, Default)]
pub(crate) struct LintArgs {
    /// Only this crate; may be repeated
    #[arg(long, short, value_name = "CRATE")]
    pub(crate) package: Vec<String>,
    /// Leave the documentation out
    #[arg(long)]
    pub(crate) quick: bool,
}

/// Runs them in turn, the quickest first.
pub(crate) fn run(args: &LintArgs) -> anyhow::Result<()> {
    let mut commands = commands(args);
    if let (Some(driver), [_, _, doc]) = (clippy_driver(), &mut commands[..]) {
        check_as_clippy(doc, &driver);
    }
    commands.into_iter().try_for_each(step)
}

/// Has a command of cargo take the crates that Clippy has checked. A driver or arguments that differ from those of `cargo clippy` make
/// cargo check all crates once more, and change no result.
fn check_as_clippy(command: &mut Command, driver: &Path) {
    command.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
}

/// Clippy's compiler, by the path that `cargo clippy` calls it by.
fn clippy_driver() -> Option<PathBuf> {
    let folder = output(Command::new("rustc").current_dir(root()).args(["--print", "sysroot"])).ok()?;
    Path::new(folder.trim_end()).join("bin/clippy-driver").canonicalize().ok()
}

fn commands(args: &LintArgs) -> Vec<Command> {
    let mut format = cargo();
    format.args(["fmt", "--check"]);
    match args.package[..] {
        [] => format.arg("--all"),
        ref some => some.iter().fold(&mut format, |command, package| command.args(["--package", package])),
    };
    let mut clippy = cargo();
    clippy.arg("clippy");
    select(&mut clippy, &args.package, args.quick);
    clippy.args(["--all-targets", "--", "-D", "warnings"]);
    let mut doc = cargo();
    doc.arg("doc");
    select(&mut doc, &args.package, args.quick).arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings");
    if args.package.is_empty() {
        // What is documented without these words; and examples, with which dependencies have the features that all targets of Clippy
        // select.
        doc.args(["--lib", "--bin", "xtask", "--examples"]);
    }
    if args.quick { vec![format, clippy] } else { vec![format, clippy, doc] }
}

/// Features of the Python package's wheel.
const WHEEL: &str = "nandscape-python/module,nandscape-python/parquet";

/// All optional features.
const ALL: &str = "nandscape-cli/parquet,nandscape-python/module,nandscape-python/parquet";

/// The selected crates: those named, or all. A whole run has all features; a quick one has the default features. Every command of a
/// whole run names the same, because another selection of features recompiles most crates.
pub(crate) fn select<'a>(command: &'a mut Command, packages: &[String], quick: bool) -> &'a mut Command {
    match packages {
        [] if quick => command.arg("--workspace"),
        [] => command.args(["--workspace", "--features", ALL]),
        some => {
            let command = some.iter().fold(command, |command, package| command.args(["--package", package]));
            if some.iter().any(|name| name == PACKAGE) { command.args(["--features", WHEEL]) } else { command }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::words;

    fn shown(args: &LintArgs) -> Vec<String> {
        commands(args).iter().map(words).collect()
    }

    #[test]
    fn everything_is_checked_and_warnings_are_errors() {
        let expected = [
            "cargo fmt --check --all",
            "cargo clippy --workspace --features nandscape-cli/parquet,nandscape-python/module,nandscape-python/parquet --all-targets -- -D warnings",
            "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --features nandscape-cli/parquet,nandscape-python/module,nandscape-python/parquet --no-deps --lib --bin xtask --examples",
        ];
        assert_eq!(shown(&LintArgs::default()), expected);
    }

    #[test]
    fn one_crate_can_be_checked_quickly() {
        let expected =
            ["cargo fmt --check --package xtask", "cargo clippy --package xtask --all-targets -- -D warnings"];
        assert_eq!(shown(&LintArgs { package: vec!["xtask".to_owned()], quick: true }), expected);
    }
}
