//! Sources of other programs, whose tests are run against ours: fetched from Debian's archive once, by an apt with its own folders,
//! which needs no root and changes nothing of this system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::run::{step, target};
use crate::say;

/// memcached's source with its tests, of one version: what each test gives is written down
/// in docs/validation/memcached.md.
const MEMCACHED: Source = Source { package: "memcached", version: "1.6.18" };
/// The suite that has it.
const SUITE: &str = "bookworm";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

struct Source {
    package: &'static str,
    version: &'static str,
}

impl Source {
    fn name(&self) -> String {
        format!("{}-{}", self.package, self.version)
    }
}

/// Fetches what is missing. Without the archive the tests that need it are skipped, and print why.
pub(crate) fn run() {
    let folder = target().join("tools");
    let unpacked = folder.join(MEMCACHED.name());
    if unpacked.exists() {
        say::line(&format!("sources: {} is there", MEMCACHED.name()));
    } else if let Err(error) = fetch(&folder, &MEMCACHED) {
        say::line(&format!(
            "sources: {} is missing, and memcached's own tests are skipped: {error:#}",
            MEMCACHED.name()
        ));
    }
}

fn fetch(folder: &Path, source: &Source) -> anyhow::Result<()> {
    let scratch = folder.join("apt");
    set_up(&scratch)?;
    fetching(&scratch, source).into_iter().try_for_each(step)?;
    let archive = archive(&scratch.join("sources"), source)?;
    let mut unpack = Command::new("tar");
    step({
        unpack.arg("-xf").arg(archive).arg("-C").arg(&scratch);
        unpack
    })?;
    // The name is there only once all of it is.
    let (from, to) = (scratch.join(source.name()), folder.join(source.name()));
    fs::rename(&from, &to).with_context(|| format!("cannot rename {} to {}", from.display(), to.display()))?;
    fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))
}

fn set_up(scratch: &Path) -> anyhow::Result<()> {
    // What an interrupted run has left.
    let _ = fs::remove_dir_all(scratch);
    for name in ["etc", "state/lists/partial", "cache/archives/partial", "sources"] {
        let path = scratch.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
    }
    let text = format!("deb-src [signed-by={KEYRING}] http://deb.debian.org/debian {SUITE} main\n");
    for (name, text) in [("etc/sources.list", text), ("state/status", String::new())] {
        let path = scratch.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn fetching(scratch: &Path, source: &Source) -> Vec<Command> {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        let path = |name: &str| scratch.join(name).display().to_string();
        let settings = [
            ("Dir::State", path("state")),
            ("Dir::State::status", path("state/status")),
            ("Dir::Cache", path("cache")),
            ("Dir::Etc", path("etc")),
            ("Dir::Etc::sourcelist", path("etc/sources.list")),
            ("Dir::Etc::sourceparts", path("etc/none")),
            // As root, apt would fetch as a user that may not enter this folder.
            ("APT::Sandbox::User", "root".to_owned()),
            ("Acquire::Languages", "none".to_owned()),
        ];
        for (name, value) in settings {
            command.args(["-o", &format!("{name}={value}")]);
        }
        command.args(words).current_dir(scratch.join("sources"));
        command
    };
    // Without this setting, an archive that cannot be reached would be ignored.
    let update = apt(&["-o", "APT::Update::Error-Mode=any", "--quiet=2", "update"]);
    vec![update, apt(&["--quiet=2", "source", "--download-only", source.package])]
}

/// The upstream source among what was fetched.
fn archive(folder: &Path, source: &Source) -> anyhow::Result<PathBuf> {
    let prefix = format!("{}_{}.orig.tar.", source.package, source.version);
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = entries.flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
    found.find(is_it).with_context(|| format!("{SUITE} has no {prefix}*"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::words;

    #[test]
    fn a_source_is_fetched_by_an_apt_with_its_own_folders() {
        let folder = tempfile::tempdir().unwrap();
        set_up(folder.path()).unwrap();
        let list = fs::read_to_string(folder.path().join("etc/sources.list")).unwrap();
        assert!(list.starts_with("deb-src [signed-by=/usr/share/keyrings/") && list.lines().count() == 1, "{list}");
        let shown: Vec<String> = fetching(folder.path(), &MEMCACHED).iter().map(words).collect();
        assert!(shown[0].ends_with("update") && shown[1].ends_with("source --download-only memcached"), "{shown:?}");
        let state = format!("Dir::State={}", folder.path().join("state").display());
        assert!(shown.iter().all(|words| words.contains(&state)), "{shown:?}");
    }

    #[test]
    fn another_version_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let newer = folder.path().join("memcached_1.7.0.orig.tar.gz");
        fs::write(&newer, "").unwrap();
        let missing = archive(folder.path(), &MEMCACHED).unwrap_err().to_string();
        assert_eq!(missing, "bookworm has no memcached_1.6.18.orig.tar.*");
        let right = folder.path().join("memcached_1.6.18.orig.tar.xz");
        fs::write(&right, "").unwrap();
        assert_eq!(archive(folder.path(), &MEMCACHED).unwrap(), right);
    }
}
