//! The start of a drive: formatting, or recovery from the last checkpoint and the log (OX 6.1.7.2).
//!
//! The tables are those of the checkpoint, to which the log's records are applied in order. All of them are absolute, so a
//! table may have been written later than the head of the log. Then the state of blocks is restored.
//!
//! | file | what |
//! |---|---|
//! | `replay` | what P7 replays: the chain of the log, and its records |
//! | `redo` | what each record changes |
//! | `blocks` | the state of open, free and superfluous blocks |
//!
//! A power cut meanwhile is harmless: nothing refers to data that recovery writes before its final checkpoint.
//!
//! A recovery ends in one of three ways, whatever the flash holds: in service, in service for reads alone, or out of service. It
//! is out of service when a table cannot be read, a page of the log is missing, or tables and log contradict each
//! other: the drive's answers might then be wrong.

mod blocks;
mod redo;
mod replay;

use nandscape_device_ftl_core::Recoveries;
use nandscape_device_ftl_core::component::{
    BadBlocks, BlockMetadata, BlockState, CachedMapping, ChainedLog, Log, Record, ReplayEnded, Stopped, StoredBlocks,
    page_from_raw,
};
use nandscape_device_ftl_core::ftl::ReadOnly;
use nandscape_device_media::BlockId;
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Span, Time};

use self::replay::Replay;
use super::core::{Core, Phase};
use super::durable;
use super::lines::Layout;
use super::pages::{self, Kind};
use super::release::Formatted;
use super::state::{self, State};
use crate::parts::{FixedRecord, numbers_of_bytes};

/// The counts of a recovery.
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
            Ok(()) if self.shared.read_only.get().is_some() => self.phase.set(Phase::ReadOnly),
            Ok(()) => {
                self.phase.set(Phase::Running);
                // Not before: what recovery itself has appended is in the chain, or counts for nothing.
                if self.config.keeps_log {
                    self.state.borrow_mut().log.keep(durable::note_of(&self.media));
                }
                self.check_read_only();
                self.write_changed_bad_tables();
            }
            Err(ReplayEnded::Damaged | ReplayEnded::Stopped) => {
                self.phase.set(Phase::Failed);
                self.shared.read_only.set(self.shared.read_only.get().or(Some(ReadOnly::Unreadable)));
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

    async fn bring_up(&self) -> Result<(), ReplayEnded> {
        let begun = self.sim.now();
        let mut bad = state::bad_at_start(&self.media, &self.config);
        let (mut formatted, mut missing) = (None, Vec::new());
        for channel in 0..self.media.geometry().channels() {
            match self.read_bad_table(channel, &mut *bad).await? {
                Some(state) => formatted = formatted.max(Some(state)),
                None => missing.push(channel),
            }
        }
        if let (Layout::Lines(layout), Some(Formatted::Ended)) = (self.config.layout, formatted) {
            let is_up = self.recover_lines(bad, layout).await;
            self.count_recovery(begun);
            return if is_up? { Ok(()) } else { Err(ReplayEnded::Damaged) };
        }
        let place = self.state.borrow().places.checkpoint();
        match (formatted, self.read_fixed(place).await?) {
            (Some(Formatted::Begun), _) | (None, None) => self.format(bad).await,
            (Some(Formatted::Ended), None) => Err(ReplayEnded::Damaged),
            // The table of blocks knows the bad ones as well.
            (_, Some(checkpoint)) => {
                let is_up = self.recover(bad, &checkpoint).await;
                self.count_recovery(begun);
                is_up?;
                self.state.borrow_mut().bad_changed.extend(missing);
                Ok(())
            }
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

    /// Notes the reads of a recovery without a log.
    pub(super) fn count_scan(&self, pages: u64, records: u64) {
        self.recovered.set(Recovered { pages, records, ..Recovered::default() });
    }

    /// New tables, for the blocks that `bad` leaves usable.
    pub(super) fn begin_state(&self, bad: Box<dyn BadBlocks>, epoch: u64) {
        let mut state = self.state.borrow_mut();
        let mut new = State::new(&self.media, &self.config, bad, epoch);
        std::mem::swap(&mut new.places, &mut state.places);
        new.counters = state.counters;
        *state = new;
    }

    /// CREATE: the tables of an empty drive. What an interrupted formatting has left is erased; that costs no time on flash
    /// as the maker delivers it.
    async fn format(&self, bad: Box<dyn BadBlocks>) -> Result<(), ReplayEnded> {
        self.begin_state(bad, 1);
        self.state.borrow_mut().learn_erases(&self.media);
        for block in (0..self.media.geometry().blocks()).map(BlockId) {
            let is_free = self.state.borrow().chunks.get(block).state == BlockState::Free;
            if is_free && self.media.pages_programmed(block) > 0 {
                let who = self.config.priority.who(cause::METADATA);
                let erased = self.media.erase(block, who, &mut Breakdown::new()).await;
                self.still_running()?;
                if erased.is_err() {
                    self.state.borrow_mut().retire(block);
                }
            }
        }
        self.state.borrow_mut().list_blocks();
        for channel in 0..self.media.geometry().channels() {
            self.write_bad_table(channel, Formatted::Begun).await?;
        }
        if self.config.layout == Layout::Log {
            self.checkpoint().await?;
        }
        if self.phase.get() == Phase::ReadOnly {
            return Err(ReplayEnded::Damaged);
        }
        for channel in 0..self.media.geometry().channels() {
            self.write_bad_table(channel, Formatted::Ended).await?;
        }
        Ok(())
    }

    /// RECOVER and REPLAY.
    async fn recover(&self, bad: Box<dyn BadBlocks>, checkpoint: &FixedRecord) -> Result<(), ReplayEnded> {
        self.begin_state(bad, 0);
        let mut component = (self.config.components.checkpoint.make)();
        let is_whole = component.recover(&checkpoint.bytes);
        let restored = if is_whole { self.state.borrow_mut().restore(&*component) } else { None };
        let restored = restored.ok_or(ReplayEnded::Damaged)?;
        let replay = Replay::new(self, restored);
        let replayed = component.replay(&replay).await?;
        self.recovered.set(replay.ended(replayed));
        self.state.borrow_mut().sort_blocks()?;
        let known = self.state.borrow().held.len();
        self.probe().await?;
        let last = replay.last().max(restored.last);
        let found = self.state.borrow_mut().begin_service(&restored, replay.next_number(), last);
        for (page, pages) in found {
            self.state.borrow_mut().log.append(Record::AbortWrite { page, pages });
        }
        self.make_room_to_end(&replay, known).await?;
        self.checkpoint().await?;
        if self.phase.get() == Phase::Failed { Err(ReplayEnded::Damaged) } else { Ok(()) }
    }

    /// Loads the tables that are in memory as a whole: the places of the map's fragments, and the table of blocks.
    async fn load_tables(&self) -> Result<(), ReplayEnded> {
        let (small, chunks) = {
            let state = self.state.borrow();
            (state.map.tiny().len(), state.chunk_small.len())
        };
        let all = (0..small).map(|index| (Kind::MapSmall, index)).chain((0..chunks).map(|index| (Kind::Chunks, index)));
        for (kind, index) in all {
            let Some(page) = self.state.borrow().fragment(kind, index) else { continue };
            self.state.borrow().check_page(page)?;
            let read = self.read_page(page).await?;
            let contents = read.ok().and_then(|()| pages::contents(&self.media, page));
            let contents = contents.filter(|found| (found.0, found.1) == (kind, index));
            let (_, _, bytes) = contents.ok_or(ReplayEnded::Damaged)?;
            let mut state = self.state.borrow_mut();
            match kind {
                Kind::MapSmall => {
                    let mut pages = numbers_of_bytes(&bytes).filter_map(page_from_raw);
                    pages.try_for_each(|page| state.check_page(page))?;
                    state.map.small_mut().load(index, &bytes);
                }
                _ => state.chunks.load(index, &bytes),
            }
        }
        self.state.borrow().check_blocks()
    }
}
