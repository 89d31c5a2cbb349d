//! The file system that a guest starts with and runs from: a cpio archive that the kernel unpacks into memory.
//!
//! | file | what |
//! |---|---|
//! | `cpio` | the archive's format |
//! | `modules` | kernel modules with those that they need |
//! | `init.sh` | the guest's first process |

mod cpio;
mod modules;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::error::GuestError;
use crate::kit::Tree;
pub(crate) use cpio::Archive;
use modules::Modules;

/// The first process.
const INIT: &str = include_str!("init.sh");

/// Programs, by their files in the tree. Those of busybox fill the gaps.
const PROGRAMS: [&str; 24] = [
    "usr/bin/bash",
    "usr/bin/fio",
    "usr/bin/findmnt",
    "usr/bin/lsblk",
    "usr/sbin/badblocks",
    "usr/sbin/blkdiscard",
    "usr/sbin/blkid",
    "usr/sbin/blkzone",
    "usr/sbin/blockdev",
    "usr/sbin/debugfs",
    "usr/sbin/dumpe2fs",
    "usr/sbin/e2fsck",
    "usr/sbin/filefrag",
    "usr/sbin/fsck.ext4",
    "usr/sbin/fsfreeze",
    "usr/sbin/fstrim",
    "usr/sbin/mke2fs",
    "usr/sbin/mkfs.ext4",
    "usr/sbin/mkfs.xfs",
    "usr/sbin/nvme",
    "usr/sbin/resize2fs",
    "usr/sbin/tune2fs",
    "usr/sbin/wipefs",
    "usr/sbin/xfs_repair",
];
/// Statically linked: needs no libraries.
const BUSYBOX: &str = "usr/bin/busybox";

/// The driver of drives on the PCI bus, which `init.sh` loads after all others.
pub(crate) const DRIVER: &str = "nvme";
/// Kernel modules that are loaded at the start. XFS needs a provider of crc32c that nothing depends on.
const MODULES: [&str; 7] = [DRIVER, "nvme-tcp", "virtio_net", "crc32c_generic", "ext4", "xfs", "zonefs"];

/// Folders that mounts and programs expect.
const FOLDERS: [&str; 8] = ["dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp"];
/// Old places, as on Debian.
const LINKS: [(&str, &str); 4] = [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"), ("sbin", "usr/sbin")];

/// The file name of the image of these packages with this crate's contents.
pub(crate) fn name(tree: &Tree) -> Result<String, GuestError> {
    let contents = [&PROGRAMS[..], &MODULES, &FOLDERS, &[INIT, &tree.versions()?]].concat().join("\n");
    Ok(format!("image-{:08x}.cpio", crc32fast::hash(contents.as_bytes())))
}

/// Writes the image to a file.
pub(crate) fn build(tree: &Tree, to: &Path) -> Result<(), GuestError> {
    let out = File::create(to).map_err(GuestError::file("create", to))?;
    let mut archive = Archive::new(BufWriter::new(out));
    let written = GuestError::file("write", to);
    fill(tree, &mut archive)?;
    let out = archive.finish().and_then(|out| out.into_inner().map_err(std::io::IntoInnerError::into_error));
    out.map(drop).map_err(written)
}

fn fill(tree: &Tree, archive: &mut Archive<BufWriter<File>>) -> Result<(), GuestError> {
    let cannot = || GuestError::system("cannot write the guest's file system");
    FOLDERS.iter().try_for_each(|name| archive.folder(name)).map_err(cannot())?;
    LINKS.iter().try_for_each(|(name, to)| archive.link(name, to)).map_err(cannot())?;
    archive.file("init", true, INIT.as_bytes()).map_err(cannot())?;
    archive.file(BUSYBOX, true, &tree.read(BUSYBOX)?).map_err(cannot())?;
    for program in PROGRAMS {
        for name in tree.libraries(program)?.iter().map(String::as_str).chain([program]) {
            archive.file(name, true, &tree.read(name)?).map_err(cannot())?;
        }
    }
    let mut modules = Modules::of(tree)?;
    MODULES.iter().try_for_each(|name| modules.choose(name))?;
    let modules = modules.into_chosen();
    for module in &modules {
        archive.file(&format!("modules/{}.ko", module.name), false, &module.bytes).map_err(cannot())?;
    }
    let at_start = modules.iter().filter(|module| module.name != DRIVER);
    let order: String = at_start.map(|module| format!("{}\n", module.name)).collect();
    archive.file("modules/order", false, order.as_bytes()).map_err(cannot())
}
