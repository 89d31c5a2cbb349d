//! Drives for a host's stores.

use nandscape_device_ssd::Resolved;

use crate::failure::Failure;

/// A drive whose blocks are written in any order, as stores that place data themselves need it.
///
/// # Errors
/// The kind of the drive, and the valid ones.
pub(crate) fn conventional(drive: Resolved) -> Result<Resolved, Failure> {
    let what = match (drive.zone(), drive.open_channel(), drive.lsm()) {
        (Some(_), ..) => "zones",
        (_, Some(_), _) => "chunks",
        (.., Some(_)) => "sorted runs",
        _ => return Ok(drive),
    };
    Err(Failure::Input(anyhow::anyhow!(
        "drive {}: ftl.kind = \"{}\" has {what}, and the store writes blocks in any order; `--drive default --set ftl.kind=ox_block` is valid",
        drive.name,
        drive.kind()
    )))
}
