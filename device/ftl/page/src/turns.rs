//! When the drive may do internal work: windows. A step of a collection (as many moves as fit, an erase) begins only if
//! it is expected to end inside the window. A collection stopped by the end of a window releases its plane, and
//! continues in the next. Programs of data whose writes have ended wait for a window as well, until the buffer is
//! nearly full.
//!
//! A plane without room for the host is collected anyway: that breaks the contract, and is counted. Within a window,
//! collectors that are to work ahead collect up to more free blocks than they would keep otherwise
//! ([`GcConfig::free_in_window`](super::GcConfig), and more in long windows, for which space is needed). Hosts do not wait
//! for them to keep in step.
//!
//! Left out: blocks that have gone bad, which are emptied at any time; the choice of windows, a
//! [`TurnPolicy`](nandscape_device_ftl_core::policy::TurnPolicy); and predictable latency in the sense of NVMe, which the controller has.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use nandscape_device_ftl_core::component::{BlockMetadata, Provisioning};
use nandscape_device_ftl_core::offers::LatencyWindow;
use nandscape_device_ftl_core::policy::{Deterministic, Schedule, TurnPolicy};
use nandscape_device_ftl_core::windows::NEARLY_FULL;
use nandscape_device_media::{BlockId, PlaneId};
use nandscape_sim::trace::{Event, Track};
use nandscape_sim::workers::Workers;
use nandscape_sim::{Sim, Span, Time};

use super::state::State;
use super::{GcConfig, PageFtl};

/// See the module.
#[derive(Default)]
pub(super) struct Turns {
    schedule: Option<Schedule>,
    /// Whether Predictable Latency Mode is on, and the policy of its deterministic window.
    mode: bool,
    deterministic: Option<Deterministic>,
    /// Whether a schedule or the mode is in force. Checked many times for each page.
    is_in_force: bool,
    /// Whether it is the drive's turn with each range, as of the last change.
    open: Vec<bool>,
    /// Free blocks of a plane that its collector keeps at any time.
    free_blocks: u32,
    /// Further free blocks up to which a collection in a window works: as many as hosts have taken between two windows, or
    /// half of the previous number. It starts at one, without knowledge of hosts.
    learned: u32,
    /// The most, in windows that are not long and in long ones.
    most: [u32; 2],
    /// Free blocks of each plane when the last window ended.
    at_end: Vec<u32>,
    /// Counts changes of the schedule in force: the timer of an earlier one ends.
    generation: u64,
    /// Writes that wait for room in the buffer.
    waiting: Rc<Cell<u32>>,
    /// The track of windows in the trace, and the begin of the open window.
    track: Option<(Track, Time)>,
}

/// The timer of a schedule.
pub(super) struct Timer {
    generation: u64,
    at: Time,
}

impl Turns {
    pub(super) fn new(config: &GcConfig) -> Turns {
        let most = [config.free_in_window, config.free_in_long_window];
        Turns { free_blocks: config.free_blocks, learned: 1, most, open: vec![true], ..Turns::default() }
    }

    /// Whether the drive may not always do internal work.
    #[inline]
    pub(super) fn is_in_force(&self) -> bool {
        self.is_in_force
    }

    fn policies(&self) -> impl Iterator<Item = &dyn TurnPolicy> {
        let schedule = self.schedule.as_ref().map(|policy| policy as &dyn TurnPolicy);
        schedule.into_iter().chain(self.deterministic.as_ref().map(|policy| policy as &dyn TurnPolicy))
    }

    fn left(&self, range: u16, now: Time) -> Option<Span> {
        self.policies().filter_map(|policy| policy.left(range, now)).min()
    }

    fn next_turn(&self, now: Time) -> Option<Time> {
        self.policies().filter_map(|policy| policy.next_turn(now)).min()
    }

    /// Ranges that have separate windows.
    fn ranges(&self) -> u16 {
        self.schedule.map_or(1, |schedule| schedule.ranges)
    }

    /// Free blocks beyond those kept at any time that a collection in a window works up to. A drive with ranges has a window at any time,
    /// and learns nothing between two of them.
    fn ahead(&self) -> u32 {
        let most = self.most[usize::from(self.schedule.is_some_and(|schedule| schedule.is_long))];
        if self.ranges() > 1 { most } else { self.learned.min(most) }
    }

    /// Whether it is the drive's turn with some range.
    pub(super) fn is_any_open(&self) -> bool {
        self.open.contains(&true)
    }
}

impl State {
    /// The range of a block's data, where ranges have separate windows.
    fn range_of(&self, block: BlockId) -> u16 {
        match (self.turns.ranges(), &self.placed) {
            (2.., Some(placed)) => placed.owner(block).map_or(0, u16::from),
            _ => 0,
        }
    }

    /// Whether it is the drive's turn with the data of a block. A block may be collected then.
    pub(super) fn is_open(&self, block: BlockId) -> bool {
        !self.turns.is_in_force() || self.turns.open.get(usize::from(self.range_of(block))).is_none_or(|open| *open)
    }

    /// Whether a plane is collected whatever the window: the host has no room there, or collectors must come to rest.
    fn is_forced(&self, plane: PlaneId) -> bool {
        self.pace.is_suspended || !self.has_room_for_host(plane)
    }

    /// Whether a plane is low on space while there are windows.
    pub(super) fn is_low_in_window(&self, plane: PlaneId) -> bool {
        match self.turns.is_any_open() {
            true => self.tables.free.free_blocks(plane) <= self.turns.free_blocks + self.turns.ahead(),
            false => !self.has_room_for_host(plane),
        }
    }

    /// Whether the collector of a plane may work.
    pub(super) fn has_turn(&self, plane: PlaneId) -> bool {
        !self.turns.is_in_force() || self.turns.is_any_open() || self.is_forced(plane)
    }

    /// Whether a block belongs to a range without a turn, while other ranges have one.
    pub(super) fn is_of_closed_range(&self, block: BlockId) -> bool {
        self.turns.ranges() > 1 && self.turns.is_any_open() && !self.is_open(block)
    }

    /// Whether data whose writes have ended may be programmed.
    pub(super) fn may_program(&self) -> bool {
        let (share, of) = NEARLY_FULL;
        let has_turn = || {
            !self.turns.is_in_force()
                || !self.writes_end_in_buffer
                || self.turns.is_any_open()
                || self.buffer.is_urgent()
                || self.turns.waiting.get() > 0
                || self.buffer.in_use() * of >= self.buffer.slots() * share
        };
        !self.orders.hold() && has_turn()
    }

    /// Whether neither windows nor orders limit the steps of collections.
    #[inline]
    pub(super) fn is_unlimited(&self) -> bool {
        !self.turns.is_in_force() && !self.orders.are_in_force()
    }

    /// How long a step on a block that begins now may take; `None` is no limit.
    pub(super) fn time_for_step(&self, plane: PlaneId, block: BlockId, now: Time) -> Option<Span> {
        if self.orders.are_in_force()
            && let Some(time) = self.time_by_order(plane, now)
        {
            return time;
        }
        if !self.turns.is_in_force() || self.is_forced(plane) {
            return None;
        }
        self.turns.left(self.range_of(block), now)
    }

    /// A step begins: whether outside a window is counted.
    pub(super) fn step_begins(&mut self, block: BlockId) {
        if self.turns.is_in_force() && !self.is_open(block) && !self.pace.is_suspended {
            self.counters.forced_steps += 1;
        }
    }

    /// A program of hosts' data begins: whether as background work outside a window is counted.
    pub(super) fn program_begins(&mut self) {
        if self.turns.is_in_force() && self.writes_end_in_buffer && !self.turns.is_any_open() {
            self.counters.forced_programs += 1;
        }
    }

    /// Units that hosts may write before a plane is collected whatever the window, if they are spread evenly.
    pub(super) fn free_for_host(&self) -> u64 {
        let pages = |plane| self.tables.free.free_pages(&self.tables.blocks, plane);
        let least = (0..self.geometry.planes()).map(PlaneId).map(pages).min().unwrap_or_default();
        let kept = self.pace.open_blocks * self.geometry.pages_per_block();
        let pages = u64::from(least.saturating_sub(kept)) * u64::from(self.geometry.planes());
        pages * u64::from(self.geometry.units_per_page())
    }

    /// Writes that wait for room in the buffer.
    pub(super) fn writes_waiting(&self) -> Rc<Cell<u32>> {
        self.turns.waiting.clone()
    }

    /// Checks what the time allows, and learns how much hosts take between two windows.
    fn look_at_time(&mut self, now: Time) {
        let was_open = self.turns.is_any_open();
        let turns = &self.turns;
        let open = (0..turns.ranges()).map(|range| turns.left(range, now) != Some(Span::ZERO)).collect();
        self.turns.open = open;
        let planes = (0..self.geometry.planes()).map(PlaneId);
        match (was_open, self.turns.is_any_open()) {
            (true, false) => self.turns.at_end = planes.map(|plane| self.tables.free.free_blocks(plane)).collect(),
            (false, true) => {
                let taken = planes.zip(&self.turns.at_end);
                let taken = taken.map(|(plane, before)| before.saturating_sub(self.tables.free.free_blocks(plane)));
                let taken = taken.max().unwrap_or_default() + 1;
                self.turns.learned = taken.max(self.turns.learned / 2);
                self.counters.window_turns += 1;
            }
            (true, true) => self.counters.window_turns += u64::from(self.turns.ranges() > 1),
            (false, false) => {}
        }
    }
}

/// A write that waits for room in the buffer, until dropped.
pub(super) struct Waiting(Rc<Cell<u32>>);

impl Waiting {
    pub(super) fn new(writes: Rc<Cell<u32>>) -> Waiting {
        writes.set(writes.get() + 1);
        Waiting(writes)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl PageFtl {
    /// The pool of timers, which do not keep the FTL alive.
    pub(super) fn timers(sim: &Sim, weak: &Weak<PageFtl>) -> Workers<Timer> {
        let (weak, inner) = (weak.clone(), sim.clone());
        Workers::new(sim, async move |timer: &mut Timer| {
            loop {
                inner.sleep_until(timer.at).await;
                let Some(ftl) = weak.upgrade() else { return };
                match ftl.turn(timer.generation) {
                    Some(next) => timer.at = next,
                    None => return,
                }
            }
        })
    }

    /// From now on, windows follow the schedule; with `None` the drive may always do internal work.
    pub(super) fn follow(&self, schedule: Option<Schedule>) {
        self.state.borrow_mut().turns.schedule = schedule;
        self.turns_changed();
    }

    /// Enters a window of Predictable Latency Mode, or ends the mode.
    pub(super) fn follow_mode(&self, window: Option<LatencyWindow>) {
        let mut state = self.state.borrow_mut();
        state.turns.mode = window.is_some();
        state.turns.deterministic = (window == Some(LatencyWindow::Deterministic)).then_some(Deterministic);
        drop(state);
        self.turns_changed();
    }

    fn turns_changed(&self) {
        let now = self.sim.now();
        let mut state = self.state.borrow_mut();
        state.turns.generation += 1;
        state.turns.is_in_force = state.turns.schedule.is_some() || state.turns.mode;
        if state.turns.is_in_force && state.turns.track.is_none() {
            // Several drives number their tracks together. The first windows open in the order of the wall clock, or of a replay.
            state.turns.track = Some((self.sim.trace().track("windows".to_owned()), now));
        }
        let (generation, next) = (state.turns.generation, state.turns.next_turn(now));
        drop(state);
        self.look_at_turns(now);
        if let Some(at) = next {
            self.timers.start(Timer { generation, at: at.min(self.end_of_window(now).unwrap_or(at)) });
        }
    }

    /// When the open window ends.
    fn end_of_window(&self, now: Time) -> Option<Time> {
        let state = self.state.borrow();
        let left = (0..state.turns.ranges()).filter_map(|range| state.turns.left(range, now));
        left.filter(|left| !left.is_zero()).min().map(|left| now + left)
    }

    /// A window begins or ends. Returns the time of the next change, unless another schedule is in force by now.
    fn turn(&self, generation: u64) -> Option<Time> {
        let now = self.sim.now();
        let state = self.state.borrow();
        if state.turns.generation != generation {
            return None;
        }
        let next = state.turns.next_turn(now);
        drop(state);
        self.look_at_turns(now);
        next.map(|next| next.min(self.end_of_window(now).unwrap_or(next)))
    }

    /// Makes collections and programs check what the time allows.
    fn look_at_turns(&self, now: Time) {
        let mut state = self.state.borrow_mut();
        let was_open = state.turns.is_any_open();
        state.look_at_time(now);
        self.trace_window(&mut state, was_open, now);
        for plane in (0..state.geometry.planes()).map(PlaneId) {
            if state.turns.ranges() > 1 {
                // Planes without a gain in one range may have one in another.
                state.set_fruitful(plane);
            }
            state.update_ready(plane);
            state.check_collector(plane);
            state.wake_collector(plane);
        }
        drop(state);
        self.pump();
    }

    /// A window of the drive that has ended is an event of the trace.
    fn trace_window(&self, state: &mut State, was_open: bool, now: Time) {
        let is_open = state.turns.is_any_open();
        match (was_open, is_open) {
            (false, true) => state.turns.track = state.turns.track.map(|(track, _)| (track, now)),
            (true, false) => {
                if let Some((track, start)) = state.turns.track {
                    self.sim.trace_event(|end| Event { track, name: "window", start, end, detail: 0 });
                }
            }
            _ => {}
        }
    }

    /// How many pages the next step on a block may move: `None` if it has to wait for a window, otherwise the limit, if any.
    /// Without units to move, the step is the erase.
    #[inline]
    pub(super) fn step_of(&self, plane: PlaneId, block: BlockId) -> Option<Option<u32>> {
        match self.state.borrow().is_unlimited() {
            true => Some(self.config.gc.batch),
            false => self.limited_step_of(plane, block),
        }
    }

    fn limited_step_of(&self, plane: PlaneId, block: BlockId) -> Option<Option<u32>> {
        let (state, batch) = (self.state.borrow(), self.config.gc.batch);
        if state.orders.are_in_force() && !state.may_collect(plane) {
            return None;
        }
        let Some(left) = state.time_for_step(plane, block, self.sim.now()) else { return Some(batch) };
        if state.tables.blocks.get(block).valid == 0 {
            return (left >= self.background.cleaning(0)).then_some(batch);
        }
        let page = self.background.moving(state.geometry.units_per_page());
        let fit = left.ns() / page.ns().max(1);
        let fit = u32::try_from(fit).unwrap_or(u32::MAX).min(batch.unwrap_or(u32::MAX));
        (fit > 0).then_some(Some(fit))
    }
}
