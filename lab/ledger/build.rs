//! Takes the digest of every source that a result depends on, so that a result says which program it is of: the model, the
//! load generators, the experiments, and the versions of the crates they use. The form of reports is left out: changing it
//! makes no result old.

#[path = "build/digest.rs"]
mod digest;

use std::path::Path;

/// Folders and files, from the root of the workspace.
const SOURCES: &[&str] = &[
    "Cargo.lock",
    "sim/src",
    "wire/nvme/src",
    "wire/kv/src",
    "wire/vfio_user/src",
    "drive/src",
    "device/media/src",
    "device/ftl/core/src",
    "device/ftl/ox/src",
    "device/ftl/page/src",
    "device/ftl/zoned/src",
    "device/controller/src",
    "device/ssd/src",
    "device/ssd/profiles",
    "device/disk/src",
    "device/ahci/src",
    "transport/reactor/src",
    "transport/nvme_tcp/src",
    "transport/vfio_user/src",
    "host/array/src",
    "host/block/src",
    "host/driver/src",
    "host/eleos/src",
    "host/kv/src",
    "host/llama/src",
    "host/machine/src",
    "host/path/src",
    "host/path/profiles",
    "host/store/src",
    "host/open_channel/src",
    "lab/fox/src",
    "lab/kv/src",
    "lab/llama/src",
    "lab/trace/src",
    "lab/workload/src",
    "lab/run/src",
    "lab/ledger/src/experiments",
    "lab/ledger/src/wall",
];

fn main() {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo tells where the package is");
    let root = Path::new(&package).join("../..");
    println!("cargo:rustc-env=NANDSCAPE_SOURCES={:016x}", digest::digest(&root, SOURCES));
}
