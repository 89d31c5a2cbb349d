//! `[ftl.rain]`: parity stripes, and incompatible keys.

use nandscape_device_controller::BufferMode;
use nandscape_device_ftl_page::{PageFtlConfig, RainConfig};
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{PlaneMode, ProgramUnit, Timing};
use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Ratio};

use super::Result;
use super::bounds::{not_too_long, or, within, wrong};
use crate::keys::{FtlKeys, ProfileKeys};
use crate::policies::DEFAULT_FLUSH;
use crate::values::{Admission, Choice, FtlKind, ReadRule, Tables, Text};

/// `ftl.rain.flush_above` of a profile that does not give it.
const DEFAULT_FLUSH_ABOVE: Ratio = Ratio(0.8);

/// Pages of a parity stripe, if the profile has them.
pub(super) fn width(keys: &FtlKeys, channels: u32) -> Result<Option<u32>> {
    let width = keys.rain.width.unwrap_or(0);
    if width == 0 {
        return Ok(None);
    }
    within("ftl.rain.width", width.into(), 2, RainConfig::MOST_WIDTH.into())?;
    if !channels.is_multiple_of(width) {
        return wrong(
            "ftl.rain.width",
            format!("{width} does not divide geometry.channels, {channels}; a divisor is valid"),
        );
    }
    Ok(Some(width))
}

/// The layout and writing of parity stripes.
pub(super) fn rain(keys: &ProfileKeys, channels: u32, buffer_units: u32) -> Result<Option<RainConfig>> {
    let Some(width) = width(&keys.ftl, channels)? else { return Ok(None) };
    let above = or(&keys.ftl.rain.flush_above, DEFAULT_FLUSH_ABOVE);
    if above.0 >= 1.0 {
        return wrong("ftl.rain.flush_above", format!("{above} is not below the whole buffer; \"80%\" is usual"));
    }
    let scrub_interval = not_too_long("ftl.rain.scrub_interval", or(&keys.ftl.rain.scrub_interval, Span::ZERO))?;
    Ok(Some(RainConfig { width, flush_above: (above.0 * f64::from(buffer_units)) as u32, scrub_interval }))
}

/// Rejects keys that are incompatible with parity stripes, and keys that require them.
pub(super) fn check(keys: &ProfileKeys, timing: &Timing, geometry: &Counts, ftl: &PageFtlConfig) -> Result<()> {
    let of = &keys.ftl;
    if ftl.rain.is_none() {
        let needs = "needs stripes: ftl.rain.width = 8, or another divisor of geometry.channels";
        if of.gc.admission.is_some_and(|text| text.0.0 == Admission::Rotating) {
            return wrong("ftl.gc.admission", format!("\"rotating\" {needs}"));
        }
        if of.read.policy.is_some_and(|text| text.0.0 == ReadRule::Reconstruct) {
            return wrong("ftl.read.policy", format!("\"reconstruct\" {needs}"));
        }
        return Ok(());
    }
    let needs = |is_given: bool, key: &str, valid: &str| match is_given {
        true => Ok(()),
        false => {
            wrong("ftl.rain.width", format!("goes with {key} = {valid} only; ftl.rain.width = 0 is valid with others"))
        }
    };
    needs(of.kind.is_none_or(|kind| kind.0.0 == FtlKind::Page), "ftl.kind", "\"page\"")?;
    let page = Bytes(geometry.page_size.into()).to_string();
    needs(geometry.unit_size == geometry.page_size, "ftl.mapping_unit", &format!("\"{page}\", the page"))?;
    needs(keys.buffer.mode.is_some_and(|mode| mode.0.0 == BufferMode::Capacitor), "buffer.mode", "\"capacitor\"")?;
    needs(ftl.gc.copyback, "ftl.gc.copyback", "true")?;
    needs(!ftl.gc.copyback_ecc, "ftl.gc.copyback_ecc", "false")?;
    needs(ftl.placement.handles == 0, "ftl.fdp.handles and ftl.streams.count", "0")?;
    needs(timing.features.planes == PlaneMode::Independent, "timing.planes", "\"independent\"")?;
    needs(timing.features.program_unit == ProgramUnit::Page, "timing.program_unit", "\"page\"")?;
    needs(of.tables.is_none_or(|tables| tables.0.0 == Tables::Saved), "ftl.tables", "\"saved\"")?;
    needs(keys.wear.refresh.is_none_or(|share| share.0.0 == 0.0), "wear.refresh", "0")
}

/// Notes for the user on the cost of parity stripes.
pub(super) fn notes(ftl: &PageFtlConfig) -> Vec<String> {
    let note = |rain: RainConfig| {
        format!(
            "one page in {} is parity (ftl.rain), which is flash on top of the capacity and its over-provisioning",
            rain.width
        )
    };
    ftl.rain.map(note).into_iter().collect()
}

/// Writes the keys.
pub(super) fn fill_in(keys: &mut FtlKeys, config: Option<RainConfig>) {
    keys.rain.width = Some(config.map_or(0, |rain| rain.width));
    keys.rain.flush.get_or_insert(Text(Choice(DEFAULT_FLUSH)));
    keys.rain.flush_above.get_or_insert(Text(DEFAULT_FLUSH_ABOVE));
    keys.rain.shift_above.get_or_insert(0);
    keys.rain.migrate_above.get_or_insert(0);
    keys.rain.scrub_interval.get_or_insert(Text(Span::ZERO));
}

#[cfg(test)]
mod tests {
    use crate::profile::Profile;

    fn resolve(changes: &[&str]) -> Result<crate::Resolved, String> {
        let mut profile = Profile::load("ttflash").unwrap();
        profile.set_all(changes).unwrap();
        profile.resolve().map_err(|error| error.to_string())
    }

    #[test]
    fn what_does_not_go_with_stripes_is_refused_with_what_does() {
        let cases: [(&[&str], &str); 12] = [
            (&["ftl.rain.width=3"], "ftl.rain.width: 3 does not divide geometry.channels, 8"),
            (&["ftl.rain.width=33"], "ftl.rain.width: 33 is out of range; from 2 to 32 is valid"),
            (&["ftl.rain.flush_above=1"], "ftl.rain.flush_above: "),
            (&["geometry.page_size=16KiB"], "ftl.rain.width: goes with ftl.mapping_unit = \"16KiB\", the page only"),
            (&["buffer.mode=volatile"], "ftl.rain.width: goes with buffer.mode = \"capacitor\" only"),
            (&["ftl.gc.copyback=false"], "ftl.rain.width: goes with ftl.gc.copyback = true only"),
            (&["ftl.gc.copyback_ecc=true"], "ftl.rain.width: goes with ftl.gc.copyback_ecc = false only"),
            (&["ftl.fdp.handles=2"], "ftl.rain.width: goes with ftl.fdp.handles and ftl.streams.count = 0 only"),
            (&["timing.planes=die"], "ftl.rain.width: goes with timing.planes = \"independent\" only"),
            (&["ftl.tables=rebuilt"], "ftl.rain.width: goes with ftl.tables = \"saved\" only"),
            (&["ftl.rain.width=0"], "ftl.gc.admission: \"rotating\" needs stripes"),
            (&["ftl.rain.width=0", "ftl.gc.admission=all"], "ftl.read.policy: \"reconstruct\" needs stripes"),
        ];
        for (changes, expected) in cases {
            let problem = resolve(changes).unwrap_err();
            assert!(problem.starts_with(expected), "{changes:?}: {problem}");
        }
    }

    #[test]
    fn parity_comes_on_top_and_channels_stay_a_multiple_of_the_stripe() {
        let plain = ["ftl.rain.width=0", "ftl.gc.admission=all", "ftl.read.policy=serve"];
        let of = |changes: &[&str]| resolve(changes).unwrap();
        let (with, without) = (of(&["capacity=64GiB"]), of(&[&plain[..], &["capacity=64GiB"]].concat()));
        let data = |drive: &crate::Resolved| {
            f64::from(drive.sizing.blocks_per_plane - drive.sizing.reserve_per_plane) * drive.planes() as f64
        };
        let grown = data(&with) / data(&without);
        assert!((grown - 8.0 / 7.0).abs() < 0.01, "{grown}");
        assert!(with.notes.iter().any(|note| note.contains("one page in 8 is parity")));
        for (width, capacity) in [(8, "64MiB"), (4, "64MiB"), (2, "1GiB"), (4, "77GiB")] {
            let drive = of(&[&format!("ftl.rain.width={width}"), &format!("capacity={capacity}")]);
            assert!(drive.sizing.channels.is_multiple_of(width), "{width}, {capacity}: {:?}", drive.sizing);
            assert!(drive.sizing.over_provisioning >= 0.28 - 1e-9, "{width}, {capacity}: {:?}", drive.sizing);
        }
    }
}
