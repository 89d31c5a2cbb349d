//! The start of a drive: formatting, or recovery from the last checkpoint and the log (OX 6.1.7.2).
//!
//! The tables are those of the checkpoint, to which the log's records are applied in order. All of them are absolute, so it
//! does not matter that a table may have been written later than the head of the log. Then blocks are put where they belong:
//!
//! | block | what is done |
//! |---|---|
//! | open | its pages are read from the last one the log knows, to find the first that is erased |
//! | free | its first page is read: one that is not erased is erased |
//! | full, without current data, or of the log | erased after the checkpoint that ends recovery |
//!
//! A power cut meanwhile changes nothing: what recovery writes is found by nobody before that checkpoint.

use std::collections::BTreeMap;

use nandscape_device_media::{BlockId, MediaError, Misuse, PageId, PlaneId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Span, Time};

use super::checkpoint::Restored;
use super::chores::Chore;
use super::core::{Core, Latch, Phase, Stopped};
use super::durable;
use super::lines::Layout;
use super::mistakes::{self, Mistake};
use super::pages::{self, Kind};
use super::release::Formatted;
use super::state::{self, State};
use super::streams::{COLD, HOT, LOG, META};
use crate::Recoveries;
use crate::address::Lpn;
use crate::component::{
    BadBlocks, BlockMetadata, BlockState, CachedMapping, ChainedLog, LineProvisioning, Log, LogHead, LogStart, Mapping,
    StoredBlocks, Stream,
};
use crate::parts::{FIXED, FixedRecord, LogPage, Moved, Record, Remap};

/// What recovery has replayed.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Recovered {
    /// From the start until the drive was in service; zero where it was formatted.
    pub time: Span,
    /// Pages of the log.
    pub pages: u64,
    /// Records.
    pub records: u64,
    /// Transactions that were complete.
    pub committed: u64,
    /// Transactions that were not.
    pub aborted: u64,
}

/// A replay under way.
struct Replay {
    /// The checkpoint that it begins at.
    restored: Restored,
    /// Records of transactions whose end was not met yet.
    open: BTreeMap<u64, Vec<Remap>>,
    /// The timestamp of the last record; before the first, of the one before the head of the log.
    last: u64,
    done: Recovered,
}

impl Core {
    /// INIT: brings the drive into service, or finds that its tables cannot be read.
    ///
    /// # Errors
    /// When power was cut meanwhile.
    pub(super) async fn start(&self) -> Result<(), Stopped> {
        let is_up = self.bring_up().await;
        if !self.is_alive() {
            return Err(Stopped);
        }
        self.flags.last_checkpoint.set(self.sim.now());
        match is_up {
            Ok(true) if self.shared.read_only.get() => self.phase.set(Phase::ReadOnly),
            Ok(true) => {
                self.phase.set(Phase::Running);
                // Not before: what recovery itself has appended is in the chain, or counts for nothing.
                if self.config.keeps_log {
                    self.state.borrow_mut().log.keep(durable::note_of(&self.media));
                }
                self.check_read_only();
                self.write_changed_bad_tables();
            }
            Ok(false) | Err(Stopped) => {
                self.phase.set(Phase::Failed);
                self.shared.read_only.set(true);
                self.shared.free_slots.give_up();
            }
        }
        Ok(())
    }

    /// The start of a drive that was made just now.
    pub(super) async fn first_start(&self) -> Result<(), Stopped> {
        let started = self.start().await;
        if started.is_ok() {
            self.take_back_cache(self.kept_cache.take());
        }
        self.shared.ready.notify();
        if started.is_ok() {
            self.pump();
        }
        started
    }

    async fn bring_up(&self) -> Result<bool, Stopped> {
        let begun = self.sim.now();
        let mut bad = state::factory_bad(&self.media, &self.config);
        let mut is_formatted = false;
        for channel in 0..self.media.geometry().channels() {
            let formatted = self.read_bad_table(channel, &mut *bad).await?;
            is_formatted |= formatted == Some(Formatted::Ended);
        }
        if let (Layout::Lines(layout), true) = (self.config.layout, is_formatted) {
            let is_up = self.recover_lines(bad, layout).await;
            self.count_recovery(begun);
            return is_up;
        }
        let place = self.state.borrow().places.checkpoint();
        match self.read_fixed(place).await? {
            _ if !is_formatted => self.format(bad).await,
            Some(checkpoint) => {
                let is_up = self.recover(bad, &checkpoint).await;
                self.count_recovery(begun);
                is_up
            }
            None => Ok(false),
        }
    }

    /// Notes a recovery that began at a time and has ended now.
    fn count_recovery(&self, begun: Time) {
        if !self.is_alive() {
            return;
        }
        let Recovered { pages, records, committed, aborted, .. } = self.recovered.get();
        let time = self.sim.now() - begun;
        self.recovered.set(Recovered { time, ..self.recovered.get() });
        let total = &mut self.state.borrow_mut().counters.upkeep.recovered;
        *total = Recoveries {
            count: total.count + 1,
            time: total.time + time,
            pages: total.pages + pages,
            records: total.records + records,
            committed: total.committed + committed,
            aborted: total.aborted + aborted,
        };
    }

    /// Notes what a recovery without a log has read.
    pub(super) fn count_scan(&self, pages: u64, records: u64) {
        self.recovered.set(Recovered { pages, records, ..Recovered::default() });
    }

    /// New tables, for the blocks that `bad` leaves.
    pub(super) fn begin_state(&self, bad: Box<dyn BadBlocks>, epoch: u64) {
        let mut state = self.state.borrow_mut();
        let mut new = State::new(&self.media, &self.config, bad, epoch);
        std::mem::swap(&mut new.places, &mut state.places);
        new.counters = state.counters;
        *state = new;
    }

    /// CREATE: the tables of an empty drive. What an interrupted formatting has left is erased; that costs no time on flash
    /// as the maker delivers it.
    async fn format(&self, bad: Box<dyn BadBlocks>) -> Result<bool, Stopped> {
        self.begin_state(bad, 1);
        for block in (0..self.media.geometry().blocks()).map(BlockId) {
            let is_free = self.state.borrow().chunks.get(block).state == BlockState::Free;
            if is_free && self.media.pages_programmed(block) > 0 {
                let who = self.config.priority.who(cause::METADATA);
                let erased = self.media.erase(block, who, &mut Breakdown::new()).await;
                self.still_running()?;
                if erased.is_err() {
                    return Ok(false);
                }
            }
        }
        for channel in 0..self.media.geometry().channels() {
            self.write_bad_table(channel, Formatted::Begun).await?;
        }
        if self.config.layout == Layout::Log {
            self.checkpoint().await?;
        }
        for channel in 0..self.media.geometry().channels() {
            self.write_bad_table(channel, Formatted::Ended).await?;
        }
        Ok(true)
    }

    /// RECOVER and REPLAY.
    async fn recover(&self, bad: Box<dyn BadBlocks>, checkpoint: &FixedRecord) -> Result<bool, Stopped> {
        self.begin_state(bad, 0);
        let mut entries = (self.config.components.checkpoint.make)();
        let is_whole = entries.recover(&checkpoint.bytes);
        let restored = if is_whole { self.state.borrow_mut().restore(&*entries) } else { None };
        let Some(restored) = restored else { return Ok(false) };
        if !self.load_tables().await? {
            return Ok(false);
        }
        let mut replay = Replay { restored, open: BTreeMap::new(), last: restored.written, done: Recovered::default() };
        let number = self.replay_chain(&mut replay).await?;
        self.replay_kept(&mut replay).await?;
        replay.done.aborted = replay.open.len() as u64;
        self.recovered.set(replay.done);
        self.sort_blocks();
        self.probe().await?;
        let last = replay.last.max(restored.last);
        let found = self.state.borrow_mut().begin_service(&restored, number, last);
        for (page, pages) in found {
            self.state.borrow_mut().log.append(Record::AbortWrite { page, pages });
        }
        self.checkpoint().await?;
        // A file that cannot be written leaves tables that can be read.
        Ok(self.phase.get() == Phase::Starting || self.media.store_has_failed())
    }

    /// Loads what is in memory as a whole: where the fragments of the map are, and the table of blocks.
    async fn load_tables(&self) -> Result<bool, Stopped> {
        let (small, chunks) = {
            let state = self.state.borrow();
            (state.map.tiny().len(), state.chunk_small.len())
        };
        let all = (0..small).map(|index| (Kind::MapSmall, index)).chain((0..chunks).map(|index| (Kind::Chunks, index)));
        for (kind, index) in all {
            let Some(page) = self.state.borrow().fragment(kind, index) else { continue };
            let read = self.read_page(page).await?;
            let contents = read.ok().and_then(|()| pages::contents(&self.media, page));
            let Some((_, _, bytes)) = contents.filter(|found| (found.0, found.1) == (kind, index)) else {
                return Ok(false);
            };
            let mut state = self.state.borrow_mut();
            match kind {
                Kind::MapSmall => state.map.small_mut().load(index, &bytes),
                _ => state.chunks.load(index, &bytes),
            }
        }
        Ok(true)
    }

    /// Applies the records of the chain. Returns the number of the page that would come next.
    async fn replay_chain(&self, replay: &mut Replay) -> Result<u64, Stopped> {
        let mut head = replay.restored.head;
        while let Some((page, found)) = self.next_log_page(&head).await? {
            self.state.borrow_mut().found_log_page(page);
            replay.done.pages += 1;
            for (timestamp, record) in found.records {
                self.replay(timestamp, record, replay).await?;
                replay.last = timestamp.max(replay.last);
            }
            head = LogHead { pages: found.next, number: head.number + 1, epoch: head.epoch };
        }
        Ok(head.number)
    }

    /// The page of a chain that is in one of three places, if it is.
    async fn next_log_page(&self, head: &LogHead) -> Result<Option<(PageId, LogPage)>, Stopped> {
        for page in head.pages.into_iter().flatten() {
            if self.read_page(page).await?.is_err() {
                continue;
            }
            let contents = pages::contents(&self.media, page).filter(|(kind, _, _)| *kind == Kind::Log);
            let found = contents.and_then(|(_, _, bytes)| LogPage::decode(&bytes));
            if let Some(found) = found.filter(|found| (found.number, found.epoch) == (head.number, head.epoch)) {
                return Ok(Some((page, found)));
            }
        }
        Ok(None)
    }

    /// Applies the records that have survived in memory and are not in the chain.
    async fn replay_kept(&self, replay: &mut Replay) -> Result<(), Stopped> {
        let kept = self.kept_records.borrow().clone();
        for (timestamp, record) in kept {
            if timestamp > replay.last {
                self.replay(timestamp, record, replay).await?;
                replay.last = timestamp;
            }
        }
        Ok(())
    }

    async fn replay(&self, timestamp: u64, record: Record, replay: &mut Replay) -> Result<(), Stopped> {
        replay.done.records += 1;
        match record {
            Record::UserWrite(remap) if remap.transaction != 0 && !mistakes::is_made(Mistake::CommitIgnored) => {
                self.state.borrow_mut().reach_unit(&remap, HOT);
                replay.open.entry(remap.transaction).or_default().push(remap);
            }
            Record::UserWrite(remap) => self.remap_again(&remap, HOT).await?,
            Record::GcWrite(remap) => self.remap_again(&remap, COLD).await?,
            Record::Commit { transaction, records } => {
                let whole = replay.open.remove(&transaction).filter(|open| open.len() as u64 == records);
                replay.done.committed += u64::from(whole.is_some());
                for remap in whole.unwrap_or_default() {
                    self.remap_again(&remap, HOT).await?;
                }
            }
            other => self.state.borrow_mut().redo(timestamp, &other, &replay.restored),
        }
        Ok(())
    }

    async fn remap_again(&self, remap: &Remap, stream: Stream) -> Result<(), Stopped> {
        loop {
            let done = self.state.borrow_mut().map.upsert(Lpn(remap.lpn), remap.new);
            match done {
                Ok(_) => break,
                Err(miss) => self.load(miss, &mut Breakdown::new()).await?,
            }
        }
        let mut state = self.state.borrow_mut();
        state.reach_unit(remap, stream);
        state.move_validity(remap.old.unit(), remap.new.unit());
        Ok(())
    }

    /// Decides what becomes of blocks that need not be looked at.
    fn sort_blocks(&self) {
        let mut state = self.state.borrow_mut();
        for block in (0..state.geometry.blocks()).map(BlockId) {
            let (info, stream) = (*state.chunks.get(block), state.chunks.stream(block));
            match info.state {
                // It has gone bad, and power was cut before its channel's table said so.
                BlockState::Bad if !state.bad.is_bad(block) => state.retire(block),
                BlockState::Bad | BlockState::Free | BlockState::Open(FIXED) => {}
                _ if stream == LOG => state.hold_again(block),
                BlockState::Full | BlockState::Collecting if info.valid == 0 => state.hold_again(block),
                BlockState::Collecting => state.chunks.set_state(block, BlockState::Full),
                _ => {}
            }
        }
    }

    /// Looks at open and free blocks, all planes at the same time.
    pub(super) async fn probe(&self) -> Result<(), Stopped> {
        let latch = Latch::new(&self.sim);
        for plane in (0..self.media.geometry().planes()).map(PlaneId) {
            self.chores.start(Chore::Probe { plane, _held: latch.begin() });
        }
        latch.below(1).await;
        self.still_running()
    }

    /// Looks at the open and free blocks of a plane.
    pub(super) async fn probe_plane(&self, plane: PlaneId) -> Result<(), Stopped> {
        if self.config.layout != Layout::Log {
            return self.scan_plane(plane).await;
        }
        for block in self.media.geometry().blocks_of(plane) {
            let info = *self.state.borrow().chunks.get(block);
            match info.state {
                BlockState::Free => self.clean(block).await?,
                BlockState::Open(stream) if stream != FIXED => {
                    let end = match mistakes::is_made(Mistake::OpenNotProbed) {
                        true => info.allocated,
                        false => self.first_erased(block, info.allocated).await?,
                    };
                    // A file that has lost what the log knows of: no page can be programmed behind the hole.
                    let is_whole = self.media.pages_programmed(block) >= end;
                    let end = if is_whole { end } else { self.media.geometry().pages_per_block() };
                    self.state.borrow_mut().reopen(block, end);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Erases a free block, unless it is.
    async fn clean(&self, block: BlockId) -> Result<(), Stopped> {
        if mistakes::is_made(Mistake::FreeNotProbed) || self.first_erased(block, 0).await? == 0 {
            return Ok(());
        }
        let who = self.config.priority.who(cause::METADATA);
        let erased = self.media.erase(block, who, &mut Breakdown::new()).await;
        self.still_running()?;
        let mut state = self.state.borrow_mut();
        match erased {
            Ok(()) => state.chunks.get_mut(block).erases += 1,
            Err(MediaError::Store) => {
                drop(state);
                self.give_up_writing();
            }
            Err(_) => state.retire(block),
        }
        Ok(())
    }

    /// The first page of a block from `from` on that is erased. Of a block that should be, only the first page is looked at.
    async fn first_erased(&self, block: BlockId, from: u32) -> Result<u32, Stopped> {
        let geometry = self.media.geometry();
        let mut page = from;
        while page < geometry.pages_per_block() {
            match self.read_page(geometry.page_at(block, page)).await? {
                Err(MediaError::Misuse(Misuse::NotProgrammed)) => break,
                _ if from == 0 && self.state.borrow().chunks.get(block).state == BlockState::Free => return Ok(1),
                _ => page += 1,
            }
        }
        Ok(page)
    }
}

impl State {
    /// A page of the log was found in a block.
    fn found_log_page(&mut self, page: PageId) {
        let block = self.geometry.block_of(page);
        if !matches!(self.chunks.get(block).state, BlockState::Bad | BlockState::Retiring) {
            self.chunks.set_state(block, BlockState::Open(LOG));
        }
    }

    /// Applies a record that concerns no unit of the host.
    fn redo(&mut self, timestamp: u64, record: &Record, restored: &Restored) {
        let is_new = timestamp > restored.last;
        match record {
            Record::MapLarge(moved) | Record::GcMapping(moved) => {
                let is_new = timestamp > restored.mapped || mistakes::is_made(Mistake::FragmentsBack);
                self.redo_fragment(Kind::MapLarge, *moved, is_new);
            }
            Record::MapSmall(moved) => self.redo_fragment(Kind::MapSmall, *moved, is_new),
            Record::ChunkMetadata(moved) => self.redo_fragment(Kind::Chunks, *moved, is_new),
            Record::Amendment(page) => {
                let block = self.geometry.block_of(*page);
                if let BlockState::Open(_) = self.chunks.get(block).state {
                    self.chunks.set_state(block, BlockState::Retiring);
                }
            }
            Record::AbortWrite { page, pages } => {
                let block = self.geometry.block_of(*page);
                if let BlockState::Open(stream) = self.chunks.get(block).state {
                    self.reach(PageId(page.0 + pages - 1), stream);
                }
            }
            Record::RecycleChunk(block) => self.chunks.set_state(*block, BlockState::Collecting),
            Record::Padding | Record::Commit { .. } | Record::UserWrite(_) | Record::GcWrite(_) => {}
        }
    }

    /// A fragment was written. If the table that says where it is is older than that, it is told. To tell it what it knows
    /// would take it back to a fragment that may lack what came before the head of the log.
    fn redo_fragment(&mut self, kind: Kind, moved: Moved, is_new: bool) {
        moved.new.into_iter().for_each(|page| self.reach(page, META));
        match is_new {
            true => self.set_fragment(kind, moved),
            false => self.move_page_validity(&moved),
        }
    }

    fn reach_unit(&mut self, remap: &Remap, stream: Stream) {
        if let Some(unit) = remap.new.unit().filter(|unit| remap.old.unit() != Some(*unit)) {
            self.reach(self.geometry.page_of(unit), stream);
        }
    }

    /// A page was written: its block is open at least that far. A block that was to be erased has been since.
    fn reach(&mut self, page: PageId, stream: Stream) {
        let (block, number) = (self.geometry.block_of(page), self.geometry.page_in_block(page));
        let state = self.chunks.get(block).state;
        if state == BlockState::Bad {
            return;
        }
        let is_over = state == BlockState::Collecting && self.chunks.get(block).valid == 0;
        if state == BlockState::Free || is_over || self.chunks.stream(block) == LOG {
            self.chunks.set_state(block, BlockState::Open(stream));
            let info = self.chunks.get_mut(block);
            info.erases += u32::from(state != BlockState::Free);
            (info.allocated, info.programmed) = (0, 0);
        }
        let pages = self.geometry.pages_per_block();
        let info = self.chunks.get_mut(block);
        info.allocated = info.allocated.max(number + 1);
        info.programmed = info.allocated;
        if info.allocated == pages && matches!(info.state, BlockState::Open(_)) {
            info.state = BlockState::Full;
        }
    }

    pub(super) fn hold_again(&mut self, block: BlockId) {
        assert_eq!(self.chunks.get(block).valid, 0, "{block:?} holds current data and is erased");
        self.chunks.set_state(block, BlockState::Collecting);
        self.held.push(block);
    }

    /// An open block is written up to `end`. A stream has one open block on a plane: others are closed.
    fn reopen(&mut self, block: BlockId, end: u32) {
        let (plane, stream) = (self.geometry.plane_of(block), self.chunks.stream(block));
        let is_other = |other: &BlockId| *other < block && self.chunks.get(*other).state == BlockState::Open(stream);
        let is_second = self.geometry.blocks_of(plane).any(|other| is_other(&other));
        let pages = self.geometry.pages_per_block();
        let from = self.chunks.get(block).allocated;
        if end > from {
            self.abandoned.push((self.geometry.page_at(block, from), end - from));
        }
        let end = if is_second { pages } else { end };
        let info = self.chunks.get_mut(block);
        (info.allocated, info.programmed) = (end, end);
        if end == pages {
            self.chunks.set_state(block, BlockState::Full);
            if self.chunks.get(block).valid == 0 {
                self.hold_again(block);
            }
        }
    }

    /// The free blocks are known: lists, and a log of its own chain. Returns pages that are not used, in runs.
    fn begin_service(&mut self, restored: &Restored, number: u64, last: u64) -> Vec<(PageId, u32)> {
        self.provisioning.relist(&self.chunks);
        let (page_bytes, epoch) = (self.geometry.page_size() as usize, restored.head.epoch + 1);
        self.log = (self.components.log.make)(&LogStart { page_bytes, epoch, number, last });
        std::mem::take(&mut self.abandoned)
    }
}
