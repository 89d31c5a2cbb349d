//! The data sheet of a disk.

use nandscape_sim::Span;

/// Bytes of a sector, which is a logical block.
pub(crate) const SECTOR: u32 = 512;

/// Seek times, without the overhead of the controller.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Seek {
    /// To the next track.
    pub single: Span,
    /// Between any two tracks, on average.
    pub average: Span,
    /// From the first track to the last.
    pub full: Span,
}

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskSpec {
    /// Tracks of a surface.
    pub cylinders: u32,
    /// Surfaces.
    pub heads: u32,
    /// Sectors of 512 bytes of a track.
    pub sectors: u32,
    /// Revolutions a minute.
    pub rpm: u32,
    /// Seek times before reads.
    pub read: Seek,
    /// Seek times before writes: the arm has to settle further.
    pub write: Seek,
    /// The controller's work on a command.
    pub overhead: Span,
    /// Whether data is kept.
    pub keeps_data: bool,
}

/// Why a data sheet is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("disk: {field}: {problem}")]
pub struct SpecError {
    pub(crate) field: &'static str,
    pub(crate) problem: String,
}

impl DiskSpec {
    /// A disk for servers of 1 TB: Seagate, Constellation.2 SAS Product Manual (100620418, Rev. H), 5.1 and 5.2.1, model ST91000640SS.
    /// 165,800 tracks a surface, 8 heads, 732,998 bytes a track on average, 7,200 rpm; the overhead is the difference of the access times
    /// with it and without it. Every track has the average.
    pub fn constellation_2() -> DiskSpec {
        let us = Span::from_us;
        DiskSpec {
            cylinders: 165_800,
            heads: 8,
            sectors: 732_998 / SECTOR,
            rpm: 7_200,
            read: Seek { single: us(230), average: us(7_500), full: us(17_060) },
            write: Seek { single: us(440), average: us(8_500), full: us(18_080) },
            overhead: us(200),
            keeps_data: true,
        }
    }

    /// Sectors in all.
    pub fn blocks(&self) -> u64 {
        u64::from(self.cylinders) * u64::from(self.heads) * u64::from(self.sectors)
    }

    /// Time of a revolution.
    pub fn revolution(&self) -> Span {
        Span::from_ns(60_000_000_000 / u64::from(self.rpm))
    }

    /// Checks that such a disk is possible.
    ///
    /// # Errors
    /// The first impossible field, and its valid values.
    pub fn check(&self) -> Result<(), SpecError> {
        let bad = |field, problem: String| Err(SpecError { field, problem });
        for (field, value, least) in [
            ("cylinders", self.cylinders, 2),
            ("heads", self.heads, 1),
            ("sectors", self.sectors, 8),
            ("rpm", self.rpm, 1),
        ] {
            if value < least || value > 10_000_000 {
                return bad(field, format!("{value} is not possible; {least} to 10000000 are"));
            }
        }
        for (field, seek) in [("read", self.read), ("write", self.write)] {
            let (a, b) = seek.coefficients(self.cylinders);
            if a < 0.0 || b < 0.0 || seek.full > Span::from_s(10) {
                let Seek { single, average, full } = seek;
                return bad(
                    field,
                    format!(
                        "no curve of seeks rises through {single}, {average} on average and {full}; with the first and the last, and \
                         with a full seek of 10 s at the most, averages are possible that are some 0.4 to 0.6 of the full seek"
                    ),
                );
            }
        }
        Ok(())
    }
}

impl Seek {
    /// The curve `single + a sqrt(d - 1) + b (d - 1)` over distances `d` of 1 to `cylinders - 1` tracks that has this average and this full
    /// seek: Lee and Katz, "An analytic performance model of disk arrays" (1993).
    pub(crate) fn coefficients(&self, cylinders: u32) -> (f64, f64) {
        let [single, average, full] = [self.single, self.average, self.full].map(|span| span.ns() as f64);
        let longest = f64::from(cylinders.saturating_sub(1).max(1));
        let a = (15.0 * average - 10.0 * single - 5.0 * full) / (3.0 * longest.sqrt());
        let b = (7.0 * single + 8.0 * full - 15.0 * average) / (3.0 * longest);
        (a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_disks_are_refused_with_the_field() {
        assert_eq!(DiskSpec::constellation_2().check(), Ok(()));
        let refused = |change: fn(&mut DiskSpec)| {
            let mut spec = DiskSpec::constellation_2();
            change(&mut spec);
            spec.check().unwrap_err().to_string()
        };
        assert!(refused(|spec| spec.heads = 0).starts_with("disk: heads: 0 is not possible"));
        assert!(refused(|spec| spec.rpm = 0).starts_with("disk: rpm"));
        assert!(refused(|spec| spec.cylinders = u32::MAX).starts_with("disk: cylinders"));
        assert!(refused(|spec| spec.sectors = 0).starts_with("disk: sectors"));
        assert!(refused(|spec| spec.read.average = Span::from_us(100)).contains("no curve of seeks"));
        assert!(refused(|spec| spec.write.full = Span::from_ms(30)).starts_with("disk: write"));
    }
}
