//! Programming the write cache to flash: which data, and when.
//!
//! A page is programmed when there is data for all of it. Data that does not fill a page is programmed where a flush or a write
//! waits for it, the rest of the page as padding. A write that waits for room in the cache has no page padded as long as slots are
//! on their way to be free, or writes with room are on their way to the cache. Take writes that touch at most `n`
//! units, pages of `p` units and a cache of `n + p - 1` slots or more: no page is then padded for room. If nothing is
//! on its way, either `p` slots are in line, or `n` are free. Transactions are an exception, because their slots are
//! freed together: the end of the oldest one is programmed at once while a write waits for room.

use std::ops::ControlFlow;

use nandscape_device_ftl_core::address::SlotId;
use nandscape_device_ftl_core::component::{CacheFill, CachedWrites, EndedProgram, InLine, Room, Submission};
use nandscape_device_media::{PageId, PageImage};
use nandscape_drive::breakdown::cause;
use smallvec::SmallVec;

use super::chores::Chore;
use super::core::Core;
use super::lines::{Layout, Stamp};
use super::pages::NO_LPN;
use super::program::{ProgramJob, Then};
use super::state::State;
use super::streams::HOT;

/// The next step of the cache.
enum Step {
    Program(ProgramJob),
    Fill(SlotId),
    /// Too little data, or no plane takes another program.
    Wait,
    /// Data, but no page for it.
    NoRoom,
}

/// The data in line, as P9 sees it.
struct Waiting<'a> {
    state: &'a State,
    room: Room,
}

impl CachedWrites for Waiting<'_> {
    fn fill(&self) -> CacheFill {
        let State { cache, geometry, .. } = self.state;
        CacheFill {
            queued: cache.queued(),
            used: cache.used(),
            slots: cache.slots(),
            page: geometry.units_per_page(),
            is_awaited: cache.is_urgent(),
            room: self.room,
            may_fill: cache.fills < 2 * geometry.planes(),
        }
    }

    fn visit(&self, each: &mut dyn FnMut(InLine) -> ControlFlow<()>) {
        let cache = &self.state.cache;
        for slot in cache.line().filter(|slot| self.state.is_next(*slot)) {
            let next = InLine { slot, is_whole: cache.is_whole(slot), is_awaited: cache.is_awaited(slot) };
            if each(next).is_break() {
                break;
            }
        }
    }
}

impl State {
    /// The next fill or program, if P9 wants one.
    fn next_step(&mut self, room: Room, layout: Layout) -> Step {
        let are_busy = self.are_planes_busy();
        if self.cache.queued() == 0 || are_busy && !self.cache.has_parts() {
            return Step::Wait;
        }
        let slots = match self.caching.submit(&Waiting { state: self, room }) {
            Submission::Wait => return Step::Wait,
            Submission::Fill(slot) => {
                let lacks_sectors = self.cache.is_in_line(slot) && !self.cache.is_whole(slot);
                assert!(lacks_sectors, "P9 component: {slot:?} cannot be filled");
                return Step::Fill(slot);
            }
            Submission::Program(slots) => slots,
        };
        let (count, page) = (slots.len(), self.geometry.units_per_page() as usize);
        assert!((1..=page).contains(&count), "P9 component: {count} slots are not for a page of {page}");
        match self.host_page() {
            Some(page) => Step::Program(self.host_program(page, slots, layout)),
            None if are_busy => Step::Wait,
            None => Step::NoRoom,
        }
    }

    /// Whether a slot may be programmed: a version of a unit becomes current after the previous version.
    fn is_next(&self, slot: SlotId) -> bool {
        self.cache.slot(slot).transaction != 0 || self.cache.is_oldest(slot)
    }

    fn host_program(&mut self, page: PageId, slots: SmallVec<[SlotId; 8]>, layout: Layout) -> ProgramJob {
        let units = self.geometry.units_per_page() as usize;
        let mut image = PageImage::default();
        for slot in &slots {
            let is_ready = self.cache.is_in_line(*slot) && self.cache.is_whole(*slot) && self.is_next(*slot);
            assert!(is_ready, "P9 component: {slot:?} cannot be programmed yet");
            self.cache.start_program(*slot);
            let (lpn, data) = (self.cache.slot(*slot).lpn, self.cache.data(*slot).cloned());
            match layout {
                Layout::Log => image.push(lpn, data),
                Layout::Lines(_) => {
                    let stamp =
                        Stamp { sequence: self.next_sequence, lost: self.cache.slot(*slot).lost as u32, stream: HOT };
                    self.next_sequence += 1;
                    image.push_with_oob(stamp.area(lpn), data);
                }
            }
        }
        self.counters.host_units += slots.len() as u64;
        self.counters.padding_units += (units - slots.len()) as u64;
        image.pad(units, NO_LPN);
        self.begin_pending(self.geometry.block_of(page), slots.len());
        ProgramJob { page, image, cause: cause::HOST_WRITE, then: Then::Slots(slots) }
    }

    /// Slots were programmed, or their program has failed: they are in line again then. Returns whether they were
    /// programmed.
    pub(super) fn placed(&mut self, page: PageId, slots: &[SlotId], is_programmed: bool) -> bool {
        let geometry = self.geometry;
        self.caching.callback(EndedProgram { units: slots.len() as u32, is_programmed });
        if !is_programmed {
            self.end_pending(geometry.block_of(page), slots.len());
            slots.iter().rev().for_each(|slot| self.cache.requeue(*slot));
            return false;
        }
        for (slot, number) in slots.iter().zip(0..) {
            self.cache.placed(*slot, geometry.unit_at(page, number));
        }
        true
    }
}

impl Core {
    /// Starts programs while there is data and room, and fills that are due. Called whenever either changes.
    pub(super) fn pump(&self) {
        self.pump_for(self.shared.free_slots.contended());
    }

    /// The same for a write that waits for room from now on.
    pub(super) fn pump_for(&self, room: bool) {
        if self.is_writing() {
            self.start_steps(room);
            self.look_for_room();
        }
    }

    /// The same when there is more data, and nothing else is new.
    pub(super) fn pump_data(&self) {
        if self.is_writing() && self.start_steps(self.shared.free_slots.contended()) {
            self.look_for_room();
        }
    }

    /// Starts programs and fills. Returns whether pages were handed out, or there were none.
    fn start_steps(&self, room: bool) -> bool {
        let mut uses_pages = false;
        loop {
            let mut state = self.state.borrow_mut();
            let room = match room {
                false => Room::Enough,
                true if self.brings_room(&state) => Room::Soon,
                true => Room::Never,
            };
            match state.next_step(room, self.config.layout) {
                Step::Wait => return uses_pages,
                Step::NoRoom => return true,
                Step::Program(job) => {
                    drop(state);
                    uses_pages = true;
                    self.programs.start(job);
                    self.save_counters_if_due();
                }
                Step::Fill(slot) => {
                    state.cache.start_fill(slot);
                    drop(state);
                    self.chores.start(Chore::Fill(slot));
                }
            }
        }
    }

    /// Returns why writes wait, and starts garbage collection where it is due.
    fn look_for_room(&self) {
        let has_room = self.state.borrow().has_room_for_host();
        self.shared.free_slots.blame(if has_room { cause::HOST_WRITE } else { cause::GC });
        self.look_for_garbage(has_room);
    }

    /// Whether slots of the cache are free soon, or more of them in line, without another program.
    fn brings_room(&self, state: &State) -> bool {
        let free = self.shared.free_slots.free();
        let is_write_expected = state.cache.used() as usize + free < state.cache.slots() as usize;
        is_write_expected || self.flags.committing.get() || state.cache.brings_room()
    }
}
