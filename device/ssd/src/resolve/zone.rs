//! `[ftl.zone]`.

use nandscape_device_controller::BufferMode;
use nandscape_device_ftl_page::PageFtlConfig;
use nandscape_device_ftl_zoned::zone::{Layout, ZoneConfig, Zrwa};
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{Geometry, Timing};
use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use super::bounds::{not_too_long, or, within, wrong};
use super::{Resolved, Result};
use crate::keys::{ProfileKeys, ZoneKeys};
use crate::policies;
use crate::sizing::Sizing;
use crate::values::{Choice, FtlKind, Tables, Text};

/// `ftl.zone.max_active` of a profile that does not give it, if the drive has as many zones.
const DEFAULT_ACTIVE: u32 = 14;
/// Maximum of blocks of each plane in a zone.
const DEEPEST: u64 = 64;
/// Bytes in which zone descriptor extensions are counted (ZDES).
const EXTENSION_UNIT: u64 = 64;

/// Whether a profile asks for zones.
pub(crate) fn is_chosen(keys: &ProfileKeys) -> bool {
    keys.ftl.kind.is_some_and(|kind| kind.0.0 == FtlKind::Zone)
}

/// The configuration, if the profile asks for one.
pub(super) fn zone(
    keys: &ProfileKeys,
    geometry: &Geometry,
    timing: &Timing,
    (sizing, page): (&Sizing, &PageFtlConfig),
    max_transfer: u32,
) -> Result<Option<ZoneConfig>> {
    if !is_chosen(keys) {
        return Ok(None);
    }
    zones(keys, geometry, timing, (sizing, page), max_transfer).map(Some)
}

/// The zones of a drive whose host sees zones, or runs in zones.
pub(super) fn zones(
    keys: &ProfileKeys,
    geometry: &Geometry,
    timing: &Timing,
    (sizing, page): (&Sizing, &PageFtlConfig),
    max_transfer: u32,
) -> Result<ZoneConfig> {
    check_drive(keys)?;
    let has_runs = super::lsm::is_chosen(keys);
    let given = &keys.ftl.zone;
    let depth = within("ftl.zone.depth", given.depth.unwrap_or(1).into(), 1, DEEPEST)? as u32;
    let layout = layout(keys, geometry, timing, depth)?;
    let unit = u64::from(geometry.unit_size());
    let data = sizing.blocks_per_plane - sizing.bad_per_plane - sizing.reserve_per_plane;
    let zones = match has_runs {
        // The reserve is included: space without live data is internal to the drive.
        true => {
            u64::from(layout.sets() * ((data + sizing.reserve_per_plane).saturating_sub(super::lsm::SPARE) / depth))
        }
        false => (u64::from(page.logical_units) / layout.zone_units()).min(u64::from(layout.sets() * (data / depth))),
    };
    if zones == 0 {
        let least = Bytes(layout.zone_units() * unit);
        return wrong(
            "capacity",
            format!("is less than that of a zone; from {least} on is valid, or a smaller ftl.zone.depth"),
        );
    }
    let zones = zones as u32;
    let config = ZoneConfig {
        zones,
        size: size(given, &layout, unit, zones)?,
        depth,
        max_active: match given.max_active.unwrap_or(DEFAULT_ACTIVE) {
            0 => zones,
            active => active.min(zones),
        },
        max_open: 0,
        zrwa: Zrwa::default(),
        extension: extension(given)?,
        buffer_units: page.buffer_units,
        priority: page.priority,
        write: not_too_long("ftl.zone.write_time", or(&given.write_time, Span::ZERO))?,
        append: not_too_long("ftl.zone.append_time", or(&given.append_time, Span::ZERO))?,
        reset: (
            not_too_long("ftl.zone.reset_time", or(&given.reset_time, Span::ZERO))?,
            not_too_long("ftl.zone.reset_unit_time", or(&given.reset_unit_time, Span::ZERO))?,
        ),
        finish_pads: given.finish_pads.unwrap_or(!has_runs),
        check_block: page.firmware.check_block,
    };
    let max_open = max_open(given, zones, config.max_active)?;
    let config = ZoneConfig { max_open, zrwa: zrwa(given, &layout, unit, config.max_active)?, ..config };
    check_buffer(&config, &layout, (unit, max_transfer))?;
    Ok(config)
}

/// The maximum of open zones, which is at most that of active zones.
fn max_open(given: &ZoneKeys, zones: u32, max_active: u32) -> Result<u32> {
    match given.max_open.unwrap_or(0).min(zones) {
        0 => Ok(max_active),
        open if open <= max_active => Ok(open),
        open => {
            let problem = format!(
                "{open} is out of range; from 1 to {max_active}, as ftl.zone.max_active is, or 0 for as many, is valid"
            );
            wrong("ftl.zone.max_open", problem)
        }
    }
}

/// Random write areas, if the profile has them.
fn zrwa(given: &ZoneKeys, layout: &Layout, unit: u64, max_active: u32) -> Result<Zrwa> {
    let size = or(&given.zrwa_size, Bytes(0)).0;
    if size == 0 {
        // A given size of zero turns the areas off for all other keys.
        let is_unsized = given.zrwa_size.is_none();
        let given = [
            ("ftl.zone.zrwa_granularity", given.zrwa_granularity.is_some()),
            ("ftl.zone.zrwa_zones", given.zrwa_zones.is_some()),
        ];
        return match given.into_iter().find(|(_, is_given)| is_unsized && *is_given) {
            Some((key, _)) => wrong(key, "has no effect without ftl.zone.zrwa_size; set that, or leave this out"),
            None => Ok(Zrwa::default()),
        };
    }
    let capacity = layout.zone_units() * unit;
    let granularity = or(&given.zrwa_granularity, Bytes(unit)).0;
    if granularity == 0 || !granularity.is_multiple_of(unit) || !capacity.is_multiple_of(granularity) {
        return wrong(
            "ftl.zone.zrwa_granularity",
            format!(
                "{} is no multiple of {} that divides what a zone holds, {}",
                Bytes(granularity),
                Bytes(unit),
                Bytes(capacity)
            ),
        );
    }
    let largest = capacity.min(u64::from(u16::MAX) * unit);
    if !size.is_multiple_of(granularity) || size > largest {
        return wrong(
            "ftl.zone.zrwa_size",
            format!("{} is no multiple of {} up to {}", Bytes(size), Bytes(granularity), Bytes(largest)),
        );
    }
    let zones = given.zrwa_zones.unwrap_or(max_active);
    let zones = within("ftl.zone.zrwa_zones", zones.into(), 1, max_active.into())? as u32;
    Ok(Zrwa { size: (size / unit) as u32, granularity: (granularity / unit) as u32, zones })
}

/// Bytes of zone descriptor extensions.
fn extension(given: &ZoneKeys) -> Result<u32> {
    let extension = or(&given.descriptor_extension, Bytes(0));
    match extension.0.is_multiple_of(EXTENSION_UNIT) && extension.0 <= EXTENSION_UNIT * u64::from(u8::MAX) {
        true => Ok(extension.0 as u32),
        false => wrong(
            "ftl.zone.descriptor_extension",
            format!("{extension} is no multiple of 64 bytes up to {}", Bytes(EXTENSION_UNIT * u64::from(u8::MAX))),
        ),
    }
}

/// Rejects keys that a drive with zones cannot have.
fn check_drive(keys: &ProfileKeys) -> Result<()> {
    if keys.buffer.mode.is_some_and(|mode| mode.0.0 != BufferMode::Capacitor) {
        return wrong("buffer.mode", format!("ftl.kind = \"{}\" needs \"capacitor\"", kind(keys)));
    }
    let (lba, unit) = (or(&keys.lba_size, Bytes(512)), or(&keys.ftl.mapping_unit, Bytes(4 << 10)));
    if lba != unit {
        return wrong(
            "lba_size",
            format!("{lba} is not ftl.mapping_unit, {unit}; with ftl.kind = \"{}\" both are \"4KiB\"", kind(keys)),
        );
    }
    match keys.ftl.tables {
        Some(Text(Choice(Tables::Rebuilt))) => {
            let problem = format!("\"rebuilt\" does not go with ftl.kind = \"{}\"; \"saved\" is valid", kind(keys));
            wrong("ftl.tables", problem)
        }
        _ => Ok(()),
    }
}

fn kind(keys: &ProfileKeys) -> String {
    keys.ftl.kind.map(|kind| kind.0.to_string()).unwrap_or_default()
}

fn layout(keys: &ProfileKeys, geometry: &Geometry, timing: &Timing, depth: u32) -> Result<Layout> {
    let groups = Layout::groups_of(geometry, timing).count();
    let width = keys.ftl.zone.width.unwrap_or(1);
    if width == 0 || !groups.is_multiple_of(width) {
        return wrong(
            "ftl.zone.width",
            format!("{width} does not divide {groups}, the dies of the drive (planes, where they work independently)"),
        );
    }
    Ok(Layout::new(geometry, timing, &*policies::zone_mapping(&keys.ftl.zone), depth))
}

/// Units from the start of a zone to the start of the next: the next power of two after the capacity.
fn size(given: &ZoneKeys, layout: &Layout, unit: u64, zones: u32) -> Result<u32> {
    let capacity = layout.zone_units() * unit;
    let least = Bytes(capacity.next_power_of_two());
    let size = or(&given.size, least);
    if size.0 < capacity || !size.0.is_power_of_two() {
        return wrong(
            "ftl.zone.size",
            format!("{size} is no power of two from {least} on, as a zone holds {}", Bytes(capacity)),
        );
    }
    let most_units = u64::from((u32::MAX - 1) / zones);
    let reached = "the addresses of a drive end at 16TiB";
    match (size.0 / unit <= most_units, least.0 / unit <= most_units) {
        (true, _) => Ok((size.0 / unit) as u32),
        (false, true) => {
            let most = Bytes((1 << most_units.ilog2()) * unit);
            let problem = format!(
                "{size} is too large for {zones} zones, as {reached}; a power of two from {least} to {most} is valid"
            );
            wrong("ftl.zone.size", problem)
        }
        (false, false) => {
            let most = Bytes(u64::from(u32::MAX - 1) / (least.0 / unit) * capacity);
            let problem = format!("makes {zones} zones of {least}, and {reached}; up to {most} is valid");
            wrong("capacity", problem)
        }
    }
}

/// Checks the buffer size: each active zone may keep an incomplete strip in the buffer, and each random write area all its
/// data; a command must fit in addition.
fn check_buffer(config: &ZoneConfig, layout: &Layout, (unit, max_transfer): (u64, u32)) -> Result<()> {
    let kept = u64::from(config.max_active) * u64::from(layout.strip_units() - 1) * unit;
    let kept = kept + u64::from(config.zrwa.zones) * u64::from(config.zrwa.size) * unit;
    let needed = Bytes(kept + u64::from(max_transfer).max(u64::from(layout.strip_units()) * unit));
    match u64::from(config.buffer_units) * unit >= needed.0 {
        true => Ok(()),
        false => wrong(
            "buffer.size",
            format!(
                "{} is too small for ftl.zone.max_active = {}{} and controller.max_transfer; from {needed} on is valid",
                Bytes(u64::from(config.buffer_units) * unit),
                config.max_active,
                if config.zrwa.size > 0 { ", random write areas" } else { "" }
            ),
        ),
    }
}

/// Notes on the effect of a small capacity on zones.
pub(super) fn notes(resolved: &Resolved, profile: &Counts) -> Vec<String> {
    let own = resolved.zone.zip(resolved.zone_capacity());
    let Some((config, holds)) = own else { return Vec::new() };
    // The number of blocks in the profile does not matter.
    let counts = Counts { blocks_per_plane: resolved.geometry.blocks_per_plane, ..*profile };
    let Ok(whole) = Geometry::new(counts) else { return Vec::new() };
    let mapping = policies::zone_mapping(&resolved.keys.ftl.zone);
    let units = Layout::new(&whole, &resolved.timing, &*mapping, config.depth).zone_units();
    let unit = u64::from(resolved.geometry.unit_size);
    if units * unit == holds {
        return Vec::new();
    }
    vec![format!(
        "a zone holds {} instead of {}, as it has fewer dies or smaller blocks, and the drive has {} of them; ftl.zone.size is {}, \
         which the rest of each zone leaves unwritable. Bandwidth of a zone and times of resets and finishes are those of a zone \
         of this size: give a larger capacity for the profile's",
        Bytes(holds),
        Bytes(units * unit),
        config.zones,
        Bytes(u64::from(config.size) * unit),
    )]
}

impl Resolved {
    /// The configuration of zones, if the drive has them.
    pub fn zone(&self) -> Option<ZoneConfig> {
        self.zone
    }

    /// Capacity of a zone in bytes, if the drive has zones.
    pub fn zone_capacity(&self) -> Option<u64> {
        let mapping = policies::zone_mapping(&self.keys.ftl.zone);
        let layout = Layout::new(&self.geometry(), &self.timing, &*mapping, self.zone?.depth);
        Some(layout.zone_units() * u64::from(self.geometry.unit_size))
    }

    /// Bytes of the namespace of a drive with zones.
    pub(super) fn zoned_bytes(&self) -> Option<u64> {
        let config = self.zone?;
        Some(u64::from(config.zones) * u64::from(config.size) * u64::from(self.geometry.unit_size))
    }
}

/// Writes the decided values into the keys.
pub(super) fn fill_in(keys: &mut ProfileKeys, config: &ZoneConfig, unit: u64) {
    let zone = &mut keys.ftl.zone;
    zone.mapping.get_or_insert(Text(Choice(policies::DEFAULT_ZONE_MAPPING)));
    zone.width.get_or_insert(1);
    zone.depth = Some(config.depth);
    zone.size = Some(Text(Bytes(u64::from(config.size) * unit)));
    (zone.max_active, zone.max_open) = (Some(config.max_active), Some(config.max_open));
    (zone.write_time, zone.append_time) = (Some(Text(config.write)), Some(Text(config.append)));
    (zone.reset_time, zone.reset_unit_time) = (Some(Text(config.reset.0)), Some(Text(config.reset.1)));
    zone.finish_pads = Some(config.finish_pads);
    zone.zrwa_size = Some(Text(Bytes(u64::from(config.zrwa.size) * unit)));
    if config.zrwa.size > 0 {
        zone.zrwa_granularity = Some(Text(Bytes(u64::from(config.zrwa.granularity) * unit)));
        zone.zrwa_zones = Some(config.zrwa.zones);
    }
    zone.descriptor_extension = Some(Text(Bytes(config.extension.into())));
}
