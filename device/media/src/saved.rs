//! The state of flash, saved and restored to other flash of the same geometry. No operation may be in progress.
//!
//! Left out: the storage of the state; resources, whose busy time restarts at zero; and flash in a file, which is its own
//! state.

use nandscape_sim::table::Table;

use crate::aging::Past;
use crate::contents::{Contents, OpCounts};
use crate::geometry::{BlockId, Counts, Geometry, PageId, UnitId};
use crate::image::OobBytes;
use crate::media::Media;
use crate::plain::{Malformed, Reader, Writer};

/// Why a block is not used.
const FACTORY_BAD: u8 = 1;
const GROWN_BAD: u8 = 2;

/// The contents of flash.
pub struct SavedMedia {
    /// Its geometry.
    pub geometry: Counts,
    /// The out-of-band tag of each unit.
    pub tags: Table,
    /// Blocks, pages that cannot be read, out-of-band bytes and metadata, as bytes.
    pub cells: Vec<u8>,
    /// The host's data, if kept, as bytes. Of remote flash, which has the data: what is known here of its units.
    pub data: Vec<u8>,
}

impl Media {
    /// Takes the state of the flash, which must not be used afterwards.
    ///
    /// # Errors
    /// When the flash is in a file, or an operation is under way.
    pub fn take_saved(&self) -> Result<SavedMedia, &'static str> {
        if self.durable.is_some() {
            return Err("its flash is in a file, or keeps its tables for one (ftl.tables = \"rebuilt\")");
        }
        if self.is_under_way() {
            return Err("operations of its flash are under way");
        }
        let (contents, geometry) = (&mut *self.contents.borrow_mut(), &self.geometry);
        let mut cells = Writer::default();
        for (block, is_factory_bad) in (0..).map(BlockId).zip(self.factory_bad()) {
            cells.byte(if *is_factory_bad {
                FACTORY_BAD
            } else if self.is_grown_bad(block) {
                GROWN_BAD
            } else {
                0
            });
        }
        contents.write_cells(geometry, &mut cells);
        if let Some(aging) = &self.aging {
            aging.save(self.sim.now(), &mut cells);
        }
        let data = self.save_of_remote().unwrap_or_else(|| contents.write_data(geometry));
        let empty = Table::new(0).map_err(|_| "the system does not give an empty table")?;
        let tags = std::mem::replace(contents.tags_mut(), empty);
        Ok(SavedMedia { geometry: *geometry.counts(), tags, cells: cells.finish(), data })
    }

    /// Restores the contents of other flash. This flash is erased and not in use yet.
    ///
    /// # Errors
    /// If the state is not of such flash.
    pub fn put_saved(&mut self, saved: SavedMedia) -> Result<(), String> {
        let SavedMedia { geometry, tags, cells, data } = saved;
        if geometry != *self.geometry.counts() || tags.len() != self.geometry.units() as usize {
            return Err(format!("it is of flash with {geometry:?}, and the drive has {:?}", self.geometry.counts()));
        }
        let geometry = self.geometry;
        let contents = self.contents.get_mut();
        *contents.tags_mut() = tags;
        let mut reader = Reader::new(&cells);
        let read = |reader: &mut Reader<'_>, contents: &mut Contents| {
            let bad = (0..geometry.blocks()).map(|_| reader.byte()).collect::<Result<Vec<u8>, Malformed>>()?;
            contents.read_cells(&geometry, reader)?;
            Ok(bad)
        };
        // The ages of blocks exist if the flash aged; flash that does not age ignores them.
        let mut ages = |reader: &mut Reader<'_>| match self.aging.as_mut() {
            _ if reader.is_at_end() => Ok(()),
            Some(aging) => aging.restore(self.sim.now(), reader),
            None => (0..geometry.blocks())
                .try_for_each(|_| reader.long().and_then(|_| reader.word()).map(|_| ()))
                .and_then(|()| Past::restore(self.sim.now(), reader).map(|_| ())),
        };
        let bad = read(&mut reader, contents)
            .and_then(|bad| ages(&mut reader).map(|()| bad))
            .and_then(|bad| reader.finish().map(|()| bad));
        let bad = bad.map_err(|problem: Malformed| format!("cells: {problem}"))?;
        let read = match self.is_remote() {
            true => self.restore_of_remote(&data),
            false => self.contents.get_mut().read_data(&geometry, &data),
        };
        read.map_err(|problem| format!("data: {problem}"))?;
        let are = |mark| bad.iter().map(|of_block| *of_block == mark).collect();
        self.set_factory_bad(are(FACTORY_BAD));
        self.set_grown_bad(are(GROWN_BAD));
        Ok(())
    }
}

impl Contents {
    fn write_cells(&self, geometry: &Geometry, to: &mut Writer) {
        let blocks = (0..geometry.blocks()).map(BlockId);
        blocks.for_each(|block| {
            to.word(self.programmed(block));
            to.word(self.erases(block));
        });
        let unreadable: Vec<u32> = self.unreadable().map(|page| page.0).collect();
        to.count(unreadable.len());
        unreadable.iter().for_each(|page| to.word(*page));
        let metadata: Vec<_> = self.metadata().all().collect();
        to.count(metadata.len());
        for (unit, data) in metadata {
            to.word(unit.0);
            to.bytes(data);
        }
        let areas: Vec<_> = self.oob_bytes().all().collect();
        to.count(areas.len());
        for (unit, bytes) in areas {
            to.word(unit.0);
            to.bytes(bytes);
        }
        // Suspensions are counted anew: a report has those of its run.
        let OpCounts { reads, programs, copybacks, erases, .. } = self.counts;
        [reads, programs, copybacks, erases].iter().for_each(|count| to.long(*count));
    }

    fn read_cells(&mut self, geometry: &Geometry, from: &mut Reader<'_>) -> Result<(), Malformed> {
        for block in 0..geometry.blocks() {
            let (programmed, erases) = (from.word()?, from.word()?);
            if programmed > geometry.pages_per_block() {
                return Err(from.malformed(format!("{programmed} pages of block {block} are programmed")));
            }
            self.set_block(BlockId(block), programmed, erases);
        }
        for _ in 0..from.count(4)? {
            let page = PageId(from.word()?);
            self.set_unreadable(check(from, page, page.0 / geometry.pages_per_block() < geometry.blocks())?);
        }
        for _ in 0..from.count(12)? {
            let unit = UnitId(from.word()?);
            let unit = check(from, unit, unit.0 < geometry.units())?;
            self.metadata_mut().put(unit, from.bytes()?.into());
        }
        for _ in 0..from.count(12)? {
            let unit = UnitId(from.word()?);
            let unit = check(from, unit, unit.0 < geometry.units())?;
            let bytes = OobBytes::try_from(from.bytes()?).map_err(|_| from.malformed("another number of bytes"))?;
            self.oob_bytes_mut().put(unit, bytes);
        }
        let (reads, programs, copybacks, erases) = (from.long()?, from.long()?, from.long()?, from.long()?);
        self.counts = OpCounts { reads, programs, copybacks, erases, ..OpCounts::default() };
        Ok(())
    }

    /// Writes the host's data. Units leave the store one by one, so that data is not in memory twice.
    fn write_data(&mut self, geometry: &Geometry) -> Vec<u8> {
        let mut to = Writer::default();
        if self.keeps_data() {
            for block in (0..geometry.blocks()).map(BlockId) {
                for number in 0..geometry.units_per_block() {
                    let unit = UnitId(block.0 * geometry.units_per_block() + number);
                    if let Some(data) = self.stored(unit) {
                        to.word(unit.0);
                        to.bytes(&data);
                    }
                }
                self.drop_stored(block);
            }
        }
        to.finish()
    }

    fn read_data(&mut self, geometry: &Geometry, data: &[u8]) -> Result<(), Malformed> {
        let mut from = Reader::new(data);
        while !from.is_at_end() {
            let unit = UnitId(from.word()?);
            let unit = check(&from, unit, unit.0 < geometry.units())?;
            let bytes = from.bytes()?;
            if self.keeps_data() {
                self.store_data(unit, bytes.into());
            }
        }
        Ok(())
    }
}

fn check<T: std::fmt::Debug>(from: &Reader<'_>, address: T, is_there: bool) -> Result<T, Malformed> {
    if is_there { Ok(address) } else { Err(from.malformed(format!("{address:?}, which the flash does not have"))) }
}
