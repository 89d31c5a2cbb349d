//! A drive over one queue pair of a controller: assigns command identifiers, fills the submission queue and reaps
//! completions when notified. Commands beyond the queue's depth wait here in order.
//!
//! Several drives may share a completion queue: the drive that created it reaps, and passes each completion to the drive whose
//! submission queue the completion names. That first drive is not dropped before the others.
//!
//! Dropping the drive deletes its pair. Its commands complete when the controller has released them: until then their
//! memory is in use.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::Status;

use crate::controller::{Controller, QueueId};
use crate::drive::{Drive, DriveInfo};
use crate::io::{CommandRef, Completion, Io, Token};
use crate::ring::{Posted, Ring, Submission};

/// One queue pair, used as a drive: a namespace of the controller.
pub struct QueueDrive {
    sim: Sim,
    /// The namespace; `None` is the controller's first.
    nsid: Option<u32>,
    controller: Rc<dyn Controller>,
    id: QueueId,
    /// Whether this drive created the queue pair. Before, a pair of that number may belong to another.
    created: Cell<bool>,
    ring: Rc<Ring>,
    state: RefCell<State>,
    /// The state of a drive that was dropped, until its pair is deleted.
    orphans: Rc<RefCell<State>>,
    /// The controller has deleted the pair; if the drive still exists, by a reset.
    deleted: Cell<bool>,
    /// Dropped when the pair is deleted.
    kept: Cell<Option<Box<dyn Any>>>,
    /// The other drives whose commands complete here.
    followers: Followers,
    /// The drive where its own commands complete, unless that is this one.
    leader: Option<Rc<QueueDrive>>,
}

/// Drives that complete in the queue of another, by the number of their submission queue, until that is deleted.
type Followers = Rc<RefCell<BTreeMap<u16, Follower>>>;

struct Follower {
    drive: Weak<QueueDrive>,
    /// Its state once it is dropped.
    orphans: Rc<RefCell<State>>,
}

impl Follower {
    /// The token of a command that has completed.
    fn take(&self, cid: u16) -> Option<Token> {
        match self.drive.upgrade() {
            Some(drive) => drive.state.borrow_mut().take(cid),
            None => self.orphans.borrow_mut().take(cid),
        }
    }
}

#[derive(Default)]
struct State {
    tail: u16,
    head: u16,
    phase: bool,
    /// Tokens of outstanding commands by command identifier.
    tokens: Vec<Option<Token>>,
    free_ids: Vec<u16>,
    backlog: VecDeque<(Submission, Token)>,
}

impl QueueDrive {
    /// Creates queue pair `id` with `entries` entries, and with it the right to `entries - 1` outstanding commands.
    ///
    /// # Errors
    /// Those of [`Controller::create_queue_pair`].
    pub fn new(sim: &Sim, controller: Rc<dyn Controller>, id: QueueId, entries: u32) -> Result<Rc<QueueDrive>, Status> {
        QueueDrive::on(sim, controller, None, id, entries)
    }

    /// The same for a namespace other than the controller's first.
    ///
    /// # Errors
    /// Invalid Namespace when the controller has none of that number; otherwise as [`QueueDrive::new`].
    pub fn of_namespace(
        sim: &Sim,
        controller: Rc<dyn Controller>,
        nsid: u32,
        id: QueueId,
        entries: u32,
    ) -> Result<Rc<QueueDrive>, Status> {
        controller.info_of(nsid).ok_or(Status::INVALID_NAMESPACE)?;
        QueueDrive::on(sim, controller, Some(nsid), id, entries)
    }

    fn on(
        sim: &Sim,
        controller: Rc<dyn Controller>,
        nsid: Option<u32>,
        id: QueueId,
        entries: u32,
    ) -> Result<Rc<QueueDrive>, Status> {
        let drive = Rc::new_cyclic(|weak: &Weak<QueueDrive>| {
            let orphans: Rc<RefCell<State>> = Rc::default();
            let (weak, dropped, followers) = (weak.clone(), orphans.clone(), Followers::default());
            let of_dropped = followers.clone();
            let notify = |ring: Weak<Ring>| {
                move || match weak.upgrade() {
                    Some(drive) => drive.reap(),
                    None => State::reap((&dropped, id), &ring, &of_dropped),
                }
            };
            let ring = Rc::new_cyclic(|ring| Ring::new(entries, Some(Rc::new(notify(ring.clone())))));
            QueueDrive::unserved((sim, controller, nsid), (id, ring), (orphans, followers, None))
        });
        drive.when_released();
        drive.controller.create_queue_pair(id, drive.ring.clone(), drive.ring.clone())?;
        drive.created.set(true);
        Ok(drive)
    }

    /// A further submission queue `id` of the controller, with `entries` entries, on the same namespace. Its commands complete in the
    /// completion queue of this drive, whose queues exist until all drives that share them are dropped.
    ///
    /// # Errors
    /// Those of [`Controller::create_submission_queue`].
    pub fn sharing(self: &Rc<Self>, id: QueueId, entries: u32) -> Result<Rc<QueueDrive>, Status> {
        let leader = self.leader.as_ref().unwrap_or(self);
        let ring = Rc::new(Ring::of_submissions(entries));
        let of = (&self.sim, self.controller.clone(), self.nsid);
        let shared = (Rc::default(), Followers::default(), Some(leader.clone()));
        let drive = Rc::new(QueueDrive::unserved(of, (id, ring), shared));
        drive.when_released();
        drive.controller.create_submission_queue(id, leader.id, drive.ring.clone())?;
        let follower = Follower { drive: Rc::downgrade(&drive), orphans: drive.orphans.clone() };
        leader.followers.borrow_mut().insert(id.0, follower);
        drive.created.set(true);
        Ok(drive)
    }

    /// A drive whose queues the controller does not serve yet.
    fn unserved(
        (sim, controller, nsid): (&Sim, Rc<dyn Controller>, Option<u32>),
        (id, ring): (QueueId, Rc<Ring>),
        (orphans, followers, leader): (Rc<RefCell<State>>, Followers, Option<Rc<QueueDrive>>),
    ) -> QueueDrive {
        let depth = (ring.entries() - 1) as u16;
        QueueDrive {
            sim: sim.clone(),
            nsid,
            controller,
            id,
            created: Cell::new(false),
            ring,
            state: RefCell::new(State {
                tail: 0,
                head: 0,
                phase: true,
                tokens: (0..depth).map(|_| None).collect(),
                free_ids: (0..depth).rev().collect(),
                backlog: VecDeque::new(),
            }),
            orphans,
            deleted: Cell::new(false),
            kept: Cell::new(None),
            followers,
            leader,
        }
    }

    /// Has its commands aborted when the controller deletes its queues.
    fn when_released(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        self.ring.on_release(Box::new(move |_| {
            if let Some(drive) = weak.upgrade() {
                drive.was_deleted();
            }
        }));
    }

    /// Keeps something until the pair is deleted, such as its number's reservation.
    pub fn keep_until_deleted(&self, kept: Box<dyn Any>) {
        self.kept.set(Some(kept));
    }

    /// The controller was reset: all commands are aborted.
    fn was_deleted(&self) {
        self.deleted.set(true);
        if let Some(leader) = &self.leader {
            leader.forget(self.id);
        }
        drop(self.kept.take());
        self.state.take().abort();
    }

    /// Moves commands from the backlog into the submission queue and rings the doorbell.
    #[inline(never)]
    fn fill(&self) {
        let mut state = self.state.borrow_mut();
        let before = state.tail;
        while !state.backlog.is_empty()
            && let Some(id) = state.free_ids.pop()
            && let Some((mut submission, token)) = state.backlog.pop_front()
        {
            submission.entry.cid = id.into();
            self.put(&mut state, id, submission, token);
        }
        let tail = state.tail;
        drop(state);
        if tail != before {
            self.controller.ring_submission(self.id, tail);
        }
    }

    /// Puts a command with the identifier `id` in the queue.
    #[inline(always)]
    fn put(&self, state: &mut State, id: u16, submission: Submission, token: Token) {
        state.tokens[usize::from(id)] = Some(token);
        self.ring.put(state.tail, submission);
        state.tail = self.ring.next(state.tail);
    }

    /// Its number.
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// A notice names an outstanding command by its identifier: the receiver of its completion is notified. A notice of a command that has
    /// ended is ignored.
    pub fn announce(&self, cid: u16, remaining: Span) {
        let state = self.state.borrow();
        let announcer = state.tokens.get(usize::from(cid)).and_then(Option::as_ref).map(Token::announcer);
        drop(state);
        if let Some(announce) = announcer {
            announce(remaining);
        }
    }

    /// Consumes new completions, as an interrupt handler does.
    #[inline(always)]
    fn reap(&self) {
        let mut reaped = false;
        let mut others = None;
        while let Some(posted) = self.next_completion() {
            reaped = true;
            if posted.entry.sq_id.get() != self.id.0 {
                pass_on(&self.followers, posted, &mut others);
                continue;
            }
            let id = posted.entry.cid.get();
            let token = self.state.borrow_mut().take(id);
            let Some(token) = token else {
                unreachable!("queue {:?}: completion of command {id}, which is not outstanding", self.id)
            };
            token.complete(completion(posted));
        }
        if reaped {
            let state = self.state.borrow();
            let (head, has_backlog) = (state.head, !state.backlog.is_empty());
            drop(state);
            self.controller.ring_completion(self.id, head);
            if has_backlog {
                self.fill();
            }
            if let Some(others) = others {
                fill_all(others);
            }
        }
    }

    /// The controller has deleted the submission queue of a follower. What it has posted is reaped first: a later queue of that number
    /// must not get it.
    fn forget(&self, follower: QueueId) {
        self.reap();
        self.followers.borrow_mut().remove(&follower.0);
    }

    /// Takes the next new completion.
    #[inline(always)]
    fn next_completion(&self) -> Option<Posted> {
        self.state.borrow_mut().next(&self.ring)
    }
}

/// Completes a command of a follower. A follower that may have more to submit is added to `others`.
#[cold]
fn pass_on(followers: &Followers, posted: Posted, others: &mut Option<Vec<Rc<QueueDrive>>>) {
    let followers = followers.borrow();
    // A queue that is deleted has no commands any more.
    let Some(follower) = followers.get(&posted.entry.sq_id.get()) else { return };
    let (token, drive) = (follower.take(posted.entry.cid.get()), follower.drive.upgrade());
    drop(followers);
    let Some(token) = token else {
        // Those of a dropped drive are aborted when its queue is deleted.
        assert!(drive.is_none(), "queue {}: completion of a command that is not outstanding", posted.entry.sq_id.get());
        return;
    };
    token.complete(completion(posted));
    let others = others.get_or_insert_default();
    if let Some(drive) = drive.filter(|drive| !others.iter().any(|other| Rc::ptr_eq(other, drive))) {
        others.push(drive);
    }
}

/// Fills the queues of followers, in the order in which their commands completed.
#[cold]
fn fill_all(followers: Vec<Rc<QueueDrive>>) {
    followers.iter().for_each(|drive| drive.fill());
}

#[inline(always)]
fn completion(Posted { entry, breakdown }: Posted) -> Completion {
    Completion { status: entry.status(), dw0: entry.dw0.get(), dw1: entry.dw1.get(), breakdown }
}

impl Drive for QueueDrive {
    fn info(&self) -> DriveInfo {
        // A deleted namespace has no blocks; the controller rejects its commands.
        let of =
            |nsid| self.controller.info_of(nsid).unwrap_or(DriveInfo { nsid, blocks: 0, ..self.controller.info() });
        self.nsid.map_or_else(|| self.controller.info(), of)
    }

    fn submit(&self, io: Io) {
        let Io { mut command, mem, token } = io;
        if self.deleted.get() {
            return token.complete(Completion::of(Status::ABORTED_SQ_DELETION));
        }
        let mut state = self.state.borrow_mut();
        let submitted = self.sim.now();
        // A command that is submitted from within a completion must not overtake the backlog, which waits for the
        // identifier that has just become free.
        let id = if state.backlog.is_empty() { state.free_ids.pop() } else { None };
        match id {
            Some(id) => {
                command.cid = id.into();
                self.put(&mut state, id, Submission { entry: command, mem, submitted }, token);
                let tail = state.tail;
                drop(state);
                self.controller.ring_submission(self.id, tail);
            }
            None => state.backlog.push_back((Submission { entry: command, mem, submitted }, token)),
        }
    }

    fn cancel(&self, command: CommandRef) -> bool {
        if let Some(token) = self.take_waiting(command) {
            token.complete(Completion::of(Status::ABORT_REQUESTED));
            return true;
        }
        self.outstanding(command).is_some_and(|id| self.controller.abort(self.id, id))
    }
}

impl QueueDrive {
    /// Removes a command from the backlog beyond the queue's depth.
    fn take_waiting(&self, command: CommandRef) -> Option<Token> {
        let backlog = &mut self.state.borrow_mut().backlog;
        let at = backlog.iter().position(|(_, token)| token.is_of(command))?;
        backlog.remove(at).map(|(_, token)| token)
    }

    /// The identifier of a command that the controller has.
    fn outstanding(&self, command: CommandRef) -> Option<u16> {
        let is_it = |token: &Option<Token>| token.as_ref().is_some_and(|token| token.is_of(command));
        self.state.borrow().tokens.iter().zip(0..).find_map(|(token, id)| is_it(token).then_some(id))
    }
}

impl State {
    /// Takes the next new completion.
    #[inline(always)]
    fn next(&mut self, ring: &Ring) -> Option<Posted> {
        let posted = ring.reap(self.head, self.phase)?;
        self.head = ring.next(self.head);
        self.phase ^= self.head == 0;
        Some(posted)
    }

    /// Takes the token of an outstanding command, whose identifier is free again.
    #[inline(always)]
    fn take(&mut self, cid: u16) -> Option<Token> {
        let token = self.tokens.get_mut(usize::from(cid)).and_then(Option::take)?;
        self.free_ids.push(cid);
        Some(token)
    }

    /// Reaps new completions of a dropped drive. There is room for all of them: at the drop, all earlier completions
    /// had been reaped.
    fn reap((orphans, id): (&RefCell<State>, QueueId), ring: &Weak<Ring>, followers: &Followers) {
        let Some(ring) = ring.upgrade() else { return };
        loop {
            let posted = orphans.borrow_mut().next(&ring);
            let Some(posted) = posted else { return };
            if posted.entry.sq_id.get() != id.0 {
                pass_on(followers, posted, &mut None);
                continue;
            }
            let token = orphans.borrow_mut().take(posted.entry.cid.get());
            token.expect("a command completes once").complete(completion(posted));
        }
    }

    /// Completes all commands as aborted.
    fn abort(self) {
        let waiting = self.backlog.into_iter().map(|(_, token)| token);
        for token in self.tokens.into_iter().flatten().chain(waiting) {
            token.complete(Completion::of(Status::ABORTED_SQ_DELETION));
        }
    }
}

impl Drop for QueueDrive {
    fn drop(&mut self) {
        if !self.created.get() || self.deleted.get() {
            return;
        }
        let (orphans, kept, sim) = (self.orphans.clone(), self.kept.take(), self.sim.clone());
        orphans.replace(self.state.take());
        let (leader, id) = (self.leader.as_ref().map(Rc::downgrade), self.id);
        self.ring.on_release(Box::new(move |_| {
            drop(kept);
            if let Some(leader) = leader.and_then(|leader| leader.upgrade()) {
                leader.forget(id);
            }
            if !sim.is_stopped() {
                orphans.take().abort();
            }
        }));
        self.controller.delete_queue_pair(self.id).expect("a pair that was created and not deleted can be deleted");
    }
}
