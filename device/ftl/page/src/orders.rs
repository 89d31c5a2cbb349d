//! Collections that a host requests, limits and holds off ([`Collections`](nandscape_device_ftl_core::collections::Collections)).
//!
//! Lack of space comes first: a plane without a page for the host, or without spare blocks, is collected whatever the order.
//! Then come the host's orders, then windows ([`turns`](super::turns)), and then the drive's own pace.
//!
//! The watermarks count erased blocks of all planes, and blocks whose erase has begun: of several collectors near a
//! watermark, as many finish as blocks are missing. A run ends on time: a step of a collection begins only if it is
//! expected to end within the run. A collection stopped by a run or a hold in the midst of a block keeps its block, and
//! continues later.
//!
//! Blocks that have gone bad are emptied at any time. Until that is done, a drive is not ready for reads.
//!
//! Left out: drives with parity stripes, which take no orders; saved states, which begin without watermarks.

use std::rc::Weak;

use nandscape_device_ftl_core::collections::{BadWatermarks, CollectionStatus, Collections, Watermarks};
use nandscape_device_ftl_core::ftl::Ftl as _;
use nandscape_device_media::PlaneId;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Sim, Span, Time};

use super::schedule::Phase;
use super::state::State;
use super::{PageFtl, PageFtlConfig};

/// See the file.
pub(super) struct Orders {
    /// Whether a host has given any order. Checked many times for each page.
    is_in_force: bool,
    watermarks: Watermarks,
    /// The watermarks after power-on.
    initial: Watermarks,
    /// When the run under way ends.
    until: Option<Time>,
    /// Whether nothing internal may begin.
    holds: bool,
    /// Erases of collections under way.
    erasing: u32,
    /// Counts runs: the timer of an earlier one has no effect.
    run: u64,
}

/// The end of a run.
pub(super) struct RunEnd {
    run: u64,
    at: Time,
}

impl Orders {
    pub(super) fn new(planes: u32, config: &PageFtlConfig) -> Orders {
        let a_plane = config.gc.free_blocks.saturating_add(config.gc.free_in_long_window);
        let initial = Watermarks { low: 0, high: planes.saturating_mul(a_plane) };
        Orders { is_in_force: false, watermarks: initial, initial, until: None, holds: false, erasing: 0, run: 0 }
    }

    /// Whether a host has given any order.
    #[inline]
    pub(super) fn are_in_force(&self) -> bool {
        self.is_in_force
    }

    /// Whether nothing internal may begin.
    #[inline]
    pub(super) fn hold(&self) -> bool {
        self.holds
    }

    /// Whether the host has taken over from the drive's own policy.
    pub(super) fn set_pace(&self) -> bool {
        self.watermarks.low > 0
    }
}

impl State {
    fn all_planes(&self) -> impl Iterator<Item = PlaneId> + use<> {
        (0..self.geometry.planes()).map(PlaneId)
    }

    /// Erased blocks, and those that are about to be.
    fn level(&self) -> u64 {
        self.tables.free_blocks() + u64::from(self.orders.erasing)
    }

    fn is_below_low(&self) -> bool {
        self.orders.watermarks.low > 0 && self.level() < self.orders.watermarks.low.into()
    }

    fn is_run_due(&self) -> bool {
        self.orders.until.is_some() && self.level() < self.orders.watermarks.high.into()
    }

    /// Whether orders require the collection of a plane, regardless of windows and pace.
    fn is_ordered(&self, plane: PlaneId) -> bool {
        self.keeps_last_blocks(plane) || self.is_run_due() || self.is_below_low()
    }

    /// Whether a plane must choose a victim, by the orders of the host; `None` leaves this to windows and pace.
    pub(super) fn is_low_by_order(&self, plane: PlaneId) -> Option<bool> {
        if self.orders.holds || self.is_ordered(plane) {
            return Some(!self.orders.holds);
        }
        let is_left = !self.orders.set_pace() || self.turns.is_in_force();
        (!is_left).then(|| !self.has_room_for_host(plane))
    }

    /// Whether a collector that has a block is to continue, while orders are in force.
    pub(super) fn may_collect_by_order(&self, plane: PlaneId) -> bool {
        if self.pace.is_suspended {
            return true;
        }
        let may = || (self.is_low(plane) || !self.has_room_for_host(plane)) && self.has_turn(plane);
        !self.orders.holds && (self.is_ordered(plane) || may())
    }

    /// How long a step that begins now may take, as far as orders limit it; `Some(None)` is no limit.
    pub(super) fn time_by_order(&self, plane: PlaneId, now: Time) -> Option<Option<Span>> {
        if self.pace.is_suspended
            || !self.has_room_for_host(plane)
            || self.keeps_last_blocks(plane)
            || self.is_below_low()
        {
            return Some(None);
        }
        let until = self.orders.until.filter(|_| self.is_run_due());
        until.map(|until| Some(until.since(now)))
    }

    /// The erase of a collection begins.
    pub(super) fn erase_begins(&mut self) {
        self.orders.erasing += 1;
    }

    /// The erase has ended. A run that has reached the high watermark is over.
    pub(super) fn erase_ended(&mut self) {
        self.orders.erasing -= 1;
        if !self.orders.is_in_force {
            return;
        }
        if self.tables.free_blocks() >= self.orders.watermarks.high.into() {
            self.orders.until = None;
        }
        // An erase that failed, or a block that a collector took meanwhile, leaves room for others.
        if self.is_run_due() || self.is_below_low() {
            self.look_at_orders();
        }
    }

    /// Makes collections and programs check what the orders allow.
    fn look_at_orders(&mut self) {
        for plane in self.all_planes() {
            self.update_ready(plane);
            self.check_collector(plane);
            self.wake_collector(plane);
        }
    }

    /// Power was lost: the drive begins without orders.
    pub(super) fn forget_orders(&mut self) {
        let Orders { initial, erasing, run, .. } = self.orders;
        self.orders = Orders {
            is_in_force: false,
            watermarks: initial,
            initial,
            until: None,
            holds: false,
            erasing,
            run: run + 1,
        };
    }

    /// Whether collections, programs and fills have come to rest, and no bad block is being emptied.
    fn is_quiet(&self) -> bool {
        let rests = |plane: PlaneId| {
            let collector = self.collectors.of(plane);
            let has_retiring = !collector.retiring.is_empty() && !self.collectors.is_out_of_use(plane);
            !has_retiring && !matches!(self.collectors.phase(plane), Phase::Running | Phase::DueAgain | Phase::Leaving)
        };
        self.orders.erasing == 0 && self.programs.are_idle() && self.all_planes().all(rests)
    }

    fn is_collecting_now(&self) -> bool {
        self.all_planes().any(|plane| self.collectors.is_running(plane))
    }

    /// Whether a plane may still gain something.
    fn may_gain(&self) -> bool {
        let ends = |plane| matches!(self.collectors.phase(plane), Phase::Fruitless | Phase::Leaving | Phase::OutOfUse);
        !self.all_planes().all(ends)
    }
}

impl PageFtl {
    /// The pool of timers of runs, which do not keep the FTL alive.
    pub(super) fn run_ends(sim: &Sim, weak: &Weak<PageFtl>) -> Workers<RunEnd> {
        let (weak, inner) = (weak.clone(), sim.clone());
        Workers::new(sim, async move |end: &mut RunEnd| {
            inner.sleep_until(end.at).await;
            if let Some(ftl) = weak.upgrade() {
                ftl.end_run(end.run);
            }
        })
    }

    fn end_run(&self, run: u64) {
        let mut state = self.state.borrow_mut();
        if state.orders.run != run || state.orders.until.take().is_none() {
            return;
        }
        state.look_at_orders();
        drop(state);
        self.pump();
    }

    /// Ends a hold, if there is one: a write or other work of the host has arrived.
    #[inline]
    pub(super) fn end_hold(&self) {
        if self.state.borrow().orders.holds {
            self.end_this_hold();
        }
    }

    /// The hold has ended: collectors, programs and fills check whether they may continue.
    #[cold]
    fn end_this_hold(&self) {
        let mut state = self.state.borrow_mut();
        state.orders.holds = false;
        state.look_at_orders();
        drop(state);
        self.pump();
    }

    /// Whether writes of hosts have slots with pending data, or wait for slots or for the flash.
    fn are_writes_under_way(&self) -> bool {
        let state = self.state.borrow();
        let taken = (self.config.buffer_units as usize).saturating_sub(self.free_slots.free());
        self.free_slots.contended() || taken > state.buffer.in_use() as usize || state.buffer.is_urgent()
    }

    fn is_at_rest(&self) -> bool {
        !self.scrubbing.get() && self.state.borrow().is_quiet()
    }
}

impl Collections for PageFtl {
    fn status(&self) -> CollectionStatus {
        let is_at_rest = self.is_at_rest();
        let state = self.state.borrow();
        let geometry = &state.geometry;
        let block_bytes = u64::from(geometry.units_per_block()) * u64::from(geometry.unit_size());
        CollectionStatus {
            user_bytes: self.sectors() * 512,
            device_bytes: u64::from(geometry.blocks()) * block_bytes,
            block_bytes,
            blocks: geometry.blocks(),
            free: state.tables.free_blocks() as u32,
            watermarks: state.orders.watermarks,
            is_collecting: state.is_collecting_now(),
            is_held: state.orders.holds && is_at_rest,
        }
    }

    fn set_watermarks(&self, watermarks: Watermarks) -> Result<(), BadWatermarks> {
        let mut state = self.state.borrow_mut();
        watermarks.check(state.geometry.blocks())?;
        (state.orders.is_in_force, state.orders.watermarks) = (true, watermarks);
        if state.tables.free_blocks() >= watermarks.high.into() {
            state.orders.until = None;
        }
        let is_called_off = state.orders.holds && state.is_below_low() && state.may_gain();
        state.look_at_orders();
        drop(state);
        if is_called_off {
            self.end_this_hold();
        }
        self.pump();
        Ok(())
    }

    fn run(&self, time: Span) -> bool {
        let mut state = self.state.borrow_mut();
        if state.tables.free_blocks() >= state.orders.watermarks.high.into() {
            return false;
        }
        let at = self.sim.now() + time;
        state.orders.is_in_force = true;
        state.orders.until = Some(at);
        state.orders.run += 1;
        let run = state.orders.run;
        drop(state);
        if time.is_zero() {
            self.end_run(run);
        } else {
            self.run_ends.start(RunEnd { run, at });
            self.end_this_hold();
        }
        true
    }

    fn is_ready_for_read(&self) -> bool {
        let mut state = self.state.borrow_mut();
        if !self.is_running() || state.pace.is_suspended {
            return false;
        }
        state.orders.is_in_force = true;
        state.orders.until = None;
        let is_needed = state.is_below_low() && state.may_gain();
        if is_needed {
            state.orders.holds = false;
            state.look_at_orders();
            drop(state);
            self.pump();
            return false;
        }
        drop(state);
        if self.are_writes_under_way() {
            return false;
        }
        self.state.borrow_mut().orders.holds = true;
        self.is_at_rest()
    }
}
