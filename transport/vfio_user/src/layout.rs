//! The layout of the base address registers: in BAR0 the controller's properties and, from the second page on, its
//! doorbells (PCIe Transport 1.1, 3.1.1); in BAR4 the MSI-X table and the pending bits.

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4_096;
/// The beginning of the doorbells in BAR0 (Base 3.1.4, "SQ0TDBL").
pub(crate) const DOORBELLS: u64 = 0x1000;
/// The most vectors that MSI-X has (PCIe Base 7.7.2.2).
const MAX_VECTORS: u16 = 2_048;
/// Bytes of an entry of the MSI-X table.
const TABLE_ENTRY: u64 = 16;

/// The sizes that follow from the number of queue pairs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Queue pairs with the admin queues.
    pairs: u32,
}

impl Layout {
    /// For a controller of `queue_pairs` I/O queue pairs.
    pub(crate) fn new(queue_pairs: u16) -> Layout {
        Layout { pairs: u32::from(queue_pairs) + 1 }
    }

    /// Interrupt vectors: one for each queue pair.
    pub(crate) fn vectors(self) -> u16 {
        self.pairs.min(MAX_VECTORS.into()) as u16
    }

    /// Bytes of all doorbells, in whole pages: two dwords a pair, with a stride of 4 (CAP.DSTRD 0).
    pub(crate) fn doorbell_bytes(self) -> u64 {
        (u64::from(self.pairs) * 8).next_multiple_of(PAGE)
    }

    /// Bytes of BAR0, a power of two.
    pub(crate) fn bar0_bytes(self) -> u64 {
        (DOORBELLS + self.doorbell_bytes()).next_power_of_two()
    }

    /// The beginning of the pending bits in BAR4. The table begins at 0.
    pub(crate) fn pending_bits(self) -> u64 {
        (u64::from(self.vectors()) * TABLE_ENTRY).next_multiple_of(PAGE)
    }

    /// Bytes of BAR4, a power of two.
    pub(crate) fn bar4_bytes(self) -> u64 {
        (self.pending_bits() + PAGE).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_register_fits_into_it() {
        for pairs in [1, 63, 64, 510, 511, 512, 2_046, 2_047, 2_048, 65_534] {
            let layout = Layout::new(pairs);
            assert!(DOORBELLS + (u64::from(pairs) + 1) * 8 <= layout.bar0_bytes());
            assert!(layout.doorbell_bytes().is_multiple_of(PAGE) && layout.bar0_bytes().is_power_of_two());
            assert!(u64::from(layout.vectors()) * TABLE_ENTRY <= layout.pending_bits());
            assert!(layout.pending_bits() + u64::from(layout.vectors()).div_ceil(8) <= layout.bar4_bytes());
            assert!((1..=MAX_VECTORS).contains(&layout.vectors()));
        }
        assert_eq!((Layout::new(64).bar0_bytes(), Layout::new(64).bar4_bytes()), (0x2000, 0x2000));
    }
}
