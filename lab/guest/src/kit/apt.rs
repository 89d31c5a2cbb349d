//! Fetches packages from Debian's archive, by an apt with its own folder: package lists, packages, and an empty record of
//! installed packages. It needs no root, and changes nothing of this system. The system's settings, such as proxies, apply.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::recipe;
use super::tree;
use crate::error::{GuestError, last_lines};

/// What is needed of this system, with how to get it.
const NEEDED: &str = "fetching the guest's packages needs apt-get, dpkg-deb and the keys of Debian's archive: on Debian and \
                      Ubuntu, apt-get install apt dpkg debian-archive-keyring; elsewhere, use a container of Debian";

/// Fetches the recipe's packages with their dependencies, and unpacks them into `tree`. `scratch` is for intermediate
/// files.
pub(super) fn fetch(scratch: &Path, tree: &Path) -> Result<(), GuestError> {
    if !cfg!(target_arch = "x86_64") {
        return Err(GuestError::Missing(
            "the guest's programs are for x86-64; this is another architecture".to_owned(),
        ));
    }
    if !Path::new(recipe::KEYRING).exists() {
        return Err(GuestError::Missing(format!("{} is missing; {NEEDED}", recipe::KEYRING)));
    }
    set_up(scratch)?;
    // Without this setting, an archive that cannot be reached would be ignored.
    run(apt(scratch).args(["-o", "APT::Update::Error-Mode=any", "update"]))?;
    run(apt(scratch).args(["--yes", "--download-only", "install"]).args(recipe::PACKAGES))?;
    let packages = packages(&scratch.join("cache/archives"))?;
    for package in &packages {
        run(Command::new("dpkg-deb").arg("--extract").args([package, tree]))?;
    }
    tree::finish(tree, &packages)
}

fn set_up(scratch: &Path) -> Result<(), GuestError> {
    for folder in ["etc", "state/lists/partial", "cache/archives/partial"] {
        let path = scratch.join(folder);
        fs::create_dir_all(&path).map_err(GuestError::file("create", &path))?;
    }
    let texts = [
        ("etc/sources.list", recipe::sources()),
        ("etc/preferences", recipe::PREFERENCES.to_owned()),
        ("state/status", String::new()),
    ];
    for (name, text) in texts {
        let path = scratch.join(name);
        fs::write(&path, text).map_err(GuestError::file("write", &path))?;
    }
    Ok(())
}

fn apt(scratch: &Path) -> Command {
    let mut command = Command::new("apt-get");
    let path = |name: &str| scratch.join(name).display().to_string();
    let settings = [
        ("Dir::State", path("state")),
        ("Dir::State::status", path("state/status")),
        ("Dir::Cache", path("cache")),
        ("Dir::Etc", path("etc")),
        ("Dir::Etc::sourcelist", path("etc/sources.list")),
        ("Dir::Etc::sourceparts", path("etc/none")),
        ("Dir::Etc::preferencesparts", path("etc/none")),
        ("APT::Architecture", "amd64".to_owned()),
        ("APT::Architectures", "amd64".to_owned()),
        ("APT::Install-Recommends", "false".to_owned()),
        // As root, apt would fetch as a user that may not enter this folder.
        ("APT::Sandbox::User", "root".to_owned()),
        ("Acquire::Languages", "none".to_owned()),
        ("Acquire::Retries", "3".to_owned()),
        ("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".to_owned()),
    ];
    for (name, value) in settings {
        command.args(["-o".to_owned(), format!("{name}={value}")]);
    }
    command
}

/// The packages that were fetched, in the order of their names.
fn packages(folder: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let entries = fs::read_dir(folder).map_err(GuestError::file("read", folder))?;
    let mut packages: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "deb"))
        .collect();
    packages.sort();
    Ok(packages)
}

fn run(command: &mut Command) -> Result<(), GuestError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.map_err(|error| GuestError::Missing(format!("cannot run {program} ({error}); {NEEDED}")))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let text = [output.stdout, output.stderr].concat();
            let output_text = last_lines(&String::from_utf8_lossy(&text), 15);
            Err(GuestError::Program { program, status: output.status, output: output_text })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_has_folders_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        set_up(folder.path()).unwrap();
        let sources = fs::read_to_string(folder.path().join("etc/sources.list")).unwrap();
        assert!(sources.lines().all(|line| line.starts_with("deb [signed-by=/usr/share/keyrings/")), "{sources}");
        let command = apt(folder.path());
        let state = format!("Dir::State={}", folder.path().join("state").display());
        assert!(command.get_args().any(|word| word.to_str() == Some(&state)), "{command:?}");
    }

    #[test]
    fn a_program_that_fails_or_is_missing_is_reported() {
        let failed = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err().to_string();
        assert!(failed.contains("sh failed") && failed.ends_with("why"), "{failed}");
        let missing = run(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(missing.contains("no-such-program") && missing.contains("apt-get install"), "{missing}");
    }
}
