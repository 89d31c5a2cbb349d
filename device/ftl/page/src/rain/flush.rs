//! Stripes from the write buffer to flash (Li 3.3.5).
//!
//! The buffer fills up to a share of its slots; above it, stripes are written to flash in the background, in the order
//! of the policy. When the buffer is full, writes wait for stripes: a flush in the foreground.
//!
//! A stripe is first read as far as its parity needs it; until then its slots take newer writes. Then its members are programmed
//! concurrently, each when its plane is ready. Writes that arrive for them get separate slots.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Location, SlotId};
use nandscape_device_media::PlaneId;
use nandscape_drive::breakdown::cause;
use smallvec::SmallVec;

use super::super::PageFtl;
use super::super::buffer::SlotState;
use super::super::state::State;
use super::job::Job;
use super::layout::Place;
use super::renew::Old;
use super::{Rain, members_of};

impl State {
    /// A unit has data in a slot that waits to be written.
    pub(in super::super) fn stripe_waits(&mut self, slot: SlotId) {
        let lpn = self.buffer.slot(slot).lpn;
        let Some(rain) = self.rain.as_deref_mut() else { return };
        let (stripe, member) = rain.layout.stripe_of(lpn);
        let is_free = !rain.is_under_way(stripe);
        rain.dirty.add(&rain.layout, stripe, member, is_free);
    }

    /// The next stripe to be written, if one is due: because the buffer is filled above its share, because a command
    /// waits for its data, or, with `is_full`, for room.
    fn next_job(&mut self, is_full: bool) -> Option<Rc<Job>> {
        let State { rain, collectors, buffer, .. } = self;
        let rain = rain.as_deref()?;
        let waiting = rain.dirty.units();
        if waiting == 0 || !(is_full || waiting > rain.config.flush_above || buffer.is_urgent()) {
            return None;
        }
        let Rain { layout, dirty, policy, .. } = rain;
        let collects = |place: Place, member: u32| collectors.is_running(layout.plane_at(place, member));
        let collecting = |stripe: u32, members: u32| {
            let place = layout.place(stripe);
            let written = members_of(members | 1 << layout.parity());
            written.filter(|member| collects(place, *member)).count() as u32
        };
        // A stripe that a collection holds up leaves its turn to another.
        let most = |group: u32| {
            let held_up = layout.planes(group).filter(|plane| collectors.is_running(*plane));
            let held_up: usize = held_up.map(|plane| rain.waiting[plane.0 as usize].len()).sum();
            (layout.width() + held_up as u32).min(rain.most_jobs)
        };
        let stripe = dirty.next(&**policy, layout, most, collecting)?;
        Some(self.begin_job(stripe))
    }

    /// Whether collections hold up at least half of the stripes in progress: each keeps slots until its last page is on
    /// flash, and cannot use another plane.
    fn waits_for_collections(&self) -> bool {
        let (collectors, Some(rain)) = (&self.collectors, self.rain.as_deref()) else { return false };
        let planes = rain.waiting.iter().enumerate();
        let held_up = planes.filter(|(plane, _)| collectors.is_running(PlaneId(*plane as u32)));
        let held_up: usize = held_up.map(|(_, waiting)| waiting.len()).sum();
        held_up > 0 && held_up * 2 >= rain.jobs.len()
    }

    /// Takes the slots of a stripe.
    fn begin_job(&mut self, stripe: u32) -> Rc<Job> {
        let rain = self.rain();
        let members = rain.dirty.begin(&rain.layout, stripe);
        let from = rain.layout.place(stripe);
        let to = self.place_for(stripe, members);
        let rain = self.rain();
        let units: SmallVec<[_; 8]> = members_of(members)
            .map(|member| (member, rain.layout.unit(stripe, member).expect("a unit with data is there")))
            .collect();
        let mut slots = SmallVec::new();
        for (member, lpn) in units {
            let Location::Buffered(newest) = self.tables.location(lpn) else {
                unreachable!("{lpn:?} is in the buffer")
            };
            // A program that power interrupted has left an older slot of the unit in line: it goes first.
            let slot = self.holder(newest);
            self.buffer.start(slot, SlotState::Filling);
            slots.push((member, slot));
            if slot != newest {
                let rain = self.rain();
                rain.dirty.add(&rain.layout, stripe, member, false);
            }
        }
        let job = Rc::new(Job {
            stripe,
            from,
            to,
            slots,
            members: RefCell::default(),
            left: Cell::new(0),
            lost: Cell::new(0),
            is_early: Cell::new(false),
            is_given_up: Cell::new(false),
        });
        self.rain().jobs.insert(stripe, job.clone());
        job
    }
}

/// A write that waits for a stripe to leave the write buffer, until it is dropped.
pub(in super::super) struct WaitingWrite<'a>(&'a Cell<u32>);

impl Drop for WaitingWrite<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl PageFtl {
    /// A write finds the buffer full. Stripes are written as long as the result exists.
    pub(in super::super) fn flush_in_foreground(&self) -> WaitingWrite<'_> {
        self.state.borrow_mut().counters.rain.foreground_flushes += 1;
        self.waiting_writes.set(self.waiting_writes.get() + 1);
        self.pump();
        WaitingWrite(&self.waiting_writes)
    }

    /// Wakes waiters for stripes when power is cut.
    pub(in super::super) fn watch_power(self: &Rc<PageFtl>) {
        let weak = Rc::downgrade(self);
        if self.config.rain.is_some() {
            self.media.on_power_cut(move || weak.upgrade().iter().for_each(|ftl| ftl.stripe_ended.notify()));
        }
    }

    /// Starts due stripes, and programs whose planes are ready.
    pub(in super::super) fn pump_stripes(&self) {
        let is_full = self.waiting_writes.get() > 0;
        let mut state = self.state.borrow_mut();
        while let Some(job) = state.next_job(is_full) {
            self.flushes.start(job);
        }
        let mut ended = Vec::new();
        while let Some(next) = state.next_program() {
            match next {
                Ok(program) => self.stripe_programs.start(program),
                Err(job) => ended.push(job),
            }
        }
        let behind = match state.programs.holdups.culprit() {
            cause::HOST_WRITE if is_full && state.waits_for_collections() => cause::GC,
            cause::HOST_WRITE => state.programs.culprit(),
            culprit => culprit,
        };
        drop(state);
        self.free_slots.blame(behind);
        ended.iter().for_each(|job| self.commit_stripe(job, None));
    }

    /// Reads the inputs of a stripe's parity, and programs its members.
    pub(in super::super) async fn flush_stripe(&self, job: &Rc<Job>) {
        let snapshot = self.state.borrow_mut().look_at_stripe(job.stripe);
        let plan = self.read_old(job, &snapshot).await;
        if let Ok(plan) = plan
            && !job.is_given_up.get()
        {
            self.begin_programs(job, &Old { snapshot: snapshot.clone(), plan });
        }
        self.state.borrow_mut().let_go(&snapshot);
        self.unpinned.notify();
        self.pump();
    }
}
