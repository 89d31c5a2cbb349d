//! Whether two paths name one file. They do if device and inode match or, if the file does not exist yet, if folder
//! and name match.

use std::path::{Component, Path, PathBuf};

/// The file that a path leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity(File);

#[derive(Clone, PartialEq, Eq, Debug)]
enum File {
    /// An existing file, by device and inode.
    Inode(u64, u64),
    /// A file by its full name: one that does not exist yet, or any file on systems without inodes.
    Name(PathBuf),
}

/// Whether two paths lead to one regular file, which may not exist yet.
pub fn is_same(one: &Path, other: &Path) -> bool {
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// The identity of a regular file, or of a file that does not exist; `None` for other kinds.
pub fn identity(path: &Path) -> Option<Identity> {
    match path.metadata() {
        Ok(found) if found.is_file() => Some(of_file(path, &found)),
        Ok(_) => None,
        Err(_) => Some(Identity(File::Name(full(path, MAX_LINKS)))),
    }
}

#[cfg(unix)]
fn of_file(_: &Path, found: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    Identity(File::Inode(found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn of_file(path: &Path, _: &std::fs::Metadata) -> Identity {
    Identity(File::Name(full(path, MAX_LINKS)))
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
            assert!(is_same(&at("file"), &at(name)), "{name}");
        }
        for name in ["later", "./later", "sub/../later", "sub/up/later", "dangling", "sub/up/dangling"] {
            assert!(is_same(&at("later"), &at(name)), "{name}");
        }
        assert!(is_same(&at("new/folder/file"), &at("new/./folder/../folder/file")));
        assert!(!is_same(&at("file"), &at("later")) && !is_same(&at("later"), &at("sub/later")));
        assert!(!is_same(folder.path(), folder.path()), "no regular file");
    }

    #[test]
    fn links_in_a_circle_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("two", at("one")).unwrap();
        std::os::unix::fs::symlink("one", at("two")).unwrap();
        assert!(!is_same(&at("one"), &at("three")));
    }
}
