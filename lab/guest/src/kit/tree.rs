//! Debian's packages unpacked into one folder. Its programs run from there by their own dynamic loader with their own
//! libraries, so the system's version does not matter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::GuestError;

/// The list of packages and versions in a tree.
const VERSIONS: &str = "packages";
/// The dynamic loader.
const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";
/// Folders of libraries.
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/ceph"];
/// Parts of packages that neither host nor guest uses.
const UNUSED: [&str; 4] = ["usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/icons"];

/// Unpacked packages.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    folder: PathBuf,
}

/// Completes a tree into which the packages of these files were unpacked.
pub(super) fn finish(folder: &Path, packages: &[PathBuf]) -> Result<(), GuestError> {
    for unused in UNUSED {
        let path = folder.join(unused);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(GuestError::file("remove", &path))?;
        }
    }
    let name = |path: &PathBuf| path.file_stem().map(|name| format!("{}\n", name.to_string_lossy()));
    let path = folder.join(VERSIONS);
    fs::write(&path, packages.iter().filter_map(name).collect::<String>()).map_err(GuestError::file("write", &path))
}

impl Tree {
    /// The tree in a folder.
    pub(crate) fn at(folder: PathBuf) -> Tree {
        Tree { folder }
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The contents of a file in it.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, GuestError> {
        let path = self.path(name);
        fs::read(&path).map_err(GuestError::file("read", &path))
    }

    /// Names in a folder of it, sorted.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>, GuestError> {
        let path = self.path(folder);
        let entries = fs::read_dir(&path).map_err(GuestError::file("read", &path))?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// Packages and versions, one a line.
    pub(crate) fn versions(&self) -> Result<String, GuestError> {
        Ok(String::from_utf8_lossy(&self.read(VERSIONS)?).into_owned())
    }

    /// A program of the tree, to be run on this machine.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = self.loader();
        command.arg(self.path(name));
        command
    }

    fn loader(&self) -> Command {
        let mut command = Command::new(self.path(LOADER));
        // The system's cache would name libraries of the system.
        command.args(["--inhibit-cache", "--library-path"]);
        command.arg(LIBRARIES.map(|folder| self.path(folder).display().to_string()).join(":"));
        command
    }

    /// The files, other than the program itself, that a dynamically linked program of the tree needs to start.
    pub(crate) fn libraries(&self, program: &str) -> Result<Vec<String>, GuestError> {
        let path = self.path(program);
        let output = self.loader().arg("--list").arg(&path).output();
        let output = output.map_err(GuestError::file("list the libraries of", &path))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let listed = text.lines().filter_map(library).filter(|name| !name.starts_with("linux-vdso"));
        let mut libraries = vec![LOADER.to_owned()];
        for found in listed {
            let inside = Path::new(found).strip_prefix(&self.folder).ok().map(|path| path.display().to_string());
            let Some(inside) = inside else {
                let problem = format!("{program} needs {found}, which its packages do not have:\n{text}");
                return Err(GuestError::Contents(problem));
            };
            libraries.push(inside);
        }
        match libraries.len() {
            // At least the C library belongs to it.
            1 => Err(GuestError::Contents(format!("cannot list the libraries of {program}:\n{text}"))),
            _ => Ok(libraries),
        }
    }
}

/// The library in a line of the loader's list: `libc.so.6 => /path/libc.so.6 (0x7f...)`.
fn library(line: &str) -> Option<&str> {
    let line = line.trim();
    match line.split_once(" => ") {
        Some((name, "not found")) => Some(name),
        Some((_, found)) => found.rsplit_once(" (").map(|(path, _)| path),
        // The kernel's own, or the loader.
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_loader_are_understood() {
        assert_eq!(library("\tlibc.so.6 => /a/usr/lib/libc.so.6 (0x00007f)"), Some("/a/usr/lib/libc.so.6"));
        assert_eq!(library("\tlibnone.so.1 => not found"), Some("libnone.so.1"));
        assert_eq!(library("\tlinux-vdso.so.1 (0x00007ffc)"), None);
    }

    #[test]
    fn a_finished_tree_lists_its_packages() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("usr/share/doc/fio")).unwrap();
        let packages = ["fio_3.39-1_amd64.deb", "nvme-cli_2.13-2_amd64.deb"].map(|name| folder.path().join(name));
        finish(folder.path(), &packages).unwrap();
        let tree = Tree::at(folder.path().to_owned());
        assert_eq!(tree.versions().unwrap(), "fio_3.39-1_amd64\nnvme-cli_2.13-2_amd64\n");
        assert!(!tree.path("usr/share/doc").exists());
    }
}
