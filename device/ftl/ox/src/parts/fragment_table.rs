//! The locations of a table's fragments in memory, with marks on those to be written.

use nandscape_device_ftl_core::component::{Fragments, page_from_raw, page_to_raw};
use nandscape_device_media::PageId;

use super::keyed_entries::{numbers_of_bytes, numbers_to_bytes};

/// Locations as an array, which itself is written in fragments of `per_fragment` locations.
pub struct FragmentTable {
    pages: Vec<Option<PageId>>,
    per_fragment: u32,
    /// By fragment of this table: whether it was changed since it was written.
    dirty: Vec<bool>,
}

impl FragmentTable {
    /// As [`FragmentTable::new`], behind a pointer.
    pub fn boxed(len: u32, per_fragment: u32) -> Box<dyn Fragments> {
        Box::new(FragmentTable::new(len, per_fragment))
    }

    /// A table of `len` fragments, none of them written.
    pub fn new(len: u32, per_fragment: u32) -> FragmentTable {
        let fragments = len.div_ceil(per_fragment) as usize;
        FragmentTable { pages: vec![None; len as usize], per_fragment, dirty: vec![false; fragments] }
    }
}

impl Fragments for FragmentTable {
    fn get(&self, index: u32) -> Option<PageId> {
        self.pages[index as usize]
    }

    fn update(&mut self, index: u32, to: Option<PageId>) -> Option<PageId> {
        self.dirty[(index / self.per_fragment) as usize] = true;
        std::mem::replace(&mut self.pages[index as usize], to)
    }

    fn len(&self) -> u32 {
        self.pages.len() as u32
    }

    fn take_dirty(&mut self) -> Vec<u32> {
        let dirty = (0..).zip(&mut self.dirty).filter_map(|(index, dirty)| std::mem::take(dirty).then_some(index));
        dirty.collect()
    }

    fn fragment(&self, index: u32) -> Vec<u8> {
        let first = (index * self.per_fragment) as usize;
        let last = (first + self.per_fragment as usize).min(self.pages.len());
        numbers_to_bytes(self.pages[first..last].iter().map(|page| page_to_raw(*page)))
    }

    fn load(&mut self, index: u32, bytes: &[u8]) {
        let first = (index * self.per_fragment) as usize;
        let last = (first + self.per_fragment as usize).min(self.pages.len());
        for (page, raw) in self.pages[first..last].iter_mut().zip(numbers_of_bytes(bytes)) {
            *page = page_from_raw(raw);
        }
    }

    fn encode(&self) -> Vec<u8> {
        numbers_to_bytes(self.pages.iter().map(|page| page_to_raw(*page)))
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let pages: Vec<Option<PageId>> = numbers_of_bytes(bytes).map(page_from_raw).collect();
        let fits = pages.len() == self.pages.len();
        if fits {
            self.pages = pages;
        }
        fits
    }

    fn fragments(&self) -> u32 {
        self.dirty.len() as u32
    }

    fn memory(&self) -> usize {
        self.pages.len() * size_of::<Option<PageId>>() + self.dirty.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_of_the_table_are_dirty_once_changed_and_read_back_as_they_were() {
        let mut table = FragmentTable::new(10, 4);
        assert_eq!((table.fragments(), table.update(9, Some(PageId(0)))), (3, None));
        assert_eq!(table.update(9, Some(PageId(5))), Some(PageId(0)));
        assert_eq!((table.take_dirty(), table.take_dirty()), (vec![2], vec![]));
        let mut other = FragmentTable::new(10, 4);
        other.load(2, &table.fragment(2));
        assert_eq!(other.get(9), Some(PageId(5)));
        let mut third = FragmentTable::new(10, 4);
        assert!(third.decode(&table.encode()) && !third.decode(&[0; 8]));
        assert_eq!((third.get(9), third.get(0)), (Some(PageId(5)), None));
    }
}
