//! The cache of kits. Entries are made under another name and renamed when complete, so that every entry is complete.
//! A lock keeps processes from making the same entry at once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::GuestError;

/// The cache's folder: `nandscape/guest` in XDG_CACHE_HOME, else in `.cache` of the home folder.
pub(super) fn folder() -> Result<PathBuf, GuestError> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let missing = "there is no place for the guest's packages: set HOME, or XDG_CACHE_HOME to an absolute path";
    Ok(caches.ok_or_else(|| GuestError::Missing(missing.to_owned()))?.join("nandscape/guest"))
}

/// The entries of one recipe, locked for this process.
pub(super) struct Cache {
    folder: PathBuf,
    _lock: File,
}

impl Cache {
    /// Opens the entries of a recipe, and waits for other processes that have them open.
    pub(super) fn open(folder: &Path, recipe: &str) -> Result<Cache, GuestError> {
        let folder = folder.join(format!("{:08x}", crc32fast::hash(recipe.as_bytes())));
        fs::create_dir_all(&folder).map_err(GuestError::file("create", &folder))?;
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(GuestError::file("create", &path))?;
        lock.lock().map_err(GuestError::file("lock", &path))?;
        Ok(Cache { folder, _lock: lock })
    }

    /// The path of an entry.
    pub(super) fn entry(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The path of an entry. `make` creates a missing entry at the path that it gets.
    pub(super) fn make(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), GuestError>,
    ) -> Result<PathBuf, GuestError> {
        let path = self.entry(name);
        if !path.exists() {
            let partial = format!("{name}.partial");
            // Left by a process that was interrupted.
            self.remove(&partial);
            make(&self.entry(&partial))?;
            fs::rename(self.entry(&partial), &path).map_err(GuestError::file("rename to", &path))?;
        }
        Ok(path)
    }

    /// Removes an entry, if there is one.
    pub(super) fn remove(&self, name: &str) {
        let path = self.entry(name);
        // One that stays costs space only, or the next use reports it.
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }

    /// Removes entries whose names begin with `prefix`, but for one.
    pub(super) fn remove_others(&self, prefix: &str, kept: &Path) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names =
            entries.filter(|entry| entry.path() != kept).filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.starts_with(prefix)).for_each(|name| self.remove(&name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_made_once_and_only_if_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), "recipe").unwrap();
        let failed = cache.make("entry", |path| {
            fs::write(path, "half").unwrap();
            Err(GuestError::Missing("interrupted".to_owned()))
        });
        assert!(failed.is_err() && !cache.entry("entry").exists());
        let path = cache.make("entry", |path| fs::write(path, "whole").map_err(GuestError::file("write", path)));
        assert_eq!(fs::read(path.unwrap()).unwrap(), b"whole");
        cache.make("entry", |_| panic!("it is there")).unwrap();
        cache.remove("entry");
        assert!(!cache.entry("entry").exists());
        let names = ["kind-1", "kind-2", "other"];
        names.iter().for_each(|name| fs::write(cache.entry(name), "whole").unwrap());
        cache.remove_others("kind-", &cache.entry("kind-2"));
        assert_eq!(names.map(|name| cache.entry(name).exists()), [false, true, true]);
    }

    #[test]
    fn recipes_have_separate_folders() {
        let folder = tempfile::tempdir().unwrap();
        let one = Cache::open(folder.path(), "one").unwrap();
        let other = Cache::open(folder.path(), "other").unwrap();
        assert_ne!(one.entry("tree"), other.entry("tree"));
    }
}
