//! Remote flash, reached by commands: the flash of an open-channel drive, whose host runs the FTL. Reads, programs, erases
//! and copies are sent to it, with all their data and time. Out-of-band areas, and the programmed pages of each block, are in
//! host memory.
//!
//! A plane is a parallel unit, a block a chunk, a page what one program writes at least. Programs and erases of a plane go
//! one after the other, as they have to in a chunk.
//!
//! Left out: out-of-band areas in the flash, and therefore a start from flash with data without a saved state; programs of several pages; fault
//! plans and aging, which the remote drive has; times of this flash; power cuts in the middle of an operation.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;

use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Sim, Who};

use crate::contents::Contents;
use crate::fault::MediaError;
use crate::geometry::{BlockId, PageId, UnitId};
use crate::image::PageImage;
use crate::media::{Media, MediaConfig};
use crate::outcome::Broken;
use crate::plain::{Malformed, Reader, Writer};
use crate::power::Underway;
use crate::store::{Arrived, Shelf};

/// A remote operation.
pub type Elsewhere<'a, T> = Pin<Box<dyn Future<Output = Result<T, MediaError>> + 'a>>;

/// Remote flash. A failed operation is [`MediaError::Failed`]. A read or a copy of unreadable units is
/// [`MediaError::Uncorrectable`]; then nothing was written.
pub trait RemoteArray {
    /// Whether a block is out of use.
    fn is_bad(&self, block: BlockId) -> bool;

    /// Whether the remote flash copies units without transferring their data.
    fn copies(&self) -> bool;

    /// Whether it went out of reach during a write or an erase: an operation was [`MediaError::Store`]. It stays so:
    /// the outcome of that operation is unknown.
    fn is_out_of_reach(&self) -> bool {
        false
    }

    /// Reads units of a programmed page, given by their numbers in it: their bytes, one after the other.
    fn read<'a>(&'a self, page: PageId, units: Vec<u32>) -> Elsewhere<'a, Vec<u8>>;

    /// Programs a page, the next of its block.
    fn program<'a>(&'a self, page: PageId, data: Vec<u8>) -> Elsewhere<'a, ()>;

    /// Copies units to a page, the next of its block: as many as it has.
    fn copy<'a>(&'a self, from: Vec<UnitId>, to: PageId) -> Elsewhere<'a, ()>;

    /// Erases a block.
    fn erase<'a>(&'a self, block: BlockId) -> Elsewhere<'a, ()>;
}

/// The purpose of a read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A reader that copies as soon as it has ended.
    Read,
    /// A move of data that is programmed later.
    Move,
}

/// The purposes of unfinished reads of a page, all together. Each read gets all of the page: no read names its user.
#[derive(Default)]
struct Wanted {
    units: BTreeSet<u32>,
    readers: u32,
}

/// The remote flash.
pub(crate) struct Remote {
    array: Rc<dyn RemoteArray>,
    /// The purposes of reads, by page.
    wanted: RefCell<BTreeMap<PageId, Wanted>>,
    /// The data that has arrived from there.
    shelf: Rc<Shelf>,
    /// Units whose last read failed, for a reader that reports its own errors.
    unreadable: RefCell<BTreeSet<UnitId>>,
    /// Units that could not be read for a move. The move writes zeros, whatever a later read of the units returns.
    lost: RefCell<BTreeSet<UnitId>>,
    /// Whether a reader was given such a unit.
    failed: Cell<bool>,
    /// Metadata of units, for which the remote flash has no room.
    metadata: RefCell<BTreeMap<UnitId, Rc<[u8]>>>,
}

impl Media {
    /// Remote flash that was never written. Only the geometry of the configuration counts.
    ///
    /// # Errors
    /// When the system does not give the memory for out-of-band tags.
    pub fn over_remote(sim: &Sim, config: MediaConfig, array: Rc<dyn RemoteArray>) -> io::Result<Media> {
        let shelf = Shelf::new(&config.geometry);
        let contents = Contents::over(&config.geometry, Box::new(Arrived(shelf.clone())))?;
        let bad = (0..config.geometry.blocks()).map(|block| array.is_bad(BlockId(block))).collect();
        let config = MediaConfig { factory_bad: 0, aging: None, ..config };
        let mut media = Media::with_contents(sim, config, contents, None);
        media.set_factory_bad(bad);
        // Each operation is checked, and found to be one of the remote flash.
        media.faults().look_at_all();
        media.remote = Some(Box::new(Remote {
            array,
            wanted: RefCell::default(),
            shelf,
            unreadable: RefCell::default(),
            lost: RefCell::default(),
            failed: Cell::new(false),
            metadata: RefCell::default(),
        }));
        Ok(media)
    }

    /// Whether the flash is remote.
    #[inline]
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Whether the flash is remote, and copies units by itself.
    #[inline]
    pub fn copies_remotely(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.array.copies())
    }

    /// Whether remote flash went out of reach.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.array.is_out_of_reach())
    }

    /// A reader is about to read the pages of these units, each once, and needs no others. Otherwise, a read covers the whole
    /// page.
    #[cold]
    pub fn want(&self, units: impl Iterator<Item = UnitId>) {
        let remote = self.elsewhere();
        let (mut all, mut pages) = (remote.wanted.borrow_mut(), BTreeSet::new());
        for unit in units {
            let (page, number) = self.place_in_page(unit);
            let wanted = all.entry(page).or_default();
            wanted.units.insert(number);
            wanted.readers += u32::from(pages.insert(page));
        }
    }

    /// The units to read of a page.
    fn wanted(&self, page: PageId) -> Vec<u32> {
        let remote = self.elsewhere();
        match remote.wanted.borrow().get(&page) {
            Some(wanted) => wanted.units.iter().copied().collect(),
            None => (0..self.geometry.units_per_page()).collect(),
        }
    }

    /// A read has ended.
    fn had(&self, page: PageId) {
        let remote = self.elsewhere();
        let mut all = remote.wanted.borrow_mut();
        if let Some(wanted) = all.get_mut(&page) {
            wanted.readers -= 1;
            if wanted.readers == 0 {
                all.remove(&page);
            }
        }
    }

    fn place_in_page(&self, unit: UnitId) -> (PageId, u32) {
        let page = self.geometry.page_of(unit);
        (page, unit.0 - self.geometry.unit_at(page, 0).0)
    }

    /// Whether a unit was unreadable when it was to be moved.
    pub fn is_lost_elsewhere(&self, unit: UnitId) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.lost.borrow().contains(&unit))
    }

    /// Releases the units of a block that were read while their plane was held, except those of a page.
    pub fn release(&self, block: BlockId, but: Option<PageId>) {
        if let Some(remote) = &self.remote {
            remote.shelf.release(self.units_of(block), |unit| Some(self.geometry.page_of(unit)) == but);
        }
    }

    fn units_of(&self, block: BlockId) -> Range<UnitId> {
        let first = self.geometry.unit_at(self.geometry.page_at(block, 0), 0);
        first..UnitId(first.0 + self.geometry.units_per_block())
    }

    /// A reader is given a unit.
    pub(crate) fn note_reader(&self, unit: UnitId) {
        if let Some(remote) = &self.remote
            && remote.unreadable.borrow().contains(&unit)
        {
            remote.failed.set(true);
        }
    }

    /// Whether a reader was given an unreadable unit since the last call.
    pub(crate) fn take_failure_elsewhere(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.failed.take())
    }

    /// Reads the wanted units of a page. Unreadable units are zeros, and remembered together with them: another read of the page may end
    /// meanwhile. Units to be moved are kept until they are released.
    pub(crate) async fn fetch(&self, page: PageId, purpose: Purpose) -> Result<(), MediaError> {
        let units = self.wanted(page);
        let fetched = self.fetch_units(page, &units).await;
        self.had(page);
        for (number, data) in units.into_iter().zip(fetched?) {
            let unit = self.geometry.unit_at(page, number);
            self.note(unit, data.is_some(), purpose);
            let data = self.with_metadata(unit, data.unwrap_or_else(|| self.zeros()));
            match purpose {
                Purpose::Move => self.elsewhere().shelf.hold(unit, data),
                Purpose::Read => self.contents.borrow_mut().store_data(unit, data),
            }
        }
        Ok(())
    }

    fn elsewhere(&self) -> &Remote {
        self.remote.as_ref().expect("the flash is elsewhere")
    }

    fn with_metadata(&self, unit: UnitId, data: Vec<u8>) -> Rc<[u8]> {
        match self.elsewhere().metadata.borrow().get(&unit) {
            None => data.into(),
            Some(metadata) => [&data, &**metadata].concat().into(),
        }
    }

    /// The bytes of a unit that cannot be read.
    fn zeros(&self) -> Vec<u8> {
        vec![0; self.geometry.unit_size() as usize]
    }

    /// Units of a page, each with its bytes: all by one read, or one by one, if one of them cannot be read.
    async fn fetch_units(&self, page: PageId, units: &[u32]) -> Result<Vec<Option<Vec<u8>>>, MediaError> {
        let size = self.geometry.unit_size() as usize;
        match self.elsewhere().array.read(page, units.to_vec()).await {
            Err(MediaError::Uncorrectable) => {}
            ended => return Ok(ended?.chunks_exact(size).map(|data| Some(data.to_vec())).collect()),
        }
        let mut all = Vec::with_capacity(units.len());
        for number in units {
            all.push(self.fetch_unit(page, *number).await?);
        }
        Ok(all)
    }

    /// The bytes of a unit; `None` if it cannot be read.
    async fn fetch_unit(&self, page: PageId, number: u32) -> Result<Option<Vec<u8>>, MediaError> {
        match self.elsewhere().array.read(page, vec![number]).await {
            Err(MediaError::Uncorrectable) => Ok(None),
            ended => ended.map(Some),
        }
    }

    /// Remembers whether a unit could be read.
    fn note(&self, unit: UnitId, is_read: bool, purpose: Purpose) {
        let remote = self.elsewhere();
        let mut units = match purpose {
            Purpose::Read => remote.unreadable.borrow_mut(),
            Purpose::Move => remote.lost.borrow_mut(),
        };
        match is_read {
            true => units.remove(&unit),
            false => units.insert(unit),
        };
    }

    /// Reads units one by one, each once, and programs them to a page, with zeros at the end.
    async fn carry(&self, from: &[UnitId], to: PageId) -> Result<(), MediaError> {
        let mut data = Vec::with_capacity(self.geometry.page_size() as usize);
        for unit in from {
            let (page, number) = self.place_in_page(*unit);
            let read = self.fetch_unit(page, number).await?;
            self.note(*unit, read.is_some(), Purpose::Move);
            data.extend(read.unwrap_or_else(|| self.zeros()));
        }
        data.resize(self.geometry.page_size() as usize, 0);
        self.elsewhere().array.program(to, data).await
    }

    /// A read that has begun.
    pub(crate) async fn read_elsewhere(
        &self,
        under_way: &Underway<'_>,
        page: PageId,
        breakdown: &mut Breakdown,
    ) -> Result<(), MediaError> {
        let begun = self.sim.now();
        let fetched = self.fetch(page, Purpose::Read).await;
        breakdown.spend(Stage::Array, self.sim.now() - begun);
        self.end_read(under_way, page).and(fetched)
    }

    /// A program that has begun, of a plane that is not held.
    pub(crate) async fn program_elsewhere(
        &self,
        under_way: &Underway<'_>,
        pages: &[PageId],
        image: &PageImage,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Result<(), Broken> {
        let (plane, ..) = self.locate(pages[0]);
        let _register = self.lun(plane).erase(who, breakdown).await;
        let begun = self.sim.now();
        let ended = self.put_all(under_way, pages, image).await;
        breakdown.spend(Stage::Array, self.sim.now() - begun);
        ended
    }

    /// Programs remote pages.
    pub(crate) async fn put_all(
        &self,
        under_way: &Underway<'_>,
        pages: &[PageId],
        image: &PageImage,
    ) -> Result<(), Broken> {
        let remote = self.elsewhere();
        let (per_page, size) = (self.geometry.units_per_page() as usize, self.geometry.unit_size() as usize);
        let mut ended = Ok(());
        for (from, page) in (0..).step_by(per_page).zip(pages) {
            let (mut bytes, all) = (Vec::with_capacity(per_page * size), image.data_from(from));
            for number in 0..per_page {
                let data = all.get(number).and_then(Option::as_deref).unwrap_or_default();
                bytes.extend_from_slice(&data[..data.len().min(size)]);
                bytes.resize((number + 1) * size, 0);
            }
            let programmed = remote.array.program(*page, bytes).await;
            ended = ended.and(programmed.map_err(|error| Broken { error, page: *page }));
        }
        self.end_elsewhere(under_way, pages, image, ended)
    }

    /// Copies units to a remote page. `image` has their out-of-band areas, and their data as far as there is metadata.
    pub(crate) async fn copy_elsewhere(
        &self,
        under_way: &Underway<'_>,
        from: &[UnitId],
        to: PageId,
    ) -> Result<(), Broken> {
        let remote = self.elsewhere();
        let mut sources = from.to_vec();
        // Out-of-band areas mark the units at the end as no host data.
        let last = *sources.last().expect("a unit is copied");
        sources.resize(self.geometry.units_per_page() as usize, last);
        let copied = match remote.array.copies() {
            true => remote.array.copy(sources, to).await,
            false => Err(MediaError::Uncorrectable),
        };
        let copied = match copied {
            Err(MediaError::Uncorrectable) => self.carry(from, to).await,
            Ok(()) => {
                from.iter().for_each(|unit| self.note(*unit, true, Purpose::Move));
                Ok(())
            }
            failed => failed,
        };
        let mut image = PageImage::default();
        {
            let (contents, metadata) = (self.contents.borrow(), remote.metadata.borrow());
            let size = self.geometry.unit_size() as usize;
            for unit in from {
                let data = metadata.get(unit).map(|metadata| [&vec![0; size][..], &**metadata].concat().into());
                image.push_with_oob(contents.oob(*unit), data);
            }
        }
        image.pad(self.geometry.units_per_page() as usize, u32::MAX);
        self.end_elsewhere(under_way, &[to], &image, copied.map_err(|error| Broken { error, page: to }))
    }

    fn end_elsewhere(
        &self,
        under_way: &Underway<'_>,
        pages: &[PageId],
        image: &PageImage,
        ended: Result<(), Broken>,
    ) -> Result<(), Broken> {
        if under_way.end().is_err() {
            return self.end_program(under_way, pages, image);
        }
        let mut contents = self.contents.borrow_mut();
        if ended.is_err() {
            pages.iter().for_each(|page| contents.set_unreadable(*page));
            return ended;
        }
        let remote = self.elsewhere();
        let (size, mut metadata) = (self.geometry.unit_size() as usize, remote.metadata.borrow_mut());
        let per_page = self.geometry.units_per_page() as usize;
        for (number, page) in pages.iter().enumerate() {
            contents.fill_areas(&self.geometry, *page, image, number * per_page);
            let all = image.data_from(number * per_page);
            for unit in 0..per_page {
                let data = all.get(unit).and_then(Option::as_deref);
                let unit = self.geometry.unit_at(*page, unit as u32);
                match data.and_then(|data| data.get(size..)).filter(|rest| !rest.is_empty()) {
                    Some(rest) => _ = metadata.insert(unit, rest.into()),
                    None => _ = metadata.remove(&unit),
                }
            }
        }
        Ok(())
    }

    /// An erase that has begun, of a plane that is held or not.
    pub(crate) async fn erase_elsewhere(&self, under_way: &Underway<'_>, block: BlockId) -> Result<(), MediaError> {
        let remote = self.elsewhere();
        let erased = match self.pages_programmed(block) {
            0 => Ok(()),
            _ => remote.array.erase(block).await,
        };
        if under_way.end().is_ok() {
            erased?;
        }
        self.forget(block);
        self.end_erase(under_way, block)
    }

    /// A block was erased: the state of its units is void.
    fn forget(&self, block: BlockId) {
        let remote = self.elsewhere();
        let units = self.units_of(block);
        remote.shelf.release(units.clone(), |_| false);
        for set in [&remote.unreadable, &remote.lost] {
            set.borrow_mut().retain(|unit| !units.contains(unit));
        }
        let gone: Vec<UnitId> = remote.metadata.borrow().range(units).map(|(unit, _)| *unit).collect();
        gone.iter().for_each(|unit| _ = remote.metadata.borrow_mut().remove(unit));
    }

    /// What is known here of the units of remote flash at rest; `None` of flash that is not remote.
    pub(crate) fn save_of_remote(&self) -> Option<Vec<u8>> {
        let remote = self.remote.as_ref()?;
        let mut to = Writer::default();
        for set in [&remote.unreadable, &remote.lost] {
            to.words(&set.borrow().iter().map(|unit| unit.0).collect::<Vec<_>>());
        }
        let metadata = remote.metadata.borrow();
        to.count(metadata.len());
        for (unit, bytes) in &*metadata {
            to.word(unit.0);
            to.bytes(bytes);
        }
        Some(to.finish())
    }

    /// The same of other flash, restored here.
    pub(crate) fn restore_of_remote(&self, saved: &[u8]) -> Result<(), Malformed> {
        let (remote, mut from) = (self.elsewhere(), Reader::new(saved));
        let unit = |from: &Reader<'_>, unit: u32| match unit < self.geometry.units() {
            true => Ok(UnitId(unit)),
            false => Err(from.malformed(format!("unit {unit}, which the flash does not have"))),
        };
        for set in [&remote.unreadable, &remote.lost] {
            for _ in 0..from.count(4)? {
                let number = from.word()?;
                set.borrow_mut().insert(unit(&from, number)?);
            }
        }
        for _ in 0..from.count(12)? {
            let number = from.word()?;
            let unit = unit(&from, number)?;
            remote.metadata.borrow_mut().insert(unit, from.bytes()?.into());
        }
        from.finish()
    }
}
