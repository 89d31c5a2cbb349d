//! Runs on any drive: extents of its blocks, allocated in chunks, the lowest free ones first, as in file systems. A
//! manifest lists the runs; it is written as a whole to one of two places in turn. The blocks of dropped runs are
//! deallocated.
//!
//! | file | what |
//! |---|---|
//! | `manifest` | the manifest as bytes |
//!
//! Left out: placement by level, which a conventional drive does not support.

mod manifest;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_store::{Disk, Host, Range, StoreError};
use nandscape_drive::{Drive, DriveInfo};
use nandscape_sim::signal::Signal;

use crate::error::OpenError;
use crate::storage::{BLOCK, Edit, RunInfo, Storage, StorageStats};
use manifest::{Entry, Manifest};

/// How runs are laid out.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BlockConfig {
    /// Bytes of a chunk, a multiple of a block.
    pub chunk: u64,
    /// The most bytes of a run.
    pub run: u64,
    /// Bytes of the drive that are used; `None` is all.
    pub space: Option<u64>,
    /// Whether blocks of dropped runs are deallocated.
    pub trim: bool,
    /// The identifier of the store.
    pub id: u64,
}

impl Default for BlockConfig {
    /// Chunks of 256 KiB, of which a run wastes a part of one; runs of at most 64 MiB, on the whole drive, with deallocation.
    fn default() -> BlockConfig {
        BlockConfig { chunk: 256 << 10, run: 64 << 20, space: None, trim: true, id: 1 }
    }
}

/// See the file.
pub struct BlockStorage {
    disk: Disk,
    config: BlockConfig,
    /// Chunks, and blocks of each of the two places of the manifest.
    chunks: u32,
    slot: u32,
    found: Vec<RunInfo>,
    state: RefCell<State>,
    /// A manifest is being written.
    is_busy: Cell<bool>,
    changed: Signal,
    commits: Cell<u64>,
    manifest_bytes: Cell<u64>,
}

struct State {
    manifest: Manifest,
    /// Runs that were created and are in no manifest.
    new: BTreeMap<u32, Entry>,
    /// Chunks that are free.
    free: std::collections::BTreeSet<u32>,
}

impl BlockStorage {
    /// Opens the runs on a drive; an empty drive has none.
    ///
    /// # Errors
    /// When sizes do not fit, the drive fails, or it holds other data.
    pub async fn open(host: &Host, drive: Rc<dyn Drive>, config: BlockConfig) -> Result<BlockStorage, OpenError> {
        let disk = Disk::new(host, drive);
        if !disk.info.keeps_data {
            return Err(OpenError::NoData);
        }
        let (chunks, slot) = sizes(&disk, &config)?;
        let storage = BlockStorage {
            changed: Signal::new(host.sim()),
            disk,
            config,
            chunks,
            slot,
            found: Vec::new(),
            state: RefCell::new(State {
                manifest: Manifest::new(config.id),
                new: BTreeMap::new(),
                free: (0..chunks).collect(),
            }),
            is_busy: Cell::new(false),
            commits: Cell::new(0),
            manifest_bytes: Cell::new(0),
        };
        storage.recover().await
    }

    /// Whether a drive has runs, or began to have some.
    ///
    /// # Errors
    /// When sizes do not fit, or the drive fails.
    pub async fn is_there(host: &Host, drive: Rc<dyn Drive>, config: &BlockConfig) -> Result<bool, OpenError> {
        let disk = Disk::new(host, drive);
        let slot = sizes(&disk, config)?.1;
        let bytes = disk.read(&[0, slot].map(|first| range(&disk.info, first, slot))).await?;
        Ok(bytes.iter().any(|bytes| Manifest::is_torn(bytes)))
    }

    /// Discards the content of a drive, so that it can have runs.
    ///
    /// # Errors
    /// When sizes do not fit, or the drive fails.
    pub async fn clear(host: &Host, drive: Rc<dyn Drive>, config: &BlockConfig) -> Result<(), OpenError> {
        let disk = Disk::new(host, drive);
        let slot = sizes(&disk, config)?.1;
        Ok(disk.clear(2 * u64::from(slot) * BLOCK as u64).await?)
    }

    async fn recover(mut self) -> Result<BlockStorage, OpenError> {
        let places = [0, self.slot].map(|first| self.range(first, self.slot));
        let bytes = self.disk.read(&places).await?;
        let valid = bytes.iter().filter_map(|bytes| Manifest::read(bytes));
        let Some(manifest) = valid.max_by_key(|manifest| manifest.sequence) else {
            let is_torn = |bytes: &Vec<u8>| Manifest::is_torn(bytes);
            return match bytes.iter().all(|bytes| bytes.iter().all(|byte| *byte == 0) || is_torn(bytes)) {
                true => Ok(self),
                false => Err(OpenError::Foreign("the first blocks hold something else".into())),
            };
        };
        if manifest.id != self.config.id {
            return Err(OpenError::Foreign(format!("the store is {}, not {}", manifest.id, self.config.id)));
        }
        let state = self.state.get_mut();
        for entry in manifest.runs.values() {
            for chunk in &entry.chunks {
                if !state.free.remove(chunk) {
                    let problem =
                        format!("chunk {chunk} is not on the drive, or in two runs: was it made with other sizes?");
                    return Err(OpenError::Foreign(problem));
                }
            }
        }
        self.found = manifest.runs.iter().map(|(id, entry)| entry.info(*id)).collect();
        state.manifest = manifest;
        Ok(self)
    }

    fn range(&self, first: u32, blocks: u32) -> Range {
        range(&self.disk.info, first, blocks)
    }

    /// Blocks of a chunk.
    fn chunk(&self) -> u32 {
        (self.config.chunk / BLOCK as u64) as u32
    }

    fn chunk_range(&self, chunk: u32) -> Range {
        self.range(2 * self.slot + chunk * self.chunk(), self.chunk())
    }

    /// The ranges of the drive that hold blocks of a run.
    fn ranges(&self, run: u32, mut first: u32, blocks: u32) -> Result<Vec<Range>, StoreError> {
        let (state, chunk, end) = (self.state.borrow(), self.chunk(), first + blocks);
        let entry = state.new.get(&run).or_else(|| state.manifest.runs.get(&run)).ok_or_else(|| gone(run))?;
        let mut ranges: Vec<Range> = Vec::new();
        while first < end {
            let now = (chunk - first % chunk).min(end - first);
            let place = entry.chunks.get((first / chunk) as usize).ok_or_else(|| gone(run))?;
            let range = self.range(2 * self.slot + place * chunk + first % chunk, now);
            match ranges.last_mut() {
                Some(last) if last.slba + last.blocks == range.slba => last.blocks += range.blocks,
                _ => ranges.push(range),
            }
            first += now;
        }
        Ok(ranges)
    }

    /// Applies edits in memory. Returns the chunks that are free once the edits are on the drive too.
    fn edit(&self, edits: &[Edit]) -> Result<Vec<u32>, StoreError> {
        let (mut state, mut freed, chunk) = (self.state.borrow_mut(), Vec::new(), self.chunk());
        let State { manifest, new, .. } = &mut *state;
        for edit in edits {
            match *edit {
                Edit::Publish(run) | Edit::Seal(run) => {
                    let entry = new.remove(&run).or_else(|| manifest.runs.remove(&run));
                    let mut entry = entry.ok_or_else(|| gone(run))?;
                    entry.order = manifest.next_order;
                    manifest.next_order += 1;
                    if matches!(edit, Edit::Seal(_)) {
                        entry.blocks = entry.written;
                        freed.extend(entry.chunks.split_off(entry.written.div_ceil(chunk) as usize));
                    }
                    manifest.runs.insert(run, entry);
                }
                Edit::Relevel(run, level) => {
                    manifest.runs.get_mut(&run).ok_or_else(|| gone(run))?.level = level;
                }
                Edit::Drop(run) => {
                    let entry = manifest.runs.remove(&run).or_else(|| new.remove(&run)).ok_or_else(|| gone(run))?;
                    freed.extend(entry.chunks);
                }
            }
        }
        Ok(freed)
    }

    async fn write_manifest(&self) -> Result<(), StoreError> {
        let (bytes, sequence) = {
            let mut state = self.state.borrow_mut();
            state.manifest.sequence += 1;
            (state.manifest.bytes(), state.manifest.sequence)
        };
        let place = self.range(sequence as u32 % 2 * self.slot, self.slot);
        self.manifest_bytes.set(self.manifest_bytes.get() + bytes.len() as u64);
        self.disk.host.bytes(bytes.len()).await;
        self.disk.write(place.slba, &bytes).await
    }
}

/// Blocks of a store on a drive.
fn range(drive: &DriveInfo, first: u32, blocks: u32) -> Range {
    let lbas = BLOCK as u64 / u64::from(drive.lba_bytes);
    Range { slba: u64::from(first) * lbas, blocks: u64::from(blocks) * lbas }
}

fn gone(run: u32) -> StoreError {
    StoreError::Corrupt(format!("run {run} is not there"))
}

/// Chunks, and blocks of a place of the manifest.
fn sizes(disk: &Disk, config: &BlockConfig) -> Result<(u32, u32), OpenError> {
    let (block, lba) = (BLOCK as u64, u64::from(disk.info.lba_bytes));
    if !block.is_multiple_of(lba) {
        return Err(OpenError::Size(format!("blocks of {lba} bytes do not divide {block}; 512 and 4096 do")));
    }
    if config.chunk == 0 || !config.chunk.is_multiple_of(block) || config.run < config.chunk {
        let problem =
            format!("a chunk of {} bytes; a multiple of {block} up to the bytes of a run is valid", config.chunk);
        return Err(OpenError::Size(problem));
    }
    let space = config.space.unwrap_or(u64::MAX).min(disk.info.bytes()) / block;
    let chunk = config.chunk / block;
    let slot = Manifest::most_bytes(space / chunk).div_ceil(block);
    let chunks = space.saturating_sub(2 * slot) / chunk;
    if chunks < 8 || u32::try_from(space).is_err() {
        let problem = format!("{chunks} chunks of {} bytes fit; 8 are needed, in up to 16 TiB", config.chunk);
        return Err(OpenError::Size(problem));
    }
    Ok((chunks as u32, slot as u32))
}

impl Storage for BlockStorage {
    fn max_blocks(&self) -> u32 {
        ((self.config.run / BLOCK as u64).min(u64::from(self.chunks / 4) * u64::from(self.chunk()))) as u32
    }

    fn grain(&self) -> u32 {
        self.chunk()
    }

    fn capacity(&self) -> u64 {
        u64::from(self.chunks) * u64::from(self.chunk())
    }

    fn found(&self) -> Vec<RunInfo> {
        self.found.clone()
    }

    async fn create(&self, level: u8, blocks: u32) -> Result<u32, StoreError> {
        let needed = blocks.div_ceil(self.chunk()) as usize;
        let mut state = self.state.borrow_mut();
        if state.free.len() < needed {
            return Err(StoreError::Full);
        }
        let chunks: Vec<u32> = state.free.iter().copied().take(needed).collect();
        chunks.iter().for_each(|chunk| _ = state.free.remove(chunk));
        let id = state.manifest.next_id;
        state.manifest.next_id += 1;
        state.new.insert(id, Entry { level, order: 0, blocks, written: 0, chunks });
        Ok(id)
    }

    async fn append(&self, run: u32, at: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.disk.host.bytes(bytes.len()).await;
        let blocks = (bytes.len() / BLOCK) as u32;
        let mut rest = &bytes[..];
        for range in self.ranges(run, at, blocks)? {
            let (now, later) = rest.split_at((range.blocks * u64::from(self.disk.info.lba_bytes)) as usize);
            self.disk.write(range.slba, now).await?;
            rest = later;
        }
        let mut state = self.state.borrow_mut();
        let State { manifest, new, .. } = &mut *state;
        let entry = new.get_mut(&run).or_else(|| manifest.runs.get_mut(&run)).ok_or_else(|| gone(run))?;
        entry.written = at + blocks;
        Ok(())
    }

    async fn read(&self, run: u32, first: u32, blocks: u32) -> Result<Vec<u8>, StoreError> {
        let ranges = self.ranges(run, first, blocks)?;
        let bytes = self.disk.read(&ranges).await?.concat();
        self.disk.host.bytes(bytes.len()).await;
        Ok(bytes)
    }

    async fn commit(&self, edits: &[Edit]) -> Result<(), StoreError> {
        while self.is_busy.replace(true) {
            self.changed.changed().await;
        }
        let made = match self.edit(edits) {
            Ok(freed) => self.write_manifest().await.map(|()| freed),
            Err(error) => Err(error),
        };
        self.is_busy.set(false);
        self.changed.notify();
        let freed = made?;
        self.commits.set(self.commits.get() + 1);
        if self.config.trim && !freed.is_empty() {
            let ranges: Vec<Range> = freed.iter().map(|chunk| self.chunk_range(*chunk)).collect();
            self.disk.deallocate(&ranges).await?;
        }
        self.state.borrow_mut().free.extend(freed);
        Ok(())
    }

    fn stats(&self) -> StorageStats {
        let state = self.state.borrow();
        let runs = state.manifest.runs.values().chain(state.new.values());
        StorageStats {
            commands: self.disk.commands.get(),
            read_bytes: self.disk.read_bytes.get(),
            written_bytes: self.disk.written_bytes.get(),
            manifest_bytes: self.manifest_bytes.get(),
            commits: self.commits.get(),
            memory: runs.map(|entry| (size_of::<Entry>() + entry.chunks.len() * 4 + 16) as u64).sum::<u64>()
                + state.free.len() as u64 * 4,
        }
    }
}
