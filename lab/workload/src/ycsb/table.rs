//! The positions of records.
//!
//! The table is an array of slots, each for one record, packed into pages; no record of up to a page spans two. A
//! random permutation, a hash without collisions, gives record k its slot. YCSB's keys are hashes themselves, so slots
//! are in key order, and a scan reads consecutive slots. A loaded table has free slots for inserts; when all are
//! occupied, an insert replaces the oldest record.
//!
//! This is the layout of stores that update in place, the most random load for a drive. A log-structured store writes
//! large sequential requests and compacts its own log; `log-and-compact` is such a load.

use std::ops::Range;

use nandscape_sim::permutation::Permutation;
use nandscape_sim::{Rng, Seed};

/// A table of records.
pub struct Table {
    slots: u64,
    page_size: u64,
    record_size: u64,
    order: Permutation,
}

impl Table {
    /// The number of slots in this number of bytes.
    pub fn slots_in(bytes: u64, page_size: u64, record_size: u64) -> u64 {
        let pages = bytes / page_size;
        if record_size <= page_size {
            pages * (page_size / record_size)
        } else {
            pages / record_size.div_ceil(page_size)
        }
    }

    /// A table of this number of slots. Records have a fixed random order until [`Table::scatter`].
    pub fn new(slots: u64, page_size: u64, record_size: u64) -> Table {
        Table { slots, page_size, record_size, order: Permutation::new(slots, &mut Seed::new(0).rng()) }
    }

    /// Assigns each record its slot.
    pub fn scatter(&mut self, rng: &mut Rng) {
        self.order = Permutation::new(self.slots, rng);
    }

    /// The number of slots.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// The slot of a record.
    pub fn slot(&self, record: u64) -> u64 {
        self.order.at(record % self.slots)
    }

    /// Whether a slot is occupied after `inserted` inserts.
    pub fn is_taken(&self, slot: u64, inserted: u64) -> bool {
        inserted >= self.slots || self.order.index_of(slot) < inserted
    }

    /// The pages of a slot.
    pub fn pages(&self, slot: u64) -> Range<u64> {
        match self.page_size.checked_div(self.record_size).unwrap_or(0) {
            0 => {
                let each = self.record_size.div_ceil(self.page_size);
                slot * each..(slot + 1) * each
            }
            per_page => slot / per_page..slot / per_page + 1,
        }
    }

    /// Whether the page of a slot holds any record.
    pub fn shares_page(&self, slot: u64, inserted: u64) -> bool {
        let per_page = self.page_size / self.record_size;
        if per_page <= 1 {
            return false;
        }
        let first = slot / per_page * per_page;
        (first..(first + per_page).min(self.slots)).any(|other| other != slot && self.is_taken(other, inserted))
    }

    /// The pages of this number of records from a slot on, or up to the end of the table.
    pub fn scan(&self, slot: u64, records: u64, inserted: u64) -> Range<u64> {
        let taken = (slot..self.slots).filter(|slot| self.is_taken(*slot, inserted));
        let last = taken.take(records as usize).last().unwrap_or(slot);
        self.pages(slot).start..self.pages(last).end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every record has its own slot inside the table, checked against a list of slots.
        #[test]
        fn no_two_records_share_a_place(slots in 1u64..400, part in 0.0..1.2f64, per_page in 1u64..5, seed in any::<u64>()) {
            let mut table = Table::new(slots, 4_096, 4_096 / per_page);
            table.scatter(&mut Seed::new(seed).rng());
            let inserted = (slots as f64 * part) as u64;
            let mut taken = vec![false; slots as usize];
            for record in 0..inserted.min(slots) {
                let slot = table.slot(record) as usize;
                prop_assert!(!taken[slot]);
                taken[slot] = true;
            }
            for slot in 0..slots {
                prop_assert_eq!(table.is_taken(slot, inserted), taken[slot as usize]);
                let page = slot / per_page;
                prop_assert_eq!(table.pages(slot), page..page + 1);
                let others = (page * per_page..((page + 1) * per_page).min(slots)).filter(|other| *other != slot);
                prop_assert_eq!(table.shares_page(slot, inserted), others.into_iter().any(|other| taken[other as usize]));
            }
            // A scan of five.
            let found: Vec<u64> = (slots / 2..slots).filter(|slot| taken[*slot as usize]).take(5).collect();
            let last = found.last().copied().unwrap_or(slots / 2);
            prop_assert_eq!(table.scan(slots / 2, 5, inserted), slots / 2 / per_page..last / per_page + 1);
        }
    }

    #[test]
    fn large_records_have_pages_of_their_own() {
        let table = Table::new(10, 4_096, 10_000);
        assert_eq!((table.pages(0), table.pages(3)), (0..3, 9..12));
        assert_eq!(Table::slots_in(1 << 20, 4_096, 10_000), 85);
        assert_eq!(Table::slots_in(1 << 20, 4_096, 1_000), 1_024);
        assert!(!table.shares_page(3, 10));
    }
}
