//! From the write cache to flash: which data is programmed when.
//!
//! A page is programmed when there is data for all of it. Data that does not fill a page is programmed where a flush or a write
//! waits for it, the rest of the page as padding. A write that waits for room in the cache has no page padded as long as slots are
//! on their way to be free, or writes that have room are on their way to the cache. So with writes that touch `n` units at the
//! most, pages of `p` units and a cache of `n + p - 1` slots or more, no page is padded for room: if nothing is on its way, either
//! `p` slots are in line, or `n` are free. Transactions are an exception, whose slots are free together: the end of the oldest one
//! is programmed at once while a write waits for room.

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
use crate::address::SlotId;
use crate::component::CacheFill;

/// What the cache is to do next.
enum Step {
    Program(ProgramJob),
    Fill(SlotId),
    /// There is too little data, or no plane takes another program.
    Wait,
    /// There is data, but no page for it.
    NoRoom,
}

/// What writes wait for.
#[derive(Copy, Clone)]
struct Wanted {
    /// One waits for room in the cache.
    room: bool,
    /// And nothing but another program will make any.
    room_now: bool,
}

impl State {
    /// The next fill or program, if one is due.
    fn next_step(&mut self, wanted: Wanted, layout: Layout) -> Step {
        let want = self.geometry.units_per_page();
        let is_due = || self.cache.queued() >= want && (wanted.room || self.is_due(want));
        if self.cache.queued() == 0 || !(wanted.room_now || self.cache.is_urgent() || is_due()) {
            return Step::Wait;
        }
        let are_busy = self.are_planes_busy();
        if are_busy && !self.cache.has_parts() {
            return Step::Wait;
        }
        let mut whole: SmallVec<[SlotId; 8]> = SmallVec::new();
        for slot in self.cache.line() {
            // A version becomes current after the one before it.
            if self.cache.slot(slot).transaction == 0 && !self.cache.is_oldest(slot) {
                continue;
            }
            if self.cache.is_whole(slot) {
                whole.push(slot);
            } else if self.cache.fills < 2 * self.geometry.planes() {
                return Step::Fill(slot);
            }
            if whole.len() == want as usize {
                break;
            }
        }
        let fills_page = whole.len() == want as usize;
        if whole.is_empty() || !(fills_page || wanted.room_now || whole.iter().any(|slot| self.cache.is_awaited(*slot)))
        {
            return Step::Wait;
        }
        match self.host_page() {
            Some(page) => Step::Program(self.host_program(page, whole, layout)),
            None if are_busy => Step::Wait,
            None => Step::NoRoom,
        }
    }

    /// Whether P9 wants a page of data programmed now; no command waits for it.
    fn is_due(&self, page: u32) -> bool {
        self.caching.is_due(&CacheFill {
            queued: self.cache.queued(),
            used: self.cache.used(),
            slots: self.cache.slots(),
            page,
        })
    }

    fn host_program(&mut self, page: PageId, slots: SmallVec<[SlotId; 8]>, layout: Layout) -> ProgramJob {
        let units = self.geometry.units_per_page() as usize;
        let mut image = PageImage::default();
        for slot in &slots {
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

    /// Slots were programmed, or their program has failed: they are in line again then. Whether they were.
    pub(super) fn placed(&mut self, page: PageId, slots: &[SlotId], is_programmed: bool) -> bool {
        let geometry = self.geometry;
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

    /// Starts programs and fills. Whether pages were handed out, or there were none.
    fn start_steps(&self, room: bool) -> bool {
        let mut uses_pages = false;
        loop {
            let mut state = self.state.borrow_mut();
            let wanted = Wanted { room, room_now: room && !self.brings_room(&state) };
            match state.next_step(wanted, self.config.layout) {
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

    /// Says why writes wait, and has garbage collected where that is due.
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
