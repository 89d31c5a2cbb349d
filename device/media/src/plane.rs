//! One plane: its array, its registers, and who may use them.
//!
//! With a single register an operation has the plane to itself from beginning to end. With a data and a cache register
//! the plane is a pipeline of two: the array works on the data register while the channel empties or fills the cache
//! register (FEMU Fig. 3). Operations enter in order of class, then of asking, and none overtakes another inside:
//! - sensing and erasing need the data register, and a cache register that is not being filled for a program;
//! - filling for a program needs the cache register, and a data register that no sensed page will leave through it.
//!
//! So a page that was sensed waits at most for one transfer to end, a page that was loaded for one array operation, and
//! never the one for the other.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::account::{CLASSES, Totals};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Blame, Cause, Class, Resource, Sim, Span, Time, Wait, Who};

use crate::timing::Registers;

/// What an operation does with the registers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// Array to data register, and out through the cache register if there is one.
    Sense,
    /// In through the cache register if there is one, data register to array.
    Program,
    /// No data.
    Erase,
    /// The whole plane, for whatever its holder does.
    Seize,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Place {
    Data,
    Cache,
}

pub(crate) struct Plane {
    sim: Sim,
    registers: Registers,
    array: Resource,
    state: RefCell<State>,
}

struct State {
    data: Option<Occupant>,
    cache: Option<Occupant>,
    /// Waits for the register before it in the pipeline; there is at most one.
    mover: Option<TaskId>,
    /// Who waits to be admitted.
    queues: [VecDeque<Key>; CLASSES],
    /// Those, and who was admitted and has not seen it yet.
    claims: Slots<Claim>,
    blame: Blame,
}

#[derive(Copy, Clone)]
struct Occupant {
    kind: Kind,
    cause: Cause,
}

struct Claim {
    task: TaskId,
    kind: Kind,
    who: Who,
    begun: Totals,
    admitted: Option<Wait>,
}

impl Plane {
    pub(crate) fn new(sim: &Sim, registers: Registers) -> Plane {
        let state = State {
            data: None,
            cache: None,
            mover: None,
            queues: [const { VecDeque::new() }; CLASSES],
            claims: Slots::new(),
            blame: Blame::new(),
        };
        Plane { sim: sim.clone(), registers, array: Resource::new(sim), state: RefCell::new(state) }
    }

    /// Waits for the plane and senses a page into the data register.
    pub(crate) async fn sense(&self, time: Span, who: Who, log: &mut Breakdown) -> Register<'_> {
        let mut register = self.admit(Kind::Sense, who, log).await;
        register.array(time, log).await;
        register
    }

    /// Waits for the register into which a page to program is transferred.
    pub(crate) async fn load(&self, who: Who, log: &mut Breakdown) -> Register<'_> {
        self.admit(Kind::Program, who, log).await
    }

    /// Waits for the plane and erases a block.
    pub(crate) async fn erase(&self, time: Span, who: Who, log: &mut Breakdown) {
        let mut register = self.admit(Kind::Erase, who, log).await;
        register.array(time, log).await;
    }

    /// Waits for the whole plane.
    pub(crate) async fn seize(&self, who: Who) -> Register<'_> {
        Admit { plane: self, kind: Kind::Seize, who, waited: &mut Wait::default(), claim: None }.await
    }

    /// Busy time of the array by cause.
    pub(crate) fn usage(&self) -> Totals {
        self.array.usage()
    }

    async fn admit(&self, kind: Kind, who: Who, log: &mut Breakdown) -> Register<'_> {
        Admit { plane: self, kind, who, waited: log.waits(Stage::DieWait), claim: None }.await
    }

    fn entry(&self, kind: Kind) -> Place {
        match (kind, self.registers) {
            (Kind::Program, Registers::Double) => Place::Cache,
            _ => Place::Data,
        }
    }

    fn leave(&self, place: Place) {
        let mut state = self.state.borrow_mut();
        *state.register(place) = None;
        if let Some(task) = state.mover.take() {
            self.sim.wake(task);
        }
        state.admit_waiting(self);
        state.update_blame(self.sim.now());
    }
}

impl State {
    fn register(&mut self, place: Place) -> &mut Option<Occupant> {
        match place {
            Place::Data => &mut self.data,
            Place::Cache => &mut self.cache,
        }
    }

    /// Whether an operation may enter now. With a single register `cache` is always free.
    fn admits(&self, kind: Kind, registers: Registers) -> bool {
        let data = self.data.map(|occupant| occupant.kind);
        let cache = self.cache.map(|occupant| occupant.kind);
        match kind {
            Kind::Sense | Kind::Erase => data.is_none() && cache != Some(Kind::Program),
            Kind::Program if registers == Registers::Double => {
                cache.is_none() && matches!(data, None | Some(Kind::Program | Kind::Erase))
            }
            Kind::Program => data.is_none(),
            Kind::Seize => data.is_none() && cache.is_none(),
        }
    }

    fn enter(&mut self, plane: &Plane, kind: Kind, who: Who) {
        *self.register(plane.entry(kind)) = Some(Occupant { kind, cause: who.cause });
        self.update_blame(plane.sim.now());
    }

    /// Admits those in front for as long as they fit. Nobody is overtaken, or a busy plane would starve those who
    /// need it to themselves.
    fn admit_waiting(&mut self, plane: &Plane) {
        for class in 0..CLASSES {
            while let Some(&key) = self.queues[class].front() {
                let claim = self.claims.get(key).expect("whoever is in line has a claim");
                let (kind, who, task) = (claim.kind, claim.who, claim.task);
                if !self.admits(kind, plane.registers) {
                    return;
                }
                self.queues[class].pop_front();
                let now = plane.sim.now();
                let claim = self.claims.get_mut(key).expect("just seen");
                claim.admitted = Some(self.blame.since(&claim.begun, now));
                self.enter(plane, kind, who);
                plane.sim.wake(task);
            }
        }
    }

    /// Others wait for whoever has the array, else for whoever uses the cache register.
    fn update_blame(&mut self, now: Time) {
        let cause = self.data.or(self.cache).map(|occupant| occupant.cause);
        if cause != self.blame.current() {
            self.blame.switch(now, cause);
        }
    }

    /// Whether a newcomer of a class is the next to be admitted.
    #[inline]
    fn nobody_is_before(&self, class: Class) -> bool {
        self.claims.is_empty() || self.queues[..=class.index()].iter().all(VecDeque::is_empty)
    }
}

/// The right to a register of a plane, given back when dropped.
pub(crate) struct Register<'a> {
    plane: &'a Plane,
    place: Place,
    who: Who,
}

impl Register<'_> {
    /// Moves the page that was sensed to where it is transferred from, which stays taken until `self` is dropped.
    pub(crate) async fn move_out(&mut self, log: &mut Breakdown) {
        if self.plane.registers == Registers::Double {
            self.move_to(Place::Cache, log.waits(Stage::ChannelWait)).await;
        }
    }

    /// Programs the page that was transferred in.
    pub(crate) async fn program(mut self, time: Span, log: &mut Breakdown) {
        if self.place == Place::Cache {
            self.move_to(Place::Data, log.waits(Stage::DieWait)).await;
        }
        self.array(time, log).await;
    }

    /// Keeps the array busy.
    pub(crate) async fn array(&mut self, time: Span, log: &mut Breakdown) {
        self.plane.array.occupy(time, self.who, log.waits(Stage::DieWait)).await;
        log.spend(Stage::Array, time);
    }

    async fn move_to(&mut self, to: Place, waited: &mut Wait) {
        Move { register: self, to, waited, behind: None }.await;
    }
}

impl Drop for Register<'_> {
    fn drop(&mut self) {
        self.plane.leave(self.place);
    }
}

struct Admit<'a, 'w> {
    plane: &'a Plane,
    kind: Kind,
    who: Who,
    waited: &'w mut Wait,
    claim: Option<Key>,
}

impl<'a> Future for Admit<'a, '_> {
    type Output = Register<'a>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let (plane, kind, who) = (self.plane, self.kind, self.who);
        let mut state = plane.state.borrow_mut();
        match self.claim {
            None if state.nobody_is_before(who.class) && state.admits(kind, plane.registers) => {
                state.enter(plane, kind, who);
            }
            None => {
                let begun = state.blame.totals(plane.sim.now());
                let task = plane.sim.current_task();
                let key = state.claims.insert(Claim { task, kind, who, begun, admitted: None });
                state.queues[who.class.index()].push_back(key);
                self.claim = Some(key);
                return Poll::Pending;
            }
            Some(key) => {
                let Some(waited) = state.claims.get(key).expect("the claim of a live future").admitted else {
                    return Poll::Pending;
                };
                state.claims.remove(key);
                *self.waited += waited;
            }
        }
        drop(state);
        self.claim = None;
        Poll::Ready(Register { plane, place: plane.entry(kind), who })
    }
}

impl Drop for Admit<'_, '_> {
    fn drop(&mut self) {
        let Some(key) = self.claim else { return };
        let claim = self.plane.state.borrow_mut().claims.remove(key).expect("the claim of a live future");
        if claim.admitted.is_some() {
            self.plane.leave(self.plane.entry(claim.kind));
        } else {
            let mut state = self.plane.state.borrow_mut();
            state.queues[claim.who.class.index()].retain(|waiting| *waiting != key);
            state.admit_waiting(self.plane);
        }
    }
}

/// Waits for the next register of the pipeline and moves there. Only the occupant in front can be in the way.
struct Move<'a, 'b> {
    register: &'a mut Register<'b>,
    to: Place,
    waited: &'a mut Wait,
    behind: Option<(Cause, Time)>,
}

impl Future for Move<'_, '_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let (plane, to) = (self.register.plane, self.to);
        let now = plane.sim.now();
        let mut state = plane.state.borrow_mut();
        if let Some(ahead) = *state.register(to) {
            state.mover = Some(plane.sim.current_task());
            self.behind.get_or_insert((ahead.cause, now));
            return Poll::Pending;
        }
        let from = std::mem::replace(&mut self.register.place, to);
        *state.register(to) = state.register(from).take();
        state.admit_waiting(plane);
        state.update_blame(now);
        if let Some((cause, since)) = self.behind {
            self.waited.add(cause, now - since);
        }
        Poll::Ready(())
    }
}
