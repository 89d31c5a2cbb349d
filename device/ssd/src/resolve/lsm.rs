//! `[ftl.lsm]`.

use nandscape_device_ftl_page::PageFtlConfig;
use nandscape_device_ftl_zoned::LsmConfig;
use nandscape_device_ftl_zoned::zone::ZoneConfig;
use nandscape_device_media::{Geometry, Timing};
use nandscape_sim::units::Bytes;

use super::bounds::{or, within, wrong};
use super::{Resolved, Result, zone};
use crate::keys::ProfileKeys;
use crate::sizing::Sizing;
use crate::values::{FtlKind, Text};

/// Blocks of each plane outside zones, which replace the first blocks that go bad.
pub(super) const SPARE: u32 = 2;
/// `ftl.lsm.runs` of a profile that does not give it.
const DEFAULT_RUNS: u32 = 1_024;
/// `ftl.lsm.run_size` of a profile that does not give it, where the drive has room for some of them.
const DEFAULT_RUN: Bytes = Bytes(64 << 20);
/// `ftl.lsm.reserve_zones` of a profile that does not give it.
const DEFAULT_RESERVE: u32 = 4;

/// Whether a profile asks for runs.
pub(crate) fn is_chosen(keys: &ProfileKeys) -> bool {
    keys.ftl.kind.is_some_and(|kind| kind.0.0 == FtlKind::Lsm)
}

/// The configuration, if the profile asks for one.
pub(super) fn lsm(
    keys: &ProfileKeys,
    geometry: &Geometry,
    timing: &Timing,
    (sizing, page): (&Sizing, &PageFtlConfig),
    max_transfer: u32,
) -> Result<Option<LsmConfig>> {
    if !is_chosen(keys) {
        return Ok(None);
    }
    check_keys(keys)?;
    let zones = zone::zones(keys, geometry, timing, (sizing, page), max_transfer)?;
    let given = &keys.ftl.lsm;
    let reserve = given.reserve_zones.unwrap_or(DEFAULT_RESERVE);
    if reserve < 2 || reserve > zones.zones.saturating_sub(4) {
        let most = zones.zones.saturating_sub(4);
        let problem = format!(
            "{reserve} of {} zones are out of range; from 2 to {most} are valid, and a larger capacity or a smaller ftl.zone.depth or \
             ftl.zone.width makes more zones",
            zones.zones
        );
        return wrong("ftl.lsm.reserve_zones", problem);
    }
    let unit = u64::from(geometry.unit_size());
    let most = run_units(keys, (zones, reserve), u64::from(page.logical_units), unit)?;
    let span = most.next_power_of_two();
    let places = u64::from(u32::MAX / 2) / span;
    let runs = within("ftl.lsm.runs", given.runs.unwrap_or(DEFAULT_RUNS.min(places as u32)).into(), 8, places)? as u32;
    let share = given.share.unwrap_or(true);
    Ok(Some(LsmConfig { zones, runs, most: most as u32, span: span as u32, share, reserve }))
}

/// Units of a run, at most a quarter of the drive's room.
fn run_units(keys: &ProfileKeys, (zones, reserve): (ZoneConfig, u32), units: u64, unit: u64) -> Result<u64> {
    let room = units.min(u64::from(zones.zones - reserve) * u64::from(zones.size)) * unit;
    let most = Bytes((room / 4 / unit * unit).min(u64::from(u32::MAX / 16) * unit));
    let size = or(&keys.ftl.lsm.run_size, Bytes(DEFAULT_RUN.0.min(most.0)));
    match size.0.is_multiple_of(unit) && (unit..=most.0).contains(&size.0) {
        true => Ok(size.0 / unit),
        false => wrong(
            "ftl.lsm.run_size",
            format!("{size} is no multiple of {} up to {most}, a quarter of the drive", Bytes(unit)),
        ),
    }
}

/// Rejects keys that are incompatible with runs.
fn check_keys(keys: &ProfileKeys) -> Result<()> {
    let zone = &keys.ftl.zone;
    let given = [
        ("ftl.zone.zrwa_size", zone.zrwa_size.is_some_and(|size| size.0.0 > 0)),
        ("ftl.zone.descriptor_extension", zone.descriptor_extension.is_some_and(|size| size.0.0 > 0)),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => wrong(key, "is for ftl.kind = \"zone\"; with \"lsm\" leave it out"),
        None => Ok(()),
    }
}

impl Resolved {
    /// The configuration of runs, if the drive has them.
    pub fn lsm(&self) -> Option<LsmConfig> {
        self.lsm
    }

    /// Bytes of the namespace of a drive with runs: more than the room of all runs.
    pub(super) fn bytes_of_runs(&self) -> Option<u64> {
        let config = self.lsm?;
        Some(u64::from(config.runs) * u64::from(config.span) * u64::from(self.geometry.unit_size))
    }
}

/// Writes the decided values into the keys.
pub(super) fn fill_in(keys: &mut ProfileKeys, config: &LsmConfig, unit: u64) {
    zone::fill_in(keys, &config.zones, unit);
    let lsm = &mut keys.ftl.lsm;
    lsm.runs = Some(config.runs);
    lsm.run_size = Some(Text(Bytes(u64::from(config.most) * unit)));
    lsm.share = Some(config.share);
    lsm.reserve_zones = Some(config.reserve);
}
