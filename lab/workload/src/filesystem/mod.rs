//! A small file system: it turns file operations into requests to a drive.
//!
//! | file | what |
//! |---|---|
//! | `layout` | the layout of the drive |
//! | `space` | free blocks and their allocation |
//! | `journal` | changed metadata, and its way to the drive |
//!
//! - Blocks of 4 KiB. A file is a list of extents; blocks are allocated when they are written.
//! - Metadata is held in memory once the system runs: names, inodes and bitmaps are not read from the drive. Changes of
//!   it (a file made, removed or grown: its inode, its directory's block, the bitmap's blocks) are whole blocks, and go
//!   through the journal.
//! - Data is written immediately and synchronously, as with direct I/O. A write to part of a block reads the block
//!   first. A read or write call issues requests for all its extents at once. Appends to one file are serialised.
//! - fsync commits the journal; that includes a Flush where the drive has a volatile cache.
//! - With an LRU cache, reads of cached pages take 1 us a call; the cache is write-through.
//!
//! Left out: delayed allocation, write-back, read-ahead beyond a call, block groups, links, permissions, growth of
//! directories (they are laid out with room for all their names), and recovery.

mod journal;
mod layout;
mod space;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_sim::Span;
use nandscape_sim::signal::Signal;

use self::journal::Journal;
pub(crate) use self::layout::{BLOCK, Layout, PER_DIRECTORY_BLOCK};
use self::space::{Extent, Space};
use crate::cache::PageCache;
use crate::client::{Client, Over};
use crate::record::Direction;
use crate::request::Request;

/// Options of a file system.
#[derive(Copy, Clone, Debug)]
pub struct Options {
    /// Bytes of the cache.
    pub cache: u64,
    /// Whether it has a journal.
    pub journal: bool,
    /// Maximum age of changed metadata before its commit.
    pub commit_interval: Span,
}

/// A file, by the number of its inode.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileId(pub(crate) u32);

#[derive(Clone, Default, Debug)]
struct File {
    /// The block of its directory that holds its name.
    name_block: u64,
    bytes: u64,
    extents: Vec<Extent>,
}

impl File {
    /// The blocks that hold bytes `from` to `to` of the file.
    fn blocks(&self, from: u64, to: u64) -> Vec<Extent> {
        let (mut skip, mut left) = (from / BLOCK, to.div_ceil(BLOCK) - from / BLOCK);
        let mut found = Vec::new();
        for extent in &self.extents {
            let begin = skip.min(extent.blocks);
            skip -= begin;
            let blocks = (extent.blocks - begin).min(left);
            if blocks > 0 {
                found.push(Extent { start: extent.start + begin, blocks });
                left -= blocks;
            }
        }
        assert_eq!(left, 0, "a file has the blocks of its bytes");
        found
    }

    /// Blocks it has.
    fn allocated(&self) -> u64 {
        self.extents.iter().map(|extent| extent.blocks).sum()
    }

    /// Adds blocks at its end.
    fn add(&mut self, extents: Vec<Extent>) {
        for extent in extents {
            match self.extents.last_mut() {
                Some(last) if last.end() == extent.start => last.blocks += extent.blocks,
                _ => self.extents.push(extent),
            }
        }
    }
}

/// A file system on a drive.
pub struct FileSystem {
    client: Rc<Client>,
    layout: Layout,
    space: RefCell<Space>,
    files: RefCell<Vec<File>>,
    journal: Journal,
    cache: RefCell<PageCache>,
    /// Files with an append in progress.
    growing: RefCell<BTreeSet<FileId>>,
    grown: Signal,
    options: Options,
}

impl FileSystem {
    /// An empty file system for this number of files; `None` if the drive is too small for its tables.
    pub fn new(client: &Rc<Client>, inodes: u64, options: Options) -> Option<Rc<FileSystem>> {
        let layout = Layout::new(client.info().bytes(), inodes)?;
        let ring = if options.journal { layout.journal.clone() } else { 0..0 };
        Some(Rc::new(FileSystem {
            client: client.clone(),
            space: RefCell::new(Space::new(layout.data.start, layout.data.end - layout.data.start)),
            files: RefCell::default(),
            journal: Journal::new(client, ring),
            cache: RefCell::new(PageCache::new(options.cache / BLOCK)),
            growing: RefCell::default(),
            grown: Signal::new(client.sim()),
            layout,
            options,
        }))
    }

    /// Bytes for directories and files in all.
    pub fn room_bytes(&self) -> u64 {
        (self.layout.data.end - self.layout.data.start) * BLOCK
    }

    /// Free bytes.
    pub fn free_bytes(&self) -> u64 {
        self.space.borrow().free_blocks() * BLOCK
    }

    /// Makes a directory for this number of names, without writing it. Returns the first of its blocks.
    pub fn lay_out_directory(&self, names: u64) -> Option<u64> {
        let blocks = names.div_ceil(PER_DIRECTORY_BLOCK).max(1);
        let taken = self.space.borrow_mut().take(blocks, None)?;
        taken.first().map(|extent| extent.start)
    }

    /// Adds an empty file whose name is in block `name_block`.
    pub fn add_file(&self, name_block: u64) -> FileId {
        let mut files = self.files.borrow_mut();
        files.push(File { name_block, ..File::default() });
        FileId(files.len() as u32 - 1)
    }

    /// Gives a file this number of bytes without writing them; `None` if there is no room.
    pub fn lay_out(&self, file: FileId, bytes: u64) -> Option<()> {
        self.grow(file, bytes)
    }

    /// Bytes of a file.
    pub fn bytes(&self, file: FileId) -> u64 {
        self.files.borrow()[file.0 as usize].bytes
    }

    /// The extents of a file.
    fn extents(&self, file: FileId) -> Vec<Extent> {
        self.files.borrow()[file.0 as usize].extents.clone()
    }

    fn grow(&self, file: FileId, bytes: u64) -> Option<()> {
        let mut files = self.files.borrow_mut();
        let file = &mut files[file.0 as usize];
        let missing = (file.bytes + bytes).div_ceil(BLOCK) - file.allocated();
        let near = file.extents.last().map(|extent| extent.end());
        let taken = self.space.borrow_mut().take(missing, near)?;
        for extent in &taken {
            self.journal.touch(self.layout.bitmap_of(extent.start..extent.end()));
        }
        file.add(taken);
        file.bytes += bytes;
        Some(())
    }

    /// Writes all laid-out files, in large requests, outside the budget of the workload.
    pub async fn fill(&self) {
        let (first, end) = (0, self.layout.inodes.end);
        let mut extents = vec![Extent { start: first, blocks: end }];
        let files: Vec<FileId> = (0..self.files.borrow().len() as u32).map(FileId).collect();
        for file in files {
            let name_block = self.files.borrow()[file.0 as usize].name_block;
            extents.push(Extent { start: name_block, blocks: 1 });
            extents.extend(self.extents(file));
        }
        for extent in extents {
            self.client.prepare(request(Direction::Write, extent)).await;
        }
    }

    /// Marks all laid-out files as being on the drive.
    pub fn forget_changes(&self) {
        self.journal.forget();
    }

    /// Makes a file that is empty.
    pub async fn create(&self, file: FileId) -> Result<(), Over> {
        self.touch_names(file);
        self.commit_if_large().await
    }

    /// Deletes a file and frees its blocks.
    pub async fn remove(&self, file: FileId) -> Result<(), Over> {
        self.truncate(file);
        self.touch_names(file);
        self.commit_if_large().await
    }

    /// Takes a file's blocks away.
    pub fn truncate(&self, file: FileId) {
        let extents = {
            let mut files = self.files.borrow_mut();
            let file = &mut files[file.0 as usize];
            file.bytes = 0;
            std::mem::take(&mut file.extents)
        };
        self.touch_inode(file);
        for extent in extents {
            self.journal.touch(self.layout.bitmap_of(extent.start..extent.end()));
            let mut cache = self.cache.borrow_mut();
            (extent.start..extent.end()).for_each(|block| cache.forget(block));
            self.space.borrow_mut().give(extent);
        }
    }

    /// Reads bytes of a file, up to its end.
    pub async fn read(&self, file: FileId, from: u64, bytes: u64) -> Result<(), Over> {
        let extents = {
            let file = &self.files.borrow()[file.0 as usize];
            let to = (from + bytes).min(file.bytes);
            if from >= to { Vec::new() } else { file.blocks(from, to) }
        };
        self.fetch(&extents).await
    }

    /// Writes bytes at the end of a file. Ends the run where there is no room.
    pub async fn append(&self, file: FileId, bytes: u64) -> Result<(), Over> {
        self.append_below(file, bytes, u64::MAX).await
    }

    /// Writes bytes at the end of a file; a file that would exceed `most` restarts at its beginning.
    pub async fn append_below(&self, file: FileId, bytes: u64, most: u64) -> Result<(), Over> {
        while !self.growing.borrow_mut().insert(file) {
            self.grown.changed().await;
        }
        if self.bytes(file) + bytes > most {
            self.truncate(file);
        }
        let appended = self.append_alone(file, bytes).await;
        self.growing.borrow_mut().remove(&file);
        self.grown.notify();
        appended?;
        self.commit_if_large().await
    }

    async fn append_alone(&self, file: FileId, bytes: u64) -> Result<(), Over> {
        let from = self.bytes(file);
        if self.grow(file, bytes).is_none() {
            let free = self.free_bytes();
            return Err(self.client.give_up(format!(
                "the file system is full: a file was to grow by {bytes} bytes, and {free} are free; fewer or smaller \
                 files, or a larger drive, are needed"
            )));
        }
        self.touch_inode(file);
        self.put(&[(file, from, bytes)], from).await
    }

    /// Overwrites bytes of files, at several places (file, from, bytes) at the same time.
    pub async fn overwrite_all(&self, places: &[(FileId, u64, u64)]) -> Result<(), Over> {
        let within: Vec<(FileId, u64, u64)> = places
            .iter()
            .map(|(file, from, bytes)| (*file, *from, (*bytes).min(self.bytes(*file).saturating_sub(*from))))
            .filter(|(_, _, bytes)| *bytes > 0)
            .collect();
        self.put(&within, u64::MAX).await
    }

    /// Makes a file's data and all changes of metadata durable.
    pub async fn fsync(&self) -> Result<(), Over> {
        self.journal.commit().await
    }

    /// Makes written data durable, without metadata, like a write with O_DSYNC inside a file.
    pub async fn sync_data(&self) -> Result<(), Over> {
        self.journal.barrier().await
    }

    /// Commits changes periodically until the run ends.
    pub async fn commit_now_and_then(self: Rc<FileSystem>) {
        loop {
            self.client.sim().sleep(self.options.commit_interval).await;
            if self.journal.has_changes() && self.journal.commit().await == Err(Over) {
                return;
            }
        }
    }

    /// Writes allocated bytes of files, at several places (file, from, bytes). Up to `held`, the files already had
    /// data.
    async fn put(&self, places: &[(FileId, u64, u64)], held: u64) -> Result<(), Over> {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (file, from, bytes) in places {
            let file = &self.files.borrow()[file.0 as usize];
            let to = from + bytes;
            // Partly overwritten blocks: the first, if the write starts inside it, and the last, if data continues
            // after the write.
            let (first, last) = (from / BLOCK, to / BLOCK);
            if !from.is_multiple_of(BLOCK) {
                old.extend(file.blocks(first * BLOCK, (first + 1) * BLOCK));
            }
            let goes_on = !to.is_multiple_of(BLOCK) && to < held.min(file.bytes);
            if goes_on && (last != first || from.is_multiple_of(BLOCK)) {
                old.extend(file.blocks(last * BLOCK, (last + 1) * BLOCK));
            }
            new.extend(file.blocks(*from, to));
        }
        if !old.is_empty() {
            self.fetch(&old).await?;
        }
        // Readers find the new data in the cache during the write.
        self.hold(&new);
        self.client.issue(new.iter().map(|extent| request(Direction::Write, *extent)))?.await;
        Ok(())
    }

    /// Reads blocks that are not in the cache.
    async fn fetch(&self, extents: &[Extent]) -> Result<(), Over> {
        let missing = self.missing(extents);
        if missing.is_empty() {
            self.client.served_from_memory().await;
            return Ok(());
        }
        self.client.issue(missing.iter().map(|extent| request(Direction::Read, *extent)))?.await;
        self.hold(&missing);
        Ok(())
    }

    fn missing(&self, extents: &[Extent]) -> Vec<Extent> {
        if self.options.cache < BLOCK {
            return extents.to_vec();
        }
        let (mut cache, mut missing) = (self.cache.borrow_mut(), Vec::<Extent>::new());
        for block in extents.iter().flat_map(|extent| extent.start..extent.end()) {
            if cache.hit(block) {
                continue;
            }
            match missing.last_mut() {
                Some(last) if last.end() == block => last.blocks += 1,
                _ => missing.push(Extent { start: block, blocks: 1 }),
            }
        }
        missing
    }

    fn hold(&self, extents: &[Extent]) {
        if self.options.cache < BLOCK {
            return;
        }
        let mut cache = self.cache.borrow_mut();
        extents.iter().flat_map(|extent| extent.start..extent.end()).for_each(|block| cache.insert(block));
    }

    fn touch_inode(&self, file: FileId) {
        self.journal.touch([self.layout.inode(file.0.into())]);
    }

    fn touch_names(&self, file: FileId) {
        self.touch_inode(file);
        self.journal.touch([self.files.borrow()[file.0 as usize].name_block]);
    }

    async fn commit_if_large(&self) -> Result<(), Over> {
        match self.journal.is_large() {
            true => self.journal.commit().await,
            false => Ok(()),
        }
    }
}

fn request(direction: Direction, extent: Extent) -> Request {
    Request { direction, offset: extent.start * BLOCK, bytes: extent.blocks * BLOCK }
}

#[cfg(test)]
mod tests;
