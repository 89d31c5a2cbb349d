//! Room that will never become free: the drive becomes read-only, because commands would otherwise wait forever.
//!
//! Blocks return when a checkpoint ends, which needs pages for its tables and for the log.

use nandscape_device_ftl_core::ftl::ReadOnly;

use super::core::Core;
use super::state::State;

/// The number of checkpoints, and of blocks that they released.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Progress {
    checkpoints: u64,
    released: u64,
    /// Blocks that are being released.
    releasing: u32,
}

impl Progress {
    /// Whether a whole checkpoint since then has released nothing. The first that ended may have begun before.
    pub(super) fn is_barren_since(&self, earlier: Progress) -> bool {
        self.releasing == 0 && self.released == earlier.released && self.checkpoints >= earlier.checkpoints + 2
    }
}

impl State {
    pub(super) fn progress(&self) -> Progress {
        Progress { checkpoints: self.checkpoints, released: self.released, releasing: self.releasing }
    }

    /// Whether no work in progress could make room for the host's data.
    fn is_idle(&self) -> bool {
        self.releasing == 0 && self.held.is_empty() && !self.has_programs() && !self.collecting.contains(&true)
    }
}

impl Core {
    /// Called without a page for the log, or for a table of a checkpoint. If no block is being released, none will be.
    pub(super) fn check_room_for_tables(&self) {
        if self.state.borrow().releasing == 0 {
            self.give_up_writing(ReadOnly::NoRoomForTables);
        }
    }

    /// Called without room for the host's data and without anything to collect. A checkpoint gets the chance to release
    /// blocks.
    pub(super) fn check_room_for_host(&self) {
        let mut state = self.state.borrow_mut();
        if state.has_room_for_host() || state.cache.queued() == 0 || !state.is_idle() {
            state.no_room_since = None;
            return;
        }
        let now = state.progress();
        let since = *state.no_room_since.get_or_insert(now);
        drop(state);
        match now.is_barren_since(since) {
            true => self.give_up_writing(ReadOnly::NoRoomForData),
            false => self.request_checkpoint(),
        }
    }
}
