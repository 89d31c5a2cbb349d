//! The digest of source files, for build scripts. A result names it, which identifies results of other sources.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

/// The digest of all files at or below `sources`, which are paths from `root`. The build script runs again when one of them
/// changes.
pub(crate) fn digest(root: &Path, sources: &[&str]) -> u64 {
    let mut files = Vec::new();
    for source in sources {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
        list(root, Path::new(source), &mut files);
    }
    files.sort();
    let mut digest = Xxh3::new();
    for file in files {
        let bytes = std::fs::read(root.join(&file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        digest.update(file.to_string_lossy().replace('\\', "/").as_bytes());
        digest.update(&(bytes.len() as u64).to_le_bytes());
        digest.update(&bytes);
    }
    digest.digest()
}

/// All files at or below a path.
fn list(root: &Path, path: &Path, files: &mut Vec<std::path::PathBuf>) {
    let full = root.join(path);
    if full.is_file() {
        files.push(path.to_owned());
        return;
    }
    let entries = std::fs::read_dir(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()));
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", full.display()));
        list(root, &path.join(entry.file_name()), files);
    }
}
