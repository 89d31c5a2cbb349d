//! Sizes and times of a shingled disk.

use nandscape_sim::Span;

use crate::spec::{DiskSpec, SpecError};

/// The most sectors that one command writes to the media cache.
pub(super) const MOST: u32 = 2_048;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShingledSpec {
    /// The platters and the arm. Its tracks include bands and media cache.
    pub disk: DiskSpec,
    /// Tracks of a band.
    pub band: u32,
    /// Tracks of the media cache, which are the first ones.
    pub cache: u32,
    /// How long the disk is idle before it cleans.
    pub idle: Span,
}

impl ShingledSpec {
    /// Bands of 48 tracks (34 MiB) and a media cache of 96 tracks (67 MiB) on the platters of [`DiskSpec::constellation_2`],
    /// cleaned after half a second without commands. Bands have a realistic size; the cache is small, so that a short run
    /// fills it.
    pub fn usual() -> ShingledSpec {
        ShingledSpec { disk: DiskSpec::constellation_2(), band: 48, cache: 96, idle: Span::from_ms(500) }
    }

    /// Sectors of a band.
    pub fn band_sectors(&self) -> u64 {
        u64::from(self.band) * u64::from(self.disk.sectors)
    }

    /// Sectors of the media cache.
    pub fn cache_sectors(&self) -> u64 {
        u64::from(self.cache) * u64::from(self.disk.sectors)
    }

    /// Bands.
    pub fn bands(&self) -> u64 {
        self.disk.blocks().saturating_sub(self.cache_sectors()) / self.band_sectors().max(1)
    }

    /// Logical blocks: those of whole bands.
    pub fn blocks(&self) -> u64 {
        self.bands() * self.band_sectors()
    }

    /// Checks that such a disk is possible.
    ///
    /// # Errors
    /// The first impossible field, and its valid values.
    pub fn check(&self) -> Result<(), SpecError> {
        self.disk.check()?;
        let bad = |field, problem: String| Err(SpecError { field, problem });
        let tracks = u64::from(self.disk.cylinders) * u64::from(self.disk.heads);
        if self.band == 0 || u64::from(self.band) > tracks / 2 || self.band_sectors() > u64::from(u32::MAX) {
            return bad(
                "band",
                format!("{} tracks are not possible; 1 to half of {tracks} are, below 2 TiB", self.band),
            );
        }
        let least = (4 * u64::from(MOST)).div_ceil(u64::from(self.disk.sectors));
        if u64::from(self.cache) < least || u64::from(self.cache) > tracks / 2 {
            return bad("cache", format!("{} tracks are not possible; {least} to half of {tracks} are", self.cache));
        }
        if self.idle > Span::from_s(3_600) {
            return bad("idle", format!("{} is not possible; at most an hour is", self.idle));
        }
        match self.bands() {
            0 => bad("band", format!("no band of {} tracks has room beside the cache of {}", self.band, self.cache)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_disks_are_refused_with_the_field() {
        assert_eq!(ShingledSpec::usual().check(), Ok(()));
        let refused = |change: fn(&mut ShingledSpec)| {
            let mut spec = ShingledSpec::usual();
            change(&mut spec);
            spec.check().unwrap_err().to_string()
        };
        assert!(refused(|spec| spec.band = 0).starts_with("disk: band: 0 tracks"));
        assert!(refused(|spec| spec.band = u32::MAX).starts_with("disk: band"));
        assert!(refused(|spec| spec.cache = 1).starts_with("disk: cache: 1 tracks are not possible; 6 to"));
        assert!(refused(|spec| spec.idle = Span::from_s(9_999)).starts_with("disk: idle"));
        assert!(refused(|spec| spec.disk.rpm = 0).starts_with("disk: rpm"));
    }

    #[test]
    fn blocks_are_those_of_whole_bands() {
        let spec = ShingledSpec::usual();
        let all = spec.disk.blocks() - spec.cache_sectors();
        assert!(spec.blocks() <= all && all - spec.blocks() < spec.band_sectors());
        assert_eq!(spec.blocks() % spec.band_sectors(), 0);
    }
}
