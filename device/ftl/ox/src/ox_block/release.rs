//! Blocks that return: erased and free, or bad.

use std::ops::Range;

use nandscape_device_ftl_core::component::{BadBlocks, BlockMetadata, LineProvisioning, Stopped};
use nandscape_device_ftl_core::ftl::ReadOnly;
use nandscape_device_media::{BlockId, Geometry};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::chores::Chore;
use super::core::{Core, Phase};
use super::state::State;
use crate::parts::numbers_to_bytes;

/// The identifier in the first block of a channel that belongs to this FTL: "OX-BLOCK" and a version.
const IDENTIFIER: u64 = 0x4b43_4f4c_422d_584f;
const VERSION: u64 = 1;

/// The progress of formatting when a channel's record was written.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Formatted {
    /// A checkpoint may not exist yet.
    Begun,
    /// A checkpoint exists.
    Ended,
}

/// Bytes of a channel's record before its table.
const HEADER: usize = 40;

impl Core {
    /// Erases a block whose content a checkpoint has made superfluous, when no read needs it any more.
    pub(super) async fn release(&self, block: BlockId) -> Result<(), Stopped> {
        self.still_running()?;
        while self.state.borrow().chunks.pins(block) > 0 {
            self.wait(&self.unpinned).await?;
        }
        let is_doomed = self.state.borrow_mut().doomed.remove(&block);
        let is_good = !is_doomed
            && self.media.erase(block, self.config.priority.who(cause::GC), &mut Breakdown::new()).await.is_ok();
        self.still_running()?;
        if self.media.store_has_failed() {
            self.give_up_writing(ReadOnly::Store);
            return Err(Stopped);
        }
        let mut state = self.state.borrow_mut();
        state.stuck.remove(&block);
        match is_good {
            true => state.erased(block),
            false => {
                state.retire(block);
                state.provisioning.retired(block);
            }
        }
        state.releasing -= 1;
        drop(state);
        if !is_good {
            self.check_read_only();
            self.write_changed_bad_tables();
        }
        self.space.notify();
        self.kick_log();
        self.pump();
        Ok(())
    }

    /// Releases all blocks that are held.
    pub(super) fn release_held(&self) {
        let held = {
            let mut state = self.state.borrow_mut();
            let held = std::mem::take(&mut state.held);
            state.releasing += held.len() as u32;
            held
        };
        held.into_iter().for_each(|block| self.chores.start(Chore::Release(block)));
    }

    /// Makes the drive read-only if too few good blocks are left or no plane answers.
    pub(super) fn check_read_only(&self) {
        let why = {
            let state = self.state.borrow();
            let answers = state.dead.contains(&false);
            let few = state.has_lost_too_much().then_some(ReadOnly::FewBlocks);
            if answers { few } else { Some(ReadOnly::NoPlanes) }
        };
        if let Some(why) = why.filter(|_| self.phase.get() == Phase::Running) {
            self.give_up_writing(why);
        }
    }

    /// Writes the changed tables of bad blocks.
    pub(super) fn write_changed_bad_tables(&self) {
        if !self.state.borrow().bad_changed.is_empty() && !self.flags.writing_bad.replace(true) {
            self.chores.start(Chore::BadTables);
        }
    }

    /// PERSIST of P1: writes the tables of bad blocks that were changed.
    pub(super) async fn write_bad_tables(&self) -> Result<(), Stopped> {
        loop {
            let Some(channel) = self.state.borrow_mut().bad_changed.pop_first() else { break };
            self.write_bad_table(channel, Formatted::Ended).await?;
        }
        self.flags.writing_bad.set(false);
        Ok(())
    }

    /// Writes the record of a channel: its owner and its bad blocks.
    pub(super) async fn write_bad_table(&self, channel: u32, formatted: Formatted) -> Result<(), Stopped> {
        let bytes = bad_table(&self.state.borrow(), channel, formatted);
        self.write_fixed(channel as usize, bytes).await
    }

    /// LOAD of P1: reads the record of a channel into `bad`; `None` if it is not of this FTL.
    pub(super) async fn read_bad_table(
        &self,
        channel: u32,
        bad: &mut dyn BadBlocks,
    ) -> Result<Option<Formatted>, Stopped> {
        let Some(record) = self.read_fixed(channel as usize).await? else { return Ok(None) };
        let number = |at: usize| Some(u64::from_le_bytes(record.bytes.get(at..at + 8)?.try_into().ok()?));
        let blocks = u64::from(self.media.geometry().blocks());
        let expected = [(0, IDENTIFIER), (8, VERSION), (24, channel.into()), (32, blocks)];
        if expected.iter().any(|(at, value)| number(*at) != Some(*value)) {
            return Ok(None);
        }
        let formatted = if number(16) == Some(1) { Formatted::Ended } else { Formatted::Begun };
        bad.load(blocks_of(self.media.geometry(), channel), record.bytes.get(HEADER..).unwrap_or_default());
        Ok(Some(formatted))
    }
}

/// The record of a channel: its owner and its bad blocks.
pub(super) fn bad_table(state: &State, channel: u32, formatted: Formatted) -> Vec<u8> {
    let state_of_format = u64::from(formatted == Formatted::Ended);
    let header = [IDENTIFIER, VERSION, state_of_format, channel.into(), state.geometry.blocks().into()];
    let mut bytes = numbers_to_bytes(header);
    bytes.extend(state.bad.encode(blocks_of(&state.geometry, channel)));
    bytes
}

fn blocks_of(geometry: &Geometry, channel: u32) -> Range<u32> {
    let per_channel = geometry.blocks() / geometry.channels();
    channel * per_channel..(channel + 1) * per_channel
}
