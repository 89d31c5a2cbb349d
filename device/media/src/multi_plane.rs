//! Multi-plane reads (ONFI: 00h, address, 32h for each plane but the last, 00h, address, 30h for the last): pages of the
//! same number in several planes of a die are sensed at once, and sent one after the other.
//!
//! Every read stays an operation and a task of its own. What a group of them shares is a register and one step of the
//! array, which the member leads whose command cycles end last: it keeps the array busy, moves all pages on, and
//! wakes all of them. If it is given up, another one leads from there.
//!
//! Left out: retries, guests of what stands aside, and reads of collectors, which are sensed alone.

use std::future::poll_fn;
use std::task::Poll;

use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::executor::TaskId;
use nandscape_sim::{Cause, Class, Sim, Span, Time, Wait, Who};
use smallvec::SmallVec;

use crate::geometry::{PageId, PlaneId};
use crate::lun::{Lun, Place, Register, State};
use crate::timing::Registers;

/// The page that a read is for.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Address {
    pub(crate) plane: PlaneId,
    pub(crate) page: PageId,
    /// Within the block.
    pub(crate) number: u32,
}

/// A member's place in its group.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Seat {
    group: u32,
    plane: PlaneId,
}

/// The groups of a LUN.
#[derive(Default)]
pub(crate) struct Groups {
    /// In the data register.
    sensing: Option<Group>,
    /// In the cache register.
    sending: Option<Group>,
    /// Numbers groups.
    last: u32,
}

struct Group {
    id: u32,
    class: Class,
    /// Of the pages, within their blocks.
    number: u32,
    members: SmallVec<[Member; 4]>,
    /// When the array began, how long it takes, and whose command cycles it waited for.
    begun: Option<(Time, Span, Cause)>,
    /// Whom the pages waited for to move on.
    behind: Cause,
}

struct Member {
    address: Address,
    progress: Progress,
}

/// What a member does.
#[derive(Copy, Clone)]
enum Progress {
    Commands,
    /// Waits, with its time of the array.
    Ready(TaskId, Span),
    /// Uses the array and moves the pages, or is to.
    Leads(Span),
    /// Its page can be sent.
    Sends,
}

impl Groups {
    /// Whether a read can join the group that is about to be sensed.
    pub(crate) fn joins(&self, address: Address, class: Class) -> bool {
        self.sensing.as_ref().is_some_and(|group| {
            let other_plane = |member: &Member| member.address.plane != address.plane;
            let fits = group.begun.is_none() && group.class == class && group.number == address.number;
            fits && group.members.iter().all(other_plane)
        })
    }

    /// A read joins the group in the data register, or is the first there.
    pub(crate) fn enter(&mut self, address: Address, who: Who) -> Seat {
        let last = &mut self.last;
        let group = self.sensing.get_or_insert_with(|| {
            *last = last.wrapping_add(1);
            let (class, number, behind) = (who.class, address.number, who.cause);
            Group { id: *last, class, number, members: SmallVec::new(), begun: None, behind }
        });
        group.members.push(Member { address, progress: Progress::Commands });
        Seat { group: group.id, plane: address.plane }
    }

    fn of(&mut self, seat: Seat) -> &mut Group {
        let groups = [&mut self.sensing, &mut self.sending];
        groups.into_iter().flatten().find(|group| group.id == seat.group).expect("the group of a member")
    }

    /// A member has been sent or is given up. The register that is free now, if it was the last.
    pub(crate) fn leave(&mut self, seat: Seat, sim: &Sim) -> Option<Place> {
        let group = self.of(seat);
        group.members.retain(|member| member.address.plane != seat.plane);
        if !group.members.is_empty() {
            group.hand_over(sim);
            return None;
        }
        let is_sensing = self.sensing.as_ref().is_some_and(|group| group.id == seat.group);
        let (group, place) =
            if is_sensing { (&mut self.sensing, Place::Data) } else { (&mut self.sending, Place::Cache) };
        *group = None;
        Some(place)
    }
}

impl Group {
    fn member(&mut self, plane: PlaneId) -> &mut Member {
        self.members.iter_mut().find(|member| member.address.plane == plane).expect("a member of its group")
    }

    /// A member whose command cycles have ended asks for its turn: whether it is to lead, or can send its page.
    fn turn(&mut self, plane: PlaneId, sim: &Sim, time: Span) -> Poll<bool> {
        let member = self.member(plane);
        match member.progress {
            Progress::Commands => member.progress = Progress::Ready(sim.current_task(), time),
            Progress::Ready(..) => return Poll::Pending,
            Progress::Leads(_) => return Poll::Ready(true),
            Progress::Sends => return Poll::Ready(false),
        }
        if self.members.iter().any(|member| matches!(member.progress, Progress::Commands)) {
            return Poll::Pending;
        }
        self.member(plane).progress = Progress::Leads(time);
        Poll::Ready(true)
    }

    /// If nobody leads a group that is ready, the last that is left of it asks for its turn again.
    fn hand_over(&mut self, sim: &Sim) {
        let goes_on = |member: &Member| matches!(member.progress, Progress::Commands | Progress::Leads(_));
        if self.members.iter().any(goes_on) {
            return;
        }
        let last = self.members.last_mut().expect("it is not empty");
        if let Progress::Ready(task, _) = last.progress {
            last.progress = Progress::Commands;
            sim.wake(task);
        }
    }

    /// The array begins, or goes on under another leader: when it ends, and how long it takes in all.
    fn begin(&mut self, cause: Cause, now: Time) -> (Time, Span) {
        let time = |member: &Member| match member.progress {
            Progress::Ready(_, time) | Progress::Leads(time) => time,
            Progress::Commands | Progress::Sends => Span::ZERO,
        };
        let longest = self.members.iter().map(time).max().unwrap_or(Span::ZERO);
        let (begun, time, _) = *self.begun.get_or_insert((now, longest, cause));
        (begun + time, time)
    }

    /// All pages can be sent. All go on in the order in which they were let in.
    fn release(&mut self, sim: &Sim) {
        for member in &mut self.members {
            match member.progress {
                Progress::Ready(task, _) => sim.wake(task),
                Progress::Leads(_) => sim.wake(sim.current_task()),
                Progress::Commands | Progress::Sends => {}
            }
            member.progress = Progress::Sends;
        }
    }
}

impl State {
    fn group(&mut self, seat: Seat) -> &mut Group {
        self.groups.as_mut().expect("a LUN that reads several planes").of(seat)
    }
}

impl Lun {
    /// All pages of a group move to where they are sent from, and then its leader takes its turn among them.
    fn move_group(&self, seat: Seat) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if let Progress::Sends = state.group(seat).member(seat.plane).progress {
            return Poll::Ready(());
        }
        if self.rules.registers == Registers::Double {
            if let Some(ahead) = state.cache {
                state.mover = Some(self.sim.current_task());
                state.group(seat).behind = ahead.cause;
                return Poll::Pending;
            }
            state.cache = state.data.take();
            let groups = state.groups.as_mut().expect("a LUN that reads several planes");
            groups.sending = groups.sensing.take();
            state.admit_waiting(self);
            state.update_blame(self.sim.now());
        }
        state.group(seat).release(&self.sim);
        Poll::Pending
    }
}

impl Register<'_> {
    /// Whether others may still join.
    pub(crate) fn is_shared(&self) -> bool {
        self.seat.is_some()
    }

    /// The command cycles of a read have ended: senses the page, together with those of its group, and moves it to where
    /// it is sent from. `sensed` is told of each page of a group once, when it has been sensed.
    pub(crate) async fn sense_shared(
        &mut self,
        address: Address,
        time: Span,
        log: &mut Breakdown,
        sensed: impl Fn(Address, Span),
    ) {
        let Some(seat) = self.seat else {
            self.array(time, log).await;
            return sensed(address, time);
        };
        let (lun, ready) = (self.lun, self.lun.sim.now());
        let leads = poll_fn(|_| lun.state.borrow_mut().group(seat).turn(seat.plane, &lun.sim, time)).await;
        if leads {
            let now = lun.sim.now();
            let (ends, time) = lun.state.borrow_mut().group(seat).begin(self.who.cause, now);
            if ends > now {
                lun.array.occupy(ends - now, self.who, &mut Wait::default()).await;
                let state = &mut *lun.state.borrow_mut();
                state.group(seat).members.iter().for_each(|member| sensed(member.address, time));
            }
            poll_fn(|_| lun.move_group(seat)).await;
        }
        let mut state = lun.state.borrow_mut();
        let group = state.group(seat);
        let (begun, time, last) = group.begun.expect("it was sensed");
        log.waits(Stage::ChannelWait).add(last, begun - ready);
        log.spend(Stage::Array, time);
        log.waits(Stage::ChannelWait).add(group.behind, lun.sim.now() - (begun + time));
    }
}
