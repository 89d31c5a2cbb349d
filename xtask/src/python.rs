//! The Python package. Its tests: a virtual environment with pinned packages, the extension module built with the profile of the
//! tests and installed there, mypy, pytest. Its wheel: built in the release profile, installed in an environment of its own, and used.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::run::{cargo, root, step, target};
use crate::say;
use crate::watchdog::step_within;

/// The crate.
pub(crate) const PACKAGE: &str = "nandscape-python";

/// The longest time of a step besides the build.
const LIMIT: Duration = Duration::from_secs(240);

/// Builds the package and tests it. `has_command`: the command `nandscape`, which runs are compared with, is built already; another
/// selection of crates would compile most of them once more.
pub(crate) fn test(has_command: bool) -> anyhow::Result<()> {
    let folder = target().join("python");
    environment(&folder)?;
    let wheels = folder.join("wheels");
    clear(&wheels)?;
    if !has_command {
        step(command_line())?;
    }
    step(build(&folder, "dev", &wheels))?;
    let wheel = only_file(&wheels)?;
    step(pip(&folder, &["install", "--quiet", "--no-deps", "--force-reinstall"], &wheel))?;
    checks(&folder).into_iter().try_for_each(|command| step_within(LIMIT, command))
}

/// A run that shows that a package works.
const USE: &str = "import nandscape; print(nandscape.run(rw='randread', capacity='64MiB', io_count=1000))";

/// Builds the wheel of a release, and installs and uses it as one who gets it would.
pub(crate) fn wheel() -> anyhow::Result<()> {
    let wheel = release()?;
    say::line(&format!("\nThe wheel is {}", wheel.display()));
    Ok(())
}

/// The interpreter of an environment with the package in the release profile.
pub(crate) fn released() -> anyhow::Result<PathBuf> {
    release()?;
    Ok(program(&target().join("python/released"), "python"))
}

fn release() -> anyhow::Result<PathBuf> {
    let (tools, fresh, wheels) = (target().join("python"), target().join("python/released"), target().join("wheels"));
    environment(&tools)?;
    clear(&wheels)?;
    step(build(&tools, "release", &wheels))?;
    let wheel = only_file(&wheels)?;
    step(virtual_environment(&fresh))?;
    step(pip(&fresh, &["install", "--quiet"], &wheel))?;
    let mut used = Command::new(program(&fresh, "python"));
    used.args(["-c", USE]);
    step_within(LIMIT, used)?;
    Ok(wheel)
}

fn clear(wheels: &Path) -> anyhow::Result<()> {
    if wheels.exists() {
        std::fs::remove_dir_all(wheels).context("old wheels")?;
    }
    Ok(())
}

fn virtual_environment(folder: &Path) -> Command {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(folder.join("venv"));
    venv
}

/// Makes the virtual environment, unless one with the same packages is there.
fn environment(folder: &Path) -> anyhow::Result<()> {
    let list = root().join("python/requirements.txt");
    let wanted = std::fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let stamp = folder.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    step(virtual_environment(folder))?;
    step(pip(folder, &["install", "--quiet", "--requirement"], &list))?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn program(folder: &Path, name: &str) -> PathBuf {
    folder.join("venv/bin").join(name)
}

fn pip(folder: &Path, words: &[&str], path: &Path) -> Command {
    let mut pip = Command::new(program(folder, "python"));
    pip.args(["-m", "pip", "--disable-pip-version-check"]).args(words).arg(path);
    pip
}

/// The command that runs are compared with.
fn command_line() -> Command {
    let mut build = cargo();
    build.args(["build", "--package", "nandscape-cli"]);
    build
}

fn build(folder: &Path, profile: &str, wheels: &Path) -> Command {
    let mut maturin = Command::new(program(folder, "maturin"));
    maturin.current_dir(root()).args(["build", "--quiet", "--profile", profile, "--interpreter"]);
    maturin.arg(program(folder, "python")).arg("--out").arg(wheels);
    maturin
}

/// The one file of a folder.
fn only_file(folder: &Path) -> anyhow::Result<PathBuf> {
    let files: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    match <[PathBuf; 1]>::try_from(files) {
        Ok([file]) => Ok(file),
        Err(files) => bail!("{} has {} wheels; one is expected", folder.display(), files.len()),
    }
}

/// Types, then tests. `timeout` ends what hangs.
fn checks(folder: &Path) -> Vec<Command> {
    let limit = LIMIT.as_secs().to_string();
    let python = |words: &[&str]| {
        let mut command = Command::new("timeout");
        command.current_dir(root()).arg(&limit).arg(program(folder, "python")).args(words);
        command.env("NANDSCAPE", target().join("debug/nandscape"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("MPLCONFIGDIR", folder.join("matplotlib"));
        command
    };
    let cache = folder.join("mypy").to_string_lossy().into_owned();
    vec![python(&["-m", "mypy", "--cache-dir", &cache]), python(&["-m", "pytest"])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wheel_is_expected() {
        let folder = tempfile::tempdir().unwrap();
        assert!(only_file(folder.path()).unwrap_err().to_string().ends_with("has 0 wheels; one is expected"));
        let wheel = folder.path().join("a.whl");
        std::fs::write(&wheel, "").unwrap();
        assert_eq!(only_file(folder.path()).unwrap(), wheel);
        std::fs::write(folder.path().join("b.whl"), "").unwrap();
        assert!(only_file(folder.path()).is_err());
    }

    #[test]
    fn checks_are_bounded() {
        for command in checks(Path::new("python")) {
            assert_eq!(command.get_program(), "timeout");
        }
    }
}
