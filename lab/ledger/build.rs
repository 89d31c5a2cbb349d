//! Takes the digest of every source that a result depends on, so that a result says which program it is of: the model, the
//! load generators, the experiments, and the versions of the crates they use. The form of reports is left out: changing it
//! makes no result old.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// Folders and files, from the root of the workspace.
const SOURCES: &[&str] = &[
    "Cargo.lock",
    "sim/src",
    "wire/nvme/src",
    "wire/vfio_user/src",
    "drive/src",
    "device/media/src",
    "device/ftl/src",
    "device/controller/src",
    "device/ssd/src",
    "device/ssd/profiles",
    "transport/reactor/src",
    "transport/nvme_tcp/src",
    "transport/vfio_user/src",
    "host/driver/src",
    "lab/workload/src",
    "lab/run/src",
    "lab/ledger/src/experiments",
    "lab/ledger/src/wall",
];

fn main() {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo tells where the package is");
    let root = Path::new(&package).join("../..");
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
        list(&root, Path::new(source), &mut files);
    }
    files.sort();
    let mut digest = Xxh3::new();
    for file in files {
        let bytes = std::fs::read(root.join(&file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        digest.update(file.to_string_lossy().replace('\\', "/").as_bytes());
        digest.update(&(bytes.len() as u64).to_le_bytes());
        digest.update(&bytes);
    }
    println!("cargo:rustc-env=NANDSCAPE_SOURCES={:016x}", digest.digest());
}

/// All files at or below a path.
fn list(root: &Path, path: &Path, files: &mut Vec<PathBuf>) {
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
