//! Runs other programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::clock::Moment;
use crate::say;

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// The cargo that runs this.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The build folder of cargo.
pub(crate) fn target() -> PathBuf {
    // A relative folder is relative to the root, where cargo runs.
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// The command as one would type it.
pub(crate) fn words(command: &Command) -> String {
    let environment = command.get_envs().filter_map(|(name, value)| Some(format!("{}={}", text(name), text(value?))));
    let program = Path::new(command.get_program()).file_stem().map_or_else(String::new, text);
    let words = environment.map(quoted).chain([program]).chain(command.get_args().map(text).map(quoted));
    words.collect::<Vec<_>>().join(" ")
}

fn text(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

fn quoted(word: String) -> String {
    match (word.contains(' '), word.split_once('=')) {
        (true, Some((name, value))) if !name.starts_with('-') => format!("{name}=\"{value}\""),
        (true, _) => format!("\"{word}\""),
        (false, _) => word,
    }
}

/// Runs a step with its output on the terminal, and prints its command and its time.
pub(crate) fn step(mut command: Command) -> anyhow::Result<()> {
    let words = words(&command);
    say::line(&format!("\n==> {words}"));
    let begun = Moment::now();
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run: {words}"))?;
    let took = begun.passed().as_secs_f64();
    if !status.success() {
        bail!("failed after {took:.1} s ({status}): {words}");
    }
    say::line(&format!("    passed in {took:.1} s"));
    Ok(())
}

/// Runs a program and returns its standard output; its standard error goes to the terminal.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let words = words(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run: {words}"))?;
    if !output.status.success() {
        bail!("failed ({}): {words}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("prints no text: {words}"))
}

/// `git` in the workspace.
pub(crate) fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.current_dir(root()).args(arguments);
    Ok(output(&mut command)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(words(&command), "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps");
    }

    #[test]
    fn a_program_that_fails_is_named() {
        let mut version = cargo();
        assert!(output(version.arg("--version")).unwrap().starts_with("cargo "));
        let error = output(Command::new("false").arg("now")).unwrap_err().to_string();
        assert!(error.ends_with(": false now"), "{error}");
    }
}
