//! One LUN, the unit that executes commands independently: its array, its registers, and the order of access to them. A LUN
//! is a plane, or a die whose planes work one at a time or together.
//!
//! With a single register an operation has the LUN to itself from beginning to end. With a data and a cache register
//! the LUN is a pipeline of two stages: the array works on the data register while the channel empties or fills the
//! cache register (FEMU Fig. 3). Operations enter by class, then in order of request, and do not overtake each other
//! inside:
//! - sensing and erasing need the data register, and a cache register that is not being filled for a program;
//! - filling for a program needs the cache register, and a data register that no sensed page will leave through it.
//!
//! So a sensed page waits for at most one transfer, a loaded page for at most one array operation, and they never wait for
//! each other. Without cache reads or cache programs the registers do not overlap in that direction.
//!
//! While the operation in the data register is suspended (see `suspend`), more urgent reads are guests, one at a time, with
//! a separate register. Reads of several planes of a die may share a register (see `multi_plane`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::account::{CLASSES, Totals};
use nandscape_sim::executor::TaskId;
use nandscape_sim::resource::Occupy;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Blame, Cause, Class, Resource, Sim, Span, Time, Wait, Who};

use crate::features::PlaneMode;
use crate::multi_plane::{Groups, Membership, ReadTarget};
use crate::timing::{Registers, Timing};

/// The use of the registers by an operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// Array to data register, and out through the cache register if there is one.
    Sense,
    /// In through the cache register if there is one, data register to array.
    Program,
    /// No data.
    Erase,
    /// The whole LUN, for whatever its holder does.
    Seize,
}

/// A register of a LUN.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum RegisterId {
    Data,
    Cache,
    /// A third one, for reads while the operation in the data register is suspended.
    Guest,
}

/// How the registers can be used.
#[derive(Copy, Clone)]
pub(super) struct Rules {
    pub(super) registers: Registers,
    cache_read: bool,
    cache_program: bool,
}

pub(crate) struct Lun {
    pub(super) sim: Sim,
    pub(super) rules: Rules,
    pub(super) array: Resource,
    pub(super) state: RefCell<State>,
}

pub(super) struct State {
    pub(super) data: Option<Occupant>,
    pub(super) cache: Option<Occupant>,
    guest: Option<Occupant>,
    /// The operation in the data register, if it may be interrupted, and its class: woken when a more urgent read is queued.
    interruptible: Option<(TaskId, Class)>,
    /// The operation in the data register, if it is suspended, and its class: more urgent reads may enter.
    suspended: Option<(TaskId, Class)>,
    /// The reads that share a register, where planes are read together.
    pub(super) groups: Option<Box<Groups>>,
    /// The task that waits for the next register of the pipeline; there is at most one.
    pub(super) mover: Option<TaskId>,
    /// Waiters to be admitted, by class.
    queues: [VecDeque<Key>; CLASSES],
    /// The queued waiters, and those admitted that have not been polled since.
    waiters: Slots<Waiter>,
    blame: Blame,
}

/// The operation that a register is taken by.
#[derive(Copy, Clone)]
pub(super) struct Occupant {
    kind: Kind,
    pub(super) cause: Cause,
}

/// An operation that has requested a register.
struct Waiter {
    task: TaskId,
    kind: Kind,
    who: Who,
    /// The target of a read that may share a register.
    shares: Option<ReadTarget>,
    wait: Waited,
    admitted: Option<(RegisterId, Option<Membership>)>,
}

/// The wait of a waiter.
enum Waited {
    /// It is not asked for.
    Unknown,
    /// The totals of the LUN when it began.
    Since(Totals),
    /// When it has ended.
    Ended(Wait),
}

impl Lun {
    pub(crate) fn new(sim: &Sim, timing: &Timing) -> Lun {
        let state = State {
            data: None,
            cache: None,
            guest: None,
            interruptible: None,
            suspended: None,
            groups: (timing.features.planes == PlaneMode::MultiPlane).then(Box::default),
            mover: None,
            queues: [const { VecDeque::new() }; CLASSES],
            waiters: Slots::new(),
            blame: Blame::new(),
        };
        let rules = Rules {
            registers: timing.registers,
            cache_read: timing.features.cache_read,
            cache_program: timing.features.cache_program,
        };
        Lun { sim: sim.clone(), rules, array: Resource::new(sim), state: RefCell::new(state) }
    }

    /// Waits for the register into which a page is sensed.
    #[inline]
    pub(crate) fn sense<'a, 'w>(&'a self, who: Who, breakdown: &'w mut Breakdown) -> Admit<'a, 'w> {
        self.admit(Kind::Sense, who, breakdown.waits(Stage::DieWait))
    }

    /// The same, where planes are read together: for the register or a share in it.
    pub(crate) fn sense_with_others<'a, 'w>(
        &'a self,
        target: ReadTarget,
        who: Who,
        breakdown: &'w mut Breakdown,
    ) -> Admit<'a, 'w> {
        let mut admit = self.sense(who, breakdown);
        admit.shares = Some(target);
        admit
    }

    /// Waits for the register into which a page to program is transferred.
    pub(crate) fn load<'a, 'w>(&'a self, who: Who, breakdown: &'w mut Breakdown) -> Admit<'a, 'w> {
        self.admit(Kind::Program, who, breakdown.waits(Stage::DieWait))
    }

    /// Waits until a block can be erased.
    pub(crate) fn erase<'a, 'w>(&'a self, who: Who, breakdown: &'w mut Breakdown) -> Admit<'a, 'w> {
        self.admit(Kind::Erase, who, breakdown.waits(Stage::DieWait))
    }

    /// Waits for the whole LUN, without a record of the wait.
    #[inline]
    pub(crate) fn seize(&self, who: Who) -> Admit<'_, 'static> {
        Admit { lun: self, kind: Kind::Seize, who, shares: None, waited: None, waiter: None }
    }

    /// For how long a register was taken so far, by the cause of the operation: from the operation's start until its
    /// page has left, also while it waits for its channel.
    pub(crate) fn register_usage(&self) -> Totals {
        self.state.borrow().blame.totals(self.sim.now())
    }

    #[inline]
    fn admit<'a, 'w>(&'a self, kind: Kind, who: Who, waited: &'w mut Wait) -> Admit<'a, 'w> {
        Admit { lun: self, kind, who, shares: None, waited: Some(waited), waiter: None }
    }

    #[inline(always)]
    fn leave(&self, id: RegisterId, membership: Option<Membership>) {
        let mut state = self.state.borrow_mut();
        let id = match membership {
            None => id,
            Some(membership) => {
                let groups = state.groups.as_mut().expect("a member of a group");
                let Some(id) = groups.leave(membership, &self.sim) else { return };
                id
            }
        };
        *state.occupant(id) = None;
        if id == RegisterId::Data {
            (state.interruptible, state.suspended) = (None, None);
        }
        if let Some(task) = state.mover.take() {
            self.sim.wake(task);
        }
        state.admit_waiting(self);
        if id == RegisterId::Guest && state.guest.is_none() {
            state.resume(self);
        }
        state.update_blame(self.sim.now());
    }

    /// From now on, others wait behind `cause` for the operation in a register.
    pub(super) fn charge(&self, id: RegisterId, cause: Cause) {
        let mut state = self.state.borrow_mut();
        if let Some(occupant) = state.occupant(id) {
            occupant.cause = cause;
        }
        state.update_blame(self.sim.now());
    }

    // ------------------------------------------------------------ suspension

    /// Whether the first waiter is a read that is more urgent than `class`.
    pub(crate) fn urgent_read_waits(&self, class: Class) -> bool {
        self.state.borrow().urgent_read_waits(class)
    }

    /// The current task is woken when [`Lun::urgent_read_waits`] becomes true, until [`Lun::not_interruptible`].
    pub(crate) fn interruptible(&self, class: Class) {
        self.state.borrow_mut().interruptible = Some((self.sim.current_task(), class));
    }

    pub(crate) fn not_interruptible(&self) {
        self.state.borrow_mut().interruptible = None;
    }

    /// Suspends the operation in the data register, which is of `class`, and admits more urgent reads. Wakes the current task
    /// when none is left and [`Lun::is_suspended`] is false.
    pub(crate) fn suspend(&self, class: Class) {
        let mut state = self.state.borrow_mut();
        state.suspended = Some((self.sim.current_task(), class));
        state.admit_waiting(self);
        if state.guest.is_none() {
            state.suspended = None;
        }
        state.update_blame(self.sim.now());
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.state.borrow().suspended.is_some()
    }
}

impl State {
    #[inline]
    fn occupant(&mut self, register: RegisterId) -> &mut Option<Occupant> {
        match register {
            RegisterId::Data => &mut self.data,
            RegisterId::Cache => &mut self.cache,
            RegisterId::Guest => &mut self.guest,
        }
    }

    /// Whether an operation may enter now. With a single register `cache` is always free.
    #[inline]
    fn admits(&self, kind: Kind, rules: Rules) -> bool {
        let data = self.data.map(|occupant| occupant.kind);
        let cache = self.cache.map(|occupant| occupant.kind);
        match kind {
            Kind::Sense | Kind::Erase => {
                data.is_none() && (cache.is_none() || (rules.cache_read && cache != Some(Kind::Program)))
            }
            Kind::Program if rules.registers == Registers::Double => {
                let fits = |data| rules.cache_program && matches!(data, Kind::Program | Kind::Erase);
                cache.is_none() && data.is_none_or(fits)
            }
            Kind::Program => data.is_none(),
            Kind::Seize => data.is_none() && cache.is_none(),
        }
    }

    /// The register that an operation may have now.
    #[inline(always)]
    fn free_register(&self, kind: Kind, class: Class, shares: Option<ReadTarget>, rules: Rules) -> Option<RegisterId> {
        if self.admits(kind, rules) {
            return Some(match (kind, rules.registers) {
                (Kind::Program, Registers::Double) => RegisterId::Cache,
                _ => RegisterId::Data,
            });
        }
        let joins = |target| self.groups.as_ref().is_some_and(|groups| groups.joins(target, class));
        if shares.is_some_and(joins) {
            return Some(RegisterId::Data);
        }
        let (_, of_holder) = self.suspended?;
        (kind == Kind::Sense && class < of_holder && self.guest.is_none()).then_some(RegisterId::Guest)
    }

    #[inline]
    fn enter(
        &mut self,
        lun: &Lun,
        id: RegisterId,
        kind: Kind,
        who: Who,
        shares: Option<ReadTarget>,
    ) -> Option<Membership> {
        self.occupant(id).get_or_insert(Occupant { kind, cause: who.cause });
        self.update_blame(lun.sim.now());
        let target = shares.filter(|_| id == RegisterId::Data)?;
        self.groups.as_mut().map(|groups| groups.enter(target, who))
    }

    fn urgent_read_waits(&self, class: Class) -> bool {
        let first = self.queues[..class.index()].iter().find_map(VecDeque::front);
        first.is_some_and(|key| self.waiters.get(*key).expect("a queued key has a waiter").kind == Kind::Sense)
    }

    /// Resumes the suspended operation, after its last guest.
    fn resume(&mut self, lun: &Lun) {
        if let Some((task, _)) = self.suspended.take() {
            lun.sim.wake(task);
        }
    }

    /// Admits waiters from the front while their registers are free. No waiter is overtaken, so that one that needs the whole
    /// plane is not starved.
    #[inline]
    pub(super) fn admit_waiting(&mut self, lun: &Lun) {
        if !self.waiters.is_empty() {
            self.admit_queued(lun);
        }
    }

    #[inline(never)]
    fn admit_queued(&mut self, lun: &Lun) {
        for class in 0..CLASSES {
            while let Some(&key) = self.queues[class].front() {
                let waiter = self.waiters.get(key).expect("a queued key has a waiter");
                let &Waiter { kind, who, shares, task, .. } = waiter;
                let Some(id) = self.free_register(kind, who.class, shares, lun.rules) else { return };
                let waited = match &waiter.wait {
                    Waited::Since(begun) => Some(self.blame.since(begun, lun.sim.now())),
                    _ => None,
                };
                self.queues[class].pop_front();
                let membership = self.enter(lun, id, kind, who, shares);
                let waiter = self.waiters.get_mut(key).expect("just seen");
                waiter.admitted = Some((id, membership));
                if let Some(waited) = waited {
                    waiter.wait = Waited::Ended(waited);
                }
                lun.sim.wake(task);
            }
        }
    }

    /// Waiters wait behind the operation that has the array, else behind the one in the cache register.
    #[inline]
    pub(super) fn update_blame(&mut self, now: Time) {
        let cause = self.guest.or(self.data).or(self.cache).map(|occupant| occupant.cause);
        self.blame.keep(now, cause);
    }

    fn enqueue(&mut self, lun: &Lun, kind: Kind, who: Who, shares: Option<ReadTarget>, wants_wait: bool) -> Key {
        let task = lun.sim.current_task();
        let wait = if wants_wait { Waited::Since(self.blame.totals(lun.sim.now())) } else { Waited::Unknown };
        let key = self.waiters.insert(Waiter { task, kind, who, shares, wait, admitted: None });
        // Only the first urgent read wakes the interruptible operation: a second wake would let it jump the queue.
        let to_interrupt = self.interruptible.filter(|(_, class)| !self.urgent_read_waits(*class));
        self.queues[who.class.index()].push_back(key);
        if let Some((task, class)) = to_interrupt
            && self.urgent_read_waits(class)
        {
            lun.sim.wake(task);
        }
        key
    }

    /// Admits a newcomer at once, if no waiter is before it and its register is free.
    #[inline(always)]
    fn enter_at_once(
        &mut self,
        lun: &Lun,
        kind: Kind,
        who: Who,
        shares: Option<ReadTarget>,
    ) -> Option<(RegisterId, Option<Membership>)> {
        let id = self.is_first(who.class).then(|| self.free_register(kind, who.class, shares, lun.rules)).flatten()?;
        Some((id, self.enter(lun, id, kind, who, shares)))
    }

    /// Whether no waiter is before a newcomer of `class`.
    #[inline]
    fn is_first(&self, class: Class) -> bool {
        self.waiters.is_empty() || self.queues[..=class.index()].iter().all(VecDeque::is_empty)
    }
}

/// The right to a register of a LUN, released on drop.
pub(crate) struct Register<'a> {
    pub(super) lun: &'a Lun,
    /// Which register. The member of a group has the register of its group instead.
    id: RegisterId,
    pub(super) membership: Option<Membership>,
    pub(super) who: Who,
}

impl<'a> Register<'a> {
    /// Moves the sensed page to the register from which it is transferred. That one stays taken until `self` is dropped.
    #[inline]
    pub(crate) fn move_out<'m>(&'m mut self, breakdown: &'m mut Breakdown) -> Move<'m, 'a> {
        let to = match (self.id, self.lun.rules.registers) {
            (RegisterId::Data, Registers::Double) => RegisterId::Cache,
            (id, _) => id,
        };
        Move { register: self, to, waited: breakdown.waits(Stage::ChannelWait), behind: None }
    }

    /// Moves the loaded page to the register from which it is programmed.
    #[inline]
    pub(crate) fn move_in<'m>(&'m mut self, breakdown: &'m mut Breakdown) -> Move<'m, 'a> {
        Move { register: self, to: RegisterId::Data, waited: breakdown.waits(Stage::DieWait), behind: None }
    }

    /// Keeps the array busy. The time is added to `breakdown` at the start.
    #[inline]
    pub(crate) fn array<'m>(&'m mut self, time: Span, breakdown: &'m mut Breakdown) -> Occupy<'m> {
        breakdown.spend(Stage::Array, time);
        self.lun.array.occupy(time, self.who, breakdown.waits(Stage::DieWait))
    }
}

impl Register<'_> {
    /// From now on, others wait behind `cause` for what the holder does. Returns the cause so far.
    pub(crate) fn charge_to(&mut self, cause: Cause) -> Cause {
        let before = std::mem::replace(&mut self.who.cause, cause);
        self.lun.charge(self.id, cause);
        before
    }

    /// The same, for a holder that needs no breakdown of its time.
    #[inline]
    pub(crate) fn array_unwatched(&self, time: Span) -> Occupy<'_> {
        self.lun.array.keep_busy(time, self.who)
    }
}

impl Drop for Register<'_> {
    fn drop(&mut self) {
        self.lun.leave(self.id, self.membership);
    }
}

/// Waits for a register.
pub(crate) struct Admit<'a, 'w> {
    lun: &'a Lun,
    kind: Kind,
    who: Who,
    shares: Option<ReadTarget>,
    /// The wait is added to it; `None` if it is not asked for.
    waited: Option<&'w mut Wait>,
    waiter: Option<Key>,
}

impl<'a> Future for Admit<'a, '_> {
    type Output = Register<'a>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let (lun, who) = (self.lun, self.who);
        let entered = match self.waiter {
            None => lun.state.borrow_mut().enter_at_once(lun, self.kind, who, self.shares),
            Some(key) => self.take_admission(key),
        };
        match entered {
            Some((id, membership)) => Poll::Ready(Register { lun, id, membership, who }),
            None => {
                self.wait();
                Poll::Pending
            }
        }
    }
}

impl Admit<'_, '_> {
    /// The register that the waiter was admitted to, if it was.
    #[inline(never)]
    fn take_admission(&mut self, key: Key) -> Option<(RegisterId, Option<Membership>)> {
        let mut state = self.lun.state.borrow_mut();
        let waiter = state.waiters.get(key).expect("the waiter of a live future");
        let admitted = waiter.admitted?;
        if let (Some(waited), Waited::Ended(wait)) = (&mut self.waited, &waiter.wait) {
            **waited += wait;
        }
        state.waiters.remove(key);
        self.waiter = None;
        Some(admitted)
    }

    #[inline(never)]
    fn wait(&mut self) {
        if self.waiter.is_none() {
            let mut state = self.lun.state.borrow_mut();
            self.waiter = Some(state.enqueue(self.lun, self.kind, self.who, self.shares, self.waited.is_some()));
        }
    }
}

impl Drop for Admit<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(key) = self.waiter {
            self.withdraw(key);
        }
    }
}

impl Admit<'_, '_> {
    /// Abandons its place in line, or the register that it was admitted to.
    #[cold]
    fn withdraw(&self, key: Key) {
        let waiter = self.lun.state.borrow_mut().waiters.remove(key).expect("the waiter of a live future");
        if let Some((id, membership)) = waiter.admitted {
            self.lun.leave(id, membership);
        } else {
            let mut state = self.lun.state.borrow_mut();
            state.queues[waiter.who.class.index()].retain(|waiting| *waiting != key);
            state.admit_waiting(self.lun);
        }
    }
}

/// Waits for the next register of the pipeline, if that is another, and moves there. Only its occupant can be in the way.
pub(crate) struct Move<'a, 'b> {
    register: &'a mut Register<'b>,
    to: RegisterId,
    waited: &'a mut Wait,
    behind: Option<(Cause, Time)>,
}

impl Future for Move<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let (lun, to) = (self.register.lun, self.to);
        if self.register.id == to {
            return Poll::Ready(());
        }
        let now = lun.sim.now();
        let mut state = lun.state.borrow_mut();
        if let Some(ahead) = *state.occupant(to) {
            state.mover = Some(lun.sim.current_task());
            self.behind.get_or_insert((ahead.cause, now));
            return Poll::Pending;
        }
        let from = std::mem::replace(&mut self.register.id, to);
        *state.occupant(to) = state.occupant(from).take();
        state.admit_waiting(lun);
        state.update_blame(now);
        if let Some((cause, since)) = self.behind {
            self.waited.add(cause, now - since);
        }
        Poll::Ready(())
    }
}
