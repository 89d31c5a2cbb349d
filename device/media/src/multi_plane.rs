//! Multi-plane reads (ONFI: 00h, address, 32h for each plane but the last, 00h, address, 30h for the last). Pages of
//! the same number in several planes of a die are sensed at once, and sent one after the other.
//!
//! Every read is a separate operation and task. A group of reads shares a register and one step of the array. The
//! member whose command cycles end last leads: it keeps the array busy, moves all pages, and wakes the others. If its
//! task is dropped, another member leads from there.
//!
//! Left out: retries, guests of a suspended operation, and reads of collectors, which are sensed alone.

use std::future::poll_fn;
use std::task::Poll;

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::executor::TaskId;
use nandscape_sim::{Cause, Class, Sim, Span, Time, Wait, Who};
use smallvec::SmallVec;

use crate::geometry::{PageId, PlaneId};
use crate::lun::{Lun, Register, RegisterId, State};
use crate::timing::Registers;

/// The page of a read.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ReadTarget {
    pub(crate) plane: PlaneId,
    pub(crate) page: PageId,
    /// Within the block.
    pub(crate) number: u32,
}

/// Names a member of a group.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Membership {
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
    /// When the array began, how long it takes, and the cause of the command cycles that it waited for.
    begun: Option<(Time, Sensing, Cause)>,
    /// The cause behind which the pages waited to move on.
    behind: Cause,
}

/// How long a page is sensed.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Sensing {
    /// Without faults.
    pub(crate) time: Span,
    /// Time that rules of the fault plan add.
    pub(crate) delay: Span,
}

struct Member {
    target: ReadTarget,
    progress: Progress,
}

/// The progress of a member.
#[derive(Copy, Clone)]
enum Progress {
    Commands,
    /// Its command cycles have ended; with its time of the array.
    Ready(TaskId, Sensing),
    /// Uses the array and moves the pages, or is about to.
    Leads(Sensing),
    /// Its page can be sent.
    Sends,
}

impl Groups {
    /// Whether a read can join the group that is about to be sensed.
    pub(crate) fn joins(&self, target: ReadTarget, class: Class) -> bool {
        self.sensing.as_ref().is_some_and(|group| {
            let other_plane = |member: &Member| member.target.plane != target.plane;
            let fits = group.begun.is_none() && group.class == class && group.number == target.number;
            fits && group.members.iter().all(other_plane)
        })
    }

    /// A read joins the group in the data register, or is the first there.
    pub(crate) fn enter(&mut self, target: ReadTarget, who: Who) -> Membership {
        let last = &mut self.last;
        let group = self.sensing.get_or_insert_with(|| {
            *last = last.wrapping_add(1);
            let (class, number, behind) = (who.class, target.number, who.cause);
            Group { id: *last, class, number, members: SmallVec::new(), begun: None, behind }
        });
        group.members.push(Member { target, progress: Progress::Commands });
        Membership { group: group.id, plane: target.plane }
    }

    fn of(&mut self, membership: Membership) -> &mut Group {
        let groups = [&mut self.sensing, &mut self.sending];
        groups.into_iter().flatten().find(|group| group.id == membership.group).expect("the group of a member")
    }

    /// A member's page was sent, or its task was dropped. The register that is free now, if it was the last member.
    pub(crate) fn leave(&mut self, membership: Membership, sim: &Sim) -> Option<RegisterId> {
        let group = self.of(membership);
        group.members.retain(|member| member.target.plane != membership.plane);
        if !group.members.is_empty() {
            group.hand_over(sim);
            return None;
        }
        let is_sensing = self.sensing.as_ref().is_some_and(|group| group.id == membership.group);
        let (group, place) =
            if is_sensing { (&mut self.sensing, RegisterId::Data) } else { (&mut self.sending, RegisterId::Cache) };
        *group = None;
        Some(place)
    }
}

impl Group {
    fn member(&mut self, plane: PlaneId) -> &mut Member {
        self.members.iter_mut().find(|member| member.target.plane == plane).expect("a member of its group")
    }

    /// The turn of a member whose command cycles have ended: true to lead, false to send its page.
    fn turn(&mut self, plane: PlaneId, sim: &Sim, time: Sensing) -> Poll<bool> {
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

    /// Makes the last member request its turn again, if the group is ready and has lost its leader.
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

    /// Starts the array, or continues it under another leader: when it ends without faults, and how long it takes.
    fn start_array(&mut self, cause: Cause, now: Time) -> (Time, Sensing) {
        let time = |member: &Member| match member.progress {
            Progress::Ready(_, time) | Progress::Leads(time) => time,
            Progress::Commands | Progress::Sends => Sensing::default(),
        };
        // The array takes as long as the slowest page, with its delay.
        let longest = self.members.iter().map(time).fold(Sensing::default(), |longest, of| {
            let (time, all) = (longest.time.max(of.time), (longest.time + longest.delay).max(of.time + of.delay));
            Sensing { time, delay: all - time }
        });
        let (begun, times, _) = *self.begun.get_or_insert((now, longest, cause));
        (begun + times.time, times)
    }

    /// Lets all members send their pages, in the order in which they entered.
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
    fn group(&mut self, membership: Membership) -> &mut Group {
        self.groups.as_mut().expect("a LUN that reads several planes").of(membership)
    }
}

impl Lun {
    /// Moves all pages of a group to the register from which they are sent. Then its leader takes its turn among them.
    fn move_group(&self, membership: Membership) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if let Progress::Sends = state.group(membership).member(membership.plane).progress {
            return Poll::Ready(());
        }
        if self.rules.registers == Registers::Double {
            if let Some(ahead) = state.cache {
                state.mover = Some(self.sim.current_task());
                state.group(membership).behind = ahead.cause;
                return Poll::Pending;
            }
            state.cache = state.data.take();
            let groups = state.groups.as_mut().expect("a LUN that reads several planes");
            groups.sending = groups.sensing.take();
            state.admit_waiting(self);
            state.update_blame(self.sim.now());
        }
        state.group(membership).release(&self.sim);
        Poll::Pending
    }
}

impl Register<'_> {
    /// Whether other reads may still join.
    pub(crate) fn is_shared(&self) -> bool {
        self.membership.is_some()
    }

    /// Senses the page of a read whose command cycles have ended, together with its group, and moves it to the register from
    /// which it is sent. Calls `sensed` once for each page of the group when it has been sensed.
    pub(crate) async fn sense_shared(
        &mut self,
        target: ReadTarget,
        times: Sensing,
        breakdown: &mut Breakdown,
        sensed: impl Fn(ReadTarget, Span),
    ) {
        let Some(membership) = self.membership else {
            self.array(times.time, breakdown).await;
            self.sense_longer(times.delay).await;
            breakdown.waits(Stage::DieWait).add(cause::FAULT, times.delay);
            return sensed(target, times.time + times.delay);
        };
        let (lun, ready) = (self.lun, self.lun.sim.now());
        let leads = poll_fn(|_| lun.state.borrow_mut().group(membership).turn(membership.plane, &lun.sim, times)).await;
        if leads {
            let now = lun.sim.now();
            let (ends, Sensing { time, delay }) =
                lun.state.borrow_mut().group(membership).start_array(self.who.cause, now);
            if ends > now {
                lun.array.occupy(ends - now, self.who, &mut Wait::default()).await;
            }
            let slowed = ends + delay;
            if slowed > lun.sim.now() {
                self.sense_longer(slowed - lun.sim.now()).await;
            }
            if slowed > now {
                let state = &mut *lun.state.borrow_mut();
                state.group(membership).members.iter().for_each(|member| sensed(member.target, time + delay));
            }
            poll_fn(|_| lun.move_group(membership)).await;
        }
        let mut state = lun.state.borrow_mut();
        let group = state.group(membership);
        let (begun, Sensing { time, delay }, last) = group.begun.expect("it was sensed");
        breakdown.waits(Stage::ChannelWait).add(last, begun - ready);
        breakdown.spend(Stage::Array, time);
        breakdown.waits(Stage::DieWait).add(cause::FAULT, delay);
        breakdown.waits(Stage::ChannelWait).add(group.behind, lun.sim.now() - (begun + time + delay));
    }

    /// Keeps the array busy for the time that a rule of the fault plan adds, for which others wait behind the fault.
    async fn sense_longer(&mut self, delay: Span) {
        if !delay.is_zero() {
            let owner = self.charge_to(cause::FAULT);
            self.array_unwatched(delay).await;
            self.charge_to(owner);
        }
    }
}
