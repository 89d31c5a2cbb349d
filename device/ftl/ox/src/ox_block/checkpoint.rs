//! Checkpoints: their contents, and the steps from which P7 makes one.
//!
//! Blocks that were collected before the head of the log was taken are erased when all copies of the checkpoint are on flash.

use std::cell::Cell;

use nandscape_device_ftl_core::component::{
    CachedMapping, Checkpoint, Checkpointing, Key, LineProvisioning, Log, LogHead, LogPosition, Process, Progress,
    Stopped, StoredBlocks, page_from_raw, page_to_raw,
};
use nandscape_device_ftl_core::ftl::ReadOnly;
use nandscape_device_media::BlockId;

use super::chores::Chore;
use super::core::{Core, Latch, Mark, Phase};
use super::lines::Layout;
use super::mistakes::{self, Mistake};
use super::pages::Kind;
use super::state::{Mover, State};
use crate::parts::{KeyedEntries, numbers_of_bytes, numbers_to_bytes};

/// The most fragments of tables that are written at the same time.
const WRITES: usize = 16;

/// The keys of OX table 6.3, and one for transactions.
const CHUNK: Key = Key(1);
const MAPPING: Key = Key(2);
const LOG_HEAD: Key = Key(3);
const TIMESTAMP: Key = Key(4);
const PROV: Key = Key(5);
const TRANSACTION: Key = Key(6);
/// The timestamp of the last record that map_S knows: its pages are of one instant.
const MAPPED: Key = Key(7);
/// The timestamp of the last record before the head of the log.
const WRITTEN: Key = Key(8);

/// The contents of a checkpoint, in addition to the places of the tables.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Restored {
    pub(super) head: LogHead,
    /// The timestamp of the last record before the checkpoint was written.
    pub(super) last: u64,
    /// The timestamp of the last record before map_S was written.
    pub(super) mapped: u64,
    /// The timestamp of the last record before the head of the log.
    pub(super) written: u64,
}

impl State {
    /// SET of the whole checkpoint, as of now.
    pub(super) fn put_entries(&self, into: &mut dyn Checkpoint, head: &LogHead, written: u64, mapped: LogPosition) {
        let tables = [self.chunk_small.encode(), self.map.tiny().encode()];
        let numbers = [self.log.last().0, mapped.0, written, self.next_transaction];
        set_all(into, tables, head, self.provisioning.turns(), numbers);
    }

    /// RECOVER: takes over a checkpoint; `None` if it does not fit the drive.
    pub(super) fn restore(&mut self, entries: &dyn Checkpoint) -> Option<Restored> {
        let numbers = |key| entries.get(key).map(|bytes| numbers_of_bytes(bytes).collect::<Vec<u64>>());
        if !self.chunk_small.decode(entries.get(CHUNK)?) || !self.map.tiny_mut().decode(entries.get(MAPPING)?) {
            return None;
        }
        let [first, second, third, number, epoch] = numbers(LOG_HEAD)?.try_into().ok()?;
        let [last] = numbers(TIMESTAMP)?.try_into().ok()?;
        let [mapped] = numbers(MAPPED)?.try_into().ok()?;
        let [written] = numbers(WRITTEN)?.try_into().ok()?;
        let [next_transaction] = numbers(TRANSACTION)?.try_into().ok()?;
        self.provisioning.set_turns(&numbers(PROV)?);
        self.next_transaction = next_transaction;
        let pages = [first, second, third].map(page_from_raw);
        Some(Restored { head: LogHead { pages, number, epoch }, last, mapped, written })
    }
}

/// SET of all entries: the tables of the fragments of blocks and map, turns, and numbers of the keys `TIMESTAMP`, `MAPPED`,
/// `WRITTEN` and `TRANSACTION`.
fn set_all(
    entries: &mut dyn Checkpoint,
    [chunks, map]: [Vec<u8>; 2],
    head: &LogHead,
    turns: Vec<u64>,
    numbers: [u64; 4],
) {
    let pages = head.pages.map(page_to_raw);
    entries.set(CHUNK, chunks);
    entries.set(MAPPING, map);
    entries.set(LOG_HEAD, numbers_to_bytes(pages.into_iter().chain([head.number, head.epoch])));
    entries.set(PROV, numbers_to_bytes(turns));
    for (key, number) in [TIMESTAMP, MAPPED, WRITTEN, TRANSACTION].into_iter().zip(numbers) {
        entries.set(key, numbers_to_bytes([number]));
    }
}

/// Bytes of a checkpoint with tables of some bytes and a number of turns.
pub(super) fn size_of(tables: [u64; 2], turns: usize) -> u64 {
    let mut entries = KeyedEntries::default();
    let head = LogHead { pages: [None; 3], number: 0, epoch: 0 };
    set_all(&mut entries, tables.map(|bytes| vec![0; bytes as usize]), &head, vec![0; turns], [0; 4]);
    entries.encode().len() as u64
}

/// A checkpoint that P7 takes.
struct Steps<'a> {
    core: &'a Core,
    reached: Cell<Reached>,
}

/// Its progress.
#[derive(Copy, Clone, Debug)]
enum Reached {
    Nothing,
    Head(Mark),
    /// The tables are written, up to a position of the log.
    Tables(Mark, LogPosition),
    /// The entries were given, at a position of the log.
    Entries(Mark, LogPosition),
    Log(Mark),
    Flash(Mark),
}

impl Steps<'_> {
    #[track_caller]
    fn must_follow(&self, what: &str, before: &str) -> ! {
        panic!("P7 component: {what} has to come after {before}, and came after {:?}", self.reached.get())
    }
}

impl Checkpointing for Steps<'_> {
    fn begin(&self) -> Process<'_> {
        Box::pin(async move {
            self.reached.set(Reached::Head(self.core.next_mark().await?));
            Ok(())
        })
    }

    fn write_tables(&self) -> Process<'_, Progress> {
        Box::pin(async move {
            let Some(mapped) = self.core.write_tables().await? else { return Ok(Progress::Over) };
            if let Reached::Head(mut mark) | Reached::Tables(mut mark, _) = self.reached.get() {
                if mistakes::is_made(Mistake::LateHead) {
                    mark = self.core.next_mark().await?;
                }
                self.reached.set(Reached::Tables(mark, mapped));
            }
            Ok(Progress::Done)
        })
    }

    fn put_entries(&self, into: &mut dyn Checkpoint) {
        let Reached::Tables(mark, mapped) = self.reached.get() else { self.must_follow("entries", "tables") };
        let state = self.core.state.borrow();
        // They are as of this instant, and the records up to it are written before them.
        state.put_entries(into, &mark.head, mark.written, mapped);
        self.reached.set(Reached::Entries(mark, state.log.last()));
    }

    fn force_log(&self) -> Process<'_, Progress> {
        let Reached::Entries(mark, last) = self.reached.get() else { self.must_follow("the log", "entries") };
        Box::pin(async move {
            if !mistakes::is_made(Mistake::NoFence) && !self.core.log_written(last, mark.breaks).await? {
                // The chain that begins at the head is broken: another head is needed.
                let is_over = self.core.phase.get() == Phase::ReadOnly;
                return Ok(if is_over { Progress::Over } else { Progress::Again });
            }
            self.reached.set(Reached::Log(mark));
            Ok(Progress::Done)
        })
    }

    fn persist(&self, bytes: Vec<u8>) -> Process<'_, Progress> {
        let Reached::Log(mark) = self.reached.get() else { self.must_follow("a checkpoint", "the log") };
        Box::pin(async move {
            let place = self.core.state.borrow().places.checkpoint();
            if !mistakes::is_made(Mistake::NoCheckpoint) || self.core.phase.get() == Phase::Starting {
                self.core.write_fixed(place, bytes).await?;
            }
            if self.core.media.store_has_failed() {
                return Ok(Progress::Over);
            }
            self.reached.set(Reached::Flash(mark));
            Ok(Progress::Done)
        })
    }

    fn end(&self) {
        let Reached::Flash(Mark { head, mut held, changes, .. }) = self.reached.replace(Reached::Nothing) else {
            self.must_follow("the end", "a checkpoint on flash")
        };
        if mistakes::is_made(Mistake::HeldTooShort) {
            held = self.core.state.borrow().held.len();
        }
        self.core.flags.covered.set(changes);
        self.core.checkpoint_ended(&head, held);
    }
}

impl Core {
    /// Requests a checkpoint, or one more if one is being taken.
    pub(super) fn request_checkpoint(&self) {
        if !self.is_writing() || self.config.layout != Layout::Log {
            return;
        }
        match self.flags.checkpointing.replace(true) {
            true => self.flags.checkpoint_wanted.set(true),
            false => self.chores.start(Chore::Checkpoint),
        }
    }

    /// Takes checkpoints while they are wanted.
    pub(super) async fn take_checkpoints(&self) -> Result<(), Stopped> {
        loop {
            self.flags.checkpoint_wanted.set(false);
            self.checkpoint().await?;
            if !self.flags.checkpoint_wanted.get() {
                break;
            }
        }
        self.flags.checkpointing.set(false);
        self.watch_age();
        self.checkpointed.notify();
        self.space.notify();
        self.pump();
        Ok(())
    }

    /// Takes a checkpoint through P7.
    pub(super) async fn checkpoint(&self) -> Result<(), Stopped> {
        let mut component = (self.config.components.checkpoint.make)();
        component.checkpoint(&Steps { core: self, reached: Cell::new(Reached::Nothing) }).await
    }

    /// Writes the changed fragments of all tables: of the map, of the table of its fragments as that is at one instant, and of the
    /// table of blocks. Returns the position of the last record before that instant, or `None` if the drive has become read-only,
    /// so that some fragments may not be written.
    async fn write_tables(&self) -> Result<Option<LogPosition>, Stopped> {
        self.flags.writing_tables.set(true);
        // An eviction that waits for a page looks again: this checkpoint waits for the evicted fragment, so it frees no page before.
        if self.flags.table_pages_wanted.get() > 0 {
            self.space.notify();
        }
        self.clear_map().await?;
        let latch = Latch::new(&self.sim);
        let (small, chunks, mapped) = {
            let mut state = self.state.borrow_mut();
            let small = state.map.small_mut().take_dirty();
            let small: Vec<_> = small.into_iter().map(|index| (index, state.map.small().fragment(index))).collect();
            (small, state.chunks.take_dirty(), state.log.last())
        };
        let small = small.into_iter().map(|(index, bytes)| (Kind::MapSmall, index, Some(bytes)));
        for (kind, index, bytes) in small.chain(chunks.into_iter().map(|index| (Kind::Chunks, index, None))) {
            latch.below(WRITES).await;
            self.chores.start(Chore::Table { kind, index, bytes, _held: latch.begin() });
        }
        latch.below(1).await;
        self.still_running()?;
        self.flags.writing_tables.set(false);
        Ok((self.phase.get() != Phase::ReadOnly).then_some(mapped))
    }

    /// CLEAR of P5: writes the fragments of the map that were changed. They stay in memory.
    pub(super) async fn clear_map(&self) -> Result<(), Stopped> {
        let latch = Latch::new(&self.sim);
        let mut fragments = self.state.borrow().map.unwritten();
        if mistakes::is_made(Mistake::WritesIgnored) {
            fragments.retain(|index| !self.state.borrow().map.is_writing(*index));
        }
        for index in fragments {
            latch.below(WRITES).await;
            self.chores.start(Chore::Fragment { index, _held: latch.begin() });
        }
        latch.below(1).await;
        self.still_running()
    }

    /// Writes a fragment of a table that is all in memory, in its present state: of the table of blocks.
    pub(super) async fn write_table(&self, kind: Kind, index: u32, bytes: Option<Vec<u8>>) -> Result<(), Stopped> {
        let bytes = bytes.unwrap_or_else(|| self.state.borrow().chunks.page(index));
        self.write_other(kind, index, &bytes, None, Mover::Checkpoint).await
    }

    fn checkpoint_ended(&self, head: &LogHead, held: usize) {
        let blocks: Vec<BlockId> = {
            let mut state = self.state.borrow_mut();
            state.log.truncate(*head);
            state.checkpoints += 1;
            state.counters.upkeep.checkpoints += 1;
            let truncated = state.truncated(head);
            let blocks: Vec<BlockId> = state.held.drain(..held).chain(truncated).collect();
            state.releasing += blocks.len() as u32;
            state.released += blocks.len() as u64;
            blocks
        };
        self.flags.last_checkpoint.set(self.sim.now());
        if self.save().is_err() {
            self.give_up_writing(ReadOnly::Store);
        }
        blocks.into_iter().for_each(|block| self.chores.start(Chore::Release(block)));
        self.tell_durable(None);
        self.kick_log();
    }
}
