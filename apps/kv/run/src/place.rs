//! The location of a store on its drive.

use std::rc::Rc;

use nandscape_apps_kv_engine::store::{Extent, SEGMENT_BYTES};
use nandscape_drive::{Drive, DriveInfo};

/// The part of a drive for the store, and that for a noisy neighbour.
pub(crate) fn halves(drive: &Rc<dyn Drive>) -> (Extent, Extent) {
    let blocks = drive.info().blocks;
    let half = blocks / 2 / 256 * 256;
    (Extent { slba: 0, blocks: half }, Extent { slba: half, blocks: blocks - half })
}

/// Bytes of a segment: a sixty-fourth of a small store, at least a MiB.
pub fn segment_bytes(extent: &Extent, info: &DriveInfo) -> u32 {
    let bytes = extent.blocks.saturating_mul(info.lba_bytes.into()) / 64;
    (bytes.min(SEGMENT_BYTES.into()) as u32).next_power_of_two().clamp(1 << 20, SEGMENT_BYTES)
}
