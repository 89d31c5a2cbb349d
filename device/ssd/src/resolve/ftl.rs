//! `[ftl]` and `[buffer]`. Which policies are named there is in [`policies`](crate::policies).

use nandscape_device_ftl::address::MAX_SLOTS;
use nandscape_device_ftl::{GcConfig, PageFtlConfig, WearConfig};
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{GcScheme, Priority};
use nandscape_sim::units::Bytes;

use super::Result;
use super::bounds::{need, wrong};
use crate::keys::{BufferKeys, GcKeys, ProfileKeys, WearKeys};

/// `ftl.gc.free_blocks` of a profile that does not give it.
pub(super) const DEFAULT_FREE_BLOCKS: u32 = 2;

/// `ftl.gc.preempt_floor` of a profile that does not give it.
pub(super) const DEFAULT_PREEMPT_FLOOR: u32 = 1;

pub(super) fn ftl(keys: &ProfileKeys, geometry: &Counts, logical_units: u32) -> Result<PageFtlConfig> {
    Ok(PageFtlConfig {
        logical_units,
        buffer_units: buffer_units(&keys.buffer, geometry.page_size, geometry.unit_size)?,
        priority: keys.controller.priority.map_or(Priority::Fifo, |text| text.0.0),
        gc: gc(&keys.ftl.gc),
        wear: wear(&keys.ftl.wear),
    })
}

fn buffer_units(keys: &BufferKeys, page_size: u32, unit_size: u32) -> Result<u32> {
    let size = need("buffer.size", &keys.size)?.0;
    let (least, most) = (2 * u64::from(page_size), u64::from(MAX_SLOTS) * u64::from(unit_size));
    if size.0 < least || size.0 > most {
        return wrong(
            "buffer.size",
            format!("{size} is out of range; from two pages, {}, to {}", Bytes(least), Bytes(most)),
        );
    }
    Ok((size.0 / u64::from(unit_size)) as u32)
}

fn gc(keys: &GcKeys) -> GcConfig {
    GcConfig {
        scheme: keys.scheme.map_or(GcScheme::Plane, |text| text.0.0),
        copyback: keys.copyback.unwrap_or(false),
        copyback_ecc: keys.copyback_ecc.unwrap_or(false),
        batch: keys.batch.filter(|batch| *batch > 0),
        free_blocks: keys.free_blocks.unwrap_or(DEFAULT_FREE_BLOCKS),
        preempt_above: keys.preempt.unwrap_or(false).then(|| keys.preempt_floor.unwrap_or(DEFAULT_PREEMPT_FLOOR)),
    }
}

pub(super) fn wear(keys: &WearKeys) -> WearConfig {
    WearConfig { dynamic: keys.dynamic.unwrap_or(true), static_threshold: keys.static_threshold.unwrap_or(0) }
}
