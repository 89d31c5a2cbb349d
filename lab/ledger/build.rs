//! Takes the digest of every source that a result depends on, so that a result names its program: the model, the
//! load generators, the experiments, and the versions of the crates they use. The form of reports is left out: changing it
//! invalidates no result.

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
    "layers/array/src",
    "host/block/src",
    "host/driver/src",
    "host/eleos/src",
    "apps/kv/engine/src",
    "apps/llama/engine/src",
    "host/machine/src",
    "host/path/src",
    "host/path/profiles",
    "apps/store/src",
    "host/open_channel/src",
    "apps/memcached/engine/src",
    "apps/memcached/run/src",
    "host/control/src",
    "host/network/src",
    "host/transaction/src",
    "layers/cache/src",
    "papers/fox/src",
    "apps/kv/run/src",
    "apps/llama/run/src",
    "lab/trace/src",
    "lab/workload/src",
    "lab/run/src",
    "papers/claims/src",
];

fn main() {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo tells where the package is");
    let root = Path::new(&package).join("../..");
    println!("cargo:rustc-env=NANDSCAPE_SOURCES={:016x}", digest::digest(&root, SOURCES));
}
