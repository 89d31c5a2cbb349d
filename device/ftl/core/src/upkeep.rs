//! Counters of an FTL's work to keep its tables in flash: pages by purpose, records, checkpoints, recoveries.
//!
//! Left out: the time that this takes on the flash, which media and breakdowns count as `metadata`.

use nandscape_sim::Span;

/// Counters since the drive was made, and two figures of now. All zero of an FTL whose tables are in memory.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Upkeep {
    /// Pages programmed.
    pub pages: UpkeepPages,
    /// Records appended to the log.
    pub records: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Mapping units of garbage that collections have reclaimed from blocks of the host's data.
    pub reclaimed_units: u64,
    /// Mapping units in blocks of the host's data that were programmed and are not current, now.
    pub garbage_units: u64,
    /// Channels that are being collected or are due to be, now.
    pub channels_to_collect: u32,
    /// Recoveries.
    pub recovered: Recoveries,
}

/// Pages without data of the host, by their content. A page whose program has failed is not counted.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct UpkeepPages {
    /// Fragments of the map (map_L) that checkpoints have written.
    pub map: u64,
    /// Fragments of the map that were written to make room for others in memory.
    pub map_evicted: u64,
    /// Fragments of the table of where those are (map_S).
    pub map_small: u64,
    /// Fragments of the table of blocks (chunk_L); of layouts without one, the lists at the ends of blocks.
    pub blocks: u64,
    /// Fragments of all of these tables that collections have moved.
    pub moved: u64,
    /// Pages of the log.
    pub log: u64,
    /// Pages at fixed places: the checkpoints themselves, and tables of bad blocks, copies included.
    pub fixed: u64,
}

/// Counters of recoveries.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Recoveries {
    /// The number of recoveries.
    pub count: u64,
    /// From a restart until the drive was in service.
    pub time: Span,
    /// Pages of the log that were read.
    pub pages: u64,
    /// Records in them.
    pub records: u64,
    /// Transactions that were applied.
    pub committed: u64,
    /// Transactions that were discarded because their end was missing.
    pub aborted: u64,
}

impl UpkeepPages {
    /// All of them, with the names of the figures.
    pub fn by_name(&self) -> [(&'static str, u64); 7] {
        [
            ("map", self.map),
            ("map_evicted", self.map_evicted),
            ("map_small", self.map_small),
            ("blocks", self.blocks),
            ("moved", self.moved),
            ("log", self.log),
            ("fixed", self.fixed),
        ]
    }

    /// The sum.
    pub fn total(&self) -> u64 {
        self.by_name().iter().map(|(_, pages)| pages).sum()
    }

    fn plus(&self, other: &UpkeepPages) -> UpkeepPages {
        UpkeepPages {
            map: self.map + other.map,
            map_evicted: self.map_evicted + other.map_evicted,
            map_small: self.map_small + other.map_small,
            blocks: self.blocks + other.blocks,
            moved: self.moved + other.moved,
            log: self.log + other.log,
            fixed: self.fixed + other.fixed,
        }
    }

    fn since(&self, earlier: &UpkeepPages) -> UpkeepPages {
        UpkeepPages {
            map: self.map - earlier.map,
            map_evicted: self.map_evicted - earlier.map_evicted,
            map_small: self.map_small - earlier.map_small,
            blocks: self.blocks - earlier.blocks,
            moved: self.moved - earlier.moved,
            log: self.log - earlier.log,
            fixed: self.fixed - earlier.fixed,
        }
    }
}

impl Recoveries {
    /// FTLs of one drive recover at the same time: the longest counts.
    fn plus(&self, other: &Recoveries) -> Recoveries {
        Recoveries {
            count: self.count + other.count,
            time: self.time.max(other.time),
            pages: self.pages + other.pages,
            records: self.records + other.records,
            committed: self.committed + other.committed,
            aborted: self.aborted + other.aborted,
        }
    }

    fn since(&self, earlier: &Recoveries) -> Recoveries {
        Recoveries {
            count: self.count - earlier.count,
            time: self.time - earlier.time,
            pages: self.pages - earlier.pages,
            records: self.records - earlier.records,
            committed: self.committed - earlier.committed,
            aborted: self.aborted - earlier.aborted,
        }
    }
}

impl Upkeep {
    /// The counters of two FTLs of one drive together.
    pub fn plus(&self, other: &Upkeep) -> Upkeep {
        Upkeep {
            pages: self.pages.plus(&other.pages),
            records: self.records + other.records,
            checkpoints: self.checkpoints + other.checkpoints,
            reclaimed_units: self.reclaimed_units + other.reclaimed_units,
            garbage_units: self.garbage_units + other.garbage_units,
            channels_to_collect: self.channels_to_collect + other.channels_to_collect,
            recovered: self.recovered.plus(&other.recovered),
        }
    }

    /// The counts since `earlier`; present figures are unchanged.
    pub fn since(&self, earlier: &Upkeep) -> Upkeep {
        Upkeep {
            pages: self.pages.since(&earlier.pages),
            records: self.records - earlier.records,
            checkpoints: self.checkpoints - earlier.checkpoints,
            reclaimed_units: self.reclaimed_units - earlier.reclaimed_units,
            recovered: self.recovered.since(&earlier.recovered),
            ..*self
        }
    }
}
