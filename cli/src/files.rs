//! The files a command reads and writes, checked before it starts: no output overwrites an input or another output,
//! even under different paths, and no output replaces a store, which may be the only copy of a drive's data.
//!
//! Two paths name one file if they have the same device and inode, or, if the file does not exist yet, the same name in
//! the same folder. Devices, pipes and sockets are not checked: writing to them destroys nothing.

use std::path::{Component, Path, PathBuf};

use anyhow::anyhow;
use nandscape_device_media::durable::StoreFile;

use crate::failure::Failure;

/// The files of a command, each with the option that names it.
#[derive(Default)]
pub(crate) struct Files {
    inputs: Vec<(String, Identity)>,
    outputs: Vec<(String, Identity)>,
    /// Outputs that would replace a store.
    over_stores: Vec<String>,
}

/// The target of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Identity {
    /// An existing file, by device and inode.
    Inode(u64, u64),
    /// A file by its full name: one that does not exist yet, or any file on systems without inodes.
    Name(PathBuf),
}

impl Files {
    /// Adds an input. Names of built-in profiles and workloads, which are not files, do no harm here.
    pub(crate) fn reads(mut self, option: &str, path: &Path) -> Files {
        let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
        self.inputs.extend(identity(path).map(|identity| (shown(option, path), identity)));
        self
    }

    /// Adds several inputs of one option.
    pub(crate) fn reads_all(self, option: &str, paths: impl IntoIterator<Item = PathBuf>) -> Files {
        paths.into_iter().fold(self, |files, path| files.reads(option, &path))
    }

    /// Adds an output.
    pub(crate) fn writes(mut self, option: &str, path: &Path) -> Files {
        if StoreFile::begins(path) {
            self.over_stores.push(shown(option, path));
        }
        self.goes_on_in(option, path)
    }

    /// Adds an output that goes on in what is there: the store of a drive.
    pub(crate) fn goes_on_in(mut self, option: &str, path: &Path) -> Files {
        let path = if path == Path::new("-") { Path::new("/dev/stdout") } else { path };
        self.outputs.extend(identity(path).map(|identity| (shown(option, path), identity)));
        self
    }

    /// Adds outputs in a folder.
    pub(crate) fn writes_into<'a>(
        self,
        option: &str,
        folder: &Path,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Files {
        names.into_iter().fold(self, |files, name| files.writes(option, &folder.join(name)))
    }

    /// Checks that every output is a separate file, and that none replaces a store.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for (index, (output, identity)) in self.outputs.iter().enumerate() {
            let clash = |(name, other): &(String, Identity)| (other == identity).then(|| name.clone());
            if let Some(input) = self.inputs.iter().find_map(clash) {
                return Err(Failure::Input(anyhow!("{output} would overwrite {input}; name another file")));
            }
            if let Some(other) = self.outputs[..index].iter().find_map(clash) {
                return Err(Failure::Input(anyhow!("{output} and {other} are the same file; name two")));
            }
        }
        match self.over_stores.first() {
            Some(output) => {
                Err(Failure::Input(anyhow!("{output} holds a drive (see `nandscape inspect`); name another file")))
            }
            None => Ok(()),
        }
    }
}

fn shown(option: &str, path: &Path) -> String {
    match option {
        "" => path.display().to_string(),
        option => format!("{option} {}", path.display()),
    }
}

/// `None` if it is not a regular file.
fn identity(path: &Path) -> Option<Identity> {
    match path.metadata() {
        Ok(found) if found.is_file() => Some(of_file(path, &found)),
        Ok(_) => None,
        Err(_) => Some(Identity::Name(full(path, MAX_LINKS))),
    }
}

#[cfg(unix)]
fn of_file(_: &Path, found: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    Identity::Inode(found.dev(), found.ino())
}

#[cfg(not(unix))]
fn of_file(path: &Path, _: &std::fs::Metadata) -> Identity {
    Identity::Name(full(path, MAX_LINKS))
}

/// The most symbolic links followed to a file that does not exist; more are a cycle.
const MAX_LINKS: usize = 32;

/// The full name of a file that need not exist. Links are resolved in existing folders.
fn full(path: &Path, links: usize) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    if links > 0
        && let Ok(target) = path.read_link()
    {
        return full(&folder.join(target), links - 1);
    }
    match path.components().next_back() {
        Some(Component::Normal(name)) => full(folder, links).join(name),
        Some(Component::CurDir) => full(folder, links),
        Some(Component::ParentDir) => {
            let folder = full(folder, links);
            folder.parent().map(Path::to_owned).unwrap_or(folder)
        }
        _ => path.to_owned(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn clashes(one: &Path, other: &Path) -> bool {
        let two_outputs = Files::default().writes("--one", one).writes("--other", other).check();
        let over_input = Files::default().reads("--one", one).writes("--other", other).check();
        assert_eq!(two_outputs.is_err(), over_input.is_err());
        over_input.is_err()
    }

    #[test]
    fn one_file_is_seen_under_all_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("file"), "x").unwrap();
        std::fs::hard_link(at("file"), at("hard")).unwrap();
        std::os::unix::fs::symlink("file", at("soft")).unwrap();
        std::os::unix::fs::symlink(folder.path(), at("sub/up")).unwrap();
        std::os::unix::fs::symlink("later", at("dangling")).unwrap();
        for name in ["file", "./file", "sub/../file", "hard", "soft", "sub/up/file", "sub/up/soft"] {
            assert!(clashes(&at("file"), &at(name)), "{name}");
        }
        for name in ["later", "./later", "sub/../later", "sub/up/later", "dangling", "sub/up/dangling"] {
            assert!(clashes(&at("later"), &at(name)), "{name}");
        }
        assert!(clashes(&at("new/folder/file"), &at("new/./folder/../folder/file")));
        assert!(!clashes(&at("file"), &at("later")) && !clashes(&at("later"), &at("sub/later")));
    }

    #[test]
    fn no_output_replaces_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("d.nand"), "NANDFILE and more").unwrap();
        std::fs::create_dir(at("out")).unwrap();
        std::os::unix::fs::symlink("../d.nand", at("out/report.json")).unwrap();
        let error = Files::default().writes("--record", &at("d.nand")).check().unwrap_err().to_string();
        assert!(error.contains("--record") && error.contains("d.nand holds a drive"), "{error}");
        let files = Files::default().writes_into("--out", &at("out"), ["report.html", "report.json"]);
        assert!(files.check().unwrap_err().to_string().contains("report.json holds a drive"));
        Files::default().goes_on_in("--store", &at("d.nand")).check().unwrap();
        std::fs::write(at("short"), "NAND").unwrap();
        Files::default().writes("--record", &at("short")).check().unwrap();
    }

    #[test]
    fn links_in_a_circle_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("two", at("one")).unwrap();
        std::os::unix::fs::symlink("one", at("two")).unwrap();
        assert!(!clashes(&at("one"), &at("three")));
    }

    #[test]
    fn devices_may_be_named_twice_and_the_error_names_both_options() {
        assert!(!clashes(Path::new("/dev/null"), Path::new("/dev/null")));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t");
        let error = Files::default().reads("--trace", &file).writes("--chrome-trace", &file).check().unwrap_err();
        let (trace, chrome) = (format!("--trace {}", file.display()), format!("--chrome-trace {}", file.display()));
        assert_eq!(error.to_string(), format!("{chrome} would overwrite {trace}; name another file"));
    }
}
