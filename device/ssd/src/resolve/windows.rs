//! `[ftl.windows]`: the drive's own figures, which give the length of windows for background work (TeaFA, Li 3.2.4).

use nandscape_device_controller::ControllerConfig;
use nandscape_device_ftl_core::policy::GcScheme;
use nandscape_device_ftl_core::windows::{Collections, NEARLY_FULL, WindowRules};
use nandscape_device_ftl_page::PageFtlConfig;
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{PlaneMode, Timing};
use nandscape_sim::Span;
use nandscape_sim::units::Ratio;

use super::Result;
use super::bounds::{not_too_slow, or, within, wrong};
use crate::keys::ProfileKeys;
use crate::values::{Admission, FtlKind};

/// `ftl.windows.valid` of a profile that does not give it (Li, table 3.1).
pub(super) const DEFAULT_VALID: Ratio = Ratio(0.25);
/// `ftl.windows.collections` of a profile that does not give it.
pub(super) const DEFAULT_COLLECTIONS: u32 = 1;

/// Blocks of a plane beyond the capacity.
pub(super) fn spare_blocks(geometry: &Counts, logical_units: u32) -> u32 {
    let per_plane = u64::from(geometry.pages_per_block) * u64::from(geometry.page_size / geometry.unit_size);
    let planes = u64::from(planes(geometry));
    let data = u64::from(logical_units).div_ceil(planes * per_plane) as u32;
    geometry.blocks_per_plane.saturating_sub(data)
}

fn planes(geometry: &Counts) -> u32 {
    geometry.channels * geometry.dies_per_channel * geometry.planes_per_die
}

/// `None` if the FTL has no windows.
pub(super) fn rules(
    keys: &ProfileKeys,
    geometry: &Counts,
    timing: &Timing,
    (ftl, controller): (&PageFtlConfig, &ControllerConfig),
) -> Result<Option<WindowRules>> {
    let given = &keys.ftl.windows;
    let is_page = keys.ftl.kind.is_none_or(|kind| kind.0.0 == FtlKind::Page);
    let is_alone = keys.ftl.parts.as_ref().is_none_or(Vec::is_empty);
    if controller.predictable_latency && !(is_page && is_alone) {
        let problem = "is for drives with one FTL of the kind \"page\"; false is valid for others";
        return wrong("controller.predictable_latency", problem);
    }
    let valid = or(&given.valid, DEFAULT_VALID).0;
    if !(0.0..1.0).contains(&valid) {
        return wrong("ftl.windows.valid", format!("{valid} is out of range; from 0 to below 1 is valid"));
    }
    let at_least = given.collections.unwrap_or(DEFAULT_COLLECTIONS);
    let at_least = within("ftl.windows.collections", at_least.into(), 1, 1_000)? as f64;
    within("ftl.windows.free_blocks", ftl.gc.free_in_window.into(), 0, 1 << 16)?;
    within("ftl.windows.free_blocks_long", ftl.gc.free_in_long_window.into(), 0, 1 << 16)?;
    if !is_page {
        return Ok(None);
    }
    let mean = |times: &[Span]| times.iter().map(|time| time.ns() as f64 / 1e9).sum::<f64>() / times.len() as f64;
    let (read, program) = (mean(&timing.read), mean(&timing.program));
    let (page, together) = (f64::from(geometry.page_size), f64::from(timing.pages_per_program()));
    let luns = match timing.features.planes {
        PlaneMode::Independent | PlaneMode::MultiPlane => planes(geometry),
        PlaneMode::Die => geometry.channels * geometry.dies_per_channel,
    };
    let flash = f64::from(luns) * page * together / program.max(1e-9);
    let buses =
        if timing.bus.is_unlimited() { f64::MAX } else { timing.bus.bytes_per_s() * f64::from(geometry.channels) };
    let user_rate = match given.write_rate {
        Some(rate) => not_too_slow("ftl.windows.write_rate", rate.0)?.bytes_per_s().min(flash),
        None => flash.min(buses),
    };
    let transfer = if timing.bus.is_unlimited() { 0.0 } else { page / timing.bus.bytes_per_s() };
    let capacity = f64::from(ftl.logical_units) * f64::from(geometry.unit_size);
    let block = page * f64::from(geometry.pages_per_block);
    let all = block * f64::from(planes(geometry)) * f64::from(geometry.blocks_per_plane);
    let collections = Collections {
        valid,
        read,
        program: program / together,
        erase: timing.erase.ns() as f64 / 1e9,
        transfer,
        // Into the controller and back.
        transfers: if ftl.gc.copyback { 0.0 } else { 2.0 },
        pages: f64::from(geometry.pages_per_block),
        block,
        at_a_time: f64::from(at_a_time(keys, geometry, ftl, luns)),
    };
    let (share, of) = NEARLY_FULL;
    let slots = f64::from(ftl.buffer_units) * f64::from(share) / f64::from(of);
    let buffer = ftl.writes_end_in_buffer.then_some(slots * f64::from(geometry.unit_size));
    Ok(Some(WindowRules { collections, space: all - capacity, user_rate, at_least, buffer }))
}

/// Concurrent collections: as many as the admission policy permits and resources allow.
fn at_a_time(keys: &ProfileKeys, geometry: &Counts, ftl: &PageFtlConfig, luns: u32) -> u32 {
    let by_scheme = match ftl.gc.scheme {
        GcScheme::Nothing | GcScheme::Plane => luns,
        GcScheme::Channel => geometry.channels,
        GcScheme::Controller => 1,
    };
    let admitted = match keys.ftl.gc.admission.map_or(Admission::All, |text| text.0.0) {
        Admission::All => luns,
        Admission::OnePerDie => geometry.channels * geometry.dies_per_channel,
        Admission::OnePerChannel => geometry.channels,
        Admission::OnePerDrive => 1,
        Admission::Rotating => luns / ftl.rain.map_or(1, |rain| rain.width).max(1),
    };
    by_scheme.min(admitted)
}
