//! Locks. Waiters get a lock in the order of asking; they sleep, or they spin and keep their processor.
//!
//! Left out: waiters that spin for a while and then sleep, and locks that readers share.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll};

use nandscape_sim::Span;
use nandscape_sim::slots::Key;

use crate::context::Context;
use crate::machine::Machine;
use crate::running::Work;
use crate::state::{Class, Place, Request, Shared, Units, Waker};
use crate::times::Kind;

/// What waiters do, and what a holder prevents.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LockKind {
    /// Waiters sleep. For threads only.
    Sleep,
    /// Waiters spin. Who waits or holds the lock does not lose the processor to another thread.
    Spin,
    /// The same, and interrupts wait as well. For locks that interrupts or softirqs take, too.
    SpinMasked,
}

/// See the file.
pub struct Lock {
    shared: Rc<Shared>,
    kind: LockKind,
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    holder: Option<Key>,
    /// The core of the last holder.
    core: Option<usize>,
    line: VecDeque<Key>,
}

impl Lock {
    /// A free lock of a machine.
    pub fn new(machine: &Machine, kind: LockKind) -> Lock {
        Lock { shared: machine.shared.clone(), kind, inner: RefCell::default() }
    }

    /// Takes the lock, and waits while another context has it.
    pub fn acquire<'a>(&'a self, context: &'a Context) -> Acquire<'a> {
        let work = Work::new(context, Request::NOTHING);
        Acquire { lock: self, context, work, stage: Stage::New }
    }

    /// Whether a context has it.
    pub fn is_held(&self) -> bool {
        self.inner.borrow().holder.is_some()
    }

    /// Contexts that wait.
    pub fn waiting(&self) -> usize {
        self.inner.borrow().line.len()
    }

    /// The cost of the lock's cache line for a context on a core.
    fn transfer(&self, core: usize) -> Span {
        let config = &self.shared.config;
        match self.inner.borrow().core {
            Some(last) if config.node(last) != config.node(core) => config.between_nodes(config.lock_transfer),
            Some(last) if last != core => config.lock_transfer,
            _ => Span::ZERO,
        }
    }

    /// From now on a context cannot lose its processor, as far as the kind of lock prevents that.
    fn hold(&self, key: Key) {
        let mut state = self.shared.state.borrow_mut();
        let entity = state.entity_mut(key);
        entity.held += u32::from(self.kind != LockKind::Sleep);
        entity.masked += u32::from(self.kind == LockKind::SpinMasked);
    }

    /// The opposite. The context may have ended.
    fn unhold(&self, key: Key) {
        let mut state = self.shared.state.borrow_mut();
        let Some(entity) = state.entities.get_mut(key).filter(|_| self.kind != LockKind::Sleep) else { return };
        entity.held -= 1;
        entity.masked -= u32::from(self.kind == LockKind::SpinMasked);
        state.release(key);
    }

    /// Takes the lock if that is free and no context waits.
    fn try_take(&self, key: Key, core: usize) -> bool {
        let mut inner = self.inner.borrow_mut();
        let is_free = inner.holder.is_none();
        if is_free {
            (inner.holder, inner.core) = (Some(key), Some(core));
        }
        is_free
    }

    /// Gives the lock to the next one.
    fn pass_on(&self) {
        let next = {
            let mut inner = self.inner.borrow_mut();
            inner.holder = inner.line.pop_front();
            inner.holder
        };
        let Some(key) = next else { return };
        let core = self.shared.state.borrow().entity(key).cpu / self.shared.config.threads;
        let work = Units::of(self.transfer(core));
        self.inner.borrow_mut().core = Some(core);
        let mut state = self.shared.state.borrow_mut();
        match self.kind {
            LockKind::Sleep => state.ask(key, Request { work, ..Request::NOTHING }, Waker::Outside, None),
            LockKind::Spin | LockKind::SpinMasked => {
                state.revise(key, Request { work, kind: Kind::Spin, home: None }, None);
            }
        }
    }

    /// An interrupt that spins for a lock of the code that it interrupted would spin for good.
    fn check_deadlock(&self, key: Key) {
        let state = self.shared.state.borrow();
        let Place::Raised(cpu) = state.entity(key).place else { return };
        let holder = self.inner.borrow().holder.and_then(|holder| state.entities.get(holder));
        let is_below =
            holder.is_some_and(|holder| matches!(holder.place, Place::On(on) | Place::Raised(on) if on == cpu));
        assert!(
            !is_below,
            "an interrupt of processor {cpu} waits for a lock that the code below it holds: LockKind::SpinMasked is valid"
        );
        let sleeps = self.kind == LockKind::Sleep && state.entity(key).class != Class::Fair;
        assert!(!sleeps, "an interrupt cannot sleep on a lock: LockKind::SpinMasked is valid");
    }
}

/// See [`Lock::acquire`]. Dropped, it leaves the line, or gives the lock to the next one.
#[must_use = "a future does nothing until it is awaited"]
pub struct Acquire<'a> {
    lock: &'a Lock,
    context: &'a Context,
    work: Work<'a>,
    stage: Stage,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Stage {
    New,
    /// It waits for its processor, where it then keeps interrupts out.
    Arrives,
    /// The cost of an attempt.
    Tries,
    InLine,
    /// The lock is its own as soon as it has its processor.
    Granted,
    Ended,
}

impl<'a> Acquire<'a> {
    fn begin(&mut self) {
        let lock = self.lock;
        lock.hold(self.context.key);
        let cost = lock.shared.config.lock + lock.transfer(self.context.core());
        self.work = Work::new(self.context, Request { work: Units::of(cost), ..Request::NOTHING });
        self.stage = Stage::Tries;
    }

    /// Takes the lock, or gets in line.
    fn attempt(&mut self) -> bool {
        let (lock, key) = (self.lock, self.context.key);
        if lock.try_take(key, self.context.core()) {
            return true;
        }
        lock.check_deadlock(key);
        lock.inner.borrow_mut().line.push_back(key);
        self.stage = Stage::InLine;
        match lock.kind {
            LockKind::Sleep => {
                self.context.leave();
                self.work = Work::resumed(self.context, Waker::Outside);
            }
            LockKind::Spin | LockKind::SpinMasked => {
                self.work = Work::new(self.context, Request { work: Units::FOREVER, kind: Kind::Spin, home: None });
            }
        }
        false
    }

    fn guard(&mut self) -> Guard<'a> {
        self.stage = Stage::Ended;
        Guard { lock: self.lock, key: self.context.key }
    }
}

impl<'a> Future for Acquire<'a> {
    type Output = Guard<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Guard<'a>> {
        let this = &mut *self;
        let (lock, key) = (this.lock, this.context.key);
        if this.stage == Stage::New {
            this.stage = Stage::Arrives;
        }
        while matches!(this.stage, Stage::Arrives | Stage::Tries) {
            if Pin::new(&mut this.work).poll(context).is_pending() {
                return Poll::Pending;
            }
            if this.stage == Stage::Arrives {
                this.begin();
            } else if this.attempt() {
                return Poll::Ready(this.guard());
            }
        }
        if this.stage == Stage::InLine && lock.inner.borrow().holder == Some(key) {
            if lock.kind == LockKind::Sleep {
                this.work.was_asked();
            }
            this.stage = Stage::Granted;
        }
        if this.stage == Stage::InLine && lock.kind == LockKind::Sleep {
            lock.shared.state.borrow_mut().entity_mut(key).task = lock.shared.sim.current_task();
            return Poll::Pending;
        }
        match Pin::new(&mut this.work).poll(context) {
            Poll::Ready(()) => Poll::Ready(this.guard()),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        let (lock, key) = (self.lock, self.context.key);
        if matches!(self.stage, Stage::New | Stage::Ended) || lock.shared.sim.is_stopped() {
            return;
        }
        lock.inner.borrow_mut().line.retain(|other| *other != key);
        lock.shared.state.borrow_mut().withdraw(key);
        lock.shared.wake_sweeper();
        if self.stage != Stage::Arrives {
            lock.unhold(key);
        }
        if lock.inner.borrow().holder == Some(key) {
            lock.pass_on();
        }
    }
}

/// The right to a lock, given back when dropped.
#[must_use = "the lock is given back when this is dropped"]
pub struct Guard<'a> {
    lock: &'a Lock,
    key: Key,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.lock.shared.sim.is_stopped() {
            self.lock.pass_on();
            self.lock.unhold(self.key);
        }
    }
}
