//! Block metadata in memory: a record a block, a bit a unit.

use nandscape_device_media::{BlockId, Geometry, UnitId};

use crate::component::{BadBlocks, BlockInfo, BlockMetadata, BlockState};

/// Block metadata as arrays.
pub struct BlockTable {
    geometry: Geometry,
    blocks: Vec<BlockInfo>,
    /// Separate from `blocks`, because every read changes one: the small array stays in the processor's cache.
    pins: Vec<u32>,
    valid: Vec<u64>,
}

impl BlockTable {
    /// All blocks free, apart from the bad ones.
    pub fn new(geometry: &Geometry, bad: &(impl BadBlocks + ?Sized)) -> BlockTable {
        let info = |block| BlockInfo {
            state: if bad.is_bad(BlockId(block)) { BlockState::Bad } else { BlockState::Free },
            valid: 0,
            allocated: 0,
            programmed: 0,
            erases: 0,
            sealed_at: 0,
        };
        BlockTable {
            geometry: *geometry,
            blocks: (0..geometry.blocks()).map(info).collect(),
            pins: vec![0; geometry.blocks() as usize],
            valid: vec![0; (geometry.units() as usize).div_ceil(64)],
        }
    }

    /// Which units hold current data, 64 in a word, from the `first` word on.
    #[inline]
    pub fn valid_words(&self, first: usize) -> &[u64] {
        self.valid.get(first..).unwrap_or_default()
    }

    /// Takes over words, each of eight bytes, the lowest first. [`BlockTable::count_valid`] must follow.
    pub fn set_valid_words(&mut self, first: usize, bytes: &[u8]) {
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        self.valid[first..].iter_mut().zip(words).for_each(|(to, word)| *to = word);
    }

    /// Takes over the state of a block except which of its units hold current data.
    pub fn set_info(&mut self, block: BlockId, info: BlockInfo) {
        self.blocks[block.0 as usize] = info;
    }

    /// Takes over which units of a block hold current data, of which none did: a bit each, in whole words of eight bytes, the
    /// lowest first.
    pub fn load_valid(&mut self, block: BlockId, bits: &[u8]) {
        let units = self.geometry.units_per_block();
        for (number, word) in (0..units.div_ceil(64)).zip(bits.chunks_exact(8)) {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            let word = word & u64::MAX >> (64 - (units - number * 64).min(64));
            if word == 0 {
                continue;
            }
            let first = block.0 * units + number * 64;
            let (index, shift) = (first as usize / 64, first % 64);
            let here = word << shift;
            assert!(self.valid[index] & here == 0, "units of {block:?} are valid already");
            self.valid[index] |= here;
            if word.leading_zeros() < shift {
                self.valid[index + 1] |= word >> (64 - shift);
            }
            self.blocks[block.0 as usize].valid += word.count_ones();
        }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let blocks = self.blocks.len() * (size_of::<BlockInfo>() + size_of::<u32>());
        blocks + self.valid.len() * size_of::<u64>()
    }

    /// No unit holds current data.
    pub fn clear_valid(&mut self) {
        self.valid.fill(0);
        self.blocks.iter_mut().for_each(|block| block.valid = 0);
    }

    /// Counts the current units of each block again.
    pub fn count_valid(&mut self) {
        let units = self.geometry.units_per_block();
        for (number, block) in (0..).zip(&mut self.blocks) {
            let (first, end) = (number * units, (number + 1) * units);
            let words = (first / 64..end.div_ceil(64)).map(|index| {
                let word = self.valid[index as usize];
                let from = if index * 64 < first { u64::MAX << (first % 64) } else { u64::MAX };
                let to = if (index + 1) * 64 > end { u64::MAX >> (64 - end % 64) } else { u64::MAX };
                (word & from & to).count_ones()
            });
            block.valid = words.sum();
        }
    }

    /// The units of a block from `from` on that hold current data, in order.
    #[inline]
    pub fn valid_units(&self, block: BlockId, from: UnitId) -> impl Iterator<Item = UnitId> {
        let first = block.0 * self.geometry.units_per_block();
        let end = UnitId(first + self.geometry.units_per_block());
        let mut next = from.0.max(first);
        std::iter::from_fn(move || {
            let unit = if next < end.0 { self.next_valid(UnitId(next), end) } else { None };
            next = unit.map_or(end.0, |unit| unit.0 + 1);
            unit
        })
    }

    /// The same, the first `most` of them, added to a list.
    pub fn take_valid(&self, (block, from): (BlockId, UnitId), most: usize, to: &mut Vec<UnitId>) {
        let first = block.0 * self.geometry.units_per_block();
        let (mut next, end) = (from.0.max(first), first + self.geometry.units_per_block());
        let full = to.len().saturating_add(most);
        while next < end {
            let mut word = self.valid[next as usize / 64] & u64::MAX << (next % 64);
            let base = next - next % 64;
            while word != 0 {
                let unit = base + word.trailing_zeros();
                if unit >= end || to.len() == full {
                    return;
                }
                to.push(UnitId(unit));
                word &= word - 1;
            }
            next = base + 64;
        }
    }

    #[inline]
    fn block_of(&self, unit: UnitId) -> BlockId {
        self.geometry.block_of(self.geometry.page_of(unit))
    }
}

impl BlockMetadata for BlockTable {
    #[inline]
    fn get(&self, block: BlockId) -> &BlockInfo {
        &self.blocks[block.0 as usize]
    }

    #[inline]
    fn get_mut(&mut self, block: BlockId) -> &mut BlockInfo {
        &mut self.blocks[block.0 as usize]
    }

    #[inline]
    fn pin(&mut self, block: BlockId) {
        let pins = &mut self.pins[block.0 as usize];
        *pins += 1;
    }

    #[inline]
    fn unpin(&mut self, block: BlockId) -> u32 {
        let pins = &mut self.pins[block.0 as usize];
        let left = pins.checked_sub(1);
        *pins = left.unwrap_or_else(|| panic!("{block:?} is released, and nothing uses it"));
        *pins
    }

    #[inline]
    fn pins(&self, block: BlockId) -> u32 {
        self.pins[block.0 as usize]
    }

    #[inline]
    fn validate(&mut self, unit: UnitId) {
        assert!(!self.is_valid(unit), "{unit:?} is valid already");
        self.valid[unit.0 as usize / 64] |= 1 << (unit.0 % 64);
        let block = self.block_of(unit);
        self.blocks[block.0 as usize].valid += 1;
    }

    #[inline]
    fn invalidate(&mut self, unit: UnitId) -> BlockId {
        assert!(self.is_valid(unit), "{unit:?} is not valid");
        self.valid[unit.0 as usize / 64] &= !(1 << (unit.0 % 64));
        let block = self.block_of(unit);
        self.blocks[block.0 as usize].valid -= 1;
        block
    }

    #[inline]
    fn is_valid(&self, unit: UnitId) -> bool {
        self.valid[unit.0 as usize / 64] & 1 << (unit.0 % 64) != 0
    }

    #[inline]
    fn next_valid(&self, from: UnitId, end: UnitId) -> Option<UnitId> {
        let mut index = from.0 / 64;
        let mut word = self.valid[index as usize] & u64::MAX << (from.0 % 64);
        while word == 0 {
            index += 1;
            if index * 64 >= end.0 {
                return None;
            }
            word = self.valid[index as usize];
        }
        Some(UnitId(index * 64 + word.trailing_zeros())).filter(|unit| *unit < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::BadBlockTable;
    use nandscape_device_media::geometry::Counts;
    use proptest::prelude::*;

    fn table() -> BlockTable {
        let counts = Counts {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 2,
            pages_per_block: 2,
            page_size: 4_096,
            unit_size: 4_096,
        };
        let geometry = Geometry::new(counts).unwrap();
        BlockTable::new(&geometry, &BadBlockTable::new(geometry.blocks(), &|_| false))
    }

    // Deliberate mistakes.

    #[test]
    #[should_panic(expected = "UnitId(3) is valid already")]
    fn two_owners_of_a_unit_are_noticed() {
        let mut table = table();
        table.validate(UnitId(3));
        table.validate(UnitId(3));
    }

    #[test]
    #[should_panic(expected = "UnitId(3) is not valid")]
    fn a_unit_that_is_given_up_twice_is_noticed() {
        let mut table = table();
        table.validate(UnitId(3));
        table.invalidate(UnitId(3));
        table.invalidate(UnitId(3));
    }

    #[test]
    #[should_panic(expected = "BlockId(1) is released, and nothing uses it")]
    fn a_block_that_is_released_twice_is_noticed() {
        let mut table = table();
        table.pin(BlockId(1));
        table.unpin(BlockId(1));
        table.unpin(BlockId(1));
    }

    proptest! {
        #[test]
        fn valid_units_are_those_validated(
            pages in 1u32..40, upp_log2 in 0u32..3, ops in prop::collection::vec((any::<u32>(), any::<bool>()), 0..300),
        ) {
            let counts = Counts {
                channels: 1, dies_per_channel: 1, planes_per_die: 1, blocks_per_plane: 5, pages_per_block: pages,
                page_size: 4_096 << upp_log2, unit_size: 4_096,
            };
            let geometry = Geometry::new(counts).unwrap();
            let mut table = BlockTable::new(&geometry, &BadBlockTable::new(geometry.blocks(), &|_| false));
            let mut model = std::collections::BTreeSet::new();
            for (unit, valid) in ops {
                let unit = UnitId(unit % geometry.units());
                match (valid, model.contains(&unit)) {
                    (true, false) => { table.validate(unit); model.insert(unit); }
                    (false, true) => { table.invalidate(unit); model.remove(&unit); }
                    _ => prop_assert_eq!(table.is_valid(unit), valid),
                }
            }
            for block in 0..geometry.blocks() {
                let range = block * geometry.units_per_block()..(block + 1) * geometry.units_per_block();
                let expected: Vec<UnitId> = model.iter().copied().filter(|unit| range.contains(&unit.0)).collect();
                prop_assert_eq!(table.get(BlockId(block)).valid as usize, expected.len());
                let end = UnitId(range.end);
                let next = |unit: &UnitId| table.next_valid(UnitId(unit.0 + 1), end);
                let stepped: Vec<UnitId> =
                    std::iter::successors(table.next_valid(UnitId(range.start), end), |unit| {
                        if unit.0 + 1 < end.0 { next(unit) } else { None }
                    })
                    .collect();
                prop_assert_eq!(&stepped, &expected);
                prop_assert_eq!(&table.valid_units(BlockId(block), UnitId(0)).collect::<Vec<_>>(), &expected);
                for (from, most) in [(range.start, 0), (0, 3), (range.start + 1, 5), (range.end - 1, 2), (0, usize::MAX)] {
                    let mut taken = vec![UnitId(u32::MAX)];
                    table.take_valid((BlockId(block), UnitId(from)), most, &mut taken);
                    let some: Vec<UnitId> = expected.iter().copied().filter(|unit| unit.0 >= from).take(most).collect();
                    prop_assert_eq!(&taken[1..], &some[..]);
                }
            }
            let counts = |table: &BlockTable| table.blocks.iter().map(|block| block.valid).collect::<Vec<_>>();
            let mut loaded = BlockTable::new(&geometry, &BadBlockTable::new(geometry.blocks(), &|_| false));
            for block in (0..geometry.blocks()).map(BlockId) {
                // Bits behind the last unit mean nothing.
                let mut bits = vec![0xff; geometry.units_per_block().div_ceil(64) as usize * 8];
                (0..geometry.units_per_block()).for_each(|unit| bits[unit as usize / 8] &= !(1 << (unit % 8)));
                for unit in table.valid_units(block, UnitId(0)) {
                    let bit = unit.0 - block.0 * geometry.units_per_block();
                    bits[bit as usize / 8] |= 1 << (bit % 8);
                }
                loaded.load_valid(block, &bits);
            }
            prop_assert_eq!(&loaded.valid, &table.valid);
            prop_assert_eq!(counts(&loaded), counts(&table));
            let mut again = BlockTable::new(&geometry, &BadBlockTable::new(geometry.blocks(), &|_| false));
            let bytes: Vec<u8> = table.valid_words(0).iter().flat_map(|word| word.to_le_bytes()).collect();
            again.set_valid_words(0, &bytes);
            again.count_valid();
            prop_assert_eq!(counts(&again), counts(&table));
            again.clear_valid();
            prop_assert!(counts(&again).iter().all(|count| *count == 0) && again.valid.iter().all(|word| *word == 0));
        }
    }
}
