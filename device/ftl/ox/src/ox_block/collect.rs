//! P8-GC: garbage collection by channel (OX 6.1.8).
//!
//! A channel with too few free blocks gets a slot and is closed to the host's data. It is collected when the writes
//! under way on it have ended. The more of the channel is in use, the less garbage a block needs to be collected. A
//! moved unit becomes current only if the map still has the entry that it had when the unit was read: the host's writes
//! win.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, CachedMapping, Channels, Entry, LineProvisioning, Mapping, Stopped, StoredBlocks,
};
use nandscape_device_ftl_core::policy::Candidate;
use nandscape_device_media::{BlockId, PlaneId, UnitId};
use nandscape_drive::breakdown::cause;

use super::chores::{Chore, Move};
use super::core::{Core, Latch};
use super::lines::Layout;
use super::mistakes::{self, Mistake};
use super::pages::{self, NO_LPN};
use super::recycle::Recycled;
use super::state::{Mover, State};
use super::streams::{COLD, HOT, LOG, META};

/// Rates are in thousandths.
const WHOLE: u32 = 1_000;

impl State {
    /// The share of a channel's blocks in use, those that wait for a checkpoint not counted.
    fn usage(&self, channel: u32) -> u32 {
        let per_channel = self.geometry.planes() / self.geometry.channels();
        let planes = channel * per_channel..(channel + 1) * per_channel;
        let all = per_channel * self.geometry.blocks_per_plane();
        let free: u32 = planes.map(|plane| self.provisioning.free_blocks(PlaneId(plane))).sum();
        let held = self.held.iter().filter(|block| self.channel_of(**block) == channel).count() as u32;
        (all - (free + held).min(all)) * WHOLE / all
    }

    /// Units of garbage that a block must have to be collected: `mir` of OX 6.1.8.
    fn least_garbage(&self, config: &super::OxGcConfig, usage: u32, is_urgent: bool) -> u32 {
        if is_urgent {
            return 1;
        }
        config.least_garbage(self.geometry.units_per_block(), usage)
    }

    /// Units of garbage in a block of the host's data; none in other blocks.
    pub(super) fn garbage(&self, block: BlockId) -> u64 {
        let info = self.chunks.get(block);
        let holds_data = matches!(info.state, BlockState::Open(_) | BlockState::Full | BlockState::Retiring)
            && matches!(self.chunks.stream(block), HOT | COLD);
        let written = info.programmed * self.geometry.units_per_page();
        if holds_data { u64::from(written.saturating_sub(info.valid)) } else { 0 }
    }

    /// TARGET: of the blocks of a channel with enough garbage, the one that P8 selects. A block to be retired comes
    /// first.
    fn target(&self, channel: u32, least: u32) -> Option<BlockId> {
        let per_channel = self.geometry.blocks() / self.geometry.channels();
        let blocks = || (channel * per_channel..(channel + 1) * per_channel).map(BlockId);
        let valid = |block: &BlockId| self.chunks.get(*block).valid;
        let retiring = blocks().filter(|block| self.is_candidate(*block, BlockState::Retiring)).min_by_key(valid);
        retiring.or_else(|| {
            let full = blocks().filter(|block| self.is_candidate(*block, BlockState::Full));
            let candidates = full.map(|block| (block, self.candidate(block)));
            self.gc.target(&mut candidates.filter(|(_, candidate)| candidate.units - candidate.valid >= least))
        })
    }

    /// Whether a block in a state may be collected.
    fn is_candidate(&self, block: BlockId, state: BlockState) -> bool {
        let info = self.chunks.get(block);
        info.state == state
            && self.chunks.stream(block) != LOG
            && self.is_settled(block)
            && (info.valid == 0 || !self.stuck.contains(&block))
    }

    /// The data of a block for P8.
    fn candidate(&self, block: BlockId) -> Candidate {
        let info = self.chunks.get(block);
        Candidate {
            valid: info.valid,
            units: self.geometry.units_per_block(),
            age: self.provisioning.sequence().saturating_sub(info.sealed_at),
            erases: info.erases,
        }
    }

    pub(super) fn is_collectable(&self, config: &super::OxGcConfig, channel: u32, is_urgent: bool) -> Option<BlockId> {
        let usage = self.usage(channel);
        if usage <= config.threshold && !is_urgent {
            return None;
        }
        self.target(channel, self.least_garbage(config, usage, is_urgent))
    }

    /// A unit was copied: the copy becomes current if the unit is where it was read.
    fn moved(&mut self, lpn: Lpn, old: UnitId, new: UnitId) {
        let entry = self.map.lookup(lpn).unwrap_or_else(|_| panic!("the fragment was pinned"));
        if entry.unit() == Some(old) || mistakes::is_made(Mistake::CollectorWins) {
            let remapped = self.remap(lpn, Entry::new(Some(new), entry.lost()), Mover::Gc, 0);
            remapped.unwrap_or_else(|_| panic!("the fragment was pinned"));
        } else {
            // Its mapping was lost with its fragment of the map.
            self.chunks.set_valid(old, false);
        }
    }
}

impl Core {
    /// Gives slots to channels that need to be collected, and requests a checkpoint where only a checkpoint makes room.
    /// `has_room` is whether the host's data has room.
    pub(super) fn look_for_garbage(&self, has_room: bool) {
        if let Layout::Lines(layout) = self.config.layout {
            return self.look_for_lines(layout);
        }
        let mut state = self.state.borrow_mut();
        let is_urgent = !has_room;
        if has_room && !std::mem::take(&mut state.renewed) {
            return;
        }
        let channels = state.geometry.channels();
        let slots = if is_urgent { channels } else { self.shared.gc.get().slots };
        for _ in 0..channels {
            let channel = self.flags.next_channel.get() % channels;
            self.flags.next_channel.set(channel + 1);
            let is_free = self.flags.collecting.get() < slots && !state.collecting[channel as usize];
            if is_free && state.is_collectable(&self.shared.gc.get(), channel, is_urgent).is_some() {
                state.channels.set_needs_gc(channel, true);
                state.collecting[channel as usize] = true;
                self.flags.collecting.set(self.flags.collecting.get() + 1);
                self.chores.start(Chore::Collect(channel));
            }
        }
        let is_checkpoint_needed = is_urgent
            && !state.held.is_empty()
            && (self.flags.collecting.get() == 0 || state.held.len() >= state.geometry.planes() as usize);
        drop(state);
        if is_checkpoint_needed {
            self.request_checkpoint();
        }
        if is_urgent {
            self.check_room_for_host();
        }
    }

    /// Collects a channel: a number of blocks, or fewer if fewer are due.
    pub(super) async fn collect(&self, channel: u32) -> Result<(), Stopped> {
        let is_closed = self.close_channel(channel);
        while is_closed && self.state.borrow().channels.contexts(channel) > 0 {
            self.wait(&self.space).await?;
        }
        for _ in 0..self.shared.gc.get().batch {
            let target = {
                let state = self.state.borrow();
                state.is_collectable(&self.shared.gc.get(), channel, !state.has_room_for_host())
            };
            let Some(block) = target else { break };
            self.collect_block(block, channel).await?;
        }
        let mut state = self.state.borrow_mut();
        state.switch_channel(channel, true);
        state.channels.set_needs_gc(channel, false);
        state.collecting[channel as usize] = false;
        state.renewed = true;
        self.flags.collecting.set(self.flags.collecting.get() - 1);
        drop(state);
        self.pump();
        Ok(())
    }

    /// Closes a channel to the host's data, unless it is the last that is open.
    fn close_channel(&self, channel: u32) -> bool {
        let mut state = self.state.borrow_mut();
        let open = (0..state.geometry.channels()).filter(|channel| state.channels.is_enabled(*channel)).count();
        if open > 1 {
            state.switch_channel(channel, false);
        }
        open > 1
    }

    /// Recycles a block through P8, and takes it back.
    pub(super) async fn collect_block(&self, block: BlockId, channel: u32) -> Result<(), Stopped> {
        let (stream, garbage, is_retiring) = {
            let mut state = self.state.borrow_mut();
            let is_retiring = state.chunks.get(block).state == BlockState::Retiring;
            let garbage = state.garbage(block);
            if !is_retiring {
                state.chunks.set_state(block, BlockState::Collecting);
                state.emptying += 1;
            }
            (state.chunks.stream(block), garbage, is_retiring)
        };
        let latch = Latch::new(&self.sim);
        match stream {
            META => self.move_fragments(block).await?,
            _ => {
                let gc = self.state.borrow().gc.clone();
                gc.recycle(&Recycled { core: self, block, channel, moves: latch.clone() }).await?;
            }
        }
        latch.below(1).await;
        self.still_running()?;
        let mut state = self.state.borrow_mut();
        state.emptying -= u32::from(!is_retiring);
        if state.chunks.get(block).valid == 0 {
            state.counters.gc_blocks += 1;
            state.counters.upkeep.reclaimed_units += garbage;
            state.recycle(block);
            if mistakes::is_made(Mistake::NotHeld) {
                state.held.retain(|held| *held != block);
                state.releasing += 1;
                self.chores.start(Chore::Release(block));
            }
        } else {
            state.stuck.insert(block);
            if !is_retiring {
                state.chunks.set_state(block, BlockState::Full);
            }
        }
        drop(state);
        if self.config.layout != Layout::Log {
            self.release_held();
        }
        self.log_grew();
        Ok(())
    }

    /// Programs units elsewhere, and makes the copies current if they are not outdated.
    pub(super) async fn move_batch(&self, batch: &mut Move) -> Result<(), Stopped> {
        let geometry = *self.media.geometry();
        let mut image = std::mem::take(&mut batch.image);
        image.pad(geometry.units_per_page() as usize, NO_LPN);
        let page = self.write_page(COLD, Some(batch.channel), image, cause::GC).await?;
        {
            let counters = &mut self.state.borrow_mut().counters;
            counters.gc_units += batch.units.len() as u64;
            counters.padding_units += u64::from(geometry.units_per_page()) - batch.units.len() as u64;
        }
        for (number, (lpn, old)) in (0..).zip(&batch.units) {
            let index = self.pin_fragment(*lpn).await?;
            let mut state = self.state.borrow_mut();
            state.moved(*lpn, *old, geometry.unit_at(page, number));
            state.map.unpin(index);
        }
        self.state.borrow_mut().end_pending(geometry.block_of(page), 1);
        self.log_grew();
        Ok(())
    }

    /// Moves fragments of tables.
    async fn move_fragments(&self, block: BlockId) -> Result<(), Stopped> {
        let geometry = *self.media.geometry();
        for page in (0..geometry.pages_per_block()).map(|page| geometry.page_at(block, page)) {
            if self.read_current(page).await?.is_none_or(|units| units.is_empty()) {
                continue;
            }
            if let Some((kind, index, bytes)) = pages::contents(&self.media, page) {
                self.write_other(kind, index, &bytes, Some(page), Mover::Gc).await?;
            }
        }
        Ok(())
    }
}
