//! Pages and blocks in the file, as the flash uses them. Of a page, the data is written first and its record last: a page whose
//! record is missing was never programmed. Of a block, the record is written before the first page that changes in an epoch.
//!
//! An erase writes the record of the block with its new count, which makes all records of its pages void, and gives the room of
//! the data back.
//!
//! Left out: the order of programs in a block, which [`Contents`](crate::contents::Contents) keeps.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::disk::Disk;
use super::layout::Region;
use super::record::{BLOCK, BlockRecord, PageRecord, PageStatus, UnitRecord, marks};
use super::scan::Found;
use crate::fault::MediaError;
use crate::geometry::{BlockId, Geometry, PageId, UnitId};
use crate::image::{Oob, PageImage};
use crate::store::UnitData;

/// Bytes of block records written at once, for a drive with a life before the run.
const LIFE_PIECE: usize = 64 << 10;
/// The tag of an unknown unit.
const NO_TAG: u32 = u32::MAX;

/// See the file.
pub(crate) struct FileCells {
    disk: Rc<Disk>,
    geometry: Geometry,
    keeps_data: bool,
    epoch: Rc<Cell<u32>>,
    blocks: Vec<BlockRecord>,
    /// Pages of each block whose records were written.
    recorded: Vec<u32>,
    /// The last record read: several units of a page are read one after another.
    latest: RefCell<Option<(PageId, Option<Rc<PageRecord>>)>>,
    /// Data that was programmed could not be read back.
    has_failed: Cell<bool>,
    buffer: Vec<u8>,
}

impl FileCells {
    pub(crate) fn new(
        disk: &Rc<Disk>,
        geometry: &Geometry,
        keeps_data: bool,
        epoch: &Rc<Cell<u32>>,
        found: &Found,
    ) -> FileCells {
        FileCells {
            disk: disk.clone(),
            geometry: *geometry,
            keeps_data,
            epoch: epoch.clone(),
            blocks: found.blocks.clone(),
            recorded: found.programmed.clone(),
            latest: RefCell::new(None),
            has_failed: Cell::new(false),
            buffer: Vec::new(),
        }
    }

    pub(crate) fn keeps_data(&self) -> bool {
        self.keeps_data
    }

    /// How often each block was erased.
    pub(crate) fn erases(&self) -> Vec<u32> {
        self.blocks.iter().map(|block| block.erases).collect()
    }

    /// Pages of each block whose programs ended.
    pub(crate) fn recorded(&self) -> &[u32] {
        &self.recorded
    }

    /// The blocks that have changed after an epoch.
    pub(crate) fn changed_after(&self, epoch: u32) -> impl Iterator<Item = BlockId> {
        let changed = move |(_, block): &(u32, &BlockRecord)| block.epoch > epoch;
        (0..).zip(&self.blocks).filter(changed).map(|(number, _)| BlockId(number))
    }

    // ------------------------------------------------------------ reading

    /// The record of a page; `None` when the page was not programmed since the erase of its block, or the file has no
    /// valid record.
    pub(crate) fn record(&self, page: PageId) -> Option<Rc<PageRecord>> {
        if let Some((_, record)) = self.latest.borrow().as_ref().filter(|(latest, _)| *latest == page) {
            return record.clone();
        }
        let is_recorded = || self.geometry.page_in_block(page) < self.recorded[self.geometry.block_of(page).0 as usize];
        let first = self.record_in(0, page);
        let record = if first.is_none() && is_recorded() { self.record_in(1, page) } else { first };
        let record = record.map(Rc::new);
        *self.latest.borrow_mut() = Some((page, record.clone()));
        record
    }

    /// The record of a page in a copy.
    fn record_in(&self, copy: usize, page: PageId) -> Option<PageRecord> {
        let mut bytes: SmallVec<[u8; 256]> = smallvec![0; self.disk.layout.page_stride as usize];
        self.disk.read(self.record_at(copy, page), &mut bytes).ok()?;
        self.valid(page, &bytes)
    }

    /// A record that is whole, and of the time since the last erase of its block.
    fn valid(&self, page: PageId, bytes: &[u8]) -> Option<PageRecord> {
        let (generation, units) =
            (self.blocks[self.geometry.block_of(page).0 as usize].erases, self.geometry.units_per_page());
        let record = PageRecord::decode(page, bytes)?;
        (record.generation == generation && record.units.len() == units as usize).then_some(record)
    }

    /// The existing records of a block's pages from `first` to `end`, read at once.
    pub(crate) fn records(
        &self,
        block: BlockId,
        pages: Range<u32>,
        mut each: impl FnMut(PageId, &PageRecord),
    ) -> io::Result<()> {
        let stride = self.disk.layout.page_stride as usize;
        let mut bytes = vec![0; pages.len() * stride];
        self.disk.read(self.record_at(0, self.geometry.page_at(block, pages.start)), &mut bytes)?;
        for (number, bytes) in pages.zip(bytes.chunks_exact(stride)) {
            let page = self.geometry.page_at(block, number);
            if let Some(record) = self.valid(page, bytes).or_else(|| self.record_in(1, page)) {
                each(page, &record);
            }
        }
        Ok(())
    }

    /// Makes both copies of records equal for blocks changed after an epoch. A kill may have left only one copy of the last
    /// page's record.
    pub(crate) fn mend(&self, epoch: u32) -> Result<(), MediaError> {
        for block in self.changed_after(epoch) {
            let (record, end) = (self.blocks[block.0 as usize], self.recorded[block.0 as usize]);
            self.disk.write_twice(self.disk.layout.blocks, u64::from(block.0) * BLOCK as u64, &record.encode(block))?;
            let Some(last) = end.checked_sub(1) else { continue };
            let page = self.geometry.page_at(block, last);
            let copies = [self.record_in(0, page), self.record_in(1, page)];
            if copies[0] == copies[1] {
                continue;
            }
            let [first, second] = copies;
            if let Some(record) = first.or(second) {
                self.disk.write_twice(self.disk.layout.pages, self.record_place(page), &record.encode(page))?;
            }
        }
        Ok(())
    }

    /// The record of an unknown page.
    fn torn_record(&self, generation: u32) -> PageRecord {
        let unknown = UnitRecord { tag: NO_TAG, ..UnitRecord::default() };
        let units = smallvec![unknown; self.geometry.units_per_page() as usize];
        PageRecord { status: PageStatus::Unreadable, generation, units }
    }

    /// Notes damaged copies of the records of a block's pages.
    pub(crate) fn check_records(&self, block: BlockId) {
        for number in 0..self.recorded[block.0 as usize] {
            let page = self.geometry.page_at(block, number);
            let copies = [self.record_in(0, page), self.record_in(1, page)];
            for copy in (0..2).filter(|copy| copies[*copy].is_none()) {
                let other = if copies[1 - copy].is_some() { "its other copy is whole" } else { "so is its other copy" };
                let (block, at) = (block.0, self.record_at(copy, page));
                self.disk.note_damage(format!("the record of page {number} of block {block} at byte {at}: {other}"));
            }
        }
    }

    fn unit(&self, unit: UnitId) -> Option<(PageStatus, UnitRecord)> {
        let page = self.geometry.page_of(unit);
        let record = self.record(page)?;
        Some((record.status, record.units[(unit.0 - self.geometry.unit_at(page, 0).0) as usize]))
    }

    #[cold]
    pub(crate) fn tag(&self, unit: UnitId) -> u32 {
        self.oob(unit).tag
    }

    pub(crate) fn oob(&self, unit: UnitId) -> Oob {
        match self.unit(unit) {
            Some((_, unit)) => Oob { tag: unit.tag, bytes: unit.oob },
            None => Oob { tag: NO_TAG, ..Oob::default() },
        }
    }

    /// Whether a page cannot be read until its block is erased.
    pub(crate) fn is_unreadable(&self, page: PageId) -> bool {
        self.record(page).is_none_or(|record| record.status == PageStatus::Unreadable)
    }

    /// Whether the data of all units of a page is intact.
    pub(crate) fn is_sound(&self, page: PageId) -> bool {
        let Some(record) = self.record(page) else { return false };
        let units = (self.geometry.unit_at(page, 0).0..).map(UnitId);
        record.status == PageStatus::Programmed
            && units.zip(&record.units).all(|(unit, of)| self.load(unit, of).is_ok())
    }

    /// Whether the data of some unit of a page differs from what was programmed.
    pub(crate) fn is_damaged(&self, page: PageId) -> bool {
        self.record(page).is_some_and(|record| record.status == PageStatus::Programmed) && !self.is_sound(page)
    }

    /// The data of a unit, if it has any. Data that cannot be read is noted.
    pub(crate) fn data(&self, unit: UnitId) -> Option<UnitData> {
        let Some((PageStatus::Programmed, record)) = self.unit(unit) else {
            self.has_failed.set(true);
            return None;
        };
        self.load(unit, &record).unwrap_or_else(|()| {
            self.has_failed.set(true);
            None
        })
    }

    /// Whether data was unreadable since the last call.
    #[inline]
    pub(crate) fn take_failure(&self) -> bool {
        self.has_failed.replace(false)
    }

    fn load(&self, unit: UnitId, record: &UnitRecord) -> Result<Option<UnitData>, ()> {
        if record.len == 0 {
            return Ok(None);
        }
        let (size, tail) = (self.geometry.unit_size() as usize, self.disk.layout.tail_stride as usize);
        let len = record.len as usize;
        if len > size + tail {
            return Err(());
        }
        let mut data: UnitData = std::iter::repeat_n(0, len).collect();
        let bytes = Rc::get_mut(&mut data).expect("nobody else has it yet");
        let (head, rest) = bytes.split_at_mut(len.min(size));
        self.disk.read(self.data_at(unit), head).map_err(drop)?;
        if !rest.is_empty() {
            self.disk.read(self.tail_at(unit), rest).map_err(drop)?;
        }
        if crc32fast::hash(&data) == record.sum { Ok(Some(data)) } else { Err(()) }
    }

    // ------------------------------------------------------------ writing

    /// Programs a page with the units of an image from `from` on.
    pub(crate) fn program(&mut self, page: PageId, image: &PageImage, from: usize) -> Result<(), MediaError> {
        let keeps = self.keeps_data || image.is_metadata();
        let (oob, all) = (image.oob_bytes(from), image.data_from(from));
        let data_of = |number: usize| all.get(number).and_then(Option::as_deref);
        let tags = image.tags[from..from + self.geometry.units_per_page() as usize].iter().enumerate();
        let units = tags.map(|(number, tag)| {
            let data = data_of(number).filter(|_| keeps);
            let sum = data.map_or(0, crc32fast::hash);
            let len = data.map_or(0, <[u8]>::len) as u32;
            UnitRecord { tag: *tag, oob: oob.get(number).copied().unwrap_or_default(), len, sum }
        });
        let units: SmallVec<[UnitRecord; 4]> = units.collect();
        self.begin_page(page)?;
        if keeps {
            self.put_data(page, (0..units.len()).map(data_of))?;
        }
        self.put_record(page, PageStatus::Programmed, units)
    }

    /// Programs a page with tags alone.
    pub(crate) fn plant(&mut self, page: PageId, tags: impl IntoIterator<Item = u32>) -> Result<(), MediaError> {
        let units = self.geometry.units_per_page() as usize;
        let tags = tags.into_iter().chain(std::iter::repeat(NO_TAG)).take(units);
        let units = tags.map(|tag| UnitRecord { tag, ..UnitRecord::default() }).collect();
        self.begin_page(page)?;
        self.put_record(page, PageStatus::Programmed, units)
    }

    /// Changes the tag of a unit that was planted.
    pub(crate) fn set_tag(&mut self, unit: UnitId, tag: u32) -> Result<(), MediaError> {
        let page = self.geometry.page_of(unit);
        let Some(record) = self.record(page) else { return Ok(()) };
        let mut units = record.units.clone();
        units[(unit.0 - self.geometry.unit_at(page, 0).0) as usize].tag = tag;
        self.put_record(page, record.status, units)
    }

    /// A used-up page cannot be read; its record of units stays.
    pub(crate) fn set_unreadable(&mut self, page: PageId) -> Result<(), MediaError> {
        let units = match self.record(page) {
            Some(record) => record.units.clone(),
            None => self.torn_record(0).units,
        };
        self.begin_page(page)?;
        self.put_record(page, PageStatus::Unreadable, units)
    }

    /// Copies a page with its data unchanged, errors included.
    pub(crate) fn copy(&mut self, from: PageId, to: PageId) -> Result<(), MediaError> {
        let Some(record) = self.record(from) else { return self.set_unreadable(to) };
        self.begin_page(to)?;
        let (units, size) = (self.geometry.units_per_page(), u64::from(self.geometry.unit_size()));
        let (tail, has_tail) = (self.disk.layout.tail_stride, |unit: &UnitRecord| u64::from(unit.len) > size);
        if record.units.iter().any(|unit| unit.len > 0) {
            let at = |page| self.data_at(self.geometry.unit_at(page, 0));
            self.copy_bytes(at(from), at(to), u64::from(units) * size)?;
        }
        if record.units.iter().any(has_tail) {
            let at = |page| self.tail_at(self.geometry.unit_at(page, 0));
            self.copy_bytes(at(from), at(to), u64::from(units) * tail)?;
        }
        self.put_record(to, record.status, record.units.clone())
    }

    fn copy_bytes(&self, from: u64, to: u64, len: u64) -> Result<(), MediaError> {
        let mut bytes = vec![0; len as usize];
        // The checksum detects unreadable data.
        let _ = self.disk.read(from, &mut bytes);
        self.disk.write(to, &bytes)
    }

    /// Inverts one bit of each unit of a page, unseen by checksums.
    pub(crate) fn corrupt(&mut self, page: PageId) -> Result<(), MediaError> {
        let Some(record) = self.record(page) else { return Ok(()) };
        let (mut units, bytes) = (record.units.clone(), self.geometry.unit_size() as usize);
        let first = self.geometry.unit_at(page, 0).0;
        for (unit, record) in (first..).map(UnitId).zip(&mut units) {
            let data = self.load(unit, record).ok().flatten();
            let mut data = data.map_or_else(|| vec![0; bytes], |data| data.to_vec());
            let at = unit.0 as usize % data.len();
            data[at] ^= 1 << (unit.0 % 8);
            (record.len, record.sum) = (data.len() as u32, crc32fast::hash(&data));
            self.put_unit(unit, &data)?;
        }
        self.put_record(page, record.status, units)
    }

    /// Erases a block for the `erases`th time.
    pub(crate) fn erase(&mut self, block: BlockId, erases: u32) -> Result<(), MediaError> {
        *self.latest.borrow_mut() = None;
        self.blocks[block.0 as usize].erases = erases;
        self.put_block(block)?;
        self.recorded[block.0 as usize] = 0;
        let (first, units) = (u64::from(block.0 * self.geometry.units_per_block()), self.geometry.units_per_block());
        let layout = &self.disk.layout;
        let room = |region: Region, each: u64| (region.at + first * each, u64::from(units) * each);
        for (at, len) in [room(layout.data, self.geometry.unit_size().into()), room(layout.tails, layout.tail_stride)] {
            self.disk.punch(at, len)?;
        }
        Ok(())
    }

    /// Sets the erases of a life in unused blocks, and marks blocks that went bad in it.
    pub(crate) fn live(&mut self, erases: &[u32], grown_bad: &[bool]) -> Result<(), MediaError> {
        let mut bytes = Vec::with_capacity(self.blocks.len() * BLOCK);
        for ((number, block), (erases, is_bad)) in (0..).zip(&mut self.blocks).zip(erases.iter().zip(grown_bad)) {
            (block.erases, block.marks) = (*erases, if *is_bad { marks::GROWN_BAD } else { 0 });
            bytes.extend(block.encode(BlockId(number)));
        }
        (0_u64..).zip(bytes.chunks(LIFE_PIECE)).try_for_each(|(number, piece)| {
            self.disk.write_twice(self.disk.layout.blocks, number * LIFE_PIECE as u64, piece)
        })
    }

    /// Marks a block, in addition to its other marks.
    pub(crate) fn mark(&mut self, block: BlockId, mark: u32) -> Result<(), MediaError> {
        self.blocks[block.0 as usize].marks |= mark;
        self.put_block(block)
    }

    pub(crate) fn is_marked(&self, block: BlockId, mark: u32) -> bool {
        self.blocks[block.0 as usize].marks & mark != 0
    }

    // ------------------------------------------------------------ places

    fn begin_page(&mut self, page: PageId) -> Result<(), MediaError> {
        let block = self.geometry.block_of(page);
        *self.latest.borrow_mut() = None;
        match self.blocks[block.0 as usize].epoch == self.epoch.get() {
            true => Ok(()),
            false => self.put_block(block),
        }
    }

    fn put_block(&mut self, block: BlockId) -> Result<(), MediaError> {
        let record = &mut self.blocks[block.0 as usize];
        record.epoch = self.epoch.get();
        self.disk.write_twice(self.disk.layout.blocks, u64::from(block.0) * BLOCK as u64, &record.encode(block))
    }

    fn put_record(
        &mut self,
        page: PageId,
        status: PageStatus,
        units: SmallVec<[UnitRecord; 4]>,
    ) -> Result<(), MediaError> {
        let block = self.geometry.block_of(page).0 as usize;
        let record = PageRecord { status, generation: self.blocks[block].erases, units };
        self.disk.write_twice(self.disk.layout.pages, self.record_place(page), &record.encode(page))?;
        *self.latest.borrow_mut() = None;
        self.recorded[block] = self.recorded[block].max(self.geometry.page_in_block(page) + 1);
        Ok(())
    }

    /// Writes the data of a page's units, neighbours together.
    fn put_data<'a>(&mut self, page: PageId, units: impl Iterator<Item = Option<&'a [u8]>>) -> Result<(), MediaError> {
        let size = self.geometry.unit_size() as usize;
        let (mut run, mut next) = (std::mem::take(&mut self.buffer), self.geometry.unit_at(page, 0));
        run.clear();
        let mut written = Ok(());
        for data in units {
            match data {
                Some(data) => {
                    let (head, tail) = data.split_at(data.len().min(size));
                    run.extend_from_slice(head);
                    run.resize(run.len().next_multiple_of(size), 0);
                    if !tail.is_empty() {
                        written = written.and(self.disk.write(self.tail_at(next), tail));
                    }
                }
                None => written = written.and(self.put_run(next, &mut run)),
            }
            next = UnitId(next.0 + 1);
        }
        written = written.and(self.put_run(next, &mut run));
        self.buffer = run;
        written
    }

    /// Writes the units before `end`.
    fn put_run(&self, end: UnitId, run: &mut Vec<u8>) -> Result<(), MediaError> {
        if run.is_empty() {
            return Ok(());
        }
        let written = self.disk.write(self.data_at(end) - run.len() as u64, run);
        run.clear();
        written
    }

    fn put_unit(&self, unit: UnitId, data: &[u8]) -> Result<(), MediaError> {
        let (head, tail) = data.split_at(data.len().min(self.geometry.unit_size() as usize));
        self.disk.write(self.data_at(unit), head)?;
        if tail.is_empty() { Ok(()) } else { self.disk.write(self.tail_at(unit), tail) }
    }

    /// Where the record of a page lies in each copy.
    fn record_place(&self, page: PageId) -> u64 {
        u64::from(page.0) * self.disk.layout.page_stride
    }

    fn record_at(&self, copy: usize, page: PageId) -> u64 {
        self.disk.layout.pages[copy].at + self.record_place(page)
    }

    fn data_at(&self, unit: UnitId) -> u64 {
        self.disk.layout.data.at + u64::from(unit.0) * u64::from(self.geometry.unit_size())
    }

    fn tail_at(&self, unit: UnitId) -> u64 {
        self.disk.layout.tails.at + u64::from(unit.0) * self.disk.layout.tail_stride
    }
}
