//! `cargo xtask tools`: external programs that tests run: clients of live drives, a memcached, a browser for reports, Python for its
//! package, and the tools that fetch QEMU and the programs of guests; tests do the fetching. Also the sources of programs whose tests
//! are run.
//!
//! Left out: versions of programs. The tests use only old features of the clients.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use nix::unistd::geteuid;

use crate::run::step;
use crate::{say, sources};

/// A program, and Debian's package of it.
struct Tool {
    /// Its name, or the path of a file.
    name: &'static str,
    package: &'static str,
}

/// Debian's package of a server that it also starts, on port 11211, and starts again when the system boots.
const MEMCACHED: &str = "memcached";

const TOOLS: [Tool; 11] = [
    Tool { name: "fio", package: "fio" },
    Tool { name: "nbdinfo", package: "libnbd-bin" },
    Tool { name: "nbdcopy", package: "libnbd-bin" },
    Tool { name: "qemu-img", package: "qemu-utils" },
    Tool { name: "memccapable", package: "libmemcached-tools" },
    Tool { name: "memcached", package: MEMCACHED },
    Tool { name: "chromium", package: "chromium" },
    Tool { name: "dpkg-deb", package: "dpkg" },
    Tool { name: "python3", package: "python3-venv" },
    // Perl with the modules that tests in Perl need.
    Tool { name: "prove", package: "perl" },
    Tool { name: "/usr/share/keyrings/debian-archive-keyring.gpg", package: "debian-archive-keyring" },
];

/// Looks for them, and installs missing ones if that needs no password: as root, with apt-get.
pub(crate) fn run() -> anyhow::Result<()> {
    programs()?;
    sources::run();
    Ok(())
}

fn programs() -> anyhow::Result<()> {
    let missing = missing(&folders());
    if missing.is_empty() {
        say::line(&format!("tools: {} are there", names(TOOLS.iter())));
        return Ok(());
    }
    let packages = packages(&missing);
    if !geteuid().is_root() || !is_there("apt-get", &folders()) {
        bail!("{}", advice(&missing, &packages));
    }
    say::line(&format!("tools: {} missing; installing {}", names(missing.iter().copied()), packages.join(", ")));
    install(&packages).into_iter().try_for_each(step)?;
    match &self::missing(&folders())[..] {
        [] => Ok(()),
        still => bail!("{}", advice(still, &self::packages(still))),
    }
}

fn folders() -> Vec<PathBuf> {
    std::env::var_os("PATH").map_or_else(Vec::new, |path| std::env::split_paths(&path).collect())
}

fn is_there(name: &str, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder: &PathBuf| Path::is_file(&folder.join(name)))
}

fn missing(folders: &[PathBuf]) -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !is_there(tool.name, folders)).collect()
}

fn names<'a>(tools: impl Iterator<Item = &'a Tool>) -> String {
    tools.map(|tool| tool.name).collect::<Vec<_>>().join(", ")
}

fn packages(missing: &[&Tool]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    packages.dedup();
    packages
}

fn advice(missing: &[&Tool], packages: &[&str]) -> String {
    format!(
        "tools: {} missing, which the tests of live drives and of reports need. On Debian and Ubuntu: sudo apt-get \
         install {}. Elsewhere: the packages of fio, libnbd, qemu's tools, libmemcached's tools, memcached, Perl and Chromium; tests with guests need Debian's \
         apt-get and dpkg-deb",
        names(missing.iter().copied()),
        packages.join(" ")
    )
}

fn install(packages: &[&str]) -> Vec<Command> {
    let command = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let apt = |words: &[&str]| command("apt-get", words);
    let mut commands =
        vec![apt(&["update"]), apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())];
    if packages.contains(&MEMCACHED) {
        // The tests start servers with sockets of their own.
        commands.push(command("service", &[MEMCACHED, "stop"]));
        commands.push(command("update-rc.d", &[MEMCACHED, "disable"]));
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::words;

    #[test]
    fn what_is_missing_is_found_and_named_with_its_package() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [PathBuf::from("/no/such/folder"), folder.path().to_owned()];
        // Files by path are looked for in the system itself.
        let programs = |missing: Vec<&'static Tool>| -> Vec<&Tool> {
            missing.into_iter().filter(|tool| !tool.name.starts_with('/')).collect()
        };
        assert_eq!(programs(missing(&folders)).len(), TOOLS.len() - 1);
        std::fs::write(folder.path().join("fio"), "").unwrap();
        let missing = programs(missing(&folders));
        assert_eq!(
            packages(&missing),
            ["libnbd-bin", "qemu-utils", "libmemcached-tools", "memcached", "chromium", "dpkg", "python3-venv", "perl"]
        );
        let advice = advice(&missing, &packages(&missing));
        assert!(
            advice.contains(
                "nbdinfo, nbdcopy, qemu-img, memccapable, memcached, chromium, dpkg-deb, python3, prove missing"
            ),
            "{advice}"
        );
        assert!(
            advice.contains(
                "apt-get install libnbd-bin qemu-utils libmemcached-tools memcached chromium dpkg python3-venv perl"
            ),
            "{advice}"
        );
    }

    #[test]
    fn what_is_missing_is_installed_without_questions() {
        let shown: Vec<String> = install(&["fio", "qemu-utils"]).iter().map(words).collect();
        let install = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends fio qemu-utils";
        assert_eq!(shown, ["DEBIAN_FRONTEND=noninteractive apt-get update", install]);
    }

    #[test]
    fn a_server_that_its_package_starts_is_stopped_for_good() {
        let commands = install(&["memcached"]);
        let programs: Vec<_> = commands.iter().map(Command::get_program).collect();
        assert_eq!(programs, ["apt-get", "apt-get", "service", "update-rc.d"]);
        assert!(
            words(&commands[2]).ends_with(" memcached stop") && words(&commands[3]).ends_with(" memcached disable")
        );
    }
}
