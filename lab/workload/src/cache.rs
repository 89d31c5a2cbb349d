//! An LRU cache of pages in the host's memory, with write-through. It holds page numbers, not data, and decides whether
//! a read reaches the drive.

use std::collections::BTreeMap;

/// The pages in the cache.
#[derive(Default)]
pub struct PageCache {
    room: usize,
    /// When each page was last used.
    used: BTreeMap<u64, u64>,
    /// The pages by time of last use.
    order: BTreeMap<u64, u64>,
    clock: u64,
}

impl PageCache {
    /// An empty cache for this number of pages.
    pub fn new(room: u64) -> PageCache {
        PageCache { room: usize::try_from(room).unwrap_or(usize::MAX), ..PageCache::default() }
    }

    /// Whether a page is in the cache; counts as a use.
    pub fn hit(&mut self, page: u64) -> bool {
        let held = self.used.contains_key(&page);
        if held {
            self.insert(page);
        }
        held
    }

    /// Inserts a page as the most recently used.
    pub fn insert(&mut self, page: u64) {
        if self.room == 0 {
            return;
        }
        self.clock += 1;
        if let Some(before) = self.used.insert(page, self.clock) {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, page);
        if self.used.len() > self.room
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
    }

    /// Removes a page, because its content is gone.
    pub fn forget(&mut self, page: u64) {
        if let Some(used) = self.used.remove(&page) {
            self.order.remove(&used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list, the page used last in front.
        #[test]
        fn it_holds_the_pages_used_last(room in 0usize..6, uses in prop::collection::vec((0u64..9, any::<bool>()), 0..60)) {
            let (mut cache, mut list) = (PageCache::new(room as u64), Vec::<u64>::new());
            for (page, goes) in uses {
                let held = list.contains(&page);
                list.retain(|other| *other != page);
                if goes {
                    cache.forget(page);
                } else {
                    prop_assert_eq!(cache.hit(page), held);
                    cache.insert(page);
                    list.insert(0, page);
                    list.truncate(room);
                }
                prop_assert_eq!(cache.used.len(), list.len());
                prop_assert_eq!(cache.order.len(), list.len());
            }
        }
    }
}
