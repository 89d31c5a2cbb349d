//! Test programs, compiled and listed by cargo.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use cargo_metadata::{Artifact, Message};

use crate::clock::Moment;
use crate::{run, say};

/// A test program.
pub(crate) struct Suite {
    /// Its crate, and its own name where it is a file or folder of `tests`: `nandscape-cli live`.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    /// The folder of its crate, in which its tests run.
    pub(crate) folder: PathBuf,
}

impl Suite {
    /// Its program, as cargo runs it.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Compiles the test programs that a command of cargo selects.
///
/// # Errors
/// When the compiler fails; its words are on the terminal.
pub(crate) fn compile(mut selection: Command) -> anyhow::Result<Vec<Suite>> {
    selection.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let words = run::words(&selection);
    say::line(&format!("\n==> {words}"));
    let begun = Moment::now();
    let mut cargo = selection.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = cargo.stdout.take().expect("its output is a pipe");
    let suites = Message::parse_stream(BufReader::new(output)).filter_map(|message| match message {
        Ok(Message::CompilerArtifact(artifact)) => suite(artifact).map(Ok),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    let suites = suites.collect::<Result<Vec<Suite>, _>>().context("cannot read what cargo reports")?;
    let status = cargo.wait()?;
    if !status.success() {
        bail!("failed ({status}): {words}");
    }
    say::line(&format!("    compiled in {:.1} s", begun.passed().as_secs_f64()));
    Ok(suites)
}

/// The suite of an artifact, if that is a program of tests.
fn suite(artifact: Artifact) -> Option<Suite> {
    let program = artifact.executable.filter(|_| artifact.profile.test)?;
    let folder = artifact.manifest_path.parent()?;
    let package = crate_name(folder.strip_prefix(run::root()).ok()?.as_str());
    let name = if artifact.target.is_test() { format!("{package} {}", artifact.target.name) } else { package };
    Some(Suite { name, program: program.into(), folder: folder.into() })
}

/// The name of the crate in a folder.
pub(super) fn crate_name(folder: &str) -> String {
    match folder {
        "xtask" => folder.to_owned(),
        "facade" => "nandscape".to_owned(),
        _ => format!("nandscape-{}", folder.replace('/', "-")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_named_by_its_folder() {
        assert_eq!(["xtask", "facade", "device/ssd"].map(crate_name), ["xtask", "nandscape", "nandscape-device-ssd"]);
    }
}
