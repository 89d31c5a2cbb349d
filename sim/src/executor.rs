//! The single-threaded, deterministic executor on which all model code runs.
//!
//! A task is an `async fn`; it waits on leaves (a timer, a resource, a signal) that note its [`TaskId`] and wake
//! it through [`Sim`]. One event is taken at a time, the clock moves to the event's own timestamp, and every
//! task it made ready runs, in the order of waking, before the next event is looked at: the same input gives the
//! same run on any machine. Foreign futures, which would wake through a `std` waker, do not work here: the
//! context carries a waker that does nothing.
//!
//! Left out: the wall clock and sources of outside arrivals.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::time::{Span, Time};
use crate::timer::Sleep;
use crate::trace::{Event, Trace};
use crate::wheel::{TimerKey, Wheel};

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

/// What the executor and every handle to it share.
struct Core {
    now: Cell<Time>,
    current: Cell<TaskId>,
    stopped: Cell<bool>,
    wheel: RefCell<Wheel>,
    ready: RefCell<Ready>,
    tasks: RefCell<Tasks>,
    trace: Trace,
}

/// Tasks woken and not yet polled, each at most once, in the order of waking.
#[derive(Default)]
struct Ready {
    queue: VecDeque<TaskId>,
    queued: Vec<bool>,
}

impl Ready {
    fn push(&mut self, task: TaskId) {
        if task.index() >= self.queued.len() {
            self.queued.resize(task.index() + 1, false);
        }
        if !std::mem::replace(&mut self.queued[task.index()], true) {
            self.queue.push_back(task);
        }
    }

    fn pop(&mut self) -> Option<TaskId> {
        let task = self.queue.pop_front()?;
        self.queued[task.index()] = false;
        Some(task)
    }
}

/// Live tasks by id; slot 0 stays empty, for the main future lives on the stack of `block_on`.
#[derive(Default)]
struct Tasks {
    slots: Vec<Option<Task>>,
    free: Vec<TaskId>,
}

/// Owns the tasks and runs them. Dropping it is a power cut: whatever was in flight is gone.
pub struct Executor {
    sim: Sim,
    spurious_polls: bool,
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

impl Default for Executor {
    fn default() -> Executor {
        Executor::new()
    }
}

impl Executor {
    /// An executor at time zero, with no task and no event.
    pub fn new() -> Executor {
        let core = Core {
            now: Cell::new(Time::ZERO),
            current: Cell::new(TaskId::MAIN),
            stopped: Cell::new(false),
            wheel: RefCell::new(Wheel::new()),
            ready: RefCell::new(Ready::default()),
            tasks: RefCell::new(Tasks { slots: vec![None], free: Vec::new() }),
            trace: Trace::new(),
        };
        Executor { sim: Sim { core: Rc::new(core) }, spurious_polls: false }
    }

    /// As [`Executor::new`], and every task is polled once more after every event, without cause.
    ///
    /// A run must not be able to tell: tests run a model both ways and compare.
    pub fn with_spurious_polls() -> Executor {
        let mut executor = Executor::new();
        executor.spurious_polls = true;
        executor
    }

    /// The handle that model code is built with.
    pub fn sim(&self) -> Sim {
        self.sim.clone()
    }

    /// Runs in virtual time until `main` is done. Other tasks stay as they are and go on at the next call.
    ///
    /// # Errors
    /// [`Stalled`] when `main` still waits and no event is left.
    pub fn block_on<F: Future>(&mut self, main: F) -> Result<F::Output, Stalled> {
        let mut main = pin!(main);
        self.sim.wake(TaskId::MAIN);
        loop {
            if let Some(output) = self.run_ready(&mut main) {
                return Ok(output);
            }
            if self.spurious_polls
                && let Some(output) = self.poll_everything(&mut main)
            {
                return Ok(output);
            }
            if !self.next_event() {
                return Err(Stalled { at: self.sim.now() });
            }
        }
    }

    /// Moves the clock to the next event and wakes its task.
    fn next_event(&self) -> bool {
        let core = &self.sim.core;
        let Some((time, task)) = core.wheel.borrow_mut().pop(Time::MAX) else { return false };
        core.now.set(time);
        self.sim.wake(task);
        true
    }

    /// Polls ready tasks until none is left, or until the main future is done.
    fn run_ready<F: Future>(&self, main: &mut Pin<&mut F>) -> Option<F::Output> {
        loop {
            let task = self.sim.core.ready.borrow_mut().pop()?;
            if let Some(output) = self.poll(task, main) {
                return Some(output);
            }
        }
    }

    fn poll_everything<F: Future>(&self, main: &mut Pin<&mut F>) -> Option<F::Output> {
        let tasks = self.sim.core.tasks.borrow().slots.len() as u32;
        (0..tasks).find_map(|index| self.poll(TaskId(index), main)).or_else(|| self.run_ready(main))
    }

    fn poll<F: Future>(&self, id: TaskId, main: &mut Pin<&mut F>) -> Option<F::Output> {
        let core = &self.sim.core;
        let mut context = Context::from_waker(Waker::noop());
        core.current.set(id);
        if id == TaskId::MAIN {
            return match main.as_mut().poll(&mut context) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            };
        }
        // The task is out of its slot while it runs, so that it may spawn others.
        let mut task = core.tasks.borrow_mut().slots[id.index()].take()?;
        let done = task.as_mut().poll(&mut context).is_ready();
        let mut tasks = core.tasks.borrow_mut();
        if done {
            tasks.free.push(id);
            drop(tasks);
            drop(task);
        } else {
            tasks.slots[id.index()] = Some(task);
        }
        None
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.sim.core.stopped.set(true);
        // One at a time: dropping a task may drop the last handle to another's resources.
        let count = self.sim.core.tasks.borrow().slots.len();
        for index in 0..count {
            let task = self.sim.core.tasks.borrow_mut().slots[index].take();
            drop(task);
        }
    }
}

impl Sim {
    /// The current instant. While an event runs this is the event's own timestamp.
    pub fn now(&self) -> Time {
        self.core.now.get()
    }

    /// Whether the executor was stopped: what is dropped from now on must have no effect outside.
    pub fn is_stopped(&self) -> bool {
        self.core.stopped.get()
    }

    /// Starts a task that runs beside the others. It is first polled after those that are ready now.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let task: Task = Box::pin(future);
        let mut tasks = self.core.tasks.borrow_mut();
        let id = match tasks.free.pop() {
            Some(id) => id,
            None => {
                tasks.slots.push(None);
                TaskId(u32::try_from(tasks.slots.len() - 1).expect("more than 2^32 tasks"))
            }
        };
        tasks.slots[id.index()] = Some(task);
        drop(tasks);
        self.wake(id);
    }

    /// Waits until `time`; at once when it has passed.
    pub fn sleep_until(&self, time: Time) -> Sleep<'_> {
        Sleep::new(self, time)
    }

    /// Waits for `span`.
    pub fn sleep(&self, span: Span) -> Sleep<'_> {
        Sleep::new(self, self.now() + span)
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
    pub fn current_task(&self) -> TaskId {
        self.core.current.get()
    }

    /// Makes a task ready. It looks again at what it waits for, so that a wake without cause does no harm.
    pub fn wake(&self, task: TaskId) {
        self.core.ready.borrow_mut().push(task);
    }

    pub(crate) fn set_timer(&self, time: Time, task: TaskId) -> TimerKey {
        self.core.wheel.borrow_mut().set(time, task)
    }

    pub(crate) fn timer_is_pending(&self, key: TimerKey) -> bool {
        self.core.wheel.borrow().is_pending(key)
    }

    pub(crate) fn cancel_timer(&self, key: TimerKey) {
        self.core.wheel.borrow_mut().cancel(key);
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sim({:?})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_run_at_their_own_times_in_order() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let log = Rc::new(RefCell::new(Vec::new()));
        for (name, ns) in [("c", 30), ("a", 10), ("b", 20), ("a2", 10)] {
            let (sim, log) = (sim.clone(), log.clone());
            executor.sim().spawn(async move {
                sim.sleep(Span::from_ns(ns)).await;
                log.borrow_mut().push((sim.now().ns(), name));
            });
        }
        executor.block_on(sim.sleep(Span::from_ns(100))).unwrap();
        assert_eq!(*log.borrow(), [(10, "a"), (10, "a2"), (20, "b"), (30, "c")]);
    }

    #[test]
    fn a_main_future_nobody_can_wake_is_reported() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let result = executor.block_on(async {
            sim.sleep(Span::from_us(1)).await;
            std::future::pending::<()>().await;
        });
        assert_eq!(result, Err(Stalled { at: Time::from_ns(1_000) }));
    }

    #[test]
    fn task_ids_are_reused_and_tasks_may_spawn() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let count = Rc::new(Cell::new(0));
        executor
            .block_on(async {
                for _ in 0..1_000 {
                    let (inner, count) = (sim.clone(), count.clone());
                    sim.spawn(async move {
                        let again = count.clone();
                        inner.spawn(async move { again.set(again.get() + 1) });
                    });
                    sim.sleep(Span::from_ns(1)).await;
                }
            })
            .unwrap();
        assert_eq!(count.get(), 1_000);
        assert!(sim.core.tasks.borrow().slots.len() <= 4);
    }

    #[test]
    fn dropping_the_executor_drops_the_tasks() {
        let executor = Executor::new();
        let sim = executor.sim();
        let held = Rc::new(());
        let inner = (held.clone(), sim.clone());
        sim.spawn(async move {
            let (_held, sim) = inner;
            sim.sleep(Span::from_s(1)).await;
        });
        assert_eq!(Rc::strong_count(&held), 2);
        drop(executor);
        assert_eq!(Rc::strong_count(&held), 1);
        assert!(sim.is_stopped());
    }
}
