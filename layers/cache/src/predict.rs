//! The latency of a read, from the pages in memory, the pages being loaded, and the pages that the drive below would
//! have to read.
//!
//! The work is one look-up for each page of the read, and one prediction of the node below for each run of missing
//! pages, whatever else is under way.

use std::ops::RangeInclusive;
use std::rc::Rc;

use nandscape_drive::Foresight;
use nandscape_drive::command::Extent;
use nandscape_sim::{Span, Time};

use crate::loads::{Load, Loads};
use crate::pages::{PAGE, Pages};

/// The state of a read's pages.
#[derive(Default)]
pub(crate) struct Sought {
    /// Loads of its pages that are under way.
    pub(crate) loading: Vec<Rc<Load>>,
    /// Pages without a load.
    pub(crate) missing: Vec<RangeInclusive<u64>>,
}

impl Sought {
    /// Looks pages up. A run of missing pages has at most `most` pages.
    pub(crate) fn of(pages: RangeInclusive<u64>, most: u64, held: &Pages, loads: &Loads) -> Sought {
        let mut sought = Sought::default();
        for page in pages {
            if held.has(page) {
                continue;
            }
            if let Some(load) = loads.of(page) {
                if !sought.loading.last().is_some_and(|last| Rc::ptr_eq(last, load)) {
                    sought.loading.push(load.clone());
                }
                continue;
            }
            match sought.missing.last_mut() {
                Some(run) if run.end() + 1 == page && page - run.start() < most => *run = *run.start()..=page,
                _ => sought.missing.push(page..=page),
            }
        }
        sought
    }

    /// The time until the last of them is in memory, and the part of it spent waiting for others; `None` if the drive
    /// below does not predict.
    pub(crate) fn predict(&self, below: Option<&dyn Foresight>, form: &Form, now: Time) -> Option<(Span, Span)> {
        let (mut latency, mut wait) = (Span::ZERO, Span::ZERO);
        for load in &self.loading {
            let left = load.until?.since(now);
            (latency, wait) = (latency.max(left), wait.max(left));
        }
        for run in &self.missing {
            let extent = form.blocks(run.clone());
            let expected = below?.expected(extent.slba, extent.blocks)?;
            (latency, wait) = (latency.max(expected.latency), wait.max(expected.wait));
        }
        Some((latency, wait))
    }
}

/// Pages and blocks of a drive.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Form {
    pub(crate) blocks: u64,
    pub(crate) lba_bytes: u64,
}

impl Form {
    /// The pages that an extent touches.
    pub(crate) fn pages(&self, extent: Extent) -> RangeInclusive<u64> {
        let last = extent.slba + u64::from(extent.blocks) - 1;
        extent.slba * self.lba_bytes / PAGE..=last * self.lba_bytes / PAGE
    }

    /// The blocks of a run of pages; the last page of a drive may not be whole.
    pub(crate) fn blocks(&self, pages: RangeInclusive<u64>) -> Extent {
        let each = PAGE / self.lba_bytes;
        let (first, end) = (pages.start() * each, ((pages.end() + 1) * each).min(self.blocks));
        Extent { slba: first, blocks: (end - first) as u32 }
    }

    /// The part of a page within an extent: its beginning in the page and in the extent's memory, and its bytes.
    pub(crate) fn part(&self, page: u64, extent: Extent) -> (usize, usize, usize) {
        let (begin, end) = (page * PAGE, (page + 1) * PAGE);
        let (from, to) = (extent.slba * self.lba_bytes, (extent.slba + u64::from(extent.blocks)) * self.lba_bytes);
        let first = begin.max(from);
        ((first - begin) as usize, (first - from) as usize, (end.min(to) - first) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_blocks_of_a_drive_that_ends_within_a_page() {
        let form = Form { blocks: 21, lba_bytes: 512 };
        let extent = Extent { slba: 6, blocks: 14 };
        assert_eq!(form.pages(extent), 0..=2);
        assert_eq!(form.blocks(1..=2), Extent { slba: 8, blocks: 13 });
        assert_eq!(form.part(0, extent), (3_072, 0, 1_024));
        assert_eq!(form.part(1, extent), (0, 1_024, 4_096));
        assert_eq!(form.part(2, extent), (0, 5_120, 2_048));
    }
}
