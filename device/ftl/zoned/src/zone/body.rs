//! The data of one zone: units that wait in the write buffer, strips under way, and the blocks that hold the rest.
//!
//! Left out: the state of the zone, which is the table's.

use std::collections::{BTreeMap, VecDeque};

use nandscape_device_media::store::UnitData;
use nandscape_device_media::{BlockId, PageId};
use smallvec::SmallVec;

use super::layout::Layout;

/// A unit in the write buffer.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// `None` is zeros, or data of a drive that keeps none.
    pub(super) data: Option<UnitData>,
    /// Whether it takes room of the write buffer.
    pub(super) takes_room: bool,
    /// It only fills the zone, and holds no data of the host.
    pub(super) is_padding: bool,
}

/// A unit that is in no strip yet.
#[derive(Clone, Default, Debug)]
pub(super) struct Waiting {
    /// `None` has not arrived, or was not written.
    slot: Option<Slot>,
    /// Writes into a random write area whose data has not arrived.
    writes: u16,
}

/// Blocks of a column, one of each plane of its group, from a row on.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) first_row: u32,
    pub(super) blocks: SmallVec<[BlockId; 2]>,
}

/// The blocks of one group.
#[derive(Clone, Default, Debug)]
pub(super) struct Column {
    /// In the order of rows.
    pub(super) runs: SmallVec<[Run; 1]>,
    /// A program is under way.
    pub(super) is_busy: bool,
    /// A program has failed: the next one goes to new blocks.
    pub(super) needs_run: bool,
    /// The strip to program again.
    pub(super) again: Option<u32>,
}

impl Column {
    /// The blocks that hold a row.
    pub(super) fn run(&self, row: u32) -> Option<&Run> {
        self.runs.iter().rev().find(|run| run.first_row <= row)
    }

    /// Whether the next row to program needs new blocks.
    pub(super) fn lacks_blocks(&self, row: u32, layout: &Layout) -> bool {
        self.needs_run || self.runs.last().is_none_or(|run| row >= run.first_row + layout.rows_per_block)
    }
}

/// See the file.
#[derive(Debug)]
pub(super) struct Body {
    /// Counts resets: work that began before a reset is obsolete.
    pub(super) generation: u32,
    pub(super) columns: Vec<Column>,
    /// Units from the first that is in no strip on.
    waiting: VecDeque<Waiting>,
    /// Strips that were begun.
    pub(super) begun: u32,
    /// Strips under way, and those that no block takes, with their units.
    pub(super) strips: BTreeMap<u32, Vec<Slot>>,
    /// No blocks are left for it: its data in the buffer stays there.
    pub(super) is_stranded: bool,
}

/// Where a unit is.
pub(super) enum Found<'a> {
    /// Not written.
    Nowhere,
    Buffered(&'a Slot),
    Flash(PageId, u32),
}

impl Body {
    pub(super) fn new(layout: &Layout) -> Body {
        Body {
            generation: 0,
            columns: vec![Column::default(); layout.columns() as usize],
            waiting: VecDeque::new(),
            begun: 0,
            strips: BTreeMap::new(),
            is_stranded: false,
        }
    }

    /// All data is gone.
    pub(super) fn reset(&mut self, layout: &Layout) {
        *self = Body { generation: self.generation + 1, ..Body::new(layout) };
    }

    /// Puts a unit into the buffer. It must be in no strip yet. Returns whether it replaces one that took room.
    pub(super) fn put(&mut self, unit: u32, slot: Slot, layout: &Layout) -> bool {
        let waiting = self.waiting_at(unit, layout);
        match waiting.writes {
            0 => assert!(waiting.slot.is_none(), "unit {unit} was written twice"),
            _ => waiting.writes -= 1,
        }
        waiting.slot.replace(slot).is_some_and(|old| old.takes_room)
    }

    /// A write into a random write area has begun.
    pub(super) fn expect(&mut self, unit: u32, layout: &Layout) {
        self.waiting_at(unit, layout).writes += 1;
    }

    /// A write into a random write area brings no data: the earlier data stays.
    pub(super) fn give_up(&mut self, unit: u32, layout: &Layout) {
        self.waiting_at(unit, layout).writes -= 1;
    }

    fn waiting_at(&mut self, unit: u32, layout: &Layout) -> &mut Waiting {
        let index = (unit - self.begun * layout.strip_units()) as usize;
        if self.waiting.len() <= index {
            self.waiting.resize(index + 1, Waiting::default());
        }
        &mut self.waiting[index]
    }

    /// The waiting units whose data has arrived.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Slot> {
        self.waiting.iter().filter_map(|waiting| waiting.slot.as_ref())
    }

    /// The waiting units, from the first unit that is in no strip.
    pub(super) fn slots(&self) -> impl Iterator<Item = Option<&Slot>> {
        self.waiting.iter().map(|waiting| waiting.slot.as_ref())
    }

    /// Restores the waiting units behind the begun strips.
    pub(super) fn put_waiting(&mut self, begun: u32, slots: Vec<Option<Slot>>) {
        self.begun = begun;
        self.waiting = slots.into_iter().map(|slot| Waiting { slot, writes: 0 }).collect();
    }

    /// The end of the written data, or of the data being written.
    pub(super) fn end(&self, layout: &Layout) -> u32 {
        let is_used = |waiting: &Waiting| waiting.slot.is_some() || waiting.writes > 0;
        self.begun * layout.strip_units() + self.waiting.iter().rposition(is_used).map_or(0, |last| last as u32 + 1)
    }

    /// Units before `end` that were not written, and that no write is under way to, hold no data.
    pub(super) fn fill_holes(&mut self, end: u32, layout: &Layout) {
        let count = end.saturating_sub(self.begun * layout.strip_units()) as usize;
        if self.waiting.len() < count {
            self.waiting.resize(count, Waiting::default());
        }
        for waiting in self.waiting.iter_mut().take(count).filter(|waiting| waiting.writes == 0) {
            waiting.slot.get_or_insert(Slot { data: None, takes_room: false, is_padding: true });
        }
    }

    /// Whether all units of the next strip have arrived, before `committed`, and none of them is being written.
    pub(super) fn has_strip(&self, layout: &Layout, committed: u32) -> bool {
        let units = layout.strip_units() as usize;
        let is_there = |waiting: &Waiting| waiting.slot.is_some() && waiting.writes == 0;
        let end = (u64::from(self.begun) + 1) * units as u64;
        end <= committed.into() && self.waiting.len() >= units && self.waiting.iter().take(units).all(is_there)
    }

    /// Takes the units of the next strip.
    pub(super) fn take_strip(&mut self, layout: &Layout) -> u32 {
        let units = layout.strip_units() as usize;
        let slots = self.waiting.drain(..units).map(|unit| unit.slot.expect("all are there")).collect();
        let strip = self.begun;
        self.strips.insert(strip, slots);
        self.begun += 1;
        strip
    }

    /// Where a unit of the zone is, by the buffer and the blocks.
    pub(super) fn find(&self, unit: u32, layout: &Layout, page_at: impl Fn(BlockId, u32) -> PageId) -> Found<'_> {
        let strip = unit / layout.strip_units();
        if strip >= self.begun {
            let index = (unit - self.begun * layout.strip_units()) as usize;
            return self.waiting.get(index).and_then(|unit| unit.slot.as_ref()).map_or(Found::Nowhere, Found::Buffered);
        }
        if let Some(slots) = self.strips.get(&strip) {
            return Found::Buffered(&slots[(unit % layout.strip_units()) as usize]);
        }
        let place = layout.place(unit);
        let run = self.columns[place.column].run(place.row).expect("a programmed strip has blocks");
        let page = (place.row - run.first_row) * layout.word_line + place.page % layout.word_line;
        Found::Flash(page_at(run.blocks[(place.page / layout.word_line) as usize], page), place.unit)
    }

    /// The pages of a strip, which is the next of its column.
    pub(super) fn pages(
        &self,
        strip: u32,
        layout: &Layout,
        page_at: impl Fn(BlockId, u32) -> PageId,
    ) -> SmallVec<[PageId; 4]> {
        let (column, row) = layout.strip(strip);
        let run = self.columns[column].run(row).expect("blocks were taken");
        let first = (row - run.first_row) * layout.word_line;
        let of_block = |block: &BlockId| (first..first + layout.word_line).map(|page| page_at(*block, page)).collect();
        run.blocks.iter().flat_map::<SmallVec<[PageId; 4]>, _>(of_block).collect()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// All its blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> {
        self.columns.iter().flat_map(|column| &column.runs).flat_map(|run| run.blocks.iter().copied())
    }

    /// Releases the room of all waiting units; the data stays.
    pub(super) fn give_room_back(&mut self) -> usize {
        let waiting = self.waiting.iter_mut().filter_map(|unit| unit.slot.as_mut());
        let slots = waiting.chain(self.strips.values_mut().flatten());
        slots.map(|slot| usize::from(std::mem::take(&mut slot.takes_room))).sum()
    }
}
