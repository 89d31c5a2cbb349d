//! The single-threaded, deterministic executor on which all model code runs.
//!
//! A task is an `async fn`. It waits on leaves (a timer, a resource, a signal) that note its [`TaskId`] and wake it
//! through [`Sim`]. One event is taken at a time, and the clock moves to the event's own timestamp. Every task that the
//! event made ready runs, in the order of waking, before the next event: the same input gives the same run on any
//! machine. Foreign futures, which would wake through a `std` waker, do not work here: the context carries a waker that
//! does nothing.
//!
//! There are two ways to run. [`Executor::block_on`] advances simulated time from event to event. With
//! [`Executor::advance`] and [`Executor::arrive`], a caller that has a clock and arrivals from outside advances the
//! time itself (see the crate `nandscape-transport-reactor`).
//!
//! Left out: the wall clock and sources of outside arrivals.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Waker};

use crate::background::{Background, BackgroundSleep};
use crate::event_queue::{EventQueue, Timer, TimerKey};
use crate::time::{Span, Time};
use crate::timer::Sleep;
use crate::trace::{Event, Trace};

/// Names a task of one executor. Ids are reused once a task has ended; waking the wrong task is harmless.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TaskId(u32);

impl TaskId {
    /// The future given to [`Executor::block_on`].
    const MAIN: TaskId = TaskId(0);

    #[cfg(test)]
    pub(crate) const fn new(index: u32) -> TaskId {
        TaskId(index)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Units of noted work that count as a poll.
const WORK_A_POLL: u64 = 1;

/// The main future, and the context in which every task is polled.
struct Main<'a> {
    future: Pin<&'a mut dyn Future<Output = ()>>,
    context: Context<'static>,
}

impl<'a> Main<'a> {
    fn new(future: Pin<&'a mut dyn Future<Output = ()>>) -> Main<'a> {
        Main { future, context: Context::from_waker(Waker::noop()) }
    }
}

/// The state shared by the executor and every handle to it.
struct Core {
    now: Cell<Time>,
    current: Cell<TaskId>,
    stopped: Cell<bool>,
    /// The number of the last timer that fired, if that was due now.
    fired: Cell<u64>,
    /// Work that tasks have noted.
    work: Cell<u64>,
    events: RefCell<EventQueue>,
    ready: RefCell<Ready>,
    /// Whether a task is ready. New tasks are.
    any_ready: Cell<bool>,
    started: RefCell<Started>,
    trace: Trace,
    background: Background,
}

/// Tasks woken and not yet polled, each at most once, in the order of waking.
struct Ready {
    first: u32,
    last: u32,
    /// By task: the task that was woken after it, [`LAST`], or [`NOT_READY`].
    next: Vec<u32>,
}

const LAST: u32 = u32::MAX;
const NOT_READY: u32 = u32::MAX - 1;

impl Ready {
    const fn new() -> Ready {
        Ready { first: LAST, last: LAST, next: Vec::new() }
    }

    /// Adds a task, unless it is present.
    #[inline]
    fn push(&mut self, task: TaskId) {
        match self.next.get_mut(task.index()) {
            Some(next) if *next == NOT_READY => *next = LAST,
            Some(_) => return,
            None => self.grow(task),
        }
        match self.first {
            LAST => self.first = task.0,
            _ => self.next[self.last as usize] = task.0,
        }
        self.last = task.0;
    }

    #[cold]
    fn grow(&mut self, task: TaskId) {
        self.next.resize(task.index() + 1, NOT_READY);
        self.next[task.index()] = LAST;
    }

    /// Takes the task that has been ready for longest; there is one.
    #[inline]
    fn pop(&mut self) -> TaskId {
        let task = self.first;
        self.first = std::mem::replace(&mut self.next[task as usize], NOT_READY);
        TaskId(task)
    }
}

/// Live tasks by id; slot 0 stays empty, because the main future is on the stack of `block_on`.
type Tasks = Vec<Option<Task>>;

/// New tasks. A task may start one while it is polled and the table of tasks is borrowed; they join the table afterwards.
struct Started {
    tasks: Vec<(TaskId, Task)>,
    free: Vec<TaskId>,
    next: u32,
}

impl Started {
    fn id(&mut self) -> TaskId {
        self.free.pop().unwrap_or_else(|| {
            self.next = self.next.checked_add(1).filter(|next| *next < NOT_READY).expect("more than 2^32 tasks");
            TaskId(self.next - 1)
        })
    }
}

/// Owns the tasks and runs them. Dropping it is a power cut: all commands in flight are lost.
pub struct Executor {
    sim: Sim,
    tasks: Tasks,
    spurious_polls: bool,
    /// Polls of tasks by [`Executor::advance`] at an instant.
    polled: (Time, u64),
}

/// A handle to the executor that model code keeps: the time, timers, new tasks, the event trace.
#[derive(Clone)]
pub struct Sim {
    core: Rc<Core>,
}

/// Nothing is left that could ever wake the main future: a deadlock in the model.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the run stalled at {at:?}: the main task waits and no event is pending")]
pub struct Stalled {
    /// When the last event ran.
    pub at: Time,
}

/// Why a run that was bounded did not end.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unended {
    /// It never will.
    #[error("{0}")]
    Stalled(#[from] Stalled),
    /// Tasks were polled as often as was allowed.
    #[error("the run had not ended at {at:?}, after {polls} polls of tasks")]
    Endless {
        /// When the last event ran.
        at: Time,
        /// Polls of tasks.
        polls: u64,
    },
}

impl Default for Executor {
    fn default() -> Executor {
        Executor::new()
    }
}

impl Executor {
    /// An executor at time zero, with no task and no event.
    pub fn new() -> Executor {
        Executor::traced(Trace::new())
    }

    /// So many executors, each with its own time, events and tasks: whatever one of them does, the others do not wait for it. Their
    /// event traces number their tracks together ([`chrome_json`](crate::trace::chrome_json)).
    pub fn apart(count: usize) -> Vec<Executor> {
        Trace::together(count).into_iter().map(Executor::traced).collect()
    }

    fn traced(trace: Trace) -> Executor {
        let core = Core {
            now: Cell::new(Time::ZERO),
            current: Cell::new(TaskId::MAIN),
            stopped: Cell::new(false),
            fired: Cell::new(0),
            work: Cell::new(0),
            events: RefCell::new(EventQueue::new()),
            ready: RefCell::new(Ready::new()),
            any_ready: Cell::new(false),
            started: RefCell::new(Started { tasks: Vec::new(), free: Vec::new(), next: 1 }),
            trace,
            background: Background::default(),
        };
        Executor { sim: Sim { core: Rc::new(core) }, tasks: vec![None], spurious_polls: false, polled: (Time::ZERO, 0) }
    }

    /// As [`Executor::new`], and every task is polled once more after every event, without cause.
    ///
    /// A run must not be able to detect the difference: tests run a model both ways and compare.
    pub fn with_spurious_polls() -> Executor {
        let mut executor = Executor::new();
        executor.spurious_polls = true;
        executor
    }

    /// The handle that model code is built with.
    pub fn sim(&self) -> Sim {
        self.sim.clone()
    }

    /// Runs in simulated time until `main` is done. Other tasks are unchanged and continue at the next call.
    ///
    /// # Errors
    /// [`Stalled`] when `main` still waits and no event is left.
    pub fn block_on<F: Future>(&mut self, main: F) -> Result<F::Output, Stalled> {
        let mut output = None;
        let main = async { output = Some(main.await) };
        self.run(Main::new(pin!(main)))?;
        Ok(output.expect("the main future has ended"))
    }

    /// As [`Executor::block_on`], for at most `most` polls of tasks: for tests of models that may run forever, even at
    /// one instant.
    ///
    /// # Errors
    /// [`Unended`] when `main` still waits after that, or for good.
    pub fn block_on_within<F: Future>(&mut self, main: F, most: u64) -> Result<F::Output, Unended> {
        let mut output = None;
        let main = async { output = Some(main.await) };
        self.run_within(Main::new(pin!(main)), most)?;
        Ok(output.expect("the main future has ended"))
    }

    /// Runs events and ready tasks up to and including `until`, each event at its own timestamp, for at most `most` polls of tasks;
    /// whether none is left. Polls that do long work ([`Sim::note_work`]) count as several. The next call continues with the
    /// others: stopping between two polls changes nothing.
    pub fn advance(&mut self, until: Time, most: u32) -> bool {
        let limit = self.work() + u64::from(most) * WORK_A_POLL;
        for _ in 0..most {
            if self.work() >= limit {
                return false;
            }
            if !self.advance_once(until) {
                return true;
            }
        }
        false
    }

    /// Runs everything before `at`, and at `at` until tasks have been polled `polls` times at that instant. It repeats a run that
    /// stopped there ([`Executor::polls_now`]). Returns `false` when less than that is to do.
    pub fn advance_to(&mut self, at: Time, polls: u64) -> bool {
        while self.sim.now() < at || self.polls_now() < polls {
            if !self.advance_once(at) {
                return false;
            }
        }
        true
    }

    /// How often tasks have been polled at the present instant, by calls of [`Executor::advance`] and [`Executor::advance_to`].
    pub fn polls_now(&self) -> u64 {
        let (at, polls) = self.polled;
        if at == self.sim.now() { polls } else { 0 }
    }

    /// Polls the task that is ready, or that of the next event up to `until`. Returns whether there was one.
    fn advance_once(&mut self, until: Time) -> bool {
        let nobody = pin!(std::future::pending());
        let mut nobody = Main::new(nobody);
        let Some(task) = self.next_ready().or_else(|| self.next_event(until)) else { return false };
        let polls = self.polls_now();
        self.polled = (self.sim.now(), polls + 1);
        self.poll(task, &mut nobody);
        if self.spurious_polls && !self.sim.core.any_ready.get() {
            self.poll_everything(&mut nobody);
        }
        true
    }

    /// Units of work that tasks have noted so far ([`Sim::note_work`]).
    #[inline]
    pub fn work(&self) -> u64 {
        self.sim.core.work.get()
    }

    /// Moves the clock to `at`, when something from outside is about to be handed to the model. Tasks that it wakes run
    /// at the next [`Executor::advance`].
    ///
    /// # Panics
    /// When `at` has passed, or an event before it has not run.
    pub fn arrive(&mut self, at: Time) {
        let core = &self.sim.core;
        assert!(at >= core.now.get(), "an arrival at {at:?}, and it is {:?}", core.now.get());
        assert!(self.next_due().is_none_or(|due| due >= at), "an event before the arrival at {at:?} has not run");
        if at > core.now.get() {
            core.now.set(at);
            core.fired.set(0);
        }
    }

    /// When the next event is due; tasks that are ready are due now. `None` when only an arrival could bring one.
    pub fn next_due(&self) -> Option<Time> {
        let core = &self.sim.core;
        match core.any_ready.get() {
            false => core.events.borrow_mut().peek(),
            true => Some(core.now.get()),
        }
    }

    /// Runs until `main` is done.
    fn run(&mut self, mut main: Main<'_>) -> Result<(), Stalled> {
        let mut done = self.poll(TaskId::MAIN, &mut main);
        while !done {
            let task = match self.next_ready() {
                Some(task) => task,
                None if self.spurious_polls && self.poll_everything(&mut main) => return Ok(()),
                None => self.next_of_run()?,
            };
            done = self.poll(task, &mut main);
        }
        Ok(())
    }

    /// Runs until `main` is done, for at most `most` polls.
    fn run_within(&mut self, mut main: Main<'_>, most: u64) -> Result<(), Unended> {
        let mut task = TaskId::MAIN;
        for _ in 0..most {
            if self.poll(task, &mut main) {
                return Ok(());
            }
            task = match self.next_ready() {
                Some(task) => task,
                None => self.next_of_run()?,
            };
        }
        // The task that was taken out last is polled at the next call.
        self.sim.wake(task);
        Err(Unended::Endless { at: self.sim.now(), polls: most })
    }

    /// Moves the clock to the next event, if there is one up to `limit`; the task that waited for it.
    #[inline]
    fn next_event(&self, limit: Time) -> Option<TaskId> {
        let core = &self.sim.core;
        let Timer { time, number, task } = core.events.borrow_mut().pop(limit)?;
        core.now.set(time);
        core.fired.set(number);
        Some(task)
    }

    /// The task of the next event of a run in simulated time, in which no task is ready.
    #[inline]
    fn next_of_run(&self) -> Result<TaskId, Stalled> {
        let task = self.next_event(Time::MAX).ok_or_else(|| Stalled { at: self.sim.now() })?;
        if self.sim.core.background.is_empty() { Ok(task) } else { self.check_background(task) }
    }

    /// An event has just been taken, in a run that has background timers: reports if there are no others.
    #[cold]
    fn check_background(&self, task: TaskId) -> Result<TaskId, Stalled> {
        let core = &self.sim.core;
        let only_background = core.background.count_with(core.fired.get()).is_some_and(|count| {
            // The taken timer is among those that are counted, and pending no more.
            core.events.borrow().pending() == count - 1
        });
        if only_background {
            // It is polled at the next call.
            self.sim.wake(task);
            return Err(Stalled { at: self.sim.now() });
        }
        Ok(task)
    }

    /// The task that has been ready for longest.
    #[inline]
    fn next_ready(&mut self) -> Option<TaskId> {
        if self.sim.core.any_ready.get() { Some(self.take_ready()) } else { None }
    }

    /// The same, if a task is ready.
    #[inline(never)]
    fn take_ready(&mut self) -> TaskId {
        self.adopt_started();
        let core = &self.sim.core;
        let mut ready = core.ready.borrow_mut();
        let task = ready.pop();
        core.any_ready.set(ready.first != LAST);
        task
    }

    /// Polls ready tasks until none is left, or until the main future is done.
    fn run_ready(&mut self, main: &mut Main<'_>) -> bool {
        while let Some(task) = self.next_ready() {
            if self.poll(task, main) {
                return true;
            }
        }
        false
    }

    fn poll_everything(&mut self, main: &mut Main<'_>) -> bool {
        self.adopt_started();
        let tasks = self.tasks.len() as u32;
        (0..tasks).any(|index| self.poll(TaskId(index), main)) || self.run_ready(main)
    }

    /// Polls a task; whether that was the main future, and it is done.
    #[inline(always)]
    fn poll(&mut self, id: TaskId, main: &mut Main<'_>) -> bool {
        self.sim.core.current.set(id);
        match self.tasks.get_mut(id.index()) {
            Some(Some(task)) => {
                if task.as_mut().poll(&mut main.context).is_ready() {
                    self.end(id);
                }
                false
            }
            _ if id == TaskId::MAIN => main.future.as_mut().poll(&mut main.context).is_ready(),
            // A task that has ended.
            _ => false,
        }
    }

    /// A task has ended.
    #[inline(never)]
    fn end(&mut self, id: TaskId) {
        drop(self.tasks[id.index()].take());
        self.sim.core.started.borrow_mut().free.push(id);
    }

    /// Moves new tasks to the table of tasks.
    #[inline]
    fn adopt_started(&mut self) {
        let mut started = self.sim.core.started.borrow_mut();
        if started.tasks.is_empty() {
            return;
        }
        for (id, task) in started.tasks.drain(..) {
            if id.index() >= self.tasks.len() {
                self.tasks.resize_with(id.index() + 1, || None);
            }
            self.tasks[id.index()] = Some(task);
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.sim.core.stopped.set(true);
        // Out of their cells: dropping a task may drop the last handle to another's resources.
        let tasks = std::mem::take(&mut self.tasks);
        let started = std::mem::take(&mut self.sim.core.started.borrow_mut().tasks);
        drop((tasks, started));
    }
}

impl Sim {
    /// The current instant. While an event runs this is the event's own timestamp.
    #[inline]
    pub fn now(&self) -> Time {
        self.core.now.get()
    }

    /// Whether the executor was stopped. A drop after that must have no effect outside.
    pub fn is_stopped(&self) -> bool {
        self.core.stopped.get()
    }

    /// Starts a task. It is first polled after the tasks that are ready now.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let mut started = self.core.started.borrow_mut();
        let id = started.id();
        started.tasks.push((id, Box::pin(future)));
        drop(started);
        self.wake(id);
    }

    /// Notes that the current event does work of `units` in one go, such as that of a command over many mapping units. It changes
    /// nothing in the model: a caller of [`Executor::advance`] sees how much it has run.
    #[inline]
    pub fn note_work(&self, units: u64) {
        self.core.work.set(self.core.work.get() + units);
    }

    /// Waits until `time`; at once when it has passed.
    pub fn sleep_until(&self, time: Time) -> Sleep<'_> {
        Sleep::new(self, time)
    }

    /// Waits for `span`.
    pub fn sleep(&self, span: Span) -> Sleep<'_> {
        Sleep::new(self, self.now() + span)
    }

    /// Waits for `span`, as endless work does between its steps: a run does not continue for such waits alone.
    pub fn sleep_in_background(&self, span: Span) -> BackgroundSleep<'_> {
        BackgroundSleep::new(self, self.sleep(span))
    }

    pub(crate) fn background(&self) -> &Background {
        &self.core.background
    }

    /// Waits, without time passing, until everything that is due now has run, with all that follows from it at this instant.
    pub fn after_what_is_due(&self) -> Sleep<'_> {
        Sleep::begun(self, self.now())
    }

    /// The event trace; it records nothing until it is switched on.
    pub fn trace(&self) -> &Trace {
        &self.core.trace
    }

    /// Adds an event that ends now to the trace, if that is on.
    #[inline]
    pub fn trace_event(&self, make: impl FnOnce(Time) -> Event) {
        if self.core.trace.is_on() {
            self.core.trace.push(make(self.now()));
        }
    }

    /// The task that is being polled: a leaf future notes it, to have it woken later.
    #[inline]
    pub fn current_task(&self) -> TaskId {
        self.core.current.get()
    }

    /// Makes a task ready. It checks its condition again, so a wake without cause does no harm.
    pub fn wake(&self, task: TaskId) {
        self.core.ready.borrow_mut().push(task);
        self.core.any_ready.set(true);
    }

    #[inline(always)]
    pub(crate) fn set_timer(&self, time: Time, task: TaskId) -> TimerKey {
        self.core.events.borrow_mut().set(time, task)
    }

    #[inline(always)]
    pub(crate) fn timer_is_pending(&self, key: TimerKey) -> bool {
        let (now, fired) = (self.core.now.get(), self.core.fired.get());
        key.time > now || (key.time == now && key.number > fired)
    }

    pub(crate) fn cancel_timer(&self, key: TimerKey) {
        self.core.events.borrow_mut().cancel(key);
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sim({:?})", self.now())
    }
}

#[cfg(test)]
mod tests;
