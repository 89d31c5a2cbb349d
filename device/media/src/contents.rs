//! The contents of the cells: data, out-of-band areas, programmed pages of each block, and unreadable pages.
//!
//! The ordering rules of NAND are enforced here: pages of a block are programmed in order, once, after an erase, and only
//! programmed pages are read. An operation that breaks them fails with a
//! [`Misuse`] and changes nothing.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io;

use nandscape_sim::table::Table;

use crate::durable::FileCells;
use crate::fault::{MediaError, Misuse};
use crate::geometry::{BlockId, Geometry, PageId, UnitId};
use crate::image::{Oob, OobBytes, PageImage};
use crate::outcome::Broken;
use crate::sparse::Sparse;
use crate::store::{self, Store, StoreKind, UnitData};

/// Counts of operations.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct OpCounts {
    /// Pages sensed and moved to the controller.
    pub reads: u64,
    /// Pages programmed, copies included.
    pub programs: u64,
    /// Pages copied within a plane.
    pub copybacks: u64,
    /// Blocks erased.
    pub erases: u64,
    /// How often programs were suspended for reads.
    pub program_suspensions: u64,
    /// How often erases were.
    pub erase_suspensions: u64,
}

impl OpCounts {
    /// The counts of two groups of channels together.
    pub fn plus(&self, other: &OpCounts) -> OpCounts {
        OpCounts {
            reads: self.reads + other.reads,
            programs: self.programs + other.programs,
            copybacks: self.copybacks + other.copybacks,
            erases: self.erases + other.erases,
            program_suspensions: self.program_suspensions + other.program_suspensions,
            erase_suspensions: self.erase_suspensions + other.erase_suspensions,
        }
    }

    /// The counts since `earlier`.
    pub fn since(&self, earlier: &OpCounts) -> OpCounts {
        OpCounts {
            reads: self.reads - earlier.reads,
            programs: self.programs - earlier.programs,
            copybacks: self.copybacks - earlier.copybacks,
            erases: self.erases - earlier.erases,
            program_suspensions: self.program_suspensions - earlier.program_suspensions,
            erase_suspensions: self.erase_suspensions - earlier.erase_suspensions,
        }
    }
}

/// The contents of the cells.
pub(crate) struct Contents {
    /// Out-of-band tag of each unit.
    tags: Table,
    /// Pages programmed in each block since its erase.
    programmed: Vec<u32>,
    /// How often each block was erased.
    erased: Vec<u32>,
    /// Programmed pages that cannot be read until their block is erased.
    unreadable: BTreeSet<PageId>,
    store: Box<dyn Store>,
    /// Whether the store keeps data.
    stores: bool,
    /// Data of metadata pages that the store does not keep.
    metadata: Sparse<UnitData>,
    /// The out-of-band bytes that the FTL defines.
    oob_bytes: Sparse<OobBytes>,
    /// The file of the cells, if any. It then holds all of the above except counts of operations.
    file: Option<Box<FileCells>>,
    pub(crate) counts: OpCounts,
}

impl Contents {
    /// Erased flash.
    ///
    /// # Errors
    /// If the system does not provide memory for out-of-band tags.
    pub(crate) fn new(geometry: &Geometry, store: StoreKind) -> io::Result<Contents> {
        Contents::over(geometry, store::open(store, geometry))
    }

    /// Erased flash over a store.
    ///
    /// # Errors
    /// If the system does not provide memory for out-of-band tags.
    pub(crate) fn over(geometry: &Geometry, store: Box<dyn Store>) -> io::Result<Contents> {
        Ok(Contents {
            stores: store.keeps_data(),
            tags: Table::new(geometry.units() as usize)?,
            programmed: vec![0; geometry.blocks() as usize],
            erased: vec![0; geometry.blocks() as usize],
            unreadable: BTreeSet::new(),
            store,
            metadata: Sparse::new(geometry),
            oob_bytes: Sparse::new(geometry),
            file: None,
            counts: OpCounts::default(),
        })
    }

    /// Flash in a file, with its blocks programmed and erased so far.
    ///
    /// # Errors
    /// If the system does not provide an empty table.
    pub(crate) fn in_file(geometry: &Geometry, file: FileCells) -> io::Result<Contents> {
        let (programmed, erased) = (file.recorded().to_vec(), file.erases());
        let store = store::open(StoreKind::None, geometry);
        Ok(Contents {
            stores: file.keeps_data(),
            tags: Table::new(0)?,
            programmed,
            erased,
            unreadable: BTreeSet::new(),
            store,
            metadata: Sparse::new(geometry),
            oob_bytes: Sparse::new(geometry),
            file: Some(Box::new(file)),
            counts: OpCounts::default(),
        })
    }

    /// Counts the suspension of a step of this name.
    pub(crate) fn count_suspension(&mut self, step: &str) {
        match step {
            "erase" => self.counts.erase_suspensions += 1,
            _ => self.counts.program_suspensions += 1,
        }
    }

    // ------------------------------------------------------------ for `saved`

    pub(crate) fn tags_mut(&mut self) -> &mut Table {
        &mut self.tags
    }

    pub(crate) fn set_block(&mut self, block: BlockId, programmed: u32, erased: u32) {
        let block = block.0 as usize;
        (self.programmed[block], self.erased[block]) = (programmed, erased);
    }

    pub(crate) fn unreadable(&self) -> impl Iterator<Item = PageId> {
        self.unreadable.iter().copied()
    }

    pub(crate) fn metadata(&self) -> &Sparse<UnitData> {
        &self.metadata
    }

    pub(crate) fn metadata_mut(&mut self) -> &mut Sparse<UnitData> {
        &mut self.metadata
    }

    pub(crate) fn oob_bytes(&self) -> &Sparse<OobBytes> {
        &self.oob_bytes
    }

    pub(crate) fn oob_bytes_mut(&mut self) -> &mut Sparse<OobBytes> {
        &mut self.oob_bytes
    }

    /// The host's data of a unit, if it is kept.
    pub(crate) fn stored(&self, unit: UnitId) -> Option<UnitData> {
        self.store.get(unit)
    }

    pub(crate) fn store_data(&mut self, unit: UnitId, data: UnitData) {
        self.store.put(unit, data);
    }

    pub(crate) fn drop_stored(&mut self, block: BlockId) {
        self.store.erase(block);
    }

    /// The file that holds the cells, if one does.
    #[inline]
    pub(crate) fn file(&self) -> Option<&FileCells> {
        self.file.as_deref()
    }

    #[inline]
    pub(crate) fn file_mut(&mut self) -> Option<&mut FileCells> {
        self.file.as_deref_mut()
    }

    /// The out-of-band tag of a unit.
    #[inline]
    pub(crate) fn tag(&self, unit: UnitId) -> u32 {
        match self.file() {
            None => self.tags.get(unit.0),
            Some(file) => file.tag(unit),
        }
    }

    /// The out-of-band area of a unit.
    pub(crate) fn oob(&self, unit: UnitId) -> Oob {
        if let Some(file) = self.file() {
            return file.oob(unit);
        }
        Oob { tag: self.tag(unit), bytes: self.oob_bytes.get(unit).copied().unwrap_or_default() }
    }

    #[inline]
    pub(crate) fn set_tag(&mut self, unit: UnitId, tag: u32) {
        match self.file.as_deref_mut() {
            None => self.tags.set(unit.0, tag),
            // The file records its failure, and nothing can be written any more.
            Some(file) => _ = file.set_tag(unit, tag),
        }
    }

    /// Programs the tags of a page that was used up.
    pub(crate) fn plant(&mut self, geometry: &Geometry, page: PageId, tags: impl IntoIterator<Item = u32>) {
        match self.file.as_deref_mut() {
            Some(file) => _ = file.plant(page, tags),
            None => (geometry.unit_at(page, 0).0..).zip(tags).for_each(|(unit, tag)| self.tags.set(unit, tag)),
        }
    }

    /// Pages programmed in a block since its erase, including programs that failed.
    pub(crate) fn programmed(&self, block: BlockId) -> u32 {
        self.programmed[block.0 as usize]
    }

    /// How often a block was erased.
    pub(crate) fn erases(&self, block: BlockId) -> u32 {
        self.erased[block.0 as usize]
    }

    /// Whether host data is kept.
    pub(crate) fn keeps_data(&self) -> bool {
        self.stores
    }

    /// The data of a unit, if it has any.
    #[inline]
    pub(crate) fn data(&self, unit: UnitId) -> Option<UnitData> {
        if let Some(file) = self.file() {
            return file.data(unit);
        }
        let stored = if self.stores { self.store.get(unit) } else { None };
        stored.or_else(|| self.metadata.get(unit).cloned())
    }

    /// Whether no unit has data, and none an out-of-band area other than its tag.
    #[inline]
    pub(crate) fn has_tags_alone(&self) -> bool {
        self.file.is_none() && !self.stores && self.metadata.is_empty()
    }

    /// Keeps the data of a unit, if the store does or it is metadata.
    fn keep(&mut self, unit: UnitId, data: UnitData, is_metadata: bool) {
        match is_metadata && !self.stores {
            true => self.metadata.put(unit, data),
            false => self.store.put(unit, data),
        }
    }

    /// Whether a page cannot be read until its block is erased.
    #[inline]
    pub(crate) fn is_unreadable(&self, page: PageId) -> bool {
        match self.file() {
            None => !self.unreadable.is_empty() && self.unreadable.contains(&page),
            Some(file) => file.is_unreadable(page),
        }
    }

    /// Marks a page as unreadable until its block is erased.
    pub(crate) fn set_unreadable(&mut self, page: PageId) {
        match self.file.as_deref_mut() {
            None => _ = self.unreadable.insert(page),
            // A page without a record is unreadable, like a page whose record declares it so.
            Some(file) => _ = file.set_unreadable(page),
        }
    }

    /// Pages of a block up to `used` were being programmed at a power cut, and are unreadable.
    pub(crate) fn tear_rest(&mut self, geometry: &Geometry, block: BlockId, used: u32) {
        (self.programmed(block)..used).for_each(|page| self.set_unreadable(geometry.page_at(block, page)));
        self.programmed[block.0 as usize] = used;
    }

    /// Tears an erase: no page of the block can be read.
    pub(crate) fn tear(&mut self, geometry: &Geometry, block: BlockId) {
        (0..self.programmed(block)).for_each(|page| self.set_unreadable(geometry.page_at(block, page)));
    }

    /// Inverts one bit of each unit of a page.
    pub(crate) fn corrupt(&mut self, geometry: &Geometry, page: PageId) {
        if let Some(file) = self.file_mut() {
            // The file records its failure.
            let _ = file.corrupt(page);
            return;
        }
        let bytes = geometry.unit_size() as usize;
        for number in 0..geometry.units_per_page() {
            let unit = geometry.unit_at(page, number);
            let mut data = self.data(unit).map_or_else(|| vec![0; bytes], |data| data.to_vec());
            data[unit.0 as usize % bytes] ^= 1 << (unit.0 % 8);
            let is_metadata = self.metadata.get(unit).is_some();
            self.keep(unit, data.into(), is_metadata);
        }
    }

    /// Whether a page can be read: it was programmed, or is being programmed.
    #[inline]
    pub(crate) fn check_read(&self, geometry: &Geometry, page: PageId) -> Result<(), Misuse> {
        let is_programmed = geometry.page_in_block(page) < self.programmed(geometry.block_of(page));
        if is_programmed { Ok(()) } else { Err(Misuse::NotProgrammed) }
    }

    /// Uses pages up for programming: all of them, or none.
    ///
    /// # Errors
    /// The first page that is not the next of its block.
    pub(crate) fn use_up(
        &mut self,
        geometry: &Geometry,
        pages: impl Iterator<Item = PageId> + Clone,
    ) -> Result<(), Broken> {
        for (before, page) in pages.clone().enumerate() {
            if let Err(misuse) = self.use_up_page(geometry, page) {
                self.give_back(geometry, pages.take(before));
                return Err(Broken { error: misuse.into(), page });
            }
        }
        Ok(())
    }

    /// Uses up the targets of copies, whose sources are programmed: all of them, or none.
    ///
    /// # Errors
    /// The first target that is not the next page of its block, or source that is not programmed.
    pub(crate) fn use_up_for_copies(&mut self, geometry: &Geometry, moves: &[(PageId, PageId)]) -> Result<(), Broken> {
        let targets = moves.iter().map(|&(_, to)| to);
        self.use_up(geometry, targets.clone())?;
        for &(page, _) in moves {
            if let Err(misuse) = self.check_read(geometry, page) {
                self.give_back(geometry, targets);
                return Err(Broken { error: misuse.into(), page });
            }
        }
        Ok(())
    }

    /// Undoes [`Contents::use_up`].
    fn give_back(&mut self, geometry: &Geometry, pages: impl Iterator<Item = PageId>) {
        for page in pages {
            self.programmed[geometry.block_of(page).0 as usize] -= 1;
            self.counts.programs -= 1;
        }
    }

    /// Whether a page is the last of its block that was used up.
    pub(crate) fn is_last(&self, geometry: &Geometry, page: PageId) -> bool {
        self.programmed(geometry.block_of(page)) == geometry.page_in_block(page) + 1
    }

    /// The last used-up page of a block is erased again.
    pub(crate) fn give_back_last(&mut self, geometry: &Geometry, page: PageId) {
        self.give_back(geometry, std::iter::once(page));
    }

    /// Uses up the next page of a block.
    #[inline]
    pub(crate) fn use_up_page(&mut self, geometry: &Geometry, page: PageId) -> Result<(), Misuse> {
        let next = &mut self.programmed[geometry.block_of(page).0 as usize];
        match geometry.page_in_block(page).cmp(next) {
            Ordering::Less => return Err(Misuse::ProgrammedTwice),
            Ordering::Greater => return Err(Misuse::OutOfOrder),
            Ordering::Equal => *next += 1,
        }
        self.counts.programs += 1;
        Ok(())
    }

    /// Stores a page of an image, from the unit `from` of the image on.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        geometry: &Geometry,
        page: PageId,
        image: &PageImage,
        from: usize,
    ) -> Result<(), MediaError> {
        if let Some(file) = self.file_mut() {
            return file.program(page, image, from);
        }
        let per_page = geometry.units_per_page() as usize;
        let first = geometry.unit_at(page, 0).0;
        for (unit, tag) in (first..).zip(&image.tags[from..from + per_page]) {
            self.tags.set(unit, *tag);
        }
        for (unit, data) in (first..).zip(image.data_from(from).iter().take(per_page)) {
            if let Some(data) = data {
                self.keep(UnitId(unit), data.clone(), image.is_metadata());
            }
        }
        for (unit, bytes) in (first..).zip(image.oob_bytes(from).iter().take(per_page)) {
            self.oob_bytes.put(UnitId(unit), *bytes);
        }
        Ok(())
    }

    /// Programs the out-of-band areas of a page of an image, whose data is elsewhere.
    pub(crate) fn fill_areas(&mut self, geometry: &Geometry, page: PageId, image: &PageImage, from: usize) {
        let (per_page, first) = (geometry.units_per_page() as usize, geometry.unit_at(page, 0).0);
        for (unit, tag) in (first..).zip(&image.tags[from..from + per_page]) {
            self.tags.set(unit, *tag);
        }
        for (unit, bytes) in (first..).zip(image.oob_bytes(from).iter().take(per_page)) {
            self.oob_bytes.put(UnitId(unit), *bytes);
        }
    }

    /// Copies a programmed page to one that was used up by [`Contents::use_up`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn copy(&mut self, geometry: &Geometry, from: PageId, to: PageId) -> Result<(), MediaError> {
        self.counts.copybacks += 1;
        if let Some(file) = self.file_mut() {
            return file.copy(from, to);
        }
        for unit in 0..geometry.units_per_page() {
            let (from, to) = (geometry.unit_at(from, unit), geometry.unit_at(to, unit));
            self.tags.set(to.0, self.tags.get(from.0));
            if let Some(data) = self.store.get(from) {
                self.store.put(to, data);
            }
            if let Some(data) = self.metadata.get(from).cloned() {
                self.metadata.put(to, data);
            }
            if let Some(bytes) = self.oob_bytes.get(from).copied() {
                self.oob_bytes.put(to, bytes);
            }
        }
        Ok(())
    }

    /// Erases a block.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn erase(&mut self, geometry: &Geometry, block: BlockId) -> Result<(), MediaError> {
        let erases = self.erases(block) + 1;
        if let Some(file) = self.file_mut() {
            file.erase(block, erases)?;
        }
        self.programmed[block.0 as usize] = 0;
        self.erased[block.0 as usize] = erases;
        if !self.unreadable.is_empty() {
            self.unreadable.retain(|page| geometry.block_of(*page) != block);
        }
        self.store.erase(block);
        self.metadata.erase(block);
        self.oob_bytes.erase(block);
        self.counts.erases += 1;
        Ok(())
    }
}
