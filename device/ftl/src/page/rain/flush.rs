//! Stripes from the write buffer to flash (Li 3.3.5).
//!
//! The buffer fills up to a share of its slots; above it, stripes go to flash in the background, in the order of the policy. When
//! the buffer is full, writes wait for stripes: a flush in the foreground.
//!
//! A stripe is first read as far as its parity needs it; until then its slots take newer writes. Then its members are programmed
//! side by side, each when its plane is ready. Writes that come for them get slots of their own.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_media::{MediaError, PageImage, PlaneId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use smallvec::SmallVec;

use super::super::PageFtl;
use super::super::background::Work;
use super::super::buffer::SlotState;
use super::super::state::State;
use super::extra::FOR_PARITY;
use super::job::{Job, Member, Pending, Program};
use super::layout::{Layout, Place};
use super::plan::{self, ReadPlan, Wanted};
use super::{Rain, Snapshot, members_of, parity};
use crate::address::{Location, SlotId};

impl State {
    /// A unit has data in a slot that waits to be written.
    pub(in super::super) fn stripe_waits(&mut self, slot: SlotId) {
        let lpn = self.buffer.slot(slot).lpn;
        let Some(rain) = self.rain.as_deref_mut() else { return };
        let (stripe, member) = rain.layout.stripe_of(lpn);
        let is_free = !rain.is_under_way(stripe);
        rain.dirty.add(&rain.layout, stripe, member, is_free);
    }

    /// The next stripe to be written, if one is due: because the buffer is filled above its share, because somebody waits for what
    /// is in it, or, `is_full`, for room.
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

    /// Whether collections hold up at least half of the stripes under way: each leaves the buffer with its last page, and has no other
    /// plane to go to.
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
            is_given_up: Cell::new(false),
        });
        self.rain().jobs.insert(stripe, job.clone());
        job
    }

    /// What the reads before a write of a stripe depend on. `failed` are members that could not be read.
    fn wanted(&self, job: &Job, failed: u32) -> Wanted {
        let Some(rain) = self.rain.as_deref() else { unreachable!("a drive with stripes") };
        let mask = |is_in: &dyn Fn(SlotId) -> bool| {
            let slots = job.slots.iter().filter(|(_, slot)| is_in(*slot));
            slots.fold(0, |mask, (member, _)| mask | 1 << member)
        };
        let layout = &rain.layout;
        let collects = |member: &u32| self.collectors.is_running(layout.plane_at(job.from, *member));
        let slow = if rain.policy.reads_around() {
            (0..layout.width()).filter(collects).fold(0, |mask, member| mask | 1 << member)
        } else {
            0
        };
        Wanted {
            written: mask(&|_| true),
            partial: mask(&|slot| !self.buffer.is_whole(slot)),
            parity: layout.parity(),
            bad: failed,
            slow,
            is_moving: job.is_moving(),
        }
    }

    /// The next program whose plane is ready. Members whose plane is out of use are skipped; if that has ended a stripe, it is
    /// returned instead.
    fn next_program(&mut self) -> Option<Result<Program, Rc<Job>>> {
        let mut from = PlaneId(0);
        loop {
            let rain = self.rain.as_deref_mut()?;
            let plane = *rain.waited_for.range(from..).next()?;
            from.0 = plane.0 + 1;
            if self.collectors.is_out_of_use(plane) {
                while let Some(pending) = self.rain().take_waiting(plane) {
                    if let Pending::Member(job, _) = pending
                        && job.one_done()
                    {
                        return Some(Err(job));
                    }
                }
            } else if self.is_ready(plane) {
                let what = self.rain().take_waiting(plane)?;
                let page = self.take_host_pages(plane, 0, 1).next().expect("one was asked for");
                self.host_program_begins(plane);
                return Some(Ok(Program { page, what }));
            }
        }
    }

    /// The image of the page of a program.
    fn program_image(&mut self, program: &Program) -> PageImage {
        let mut image = PageImage::default();
        match &program.what {
            Pending::Member(job, index) => {
                let members = job.members.borrow();
                let member = &members[*index];
                match member.slot {
                    Some(slot) => {
                        image.push(member.lpn.0, self.buffer.share_data(slot));
                        self.counters.host_units += 1;
                    }
                    None => {
                        image.push(member.lpn.0, member.data.clone());
                        let is_parity = self.rain().layout.parity() == member.number;
                        match is_parity {
                            true => self.counters.rain.parity_units += 1,
                            false => self.counters.wear_units += 1,
                        }
                    }
                }
            }
            Pending::Repair(repair) => {
                image.push(repair.lpn.0, repair.data.clone());
                self.counters.rain.repaired_units += 1;
            }
        }
        image
    }
}

impl Job {
    /// A member is on flash, or cannot be. Whether it was the last.
    pub(super) fn one_done(&self) -> bool {
        self.left.set(self.left.get() - 1);
        self.left.get() == 0 && !self.is_given_up.get()
    }
}

/// What was read for a stripe.
struct Old {
    snapshot: Snapshot,
    plan: ReadPlan,
}

/// A write that waits for a stripe to leave the write buffer, until it is dropped.
pub(in super::super) struct WaitingWrite<'a>(&'a Cell<u32>);

impl Drop for WaitingWrite<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl PageFtl {
    /// A write finds the buffer full. Stripes are written as long as the result is there.
    pub(in super::super) fn flush_in_foreground(&self) -> WaitingWrite<'_> {
        self.state.borrow_mut().counters.rain.foreground_flushes += 1;
        self.waiting_writes.set(self.waiting_writes.get() + 1);
        self.pump();
        WaitingWrite(&self.waiting_writes)
    }

    /// Has those who wait for stripes look again when power is cut.
    pub(in super::super) fn watch_power(self: &Rc<PageFtl>) {
        let weak = Rc::downgrade(self);
        if self.config.rain.is_some() {
            self.media.on_power_cut(move || weak.upgrade().iter().for_each(|ftl| ftl.stripe_ended.notify()));
        }
    }

    /// Starts stripes and programs as far as they are due and their planes are ready.
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

    /// Reads what the parity of a stripe needs, and has its members programmed.
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

    /// Reads what is needed, and plans again around what cannot be read.
    async fn read_old(&self, job: &Rc<Job>, snapshot: &Snapshot) -> Result<ReadPlan, MediaError> {
        let geometry = *self.media.geometry();
        let (mut done, mut failed) = (0, 0);
        loop {
            let wanted = self.state.borrow().wanted(job, failed);
            // What has been read need not be gone round any more.
            let plan = plan::plan(snapshot, &Wanted { slow: wanted.slow & !done, ..wanted });
            let missing = plan.read & !done;
            if missing == 0 || job.is_given_up.get() {
                return Ok(plan);
            }
            self.state.borrow_mut().counters.read_modify_writes += u64::from(missing.count_ones());
            let place = |member: u32| snapshot.units[member as usize].map(|unit| geometry.page_of(unit));
            let pages = members_of(missing).filter_map(|member| Some((member, place(member)?)));
            let broken = self.read_extras(pages, FOR_PARITY, &mut Breakdown::new()).await?;
            failed |= broken;
            done |= missing & !broken;
        }
    }

    /// All is known that the new parity follows from: it is made, and the members wait for their planes.
    fn begin_programs(&self, job: &Rc<Job>, old: &Old) {
        let old_of = |member: u32| self.old_data(old, member);
        let state = &mut *self.state.borrow_mut();
        job.lost.set(old.plan.lost);
        for (member, slot) in &job.slots {
            if !state.buffer.is_whole(*slot) {
                match old.plan.lost & 1 << member {
                    0 => state.buffer.fill(*slot, old_of(*member).as_deref()),
                    _ => state.lose_rest(*slot),
                }
            }
            state.buffer.begin_program(*slot);
        }
        let sum = self.media.keeps_data().then(|| self.new_parity(state, job, old));
        let members = self.members(state, job, old, sum);
        job.left.set(members.len() as u32);
        *job.members.borrow_mut() = members;
        let rain = state.rain.as_deref_mut().expect("a drive with stripes");
        for (index, member) in job.members.borrow().iter().enumerate() {
            let plane = rain.layout.plane_at(job.to, member.number);
            rain.wait_for(plane, Pending::Member(job.clone(), index));
        }
    }

    /// What is programmed: the slots, the parity, and with a stripe that moves the rest of it.
    fn members(&self, state: &State, job: &Job, old: &Old, sum: Option<Rc<[u8]>>) -> SmallVec<[Member; 8]> {
        let Some(rain) = state.rain.as_deref() else { unreachable!("a drive with stripes") };
        let layout: &Layout = &rain.layout;
        let unit = |number: u32| layout.unit(job.stripe, number);
        let of_slot = |(number, slot): &(u32, SlotId)| {
            Some(Member { number: *number, lpn: unit(*number)?, slot: Some(*slot), data: None, page: None })
        };
        let written = job.slots.iter().fold(0, |mask, (member, _)| mask | 1 << member);
        let parity = layout.parity();
        let gone = old.snapshot.zeros | old.plan.lost | written | 1 << parity;
        let moved = if job.is_moving() { old.snapshot.all & !gone } else { 0 };
        let mut members: SmallVec<[Member; 8]> = job.slots.iter().filter_map(of_slot).collect();
        members.extend(members_of(moved).filter_map(|number| {
            let data = if self.media.keeps_data() { self.old_data(old, number) } else { None };
            Some(Member { number, lpn: unit(number)?, slot: None, data, page: None })
        }));
        members.extend(unit(parity).map(|lpn| Member { number: parity, lpn, slot: None, data: sum, page: None }));
        members
    }

    /// The parity of a stripe once its slots are written. They are whole.
    fn new_parity(&self, state: &State, job: &Job, old: &Old) -> Rc<[u8]> {
        let written = job.slots.iter().fold(0, |mask, (member, _)| mask | 1 << member);
        let Some(rain) = state.rain.as_deref() else { unreachable!("a drive with stripes") };
        let parity_member = 1 << rain.layout.parity();
        let old_ones = match old.plan.is_anew {
            true => old.snapshot.all & !written & !parity_member,
            false => written | parity_member,
        };
        let mut sum = vec![0; self.media.geometry().unit_size() as usize];
        for member in members_of(old_ones & !old.snapshot.zeros & !old.plan.lost) {
            if let Some(data) = self.old_data(old, member) {
                parity::add(&mut sum, &data);
            }
        }
        for (_, slot) in &job.slots {
            if let Some(data) = state.buffer.data(*slot) {
                parity::add(&mut sum, data);
            }
        }
        sum.into()
    }

    /// What a member held on flash: as it was read, or as the others tell.
    fn old_data(&self, old: &Old, member: u32) -> Option<Rc<[u8]>> {
        let Old { snapshot, plan } = old;
        if plan.derived == 1 << member {
            return Some(self.sum(snapshot, snapshot.all & !snapshot.zeros & !plan.derived).into());
        }
        snapshot.units[member as usize].and_then(|unit| self.media.data(unit))
    }

    /// Programs a page of a stripe.
    pub(in super::super) async fn program_stripe(&self, program: &mut Program) {
        let issued = self.free_slots.totals();
        let mut breakdown = Breakdown::new();
        let image = self.state.borrow_mut().program_image(program);
        let who = self.config.priority.who(cause::HOST_WRITE);
        let counted = match self.gate.is_closed() {
            true => Some(self.gate.pass(&self.media, who, &mut breakdown).await),
            false => None,
        };
        let page = program.page;
        let work = self.background.program(self.media.geometry().plane_of(self.media.geometry().block_of(page)), 1);
        let loaded = |_: &Breakdown| work.iter().for_each(Work::is_loaded);
        let ended = self.media.program_together(&[page], &image, who, &mut breakdown, loaded).await;
        drop(counted);
        drop(work);
        let mut state = self.state.borrow_mut();
        let plane = state.geometry.plane_of(state.geometry.block_of(page));
        state.programs.holdups.programmed(plane, &breakdown);
        state.host_program_left(plane);
        let done = match ended {
            Ok(()) => state.stripe_programmed(program),
            Err(broken) => {
                state.stripe_not_programmed(program, broken);
                None
            }
        };
        let is_awaited = state.pace.is_suspended;
        drop(state);
        if is_awaited {
            self.came_to_rest.notify();
        }
        if let Some(job) = done {
            self.commit_stripe(&job, Some((&issued, &breakdown)));
        }
        self.pump();
    }
}
