//! Zone actions of hosts: open, close, finish, reset, offline (ZNS 3.4.3).
//!
//! A reset takes effect at once; its command ends when the blocks are erased. Finish makes the zone full at once; its command
//! ends when the drive has written the zone to its end, if it does that.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_media::erase::ErasedTogether;
use nandscape_device_media::{BlockId, MediaError};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::Wait;

use super::ZoneFtl;
use super::blocks::{Blocks, Use};
use super::table::{ZoneAction, ZoneError, ZoneState};

/// The pending work of an action.
pub struct ZoneWork {
    done: Rc<Cell<bool>>,
}

/// Blocks to be erased after the firmware's work.
pub(super) struct Reset {
    blocks: Vec<BlockId>,
    units: u32,
    done: Rc<Cell<bool>>,
}

/// A zone to be filled, from a unit on.
pub(super) struct Padding {
    zone: u32,
    generation: u32,
    from: u32,
    done: Rc<Cell<bool>>,
}

impl ZoneFtl {
    /// Carries out an action on a zone. The state has changed on return; the work continues, and [`ZoneFtl::ended`] waits for
    /// it.
    ///
    /// # Errors
    /// Why the zone rejects it.
    pub fn act(&self, zone: u32, action: ZoneAction) -> Result<ZoneWork, ZoneError> {
        if action == ZoneAction::Finish {
            self.state.borrow_mut().commit_all(zone);
        }
        let before = self.zone(zone);
        let has_changed = self.state.borrow_mut().table.act(zone, action)?;
        let work = ZoneWork { done: Rc::new(Cell::new(false)) };
        match action {
            ZoneAction::Reset | ZoneAction::Offline if has_changed => {
                let (blocks, room) = self.state.borrow_mut().empty(zone);
                if room > 0 {
                    self.room.give_back(zone, room);
                }
                let units = if action == ZoneAction::Reset { before.written } else { 0 };
                self.resets.start(Reset { blocks, units, done: work.done.clone() });
                self.progress.notify();
            }
            ZoneAction::Finish if has_changed && before.written > 0 => {
                let generation = self.state.borrow().bodies[zone as usize].generation;
                let done = work.done.clone();
                self.paddings.start(Padding { zone, generation, from: before.written, done });
                // The data in a random write area is programmed now.
                self.pump(zone);
            }
            _ => work.done.set(true),
        }
        Ok(work)
    }

    /// Gives up a zone that is read-only, of a drive that owns its zones: its blocks are erased, and it is empty.
    pub(crate) fn relinquish(&self, zone: u32) {
        if self.act(zone, ZoneAction::Offline).is_ok() {
            self.state.borrow_mut().table.enter(zone, ZoneState::Empty);
        }
    }

    /// The number of further zones of each set of the mapping for which blocks are available, after each active zone has got
    /// its missing blocks, and each empty zone of `taken` all its blocks.
    pub(crate) fn zones_left(&self, taken: impl Iterator<Item = u32>) -> Vec<u32> {
        self.state.borrow().zones_left(taken)
    }

    /// Whether a zone has more blocks than its data needs: power cuts and failed programs left some partly written.
    pub(crate) fn wastes_blocks(&self, zone: u32) -> bool {
        let state = self.state.borrow();
        state.bodies[zone as usize].columns.iter().any(|column| column.runs.len() > self.layout.depth as usize)
    }

    /// The number of zones for which good blocks exist.
    pub(crate) fn zones_at_most(&self) -> u32 {
        self.state.borrow().zones_at_most()
    }

    /// The zones that an action on all zones selects.
    ///
    /// # Errors
    /// Why it selects none.
    pub fn selected(&self, action: ZoneAction) -> Result<Vec<u32>, ZoneError> {
        let state = self.state.borrow();
        if action == ZoneAction::Open && !state.table.can_open_all() {
            return Err(ZoneError::TooManyOpen);
        }
        let zones = state.table.zones().iter().zip(0..);
        Ok(zones.filter(|(zone, _)| action.selects(zone.state)).map(|(_, number)| number).collect())
    }

    /// Waits until an action has completed its work.
    pub async fn ended(&self, work: &ZoneWork) {
        while !work.done.get() {
            self.progress.changed().await;
        }
    }

    /// Whether a host may read a zone.
    pub fn is_readable(&self, zone: u32) -> bool {
        self.zone(zone).state != ZoneState::Offline
    }

    /// Erases the blocks of a zone that was reset, all at the same time.
    pub(super) async fn reset_blocks(&self, job: &Reset) {
        let (of_zone, of_unit) = self.config.reset;
        self.sim.sleep(of_zone + of_unit * u64::from(job.units)).await;
        self.start_erases(&job.blocks);
        while job.blocks.iter().any(|block| self.state.borrow().blocks.get(*block).used == Use::Stale) {
            self.progress.changed().await;
        }
        job.done.set(true);
        self.progress.notify();
    }

    /// Begins to erase stale blocks: those of the planes of a die at once, where planes work together.
    pub(super) fn start_erases(&self, blocks: &[BlockId]) {
        self.media.erased_together(blocks).into_iter().for_each(|group| self.erases.start(group));
    }

    /// Erases stale blocks once no operation is in progress in them. A block that cannot be erased, or in which a program
    /// failed, goes out of use. After a power loss, the restart repeats the erases.
    pub(super) async fn erase(&self, blocks: &ErasedTogether) {
        // The restart may have begun with them, or may have erased them.
        let stale = |block: &&BlockId| self.state.borrow_mut().blocks.begin_erase(**block);
        let stale: ErasedTogether = blocks.iter().filter(stale).copied().collect();
        for block in &stale {
            while self.state.borrow().blocks.is_pinned(*block) {
                self.unpinned.changed().await;
            }
        }
        let is_broken = |block: &BlockId| self.state.borrow().blocks.get(*block).is_broken;
        let (broken, good): (ErasedTogether, ErasedTogether) = stale.into_iter().partition(is_broken);
        // Unwritten blocks are already erased. After a restart this is not certain.
        let is_written = |block: &BlockId| self.media.pages_programmed(*block) > 0 || !self.is_running();
        let (written, empty): (ErasedTogether, ErasedTogether) = good.into_iter().partition(is_written);
        self.settle(|blocks| {
            empty.iter().for_each(|block| blocks.erased(*block));
            broken.iter().for_each(|block| blocks.retire(*block));
        });
        if written.is_empty() {
            return;
        }
        let who = self.config.priority.who(cause::HOST_WRITE);
        let ended = self.media.erase_together(&written, who, &mut Breakdown::new()).await;
        self.settle(|blocks| {
            for (block, ended) in written.iter().zip(ended) {
                match ended {
                    Ok(()) => blocks.erased(*block),
                    Err(MediaError::PowerLost) => blocks.not_erased(*block),
                    Err(_) => blocks.retire(*block),
                }
            }
        });
    }

    /// Records blocks that are no longer stale, and continues with zones that need one.
    fn settle(&self, note: impl FnOnce(&mut Blocks)) {
        let needy = {
            let mut state = self.state.borrow_mut();
            note(&mut state.blocks);
            std::mem::take(&mut state.needy)
        };
        self.progress.notify();
        needy.into_iter().for_each(|zone| self.pump(zone));
    }

    /// Writes a finished zone to its end. The units that complete the begun strip take no room: the strip may be the
    /// one that has to release room.
    pub(super) async fn pad(&self, job: &Padding) {
        let (strip, end, zone) = (self.layout.strip_units(), self.capacity(), (job.zone, job.generation));
        let (mut at, mut waited) = (job.from.next_multiple_of(strip), Wait::ZERO);
        let mut is_wanted = at == job.from || self.put_padding(zone, job.from, at - job.from, false);
        while is_wanted && self.config.finish_pads && at < end {
            let mut reservation = self.reserve_units(job.zone, strip, &mut waited).await;
            is_wanted = self.put_padding(zone, at, strip, true);
            if is_wanted {
                reservation.keep();
            }
            at += strip;
        }
        while self.is_unfinished(job) {
            self.progress.changed().await;
        }
        job.done.set(true);
        self.progress.notify();
    }

    /// Whether data of a finished zone is on its way to flash.
    fn is_unfinished(&self, job: &Padding) -> bool {
        let state = self.state.borrow();
        let body = &state.bodies[job.zone as usize];
        let is_under_way = !body.strips.is_empty() || !body.is_empty();
        body.generation == job.generation && !body.is_stranded && is_under_way
    }
}
