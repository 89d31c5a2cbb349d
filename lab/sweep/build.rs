//! Takes the digest of every source that a simulated run depends on, so that a point's file names the program that measured it.

#[path = "../ledger/build/digest.rs"]
mod digest;

use std::path::Path;

/// Folders and files, from the root of the workspace. Reports' pages and tables are left out: they recompute nothing.
const SOURCES: &[&str] = &[
    "Cargo.lock",
    "sim/src",
    "wire/nvme/src",
    "drive/src",
    "device/media/src",
    "device/ftl/core/src",
    "device/ftl/ox/src",
    "device/ftl/page/src",
    "device/ftl/zoned/src",
    "device/controller/src",
    "device/ssd/src",
    "device/ahci/src",
    "host/block/src",
    "host/machine/src",
    "host/open_channel/src",
    "host/path/src",
    "host/path/profiles",
    "layers/array/src",
    "layers/cache/src",
    "lab/workload/src",
    "lab/trace/src",
    "lab/run/src",
];

fn main() {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo tells where the package is");
    let root = Path::new(&package).join("../..");
    println!("cargo:rustc-env=NANDSCAPE_SOURCES={:016x}", digest::digest(&root, SOURCES));
}
