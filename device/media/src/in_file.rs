//! Flash in a file: opening, closing, and the queries of an FTL at its start.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use nandscape_sim::Sim;

use crate::contents::Contents;
use crate::durable::{DurableMemory, FileCells, JOURNAL_ENTRY, PageRecord, SNAPSHOT_CHUNK, StoreFile, marks};
use crate::fault::MediaError;
use crate::geometry::{BlockId, PageId};
use crate::media::{Media, MediaConfig};

/// A block that has changed since the snapshot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The block.
    pub block: BlockId,
    /// Whether it was erased since.
    pub was_erased: bool,
    /// The first page that was programmed since.
    pub first: u32,
}

impl Media {
    /// Opens flash in a file, in its last state. New flash gets its life before the run, if configured, and the file keeps
    /// it. If its process was killed, power failed at that instant: in each block that was being written, the next page, or
    /// word line, is torn.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is damaged.
    pub fn open(sim: &Sim, config: MediaConfig, file: StoreFile) -> io::Result<Media> {
        let keeps_data = file.spec().keeps_data;
        let (was_in_use, is_new) = (file.before().in_use, file.is_new());
        let (memory, found) = DurableMemory::open(file, &config.geometry, config.aging.is_some())?;
        let cells = FileCells::new(memory.disk(), &config.geometry, keeps_data, memory.epoch(), &found);
        let contents = Contents::in_file(&config.geometry, cells)?;
        let mut media = Media::with_contents(sim, config, contents, Some(Rc::new(memory)));
        media.go_on_with_life(is_new)?;
        let memory = media.durable.as_ref().expect("it was just given");
        memory.begin_use().map_err(|_| not_written(memory))?;
        media.mend().map_err(|_| not_written(memory))?;
        if was_in_use {
            media.tear_what_was_under_way();
        }
        match memory.failure() {
            None => Ok(media),
            Some(_) => Err(not_written(memory)),
        }
    }

    /// The life in the file, or the life of a new drive. The file gets a new drive's life before the drive is used: a
    /// kill before that leaves a new drive.
    fn go_on_with_life(&mut self, is_new: bool) -> io::Result<()> {
        let blocks = (0..self.geometry.blocks()).map(BlockId);
        let grown = blocks.map(|block| self.is_marked(block, marks::GROWN_BAD)).collect();
        self.set_grown_bad(grown);
        let Some(memory) = self.durable.clone() else { return Ok(()) };
        let Some(ages) = memory.ages().filter(|_| self.aging.is_some()) else { return Ok(()) };
        let kept = ages.read()?;
        let begins = is_new && kept.is_none();
        if begins {
            self.live();
        }
        let (contents, now) = (self.contents.borrow(), self.sim.now());
        let block = |block| (contents.erases(block), contents.programmed(block));
        let cells = self.aging.as_mut().expect("it ages");
        cells.go_on(kept.as_ref(), now, ages.chunks(), block);
        drop(contents);
        if begins { self.keep_ages().map_err(|_| not_written(&memory)) } else { Ok(()) }
    }

    /// Makes copies equal: a kill may have left only one.
    fn mend(&self) -> Result<(), MediaError> {
        let (contents, Some(memory)) = (self.contents.borrow(), &self.durable) else { return Ok(()) };
        memory.mend()?;
        let before = memory.before();
        match contents.file().filter(|_| before.in_use) {
            Some(file) => file.mend(memory.snapshot_epoch()),
            None => Ok(()),
        }
    }

    fn tear_what_was_under_way(&self) {
        let (word_line, pages) = (self.timing.pages_per_program(), self.geometry.pages_per_block());
        for Changed { block, .. } in self.changed_blocks() {
            let programmed = self.pages_programmed(block);
            if (1..pages).contains(&programmed) {
                let used = ((programmed / word_line + 1) * word_line).min(pages);
                self.contents.borrow_mut().tear_rest(&self.geometry, block, used);
            }
        }
    }

    /// The durable memory, if the flash is in a file.
    #[inline]
    pub fn durable(&self) -> Option<&Rc<DurableMemory>> {
        self.durable.as_ref()
    }

    /// The blocks that have changed since the snapshot.
    pub fn changed_blocks(&self) -> Vec<Changed> {
        let (contents, Some(memory)) = (self.contents.borrow(), &self.durable) else { return Vec::new() };
        let changed = contents.file().into_iter().flat_map(|file| file.changed_after(memory.snapshot_epoch()));
        let changed = changed.filter(|block| !self.holds_identifier(*block)).map(|block| {
            let (erases, programmed) = memory.at_snapshot(block);
            let was_erased = erases != contents.erases(block);
            Changed { block, was_erased, first: if was_erased { 0 } else { programmed } }
        });
        changed.collect()
    }

    /// The record of a programmed page, without a read; `None` when it has none, or the flash is not in a file.
    pub fn page_record(&self, page: PageId) -> Option<Rc<PageRecord>> {
        self.contents.borrow().file()?.record(page)
    }

    /// The existing records of a block's pages in a range, without a read.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn page_records(
        &self,
        block: BlockId,
        pages: Range<u32>,
        each: impl FnMut(PageId, &PageRecord),
    ) -> io::Result<()> {
        let contents = self.contents.borrow();
        contents.file().map_or(Ok(()), |file| file.records(block, pages, each))
    }

    /// Whether the file or the remote drive that holds the flash can no longer be written.
    #[inline]
    pub fn store_has_failed(&self) -> bool {
        self.durable.as_ref().is_some_and(|memory| memory.has_failed()) || self.is_out_of_reach()
    }

    /// How often a block was erased, without a read.
    pub fn erases(&self, block: BlockId) -> u32 {
        self.contents.borrow().erases(block)
    }

    /// Whether data of programmed units was unreadable in the file since the last call.
    #[inline]
    pub fn take_read_failure(&self) -> bool {
        self.durable.is_some() && self.contents.borrow().file().is_some_and(FileCells::take_failure)
            || self.take_failure_elsewhere()
    }

    /// Checks that the data of a page is intact; without a file, it always is.
    ///
    /// # Errors
    /// [`MediaError::Uncorrectable`].
    pub fn check_sound(&self, page: PageId) -> Result<(), MediaError> {
        match self.contents.borrow().file() {
            Some(file) if !file.is_sound(page) => Err(MediaError::Uncorrectable),
            _ => Ok(()),
        }
    }

    /// Whether the data of a page was whole once, and is damaged now. Unknown without a file.
    pub fn is_damaged(&self, page: PageId) -> bool {
        self.contents.borrow().file().is_some_and(|file| file.is_damaged(page))
    }

    /// An FTL marks a block as permanently bad.
    pub fn mark_bad(&self, block: BlockId) {
        self.mark(block, marks::BAD);
    }

    /// An FTL permanently marks a block as one to be emptied.
    pub fn mark_retiring(&self, block: BlockId) {
        self.mark(block, marks::RETIRING);
    }

    fn mark(&self, block: BlockId, mark: u32) {
        if let Some(file) = self.contents.borrow_mut().file_mut() {
            // A file that cannot be written any more reports this when asked.
            let _ = file.mark(block, mark);
        }
    }

    /// Whether an FTL has marked a block as bad.
    pub fn is_marked_bad(&self, block: BlockId) -> bool {
        self.is_marked(block, marks::BAD)
    }

    /// Whether an FTL has marked a block as one to be emptied.
    pub fn is_marked_retiring(&self, block: BlockId) -> bool {
        self.is_marked(block, marks::RETIRING)
    }

    fn is_marked(&self, block: BlockId, mark: u32) -> bool {
        self.contents.borrow().file().is_some_and(|file| file.is_marked(block, mark))
    }

    /// Makes everything acknowledged so far safe from a loss of the host's power, if the file promises that.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    #[inline]
    pub fn sync(&self) -> Result<(), MediaError> {
        self.durable.as_ref().map_or(Ok(()), |memory| memory.sync())
    }

    /// Begins a snapshot: the programmed pages of blocks, and an FTL's tables, whose chunks go to the durable memory. The
    /// journal continues with the entries that are `carried` over.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn begin_snapshot(&self, carried: &[[u8; JOURNAL_ENTRY]]) -> Result<(), MediaError> {
        let Some(memory) = &self.durable else { return Ok(()) };
        let blocks = {
            let contents = self.contents.borrow();
            let file = contents.file().expect("durable memory is in the file of the flash");
            (file.erases(), file.recorded().to_vec())
        };
        memory.begin_snapshot(blocks, carried)
    }

    /// Writes a whole snapshot. `fill` fills each chunk, whose bytes are initially zero.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn save_snapshot(
        &self,
        carried: &[[u8; JOURNAL_ENTRY]],
        fill: &mut dyn FnMut(u64, &mut [u8]),
    ) -> Result<(), MediaError> {
        let Some(memory) = &self.durable else { return Ok(()) };
        self.begin_snapshot(carried)?;
        let mut chunk = vec![0; SNAPSHOT_CHUNK as usize];
        for at in (0..memory.snapshot_bytes()).step_by(SNAPSHOT_CHUNK as usize) {
            chunk.fill(0);
            fill(at, &mut chunk);
            memory.put_chunk(at, &chunk)?;
        }
        memory.end_snapshot()
    }

    /// Reads everything that is stored twice or with a checksum and was not needed to start. Returns all damage found
    /// so far, a sentence each.
    pub fn check_file(&self) -> Vec<String> {
        let Some(memory) = &self.durable else { return Vec::new() };
        memory.check_snapshot();
        let contents = self.contents.borrow();
        let blocks = (0..self.geometry.blocks()).map(BlockId);
        contents.file().into_iter().for_each(|file| blocks.clone().for_each(|block| file.check_records(block)));
        memory.damage()
    }

    /// Turns the drive off: the next opening of the file needs no scan.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn close(&self) -> Result<(), MediaError> {
        self.keep_ages()?;
        self.durable.as_ref().map_or(Ok(()), |memory| memory.end_use())
    }
}

fn not_written(memory: &DurableMemory) -> io::Error {
    io::Error::other(memory.failure().unwrap_or_default())
}
