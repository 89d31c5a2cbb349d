//! Pages that are being written. Meanwhile reads of them are served by the drive below. A page is known after a write
//! only if that write alone has covered it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Pages of a write that are noted one by one. Longer ones, such as deallocations, note all pages.
const MOST: u64 = 1_024;

/// See the file.
#[derive(Default)]
pub(crate) struct Writes {
    pages: BTreeMap<u64, Page>,
    /// Writes of everything.
    all: u32,
}

#[derive(Copy, Clone, Default)]
struct Page {
    writes: u32,
    /// Whether two of the writes overlapped in time.
    together: bool,
}

impl Writes {
    /// Whether a page is being written.
    pub(crate) fn has(&self, page: u64) -> bool {
        self.all > 0 || self.pages.contains_key(&page)
    }

    /// A write begins. `None` is all pages.
    pub(crate) fn begin(&mut self, pages: Option<RangeInclusive<u64>>) {
        let Some(pages) = pages else {
            self.all += 1;
            self.pages.values_mut().for_each(|page| page.together = true);
            return;
        };
        for page in pages {
            let page = self.pages.entry(page).or_default();
            page.writes += 1;
            page.together |= page.writes > 1 || self.all > 0;
        }
    }

    /// It has ended. The pages that no other one has written meanwhile.
    pub(crate) fn end(&mut self, pages: Option<RangeInclusive<u64>>) -> Vec<u64> {
        let Some(pages) = pages else {
            self.all -= 1;
            return Vec::new();
        };
        let mut alone = Vec::new();
        for number in pages {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            page.writes -= 1;
            let is_known = !page.together;
            if page.writes == 0 {
                self.pages.remove(&number);
            }
            if is_known {
                alone.push(number);
            }
        }
        alone
    }
}

/// The pages to track; `None` if they are too many.
pub(crate) fn noted(pages: RangeInclusive<u64>) -> Option<RangeInclusive<u64>> {
    Some(pages).filter(|pages| pages.end() - pages.start() < MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_that_was_written_alone_is_known() {
        let mut writes = Writes::default();
        writes.begin(Some(3..=5));
        writes.begin(Some(5..=6));
        assert!(writes.has(3) && writes.has(6) && !writes.has(7));
        assert_eq!(writes.end(Some(3..=5)), [3, 4]);
        assert!(writes.has(5) && !writes.has(3));
        assert_eq!(writes.end(Some(5..=6)), [6]);
        writes.begin(Some(1..=1));
        writes.begin(noted(0..=MOST));
        assert!(writes.has(1 << 40));
        assert!(writes.end(Some(1..=1)).is_empty());
        writes.end(None);
        assert!(!writes.has(1) && !writes.has(1 << 40));
    }
}
