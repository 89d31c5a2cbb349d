//! The Python package. Its tests: a virtual environment with pinned packages, a wheel of the dev profile installed in it, mypy, pytest.
//! Its wheel: built in the release profile, installed in a separate environment, and used.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::lint::select;
use crate::run::{cargo, root, step, target};
use crate::say;
use crate::watchdog::{self, Patience};

/// The crate.
pub(crate) const PACKAGE: &str = "nandscape-python";

/// Tests the package, as a wheel installs it. `is_whole`: all crates were tested, so that the command `nandscape`, which runs are
/// compared with, is built.
pub(crate) fn test(is_whole: bool) -> anyhow::Result<()> {
    let folder = target().join("python");
    environment(&folder)?;
    if !is_whole {
        step(build_command())?;
    }
    let wheel = wheel_in(&folder, "dev")?;
    step(pip(&folder, &["install", "--quiet", "--force-reinstall", "--no-deps"], &wheel))?;
    checks(&folder).into_iter().try_for_each(|command| watchdog::step(Patience::default(), command))
}

/// A run that shows that a package works.
const USE: &str = "import nandscape; print(nandscape.run(rw='randread', capacity='64MiB', io_count=1000))";

/// Builds the wheel of a release, and installs and uses it as a user would.
pub(crate) fn wheel() -> anyhow::Result<()> {
    let wheel = release()?;
    say::line(&format!("\nThe wheel is {}", wheel.display()));
    Ok(())
}

/// The interpreter of an environment with the packages of the tests, such as pymemcache.
pub(crate) fn interpreter() -> anyhow::Result<PathBuf> {
    let folder = target().join("python");
    environment(&folder)?;
    Ok(program(&folder, "python"))
}

/// The interpreter of an environment with the package in the release profile.
pub(crate) fn released() -> anyhow::Result<PathBuf> {
    release()?;
    Ok(program(&target().join("python/released"), "python"))
}

fn release() -> anyhow::Result<PathBuf> {
    let (tools, fresh) = (target().join("python"), target().join("python/released"));
    environment(&tools)?;
    let wheel = wheel_in(&tools, "release")?;
    step(virtual_environment(&fresh))?;
    step(pip(&fresh, &["install", "--quiet"], &wheel))?;
    let mut used = Command::new(program(&fresh, "python"));
    used.args(["-c", USE]);
    watchdog::step(Patience::default(), used)?;
    Ok(wheel)
}

fn clear(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

fn virtual_environment(folder: &Path) -> Command {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(folder.join("venv"));
    venv
}

/// Makes the virtual environment, unless one with the same packages exists.
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

/// The command that runs are compared with. The package is built with it, so that the wheel needs no crate with other features.
fn build_command() -> Command {
    let mut build = cargo();
    build.arg("build");
    select(&mut build, &["nandscape-cli", PACKAGE].map(str::to_owned), false);
    build.args(["--features", "nandscape-cli/parquet"]);
    build
}

/// Builds the wheel in a profile, with the tools of an environment.
fn wheel_in(tools: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    let wheels = target().join("wheels").join(profile);
    clear(&wheels)?;
    let mut maturin = Command::new(program(tools, "maturin"));
    maturin.current_dir(root()).args(["build", "--quiet", "--profile", profile, "--interpreter"]);
    maturin.arg(program(tools, "python")).arg("--out").arg(&wheels);
    step(maturin)?;
    only_file(&wheels)
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

/// Types, then tests.
fn checks(folder: &Path) -> Vec<Command> {
    let python = |words: &[&str]| {
        let mut command = Command::new(program(folder, "python"));
        command.current_dir(root()).args(words);
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
}
