//! A personality fitted to a drive: the number of files it names, or as many as fit on a smaller drive, with a note.
//! Values given by the user are never changed; if they do not fit, that is an error.

use nandscape_sim::units::Bytes;

use super::Filebench;
use super::personality::Shrinks;
use crate::filesystem::{BLOCK, Layout, PER_DIRECTORY_BLOCK};

/// The files to lay out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// Files, existing or not.
    pub(crate) files: u64,
    /// Mean bytes of a file.
    pub(crate) mean_size: u64,
    /// A note on the reduction, if any.
    pub(crate) note: Option<String>,
}

/// Additional files: logs.
const EXTRA_FILES: u64 = 1;
/// The standard deviation of file sizes over their mean: sqrt(2/3) for filebench's distribution, below 4.5 for tables.
const SPREADS: [f64; 2] = [0.82, 4.5];
/// The minimum number of files.
const FEWEST: u64 = 10;

impl Plan {
    /// The plan for a drive.
    ///
    /// # Errors
    /// When the drive is too small, with valid values.
    pub(crate) fn new(spec: &Filebench, capacity: u64, lba_bytes: u32) -> Result<Plan, String> {
        let figures = spec.personality.figures();
        if u64::from(lba_bytes) > BLOCK {
            return Err(format!("the file system has blocks of 4KiB; the drive's logical block is {lba_bytes}B"));
        }
        let (files, mean_size) = (spec.files.unwrap_or(figures.files), spec.mean_size.unwrap_or(figures.mean_size));
        let wanted = Plan { files, mean_size, note: None };
        if wanted.fits(spec, capacity) {
            return Ok(wanted);
        }
        let shrunk = match figures.shrinks {
            Shrinks::Number if spec.files.is_none() => {
                let fits = |files: u64| Plan { files, ..wanted.clone() }.fits(spec, capacity);
                largest(FEWEST, files, fits).map(|files| Plan {
                    note: Some(format!("{files} files instead of {}: the drive has no room for more", wanted.files)),
                    files,
                    mean_size,
                })
            }
            Shrinks::Size if spec.mean_size.is_none() => {
                let fits = |mean_size: u64| Plan { mean_size, ..wanted.clone() }.fits(spec, capacity);
                largest(1, mean_size / BLOCK, |blocks| fits(blocks * BLOCK)).map(|blocks| Plan {
                    note: Some(format!(
                        "files of {} instead of {} in the mean: the drive has no room for more",
                        Bytes(blocks * BLOCK),
                        Bytes(wanted.mean_size)
                    )),
                    files,
                    mean_size: blocks * BLOCK,
                })
            }
            _ => None,
        };
        shrunk.ok_or_else(|| {
            format!(
                "{} with {files} files of {} in the mean does not fit size = {} of a drive of {}; fewer or smaller files, \
                 or a larger drive, are needed",
                spec.personality.name(),
                Bytes(mean_size),
                spec.size,
                Bytes(capacity)
            )
        })
    }

    /// Inodes that it needs.
    pub(crate) fn inodes(&self) -> u64 {
        self.files + EXTRA_FILES
    }

    fn fits(&self, spec: &Filebench, capacity: u64) -> bool {
        if self.inodes() >= 1 << 32 {
            return false;
        }
        let Some(layout) = Layout::new(capacity, self.inodes()) else { return false };
        let room = spec.size.bytes((layout.data.end - layout.data.start) * BLOCK);
        // A file may grow by an append or two, and its last block is half empty in the mean. Sizes are random: two
        // deviations of their sum.
        let one = (self.mean_size + 2 * spec.append_size.min(self.mean_size) + BLOCK / 2) as f64;
        let deviation = SPREADS[usize::from(spec.personality.figures().sizes.is_some())];
        let spread = 2.0 * deviation * libm::sqrt(self.files as f64) * self.mean_size as f64;
        let directories = self.files.div_ceil(spec.dir_width) + self.files / PER_DIRECTORY_BLOCK + 1;
        self.files as f64 * one + spread + (directories * BLOCK) as f64 <= room as f64
    }
}

/// The largest number in a range that fits, by bisection.
fn largest(least: u64, most: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    if least > most || !fits(least) {
        return None;
    }
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match fits(middle) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    Some(low)
}
