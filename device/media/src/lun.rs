//! One LUN, what executes commands on its own: its array, its registers, and who may use them. It is a plane, or a die
//! whose planes work one at a time or together.
//!
//! With a single register an operation has the LUN to itself from beginning to end. With a data and a cache register
//! the LUN is a pipeline of two: the array works on the data register while the channel empties or fills the cache
//! register (FEMU Fig. 3). Operations enter in order of class, then of asking, and none overtakes another inside:
//! - sensing and erasing need the data register, and a cache register that is not being filled for a program;
//! - filling for a program needs the cache register, and a data register that no sensed page will leave through it.
//!
//! So a page that was sensed waits at most for one transfer to end, a page that was loaded for one array operation, and
//! never the one for the other. Without cache reads or cache programs the two registers do not overlap in that direction.
//!
//! While what holds the data register stands aside (see `suspend`), more urgent reads are guests, one at a time, with a
//! register of their own. Reads of several planes of a die may share a register (see `multi_plane`).

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
use crate::multi_plane::{Address, Groups, Seat};
use crate::timing::{Registers, Timing};

/// What an operation does with the registers.
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

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Data,
    Cache,
    /// Apart from both, while what is in the data register stands aside.
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
    /// Works in the data register and may be interrupted: told when a read that is more urgent than this gets in line.
    interruptible: Option<(TaskId, Class)>,
    /// Stands aside in the data register, and lets in who is more urgent than this.
    aside: Option<(TaskId, Class)>,
    /// The reads that share a register, where planes are read together.
    pub(super) groups: Option<Box<Groups>>,
    /// Waits for the register before it in the pipeline; there is at most one.
    pub(super) mover: Option<TaskId>,
    /// Who waits to be admitted.
    queues: [VecDeque<Key>; CLASSES],
    /// Those, and who was admitted and has not seen it yet.
    claims: Slots<Claim>,
    blame: Blame,
}

#[derive(Copy, Clone)]
pub(super) struct Occupant {
    kind: Kind,
    pub(super) cause: Cause,
}

struct Claim {
    task: TaskId,
    kind: Kind,
    who: Who,
    /// Of a read that may share the register.
    shares: Option<Address>,
    begun: Totals,
    admitted: Option<(Wait, Place, Option<Seat>)>,
}

impl Lun {
    pub(crate) fn new(sim: &Sim, timing: &Timing) -> Lun {
        let state = State {
            data: None,
            cache: None,
            guest: None,
            interruptible: None,
            aside: None,
            groups: (timing.features.planes == PlaneMode::MultiPlane).then(Box::default),
            mover: None,
            queues: [const { VecDeque::new() }; CLASSES],
            claims: Slots::new(),
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
    pub(crate) fn sense<'a, 'w>(&'a self, who: Who, log: &'w mut Breakdown) -> Admit<'a, 'w> {
        self.admit(Kind::Sense, who, log.waits(Stage::DieWait))
    }

    /// The same, where planes are read together: for the register or a share in it.
    pub(crate) fn sense_with_others<'a, 'w>(
        &'a self,
        address: Address,
        who: Who,
        log: &'w mut Breakdown,
    ) -> Admit<'a, 'w> {
        let mut admit = self.sense(who, log);
        admit.shares = Some(address);
        admit
    }

    /// Waits for the register into which a page to program is transferred.
    pub(crate) fn load<'a, 'w>(&'a self, who: Who, log: &'w mut Breakdown) -> Admit<'a, 'w> {
        self.admit(Kind::Program, who, log.waits(Stage::DieWait))
    }

    /// Waits until a block can be erased.
    pub(crate) fn erase<'a, 'w>(&'a self, who: Who, log: &'w mut Breakdown) -> Admit<'a, 'w> {
        self.admit(Kind::Erase, who, log.waits(Stage::DieWait))
    }

    /// Waits for the whole LUN.
    pub(crate) async fn seize(&self, who: Who) -> Register<'_> {
        self.admit(Kind::Seize, who, &mut Wait::default()).await
    }

    #[inline]
    fn admit<'a, 'w>(&'a self, kind: Kind, who: Who, waited: &'w mut Wait) -> Admit<'a, 'w> {
        Admit { lun: self, kind, who, shares: None, waited, claim: None }
    }

    #[inline]
    fn leave(&self, place: Place, seat: Option<Seat>) {
        let mut state = self.state.borrow_mut();
        let place = match seat {
            None => place,
            Some(seat) => {
                let groups = state.groups.as_mut().expect("who has a seat is of a group");
                let Some(place) = groups.leave(seat, &self.sim) else { return };
                place
            }
        };
        *state.register(place) = None;
        if place == Place::Data {
            (state.interruptible, state.aside) = (None, None);
        }
        if let Some(task) = state.mover.take() {
            self.sim.wake(task);
        }
        state.admit_waiting(self);
        if place == Place::Guest && state.guest.is_none() {
            state.close(self);
        }
        state.update_blame(self.sim.now());
    }

    // ------------------------------------------------------------ standing aside

    /// Whether the next in line is more urgent than `class` and wants to sense.
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

    /// Lets in reads that are more urgent than `class`, the class of what holds the data register. The current task is
    /// woken when nobody waits any more, and [`Lun::stands_aside`] says no.
    pub(crate) fn stand_aside(&self, class: Class) {
        let mut state = self.state.borrow_mut();
        state.aside = Some((self.sim.current_task(), class));
        state.admit_waiting(self);
        if state.guest.is_none() {
            state.aside = None;
        }
        state.update_blame(self.sim.now());
    }

    pub(crate) fn stands_aside(&self) -> bool {
        self.state.borrow().aside.is_some()
    }
}

impl State {
    #[inline]
    fn register(&mut self, place: Place) -> &mut Option<Occupant> {
        match place {
            Place::Data => &mut self.data,
            Place::Cache => &mut self.cache,
            Place::Guest => &mut self.guest,
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
    #[inline]
    fn place(&self, kind: Kind, class: Class, shares: Option<Address>, rules: Rules) -> Option<Place> {
        if self.admits(kind, rules) {
            return Some(match (kind, rules.registers) {
                (Kind::Program, Registers::Double) => Place::Cache,
                _ => Place::Data,
            });
        }
        let joins = |address| self.groups.as_ref().is_some_and(|groups| groups.joins(address, class));
        if shares.is_some_and(joins) {
            return Some(Place::Data);
        }
        let (_, of_holder) = self.aside?;
        (kind == Kind::Sense && class < of_holder && self.guest.is_none()).then_some(Place::Guest)
    }

    #[inline]
    fn enter(&mut self, lun: &Lun, place: Place, kind: Kind, who: Who, shares: Option<Address>) -> Option<Seat> {
        self.register(place).get_or_insert(Occupant { kind, cause: who.cause });
        self.update_blame(lun.sim.now());
        let address = shares.filter(|_| place == Place::Data)?;
        self.groups.as_mut().map(|groups| groups.enter(address, who))
    }

    fn urgent_read_waits(&self, class: Class) -> bool {
        let first = self.queues[..class.index()].iter().find_map(VecDeque::front);
        first.is_some_and(|key| self.claims.get(*key).expect("whoever is in line has a claim").kind == Kind::Sense)
    }

    /// The last guest has gone: what stood aside goes on.
    fn close(&mut self, lun: &Lun) {
        if let Some((task, _)) = self.aside.take() {
            lun.sim.wake(task);
        }
    }

    /// Admits those in front for as long as they fit. Nobody is overtaken, or a busy plane would starve those who
    /// need it to themselves.
    #[inline]
    pub(super) fn admit_waiting(&mut self, lun: &Lun) {
        if !self.claims.is_empty() {
            self.admit_in_line(lun);
        }
    }

    #[inline(never)]
    fn admit_in_line(&mut self, lun: &Lun) {
        for class in 0..CLASSES {
            while let Some(&key) = self.queues[class].front() {
                let claim = self.claims.get(key).expect("whoever is in line has a claim");
                let &Claim { kind, who, shares, task, .. } = claim;
                let Some(place) = self.place(kind, who.class, shares, lun.rules) else { return };
                let waited = self.blame.since(&claim.begun, lun.sim.now());
                self.queues[class].pop_front();
                let seat = self.enter(lun, place, kind, who, shares);
                self.claims.get_mut(key).expect("just seen").admitted = Some((waited, place, seat));
                lun.sim.wake(task);
            }
        }
    }

    /// Others wait for whoever has the array, else for whoever uses the cache register.
    #[inline]
    pub(super) fn update_blame(&mut self, now: Time) {
        let cause = self.guest.or(self.data).or(self.cache).map(|occupant| occupant.cause);
        if cause != self.blame.current() {
            self.blame.switch(now, cause);
        }
    }

    fn get_in_line(&mut self, lun: &Lun, kind: Kind, who: Who, shares: Option<Address>) -> Key {
        let (task, begun) = (lun.sim.current_task(), self.blame.totals(lun.sim.now()));
        let key = self.claims.insert(Claim { task, kind, who, shares, begun, admitted: None });
        // Nobody else wakes what is interruptible: it would take its turn before those who were given something since.
        let to_interrupt = self.interruptible.filter(|(_, class)| !self.urgent_read_waits(*class));
        self.queues[who.class.index()].push_back(key);
        if let Some((task, class)) = to_interrupt
            && self.urgent_read_waits(class)
        {
            lun.sim.wake(task);
        }
        key
    }

    /// Lets a newcomer in that is the next to be admitted and has a register.
    #[inline]
    fn enter_at_once(
        &mut self,
        lun: &Lun,
        kind: Kind,
        who: Who,
        shares: Option<Address>,
    ) -> Option<(Place, Option<Seat>)> {
        let place =
            self.nobody_is_before(who.class).then(|| self.place(kind, who.class, shares, lun.rules)).flatten()?;
        Some((place, self.enter(lun, place, kind, who, shares)))
    }

    /// Whether a newcomer of a class is the next to be admitted.
    #[inline]
    fn nobody_is_before(&self, class: Class) -> bool {
        self.claims.is_empty() || self.queues[..=class.index()].iter().all(VecDeque::is_empty)
    }
}

/// The right to a register of a LUN, given back when dropped.
pub(crate) struct Register<'a> {
    pub(super) lun: &'a Lun,
    /// Where it is, unless it has a seat in a group, which is where it is.
    place: Place,
    pub(super) seat: Option<Seat>,
    pub(super) who: Who,
}

impl<'a> Register<'a> {
    /// Moves the page that was sensed to where it is transferred from, which stays taken until `self` is dropped.
    #[inline]
    pub(crate) fn move_out<'m>(&'m mut self, log: &'m mut Breakdown) -> Move<'m, 'a> {
        let to = match (self.place, self.lun.rules.registers) {
            (Place::Data, Registers::Double) => Place::Cache,
            (place, _) => place,
        };
        Move { register: self, to, waited: log.waits(Stage::ChannelWait), behind: None }
    }

    /// Moves the page that was transferred in to where it is programmed from.
    #[inline]
    pub(crate) fn move_in<'m>(&'m mut self, log: &'m mut Breakdown) -> Move<'m, 'a> {
        Move { register: self, to: Place::Data, waited: log.waits(Stage::DieWait), behind: None }
    }

    /// Keeps the array busy. `log` has the time at once.
    #[inline]
    pub(crate) fn array<'m>(&'m mut self, time: Span, log: &'m mut Breakdown) -> Occupy<'m> {
        log.spend(Stage::Array, time);
        self.lun.array.occupy(time, self.who, log.waits(Stage::DieWait))
    }
}

impl Drop for Register<'_> {
    fn drop(&mut self) {
        self.lun.leave(self.place, self.seat);
    }
}

/// Waits in line for a register.
pub(crate) struct Admit<'a, 'w> {
    lun: &'a Lun,
    kind: Kind,
    who: Who,
    shares: Option<Address>,
    waited: &'w mut Wait,
    claim: Option<Key>,
}

impl<'a> Future for Admit<'a, '_> {
    type Output = Register<'a>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let (lun, who) = (self.lun, self.who);
        let entered = match self.claim {
            None => lun.state.borrow_mut().enter_at_once(lun, self.kind, who, self.shares),
            Some(key) => self.see(key),
        };
        match entered {
            Some((place, seat)) => Poll::Ready(Register { lun, place, seat, who }),
            None => {
                self.wait();
                Poll::Pending
            }
        }
    }
}

impl Admit<'_, '_> {
    /// Where the claim was admitted, if it was.
    #[inline(never)]
    fn see(&mut self, key: Key) -> Option<(Place, Option<Seat>)> {
        let mut state = self.lun.state.borrow_mut();
        let (waited, place, seat) = state.claims.get(key).expect("the claim of a live future").admitted?;
        state.claims.remove(key);
        *self.waited += waited;
        self.claim = None;
        Some((place, seat))
    }

    #[inline(never)]
    fn wait(&mut self) {
        if self.claim.is_none() {
            let mut state = self.lun.state.borrow_mut();
            self.claim = Some(state.get_in_line(self.lun, self.kind, self.who, self.shares));
        }
    }
}

impl Drop for Admit<'_, '_> {
    fn drop(&mut self) {
        let Some(key) = self.claim else { return };
        let claim = self.lun.state.borrow_mut().claims.remove(key).expect("the claim of a live future");
        if let Some((_, place, seat)) = claim.admitted {
            self.lun.leave(place, seat);
        } else {
            let mut state = self.lun.state.borrow_mut();
            state.queues[claim.who.class.index()].retain(|waiting| *waiting != key);
            state.admit_waiting(self.lun);
        }
    }
}

/// Waits for the next register of the pipeline and moves there, if that is another. Only the occupant in front can be in
/// the way.
pub(crate) struct Move<'a, 'b> {
    register: &'a mut Register<'b>,
    to: Place,
    waited: &'a mut Wait,
    behind: Option<(Cause, Time)>,
}

impl Future for Move<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let (lun, to) = (self.register.lun, self.to);
        if self.register.place == to {
            return Poll::Ready(());
        }
        let now = lun.sim.now();
        let mut state = lun.state.borrow_mut();
        if let Some(ahead) = *state.register(to) {
            state.mover = Some(lun.sim.current_task());
            self.behind.get_or_insert((ahead.cause, now));
            return Poll::Pending;
        }
        let from = std::mem::replace(&mut self.register.place, to);
        *state.register(to) = state.register(from).take();
        state.admit_waiting(lun);
        state.update_blame(now);
        if let Some((cause, since)) = self.behind {
            self.waited.add(cause, now - since);
        }
        Poll::Ready(())
    }
}
