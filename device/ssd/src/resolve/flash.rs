//! `[geometry]` and `[timing]`: the amount of flash and its times.

use nandscape_device_ftl_core::address::SECTOR;
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{ProgramUnit, Timing};
use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Ratio};

use super::bounds::{need, not_too_long, not_too_slow, or, power_of_two, within, wrong};
use super::features::features;
use super::ftl::{DEFAULT_FREE_BLOCKS, placement, wear};
use super::{Result, ox_block};
use crate::keys::{ProfileKeys, TimingKeys};
use crate::profile::{Kept, Profile, ProfileError};
use crate::sizing::{Demand, Sizing};
use crate::values::{PerPageType, Text};

/// `ftl.over_provisioning` of a profile that does not give it.
pub(super) const DEFAULT_OVER_PROVISIONING: Ratio = Ratio(0.12);
/// `geometry.factory_bad_blocks` of a profile that does not give it.
pub(super) const DEFAULT_FACTORY_BAD: Ratio = Ratio(0.0);
/// `ftl.mapping_unit` of a profile that does not give it.
const DEFAULT_MAPPING_UNIT: Bytes = Bytes(4 << 10);

pub(super) fn timing(keys: &TimingKeys) -> Result<Timing> {
    let cell = need("timing.cell", &keys.cell)?.0.0;
    let times = |key: &str, value: &Option<PerPageType<Text<Span>>>| -> Result<Vec<Span>> {
        let types = cell.page_types();
        match need(key, value)? {
            PerPageType::One(time) => Ok(vec![not_too_long(key, time.0)?; types]),
            PerPageType::Each(times) if times.len() == types => {
                times.iter().map(|time| not_too_long(key, time.0)).collect()
            }
            PerPageType::Each(times) => wrong(
                key,
                format!(
                    "has {} times, but {} has {types} page types; give one time, or {types}",
                    times.len(),
                    cell.name()
                ),
            ),
        }
    };
    if keys.program_unit.is_some_and(|unit| unit.0.0 == ProgramUnit::WordLine)
        && matches!(keys.program, Some(PerPageType::Each(_)))
    {
        let problem = "has a time for each page type, but with timing.program_unit = \"word_line\" a word line is programmed \
                       at once: give one time";
        return wrong("timing.program", problem);
    }
    Ok(Timing {
        cell,
        read: times("timing.read", &keys.read)?,
        program: times("timing.program", &keys.program)?,
        erase: not_too_long("timing.erase", need("timing.erase", &keys.erase)?.0)?,
        bus: not_too_slow("timing.bus", need("timing.bus", &keys.bus)?.0)?,
        registers: need("timing.registers", &keys.registers)?.0.0,
        partial_transfer: keys.partial_transfer.unwrap_or(true),
        features: features(keys)?,
    })
}

/// Bytes of a page and of a mapping unit.
fn page_and_unit(keys: &ProfileKeys) -> Result<(u32, u32)> {
    let page_size = need("geometry.page_size", &keys.geometry.page_size)?.0;
    let page_size = power_of_two("geometry.page_size", page_size, 4 << 10, 256 << 10)?;
    let unit_size = or(&keys.ftl.mapping_unit, DEFAULT_MAPPING_UNIT);
    let unit_size = power_of_two("ftl.mapping_unit", unit_size, 4 << 10, 32 << 10)?;
    match unit_size <= page_size {
        true => Ok((page_size, unit_size)),
        false => wrong(
            "ftl.mapping_unit",
            format!("{} is larger than geometry.page_size, {}", Bytes(unit_size.into()), Bytes(page_size.into())),
        ),
    }
}

/// The counts of the profile; blocks per plane are not known yet.
pub(super) fn counts(keys: &ProfileKeys) -> Result<Counts> {
    let (page_size, unit_size) = page_and_unit(keys)?;
    let geometry = &keys.geometry;
    let count = |key: &str, value: &Option<u32>, most: u64, least: u64| -> Result<u32> {
        Ok(within(key, u64::from(need(key, value)?), least, most)? as u32)
    };
    Ok(Counts {
        channels: count("geometry.channels", &geometry.channels, 256, 1)?,
        dies_per_channel: count("geometry.dies_per_channel", &geometry.dies_per_channel, 256, 1)?,
        planes_per_die: count("geometry.planes_per_die", &geometry.planes_per_die, 64, 1)?,
        blocks_per_plane: 0,
        pages_per_block: count("geometry.pages_per_block", &geometry.pages_per_block, 1 << 16, 4)?,
        page_size,
        unit_size,
    })
}

/// The inputs of the drive's size except the capacity.
fn demand(keys: &ProfileKeys, counts: &Counts, timing: &Timing) -> Result<Demand> {
    let keeps_tables = ox_block::is_chosen(keys);
    let default = if keeps_tables { ox_block::DEFAULT_OVER_PROVISIONING } else { DEFAULT_OVER_PROVISIONING };
    let over_provisioning = or(&keys.ftl.over_provisioning, default);
    if over_provisioning.0 > 100.0 {
        let problem =
            format!("{over_provisioning} is out of range; from 0 to 1, or from \"0%\" to \"10000%\", is valid");
        return wrong("ftl.over_provisioning", problem);
    }
    let factory_bad = or(&keys.geometry.factory_bad_blocks, DEFAULT_FACTORY_BAD).0;
    if factory_bad >= 0.5 {
        return wrong("geometry.factory_bad_blocks", format!("{factory_bad} is not below a half; \"0.5%\" is usual"));
    }
    let free_blocks = u64::from(keys.ftl.gc.free_blocks.unwrap_or(DEFAULT_FREE_BLOCKS));
    Ok(Demand {
        logical_units: 0,
        over_provisioning: over_provisioning.0,
        channels: u64::from(counts.channels),
        dies_per_channel: u64::from(counts.dies_per_channel),
        planes_per_die: u64::from(counts.planes_per_die),
        pages_per_block: u64::from(counts.pages_per_block),
        units_per_page: u64::from(counts.page_size / counts.unit_size),
        word_line: u64::from(timing.pages_per_program()),
        open_blocks: wear(&keys.ftl.wear).open_blocks(&placement(&keys.ftl)?).into(),
        gc_free_blocks: within("ftl.gc.free_blocks", free_blocks, 2, 1 << 16)?,
        keeps_tables,
        list_unit: if ox_block::lists_units(keys) { counts.unit_size.into() } else { 0 },
        factory_bad,
        has_identifiers: false,
        stripe: super::rain::width(&keys.ftl, counts.channels)?.unwrap_or(1).into(),
        kept: Kept::ALL,
    })
}

/// Derives the capacity from the blocks or the blocks from the capacity, or checks that both agree. Returns the flash and
/// the logical units.
pub(super) fn sizing(
    profile: &Profile,
    counts: &Counts,
    timing: &Timing,
    has_identifiers: bool,
) -> Result<(Sizing, u32)> {
    let keys = &profile.keys;
    let demand = Demand { kept: profile.kept, has_identifiers, ..demand(keys, counts, timing)? };
    let size = |logical_units: u32| Demand { logical_units: logical_units.into(), ..demand }.size();
    match (keys.capacity, keys.geometry.blocks_per_plane) {
        (Some(Text(capacity)), given) => {
            let logical_units = logical_units(capacity, counts.unit_size)?;
            let sizing = size(logical_units).ok_or_else(too_large)?;
            match given {
                Some(blocks) if blocks != sizing.blocks_per_plane => wrong(
                    "geometry.blocks_per_plane",
                    format!(
                        "{blocks} does not agree with capacity = {capacity}, which needs {}; give only one of the two",
                        sizing.blocks_per_plane
                    ),
                ),
                _ => Ok((sizing, logical_units)),
            }
        }
        (None, Some(blocks)) => {
            // Whole mebibytes.
            let step = (1 << 20) / u64::from(counts.unit_size);
            let Some(logical_units) = demand.largest(blocks, step) else {
                let least = (blocks..=MOST_BLOCKS_TRIED).find(|blocks| demand.largest(*blocks, step).is_some());
                let valid = match least {
                    Some(least) => format!("{least} or more are valid"),
                    None => "more do not either; a lower ftl.over_provisioning is valid".to_owned(),
                };
                let problem =
                    format!("{blocks} leave no room for data beside the reserve of garbage collection; {valid}");
                return wrong("geometry.blocks_per_plane", problem);
            };
            let logical_units = u32::try_from(logical_units).map_err(|_| too_large())?;
            Ok((size(logical_units).ok_or_else(too_large)?, logical_units))
        }
        (None, None) => wrong("capacity", "is missing; give it, or geometry.blocks_per_plane"),
    }
}

/// Maximum of blocks that a message suggests.
const MOST_BLOCKS_TRIED: u32 = 4_096;

fn too_large() -> ProfileError {
    ProfileError::new("capacity", "is more than addresses reach: 16 TiB of flash at a mapping unit of 4 KiB")
}

fn logical_units(capacity: Bytes, unit_size: u32) -> Result<u32> {
    let (least, unit) = (Bytes(1 << 20), Bytes(unit_size.into()));
    if !capacity.0.is_multiple_of(unit.0) {
        let valid = format!("valid are its multiples from {least} on");
        return wrong("capacity", format!("{capacity} is not a multiple of the mapping unit, {unit}; {valid}"));
    }
    if capacity < least {
        return wrong("capacity", format!("{capacity} is too small; from {least} on is valid"));
    }
    u32::try_from(capacity.0 / u64::from(unit_size)).map_err(|_| too_large())
}

/// Sectors are the finest unit of addressing.
const _: () = assert!(SECTOR == 512);
