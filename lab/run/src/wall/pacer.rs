//! The loop at the wall clock: takes the time, runs the host's tasks up to it, polls the drives. When nothing moved, it
//! waits for a socket or the next task; with a policy on completions, as the policy says.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use nandscape_host_driver::{Broken, Lost, Pending, Remote};
use nandscape_sim::{Executor, Sim, Span, Time};
use nandscape_transport_reactor::WallClock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::completions::{Completions, Rest};
use super::patience::Patience;

/// A drive as the loop sees it.
pub(super) trait Source {
    /// Sends and receives as much as it can without waiting, and completes commands. Returns whether anything moved.
    fn poll(&self) -> Result<bool, Lost>;

    /// What it owes the load now.
    fn pending(&self) -> Pending;

    /// That there is no connection, while the driver reconnects.
    fn broken(&self) -> Option<Broken> {
        None
    }

    /// What to wait for; `None` where waiting in the system is not possible.
    fn sockets(&self) -> Option<Vec<(BorrowedFd<'_>, PollFlags)>>;

    /// The system has been waited in: takes a signal back, before the next poll.
    fn woken(&self) {}
}

impl<T: Remote> Source for T {
    fn poll(&self) -> Result<bool, Lost> {
        Remote::poll(self)
    }

    fn pending(&self) -> Pending {
        Remote::pending(self)
    }

    fn broken(&self) -> Option<Broken> {
        Remote::broken(self)
    }

    fn sockets(&self) -> Option<Vec<(BorrowedFd<'_>, PollFlags)>> {
        let room = if self.wants_to_write() { PollFlags::OUT } else { PollFlags::empty() };
        Some(vec![(Remote::socket(self), PollFlags::IN | room)])
    }
}

/// Polls of tasks at a time.
const POLLS: u32 = 256;
/// The loop is awake this long before a task is due: the system wakes it up late.
const AWAKE_BEFORE: Span = Span::from_us(80);
/// Idle turns before it yields to others, if it cannot wait in the system.
const TURNS_BEFORE_YIELD: u32 = 64;

/// See the module.
pub(super) struct Pacer {
    executor: Executor,
    sim: Sim,
    clock: WallClock,
    sources: Vec<Rc<dyn Source>>,
    busy: bool,
    patience: Patience,
    /// How completions are waited for, if there is a policy.
    completions: Option<Rc<Completions>>,
    /// Turns in a row in which nothing moved.
    quiet: u32,
    /// Told of connections that broke.
    tell: Tell,
    /// Of each drive, whether its connection is reported as lost, and not yet made again.
    told: Vec<bool>,
}

/// Tells the user of something that a run waits for.
pub type Tell = fn(&str);

impl Pacer {
    pub(super) fn new(busy: bool, patience: Patience) -> Pacer {
        Pacer::over(Executor::new(), busy, patience)
    }

    /// A loop over an existing model.
    pub(super) fn over(executor: Executor, busy: bool, patience: Patience) -> Pacer {
        // The system may delay a thread's timers by 50 us by default. Where it rejects the change, timers are late.
        let _ = NonZeroU64::new(1).map(|slack| rustix::thread::set_current_timer_slack(Some(slack)));
        let sim = executor.sim();
        let clock = WallClock::start_at(sim.now());
        let (sources, told) = (Vec::new(), Vec::new());
        Pacer { sim, executor, clock, sources, busy, patience, completions: None, quiet: 0, tell: |_| (), told }
    }

    /// The same, with `tell` called for lost connections.
    pub(super) fn telling(self, tell: Tell) -> Pacer {
        Pacer { tell, ..self }
    }

    /// The same, which waits for completions by a policy.
    pub(super) fn waiting_by(&mut self, completions: Rc<Completions>) {
        self.completions = Some(completions);
    }

    pub(super) fn into_executor(self) -> Executor {
        self.executor
    }

    pub(super) fn sim(&self) -> &Sim {
        &self.sim
    }

    pub(super) fn clock(&self) -> WallClock {
        self.clock
    }

    /// Whether a drive is polled already.
    pub(super) fn has(&self, source: &Rc<dyn Source>) -> bool {
        self.sources.iter().any(|one| std::ptr::addr_eq(Rc::as_ptr(one), Rc::as_ptr(source)))
    }

    pub(super) fn add(&mut self, source: Rc<dyn Source>) {
        self.sources.push(source);
    }

    /// Runs a host to its end.
    ///
    /// # Errors
    /// When a drive is lost, or answers nothing for longer than the loop's patience.
    pub(super) fn run<T: 'static>(&mut self, host: impl Future<Output = T> + 'static) -> Result<T, Lost> {
        let output = Rc::new(Cell::new(None));
        let result = output.clone();
        self.sim.spawn(async move { result.set(Some(host.await)) });
        loop {
            let moved = self.turn()?;
            if let Some(output) = output.take() {
                return Ok(output);
            }
            self.quiet = if moved { 0 } else { self.quiet + 1 };
            if !moved {
                self.tell_if_broken();
                self.rest();
            }
        }
    }

    /// One turn. Returns whether anything moved.
    fn turn(&mut self) -> Result<bool, Lost> {
        let now = self.clock.now().max(self.sim.now());
        let mut moved = self.executor.next_due().is_some_and(|due| due <= now);
        while !self.executor.advance(now, POLLS) {}
        // Tasks have sent commands meanwhile, and the system may have held the thread up: a drive that has answered since did not do
        // so at the beginning of this turn, when they were sent.
        let now = self.clock.now().max(now);
        while !self.executor.advance(now, POLLS) {}
        self.executor.arrive(now);
        for source in &self.sources {
            moved |= source.poll()?;
        }
        if self.patience.is_due(now) {
            self.patience.check(now, &self.sources)?;
        }
        Ok(moved)
    }

    /// Tells of each connection that broke, once.
    fn tell_if_broken(&mut self) {
        self.told.resize(self.sources.len(), false);
        for (source, told) in self.sources.iter().zip(&mut self.told) {
            let broken = source.broken();
            if let Some(broken) = broken.as_ref().filter(|_| !*told) {
                (self.tell)(&broken.to_string());
            }
            *told = broken.is_some();
        }
    }

    /// Waits until a socket is ready or a task is due.
    fn rest(&self) {
        let due = self.executor.next_due();
        let now = self.clock.now();
        let until = |at: Time| at.since(now.min(at));
        let left = due.map(until);
        if let Some(completions) = &self.completions {
            return self.rest_by(completions, now, left);
        }
        if self.busy || left.is_some_and(|left| left <= AWAKE_BEFORE) {
            return std::hint::spin_loop();
        }
        match self.sockets() {
            Some(sockets) => {
                let check = until(self.patience.due());
                wait(sockets, left.map_or(check, |left| check.min(left - AWAKE_BEFORE)));
                self.sources.iter().for_each(|source| source.woken());
            }
            None if self.quiet > TURNS_BEFORE_YIELD => std::thread::yield_now(),
            None => std::hint::spin_loop(),
        }
    }

    /// What to wait for; `None` where one of the drives cannot be waited for.
    fn sockets(&self) -> Option<Vec<(BorrowedFd<'_>, PollFlags)>> {
        let sockets: Option<Vec<Vec<_>>> = self.sources.iter().map(|source| source.sockets()).collect();
        sockets.map(|sockets| sockets.into_iter().flatten().collect())
    }

    /// Waits as the policy says; a task is due when `left` has passed.
    fn rest_by(&self, completions: &Completions, now: Time, left: Option<Span>) {
        let until = |at: Time| at.since(now.min(at));
        let check = until(self.patience.due());
        let longest = left.map_or(check, |left| check.min(left));
        match completions.rest(now, longest) {
            Rest::Look => std::hint::spin_loop(),
            Rest::Sleep(longest) => wait(Vec::new(), longest),
            Rest::Wait(longest) => {
                match self.sockets() {
                    Some(sockets) => wait(sockets, longest),
                    // A queue without interrupts, such as that of admin commands, is looked at while it owes something.
                    None if self.sources.iter().any(|source| source.pending().commands > 0) => std::hint::spin_loop(),
                    None => wait(Vec::new(), longest),
                }
                self.sources.iter().for_each(|source| source.woken());
            }
        }
    }
}

fn wait(sockets: Vec<(BorrowedFd<'_>, PollFlags)>, longest: Span) {
    let mut sockets: Vec<PollFd<'_>> =
        sockets.iter().map(|(socket, events)| PollFd::from_borrowed_fd(*socket, *events)).collect();
    let timeout =
        Timespec { tv_sec: (longest.ns() / 1_000_000_000) as i64, tv_nsec: (longest.ns() % 1_000_000_000) as i64 };
    match poll(&mut sockets, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        // The loop then polls the sockets all the time, which is slower and correct.
        Err(_) => std::hint::spin_loop(),
    }
}
