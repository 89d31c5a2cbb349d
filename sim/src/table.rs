//! Arrays of hundreds of millions of `u32`. Entries are zero until they are written and take no memory until they are
//! touched. They are on huge pages if the system has them.

use std::io;

use memmap2::MmapMut;

/// A table of `u32` of fixed length, zero at first.
pub struct Table {
    map: MmapMut,
    len: usize,
}

const ENTRY: usize = size_of::<u32>();

impl Table {
    /// A table of `len` zeros.
    ///
    /// # Errors
    /// When the system does not give the address space.
    pub fn new(len: usize) -> io::Result<Table> {
        let map = MmapMut::map_anon((len * ENTRY).max(1))?;
        // Most accesses are at random, and with small pages each would miss the TLB. It is a hint: without huge pages the
        // table is slower and otherwise the same.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Table { map, len })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry at `index`.
    ///
    /// # Panics
    /// When `index` is beyond the end.
    #[inline]
    pub fn get(&self, index: u32) -> u32 {
        let at = index as usize * ENTRY;
        u32::from_ne_bytes(self.map[at..at + ENTRY].try_into().expect("four bytes"))
    }

    /// All entries as bytes, four each, in the byte order of this machine.
    pub fn bytes(&self) -> &[u8] {
        &self.map[..self.len * ENTRY]
    }

    /// The same, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[..self.len * ENTRY]
    }

    /// Sets the entries from `first` on, of which `bytes` holds each in four bytes, the lowest first; entries beyond
    /// the end are left out.
    pub fn load(&mut self, first: u32, bytes: &[u8]) {
        let at = (first as usize * ENTRY).min(self.len * ENTRY);
        let len = bytes.len().min(self.len * ENTRY - at);
        let to = &mut self.map[at..at + len];
        to.copy_from_slice(&bytes[..len]);
        if cfg!(target_endian = "big") {
            to.chunks_exact_mut(ENTRY).for_each(<[u8]>::reverse);
        }
    }

    /// Prefetches the cache line of the entry at `index`, which is used soon.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        let at = index as usize * ENTRY;
        if let Some(byte) = self.map.get(at) {
            prefetch(byte);
        }
    }

    /// Sets the entry at `index`.
    ///
    /// # Panics
    /// When `index` is beyond the end.
    #[inline]
    pub fn set(&mut self, index: u32, value: u32) {
        let at = index as usize * ENTRY;
        self.map[at..at + ENTRY].copy_from_slice(&value.to_ne_bytes());
    }
}

#[inline]
fn prefetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(
            unsafe_code,
            reason = "there is no safe prefetch, and random lookups spend their time on cache misses"
        )]
        // SAFETY: a prefetch reads nothing and cannot fault; moreover, the address is that of a live byte.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_zero_until_set() {
        let mut table = Table::new(1 << 28).unwrap();
        table.set((1 << 28) - 1, 7);
        assert_eq!((table.get(0), table.get((1 << 28) - 1), table.len()), (0, 7, 1 << 28));
    }

    #[test]
    fn a_table_is_filled_with_the_bytes_of_another() {
        let (mut table, mut copy) = (Table::new(3).unwrap(), Table::new(3).unwrap());
        table.set(2, 7);
        copy.bytes_mut().copy_from_slice(table.bytes());
        assert_eq!((copy.get(0), copy.get(2), copy.bytes().len()), (0, 7, 12));
    }

    #[test]
    fn entries_are_loaded_up_to_the_end() {
        let mut table = Table::new(3).unwrap();
        let bytes: Vec<u8> = [7u32, 8, 9, 10].into_iter().flat_map(u32::to_le_bytes).collect();
        table.load(1, &bytes);
        assert_eq!([table.get(0), table.get(1), table.get(2)], [0, 7, 8]);
        table.load(5, &bytes);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn beyond_the_end_is_a_panic() {
        Table::new(1_024).unwrap().get(1_024);
    }
}
