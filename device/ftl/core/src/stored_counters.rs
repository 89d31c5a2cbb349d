//! Counters of an FTL as bytes, for drives in files: they outlast the process. States, which are not counts, are not
//! included.

use nandscape_sim::Span;

use crate::ftl::Stats;
use crate::upkeep::{Recoveries, Upkeep, UpkeepPages};

impl Stats {
    /// The counts as bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        let Stats { upkeep, .. } = self;
        let Upkeep { pages, recovered, .. } = upkeep;
        let counts = [
            self.host_bytes,
            self.host_units,
            self.gc_units,
            self.wear_units,
            self.padding_units,
            self.gc_blocks,
            self.wear_blocks,
            self.read_modify_writes,
            self.buffer_merges,
            self.retired_blocks,
            self.lost_units,
            self.dropped_units,
        ];
        let of_upkeep = [
            upkeep.records,
            upkeep.checkpoints,
            upkeep.reclaimed_units,
            recovered.count,
            recovered.time.ns(),
            recovered.pages,
            recovered.records,
            recovered.committed,
            recovered.aborted,
        ];
        let pages = pages.by_name().map(|(_, count)| count);
        counts.into_iter().chain(of_upkeep).chain(pages).flat_map(u64::to_le_bytes).collect()
    }

    /// The counts of bytes; those that are missing are zero.
    pub fn from_bytes(bytes: &[u8]) -> Stats {
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let mut next = || words.next().unwrap_or_default();
        // Fields are read in the order in which they are named here, which is that of the bytes.
        let stats = Stats {
            host_bytes: next(),
            host_units: next(),
            gc_units: next(),
            wear_units: next(),
            padding_units: next(),
            gc_blocks: next(),
            wear_blocks: next(),
            read_modify_writes: next(),
            buffer_merges: next(),
            retired_blocks: next(),
            lost_units: next(),
            dropped_units: next(),
            ..Stats::default()
        };
        let upkeep = Upkeep {
            records: next(),
            checkpoints: next(),
            reclaimed_units: next(),
            recovered: Recoveries {
                count: next(),
                time: Span::from_ns(next()),
                pages: next(),
                records: next(),
                committed: next(),
                aborted: next(),
            },
            pages: UpkeepPages {
                map: next(),
                map_evicted: next(),
                map_small: next(),
                blocks: next(),
                moved: next(),
                log: next(),
                fixed: next(),
            },
            ..Upkeep::default()
        };
        Stats { upkeep, ..stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let numbers: Vec<u8> = (1..=28u64).flat_map(u64::to_le_bytes).collect();
        let stats = Stats::from_bytes(&numbers);
        assert_eq!((stats.to_bytes(), stats.upkeep.pages.fixed), (numbers.clone(), 28));
        let shorter = Stats::from_bytes(&numbers[..12 * 8]);
        assert_eq!(shorter, Stats { upkeep: Upkeep::default(), ..stats });
    }
}
