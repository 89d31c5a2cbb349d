//! The work under way on a stalled drive, for the message of a failed run.

use std::fmt::Write as _;

use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, CachedMapping, ChainedLog, LineProvisioning, StoredBlocks,
};
use nandscape_device_media::{BlockId, PlaneId};

use super::rig::Rig;
use crate::ox_block::core::Flags;
use crate::ox_block::streams::{COLD, HOT, LOG, META};

/// Flags, counts of the write cache, blocks by plane, log and map.
pub(super) fn describe(rig: &Rig) -> String {
    let core = rig.ftl.core();
    let state = core.state.borrow();
    let mut text =
        format!("{:?}, {} slots free; {}\n", core.phase.get(), core.shared.free_slots.free(), flags(&core.flags));
    let cache = &state.cache;
    let counts = (cache.used(), cache.queued(), cache.fills, cache.transactions.len(), cache.is_urgent());
    let _ = writeln!(
        text,
        "cache: used, in line, fills, transactions, urgent {counts:?}; programs {}",
        state.has_programs()
    );
    let _ = writeln!(
        text,
        "held {:?}, releasing {}, waiting for the log {}",
        state.held,
        state.releasing,
        state.waiting.len()
    );
    let log = &state.log;
    let of_log = (log.number(), log.pages(), log.lacking(), log.is_due(), log.is_broken(), log.backlog());
    let _ = writeln!(text, "log: number, pages, lacking, due, broken, backlog {of_log:?}");
    let fragments = 0..state.map.small().len();
    let cached: Vec<(u32, bool)> = fragments
        .filter(|index| state.map.is_cached(*index))
        .map(|index| (index, state.map.is_writing(index)))
        .collect();
    let _ = writeln!(text, "map: in memory, being written {cached:?}; unwritten {:?}", state.map.unwritten());
    for plane in (0..state.geometry.planes()).map(PlaneId) {
        let free = state.provisioning.free_blocks(plane);
        let open = [HOT, COLD, LOG, META].map(|stream| state.provisioning.open(plane, stream));
        let blocks: Vec<BlockId> = state.geometry.blocks_of(plane).collect();
        let count = |is: &dyn Fn(&BlockId) -> bool| blocks.iter().filter(|block| is(block)).count();
        let full = [HOT, COLD, LOG, META].map(|stream| {
            count(&|block| state.chunks.get(*block).state == BlockState::Full && state.chunks.stream(*block) == stream)
        });
        let empty =
            count(&|block| state.chunks.get(*block).state == BlockState::Full && state.chunks.get(*block).valid == 0);
        let _ = writeln!(
            text,
            "{plane:?}: {free} free, open {open:?}, full by stream {full:?}, of them without current data {empty}"
        );
    }
    text
}

fn flags(flags: &Flags) -> String {
    let Flags { log_writing, mark_wanted, checkpointing, checkpoint_wanted, writing_tables, .. } = flags;
    let Flags { collecting, committing, writing_bad, .. } = flags;
    let (collecting, all) = (
        collecting.get(),
        [
            ("writing the log", log_writing),
            ("mark wanted", mark_wanted),
            ("checkpointing", checkpointing),
            ("another checkpoint wanted", checkpoint_wanted),
            ("writing tables", writing_tables),
            ("committing", committing),
            ("writing tables of bad blocks", writing_bad),
        ],
    );
    let set: Vec<&str> = all.iter().filter(|(_, flag)| flag.get()).map(|(name, _)| *name).collect();
    format!("{}, collecting {collecting}", set.join(", "))
}
