//! `[ftl]` and `[buffer]`. Their policies are in [`policies`](crate::policies).

use nandscape_device_controller::BufferMode;
use nandscape_device_ftl_core::address::MAX_SLOTS;
use nandscape_device_ftl_core::policy::{GcScheme, OwnerSource};
use nandscape_device_ftl_core::{FirmwareTimes, Interface, Isolation, PlacementConfig, RangesOwn};
use nandscape_device_ftl_page::{GcConfig, PageFtlConfig, WearConfig};
use nandscape_device_media::Priority;
use nandscape_device_media::geometry::Counts;
use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use super::Result;
use super::bounds::{need, not_too_long, or, wrong};
use crate::keys::{BufferKeys, FtlKeys, GcKeys, ProfileKeys, WearKeys};
use crate::values::{Choice, FtlKind, Text};

/// `ftl.gc.free_blocks` of a profile that does not give it.
pub(super) const DEFAULT_FREE_BLOCKS: u32 = 2;

/// `ftl.gc.preempt_floor` of a profile that does not give it.
pub(super) const DEFAULT_PREEMPT_FLOOR: u32 = 1;

/// The most reclaim unit handles.
const MOST_HANDLES: u32 = 64;

/// `ftl.deallocate_time` of a profile that does not give it.
const DEFAULT_DEALLOCATE_TIME: Span = Span::from_ns(10);

/// `ftl.restart_time` of a profile that does not give it.
const DEFAULT_RESTART_TIME: Span = Span::from_us(1);

pub(super) fn ftl(keys: &ProfileKeys, geometry: &Counts, logical_units: u32) -> Result<PageFtlConfig> {
    Ok(PageFtlConfig {
        logical_units,
        buffer_units: buffer_units(&keys.buffer, geometry.page_size, geometry.unit_size)?,
        priority: keys.controller.priority.map_or(Priority::Fifo, |text| text.0.0),
        gc: gc(keys, geometry, logical_units),
        wear: wear(&keys.ftl.wear),
        firmware: firmware(&keys.ftl)?,
        placement: placement(&keys.ftl)?,
        rain: super::rain::rain(
            keys,
            geometry.channels,
            buffer_units(&keys.buffer, geometry.page_size, geometry.unit_size)?,
        )?,
        writes_end_in_buffer: keys
            .buffer
            .mode
            .is_some_and(|mode| matches!(mode.0.0, BufferMode::Capacitor | BufferMode::Volatile)),
    })
}

/// The separation of host data.
pub(super) fn placement(keys: &FtlKeys) -> Result<PlacementConfig> {
    check_isolation(keys)?;
    let (handles, streams) = (keys.fdp.handles.unwrap_or(0), keys.streams.count.unwrap_or(0));
    let ranges = keys.windows.ranges.unwrap_or(0);
    if ranges > 0 && (handles > 0 || streams > 0) {
        let problem = "does not go with ftl.fdp.handles and ftl.streams.count; 0 is valid where hosts place data";
        return wrong("ftl.windows.ranges", problem);
    }
    if ranges > 0 {
        return ranges_of(keys, ranges);
    }
    if handles > 0 && streams > 0 {
        return wrong("ftl.streams.count", "does not go with ftl.fdp.handles; 0 is valid for one of them");
    }
    if streams > 0 {
        let handles = streams.saturating_add(1);
        let names = ("ftl.streams.count", "ftl.streams.isolation");
        return placement_of(keys, (streams, handles), (&keys.streams.isolation, Interface::Streams), names);
    }
    let names = ("ftl.fdp.handles", "ftl.fdp.isolation");
    placement_of(keys, (handles, handles), (&keys.fdp.isolation, Interface::Handles), names)
}

/// Isolation requires handles or streams. A given count of zero turns them off for all other keys.
fn check_isolation(keys: &FtlKeys) -> Result<()> {
    for (key, is_given, count_key, count, most) in [
        ("ftl.fdp.isolation", keys.fdp.isolation.is_some(), "ftl.fdp.handles", keys.fdp.handles, MOST_HANDLES),
        (
            "ftl.streams.isolation",
            keys.streams.isolation.is_some(),
            "ftl.streams.count",
            keys.streams.count,
            MOST_HANDLES - 1,
        ),
    ] {
        if is_given && count.is_none() {
            let problem = format!("has no effect without {count_key}; set that, from 1 to {most}, or leave this out");
            return wrong(key, problem);
        }
    }
    Ok(())
}

/// Ranges of the capacity, each in separate blocks.
fn ranges_of(keys: &FtlKeys, ranges: u32) -> Result<PlacementConfig> {
    if !(2..MOST_HANDLES).contains(&ranges) {
        let most = MOST_HANDLES - 1;
        return wrong("ftl.windows.ranges", format!("{ranges} is out of range; 0, or from 2 to {most}, is valid"));
    }
    if keys.kind.is_some_and(|kind| kind.0.0 != FtlKind::Page) {
        return wrong("ftl.windows.ranges", "goes with ftl.kind = \"page\" only; 0 is valid for others");
    }
    if wear(&keys.wear).static_threshold > 0 {
        let problem = "does not go with ftl.wear.static_threshold, which mixes the data that it moves; 0 is valid";
        return wrong("ftl.windows.ranges", problem);
    }
    if keys.rain.width.is_some_and(|width| width > 0) {
        return wrong(
            "ftl.windows.ranges",
            "does not go with ftl.rain.width, whose stripes have data of all of them; 0 is valid",
        );
    }
    Ok(PlacementConfig { handles: ranges as u8, isolation: Isolation::Persistent, interface: Interface::Ranges })
}

/// Checks that ranges with separate planes have equally many.
pub(super) fn check_ranges_own(keys: &FtlKeys, geometry: &Counts) -> Result<()> {
    let (ranges, own) = (keys.windows.ranges.unwrap_or(0), keys.windows.ranges_own);
    if own.is_none_or(|text| text.0.0 == RangesOwn::Blocks) {
        return Ok(());
    }
    let planes = geometry.channels * geometry.dies_per_channel * geometry.planes_per_die;
    if ranges == 0 {
        return wrong(
            "ftl.windows.ranges_own",
            "\"planes\" has no effect without ftl.windows.ranges; \"blocks\" is valid",
        );
    }
    if !planes.is_multiple_of(ranges) {
        let problem = format!(
            "\"planes\" needs a number of planes that is a multiple of ftl.windows.ranges, {ranges}; there are {planes}"
        );
        return wrong("ftl.windows.ranges_own", problem);
    }
    Ok(())
}

/// Placement by handles; a key gives their number.
fn placement_of(
    keys: &FtlKeys,
    (given, handles): (u32, u32),
    (isolation, interface): (&Option<Text<Choice<Isolation>>>, Interface),
    (count_key, isolation_key): (&'static str, &'static str),
) -> Result<PlacementConfig> {
    if handles > MOST_HANDLES {
        let most = MOST_HANDLES - (handles - given);
        return wrong(count_key, format!("{given} is out of range; from 0 to {most} is valid"));
    }
    let isolation = isolation.map_or(Isolation::Initial, |text| text.0.0);
    let placement = PlacementConfig { handles: handles as u8, isolation, interface };
    if handles == 0 {
        return Ok(placement);
    }
    if keys.kind.is_some_and(|kind| kind.0.0 != FtlKind::Page) {
        return wrong(count_key, "goes with ftl.kind = \"page\" only; 0 is valid for others");
    }
    if placement.isolation == Isolation::Persistent && wear(&keys.wear).static_threshold > 0 {
        let problem = "\"persistent\" does not go with ftl.wear.static_threshold, which mixes the data that it moves; \
                       \"initial\" does, or a threshold of 0";
        return wrong(isolation_key, problem);
    }
    Ok(placement)
}

fn firmware(keys: &FtlKeys) -> Result<FirmwareTimes> {
    Ok(FirmwareTimes {
        deallocate_unit: not_too_long("ftl.deallocate_time", or(&keys.deallocate_time, DEFAULT_DEALLOCATE_TIME))?,
        check_block: not_too_long("ftl.restart_time", or(&keys.restart_time, DEFAULT_RESTART_TIME))?,
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

/// `ftl.windows.free_blocks` and `ftl.windows.free_blocks_long`. A drive collects when a collection is due, unless it
/// promises free space: for a window of Predictable Latency Mode of any length, for a window of recommended length, or for
/// the turns of other ranges, during which it cannot track what hosts write.
fn free_in_window(keys: &ProfileKeys, geometry: &Counts, logical_units: u32) -> (u32, u32) {
    let given = keys.ftl.windows.free_blocks;
    let room = (super::windows::spare_blocks(geometry, logical_units) / 4).max(1);
    let has_ranges = keys.ftl.windows.ranges.is_some_and(|ranges| ranges > 1);
    let promises = has_ranges || keys.controller.predictable_latency == Some(true);
    let in_any = given.unwrap_or(if promises { room } else { 0 });
    (in_any, keys.ftl.windows.free_blocks_long.or(given).unwrap_or(room))
}

fn gc(keys: &ProfileKeys, geometry: &Counts, logical_units: u32) -> GcConfig {
    let (free_in_window, free_in_long_window) = free_in_window(keys, geometry, logical_units);
    let keys: &GcKeys = &keys.ftl.gc;
    GcConfig {
        free_in_window,
        free_in_long_window,
        scheme: keys.scheme.map_or(GcScheme::Plane, |text| text.0.0),
        owner: keys.owner.map_or(OwnerSource::Table, |text| text.0.0),
        copyback: keys.copyback.unwrap_or(false),
        copyback_ecc: keys.copyback_ecc.unwrap_or(false),
        batch: keys.batch.filter(|batch| *batch > 0),
        free_blocks: keys.free_blocks.unwrap_or(DEFAULT_FREE_BLOCKS),
        preempt_above: (keys.preempt.unwrap_or(false) || keys.preempt_on_request.unwrap_or(false))
            .then(|| keys.preempt_floor.unwrap_or(DEFAULT_PREEMPT_FLOOR)),
    }
}

pub(super) fn wear(keys: &WearKeys) -> WearConfig {
    WearConfig { dynamic: keys.dynamic.unwrap_or(true), static_threshold: keys.static_threshold.unwrap_or(0) }
}
