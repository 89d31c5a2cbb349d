//! The pages in memory, up to a limit. At the limit, a new page evicts another.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::replacement::{Replacement, ReplacementKind};

/// Bytes of a page.
pub const PAGE: u64 = 4_096;

/// The contents of a page; `None` over a drive that keeps no data.
pub(crate) type Contents = Option<Box<[u8]>>;

/// See the file.
pub(crate) struct Pages {
    /// The frame of each page in memory.
    frames: BTreeMap<u64, usize>,
    /// The page in each frame.
    held: Vec<Option<(u64, Contents)>>,
    free: Vec<usize>,
    limit: usize,
    replacement: Box<dyn Replacement>,
}

impl Pages {
    pub(crate) fn new(limit: usize, kind: ReplacementKind) -> Pages {
        Pages {
            frames: BTreeMap::new(),
            held: Vec::new(),
            free: Vec::new(),
            limit: limit.max(1),
            replacement: kind.make(),
        }
    }

    /// Pages in memory.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn has(&self, page: u64) -> bool {
        self.frames.contains_key(&page)
    }

    /// The contents of a page in memory, which is used by this.
    pub(crate) fn use_page(&mut self, page: u64) -> Option<&Contents> {
        let frame = *self.frames.get(&page)?;
        self.replacement.used(frame);
        self.held[frame].as_ref().map(|(_, contents)| contents)
    }

    /// Inserts a page, and evicts others for it. Returns how many.
    pub(crate) fn insert(&mut self, page: u64, contents: Contents) -> u64 {
        if let Some(frame) = self.frames.get(&page) {
            self.held[*frame] = Some((page, contents));
            return 0;
        }
        let gone = self.shrink_to(self.limit - 1);
        let frame = self.free.pop().unwrap_or(self.held.len());
        if frame == self.held.len() {
            self.held.push(None);
        }
        self.held[frame] = Some((page, contents));
        self.frames.insert(page, frame);
        self.replacement.inserted(frame);
        gone
    }

    /// Changes the limit, and evicts the pages beyond it. Returns how many.
    pub(crate) fn set_limit(&mut self, limit: usize) -> u64 {
        self.limit = limit.max(1);
        self.shrink_to(self.limit)
    }

    fn shrink_to(&mut self, pages: usize) -> u64 {
        let mut gone = 0;
        while self.frames.len() > pages
            && let Some(frame) = self.replacement.victim()
        {
            self.empty(frame);
            gone += 1;
        }
        gone
    }

    fn empty(&mut self, frame: usize) {
        if let Some((page, _)) = self.held[frame].take() {
            self.frames.remove(&page);
        }
        self.replacement.removed(frame);
        self.free.push(frame);
    }

    /// Removes all pages, in eviction order.
    pub(crate) fn take_all(&mut self) -> Vec<(u64, Contents)> {
        let mut all = Vec::with_capacity(self.frames.len());
        while let Some(frame) = self.replacement.victim() {
            all.extend(self.held[frame].take());
            self.replacement.removed(frame);
            self.free.push(frame);
        }
        self.frames.clear();
        all
    }

    /// Pages are not valid any more.
    pub(crate) fn forget(&mut self, pages: RangeInclusive<u64>) {
        let frames: Vec<usize> = self.frames.range(pages).map(|(_, frame)| *frame).collect();
        frames.into_iter().for_each(|frame| self.empty(frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_limit_which_may_change() {
        let mut pages = Pages::new(3, ReplacementKind::Lru);
        let page = |number: u8| Some(vec![number; 4].into_boxed_slice());
        assert_eq!((0..3).map(|number| pages.insert(number, page(number as u8))).sum::<u64>(), 0);
        assert_eq!(pages.use_page(0), Some(&page(0)));
        assert_eq!(pages.insert(7, page(7)), 1);
        assert!(pages.has(0) && !pages.has(1) && pages.has(2));
        assert_eq!(pages.insert(7, page(8)), 0, "it is there");
        assert_eq!(pages.use_page(7), Some(&page(8)));
        assert_eq!((pages.set_limit(1), pages.len()), (2, 1));
        assert!(pages.has(7));
        pages.set_limit(10);
        pages.insert(9, page(9));
        pages.forget(0..=8);
        assert!(!pages.has(7) && pages.has(9));
        assert_eq!(pages.use_page(7), None);
    }

    #[test]
    fn all_pages_are_taken_in_the_order_in_which_they_would_go() {
        for kind in [ReplacementKind::Lru, ReplacementKind::Clock] {
            let mut pages = Pages::new(4, kind);
            (0..4).for_each(|page| assert_eq!(pages.insert(page, None), 0));
            pages.use_page(0);
            let order: Vec<u64> = pages.take_all().into_iter().map(|(page, _)| page).collect();
            assert_eq!((order, pages.len()), (vec![1, 2, 3, 0], 0), "{kind:?}");
            pages.insert(9, None);
            assert!(pages.has(9) && !pages.has(0));
        }
    }
}
