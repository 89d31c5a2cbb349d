//! The device side of queues: the progress of fetching and posting in each.
//!
//! A submission queue names the completion queue that it posts to; several may name the same.

use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::queue_memory::MIN_ENTRIES;
use nandscape_drive::ring::{Posted, Submission};
use nandscape_drive::{Assignments, CompletionMemory, QueueId, SubmissionMemory};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::vendor::{Attributes, QueueDepth};
use nandscape_wire_nvme::{CompletionEntry, Status, SubmissionEntry};

use super::completions::{Completions, after};
use super::submissions::Submissions;
use super::waiting::Waiting;
use crate::admin::Event;
use crate::arbiter::Priority;

/// All queues of a controller. An arbiter sees which have entries, how many, and the first of each.
pub struct Queues {
    sim: Sim,
    submission: Vec<Option<Submissions>>,
    completion: Vec<Option<Completions>>,
    max_entries: u32,
    /// Submission queues created so far.
    generations: u32,
    waiting: Waiting,
    /// Memory of a queue could not be reached; see [`Queues::take_lost`].
    lost: bool,
    /// Class and tenant of commands that state none, if there are rules for this host.
    assigned: Option<Box<Assignments>>,
}

/// The command that is fetched next from a queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// When the host submitted it.
    pub submitted: Time,
    /// Its class and tenant.
    pub attributes: Attributes,
    /// How long after its submission it is due (CDW3); `None` without a deadline.
    pub deadline: Option<Span>,
}

/// The progress of a search through a submission queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Search {
    /// The command was found.
    Found,
    /// The command is not in the queue.
    Absent,
    /// The search stopped before this entry.
    Unfinished(u16),
}

/// A submission queue was deleted, and perhaps its completion queue. The caller must notify the memory of each.
pub(crate) struct Released {
    pub(crate) submissions: Rc<dyn SubmissionMemory>,
    pub(crate) completions: Option<Rc<dyn CompletionMemory>>,
    /// Queues that post to the same completion queue may be fetched from again.
    pub(crate) is_unblocked: bool,
}

/// Names a submission queue for as long as it exists.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct QueueKey {
    pub(crate) id: QueueId,
    generation: u32,
}

impl Queues {
    /// Room for `pairs` I/O queues of each kind in addition to the admin queues.
    pub(crate) fn new(sim: &Sim, pairs: u16, max_entries: u32) -> Queues {
        let queues = usize::from(pairs) + 1;
        let submission = (0..queues).map(|_| None).collect();
        let completion = (0..queues).map(|_| None).collect();
        let waiting = Waiting::none(queues);
        Queues {
            sim: sim.clone(),
            submission,
            completion,
            max_entries,
            generations: 0,
            waiting,
            lost: false,
            assigned: None,
        }
    }

    /// Creates a completion queue.
    pub(crate) fn create_completion(
        &mut self,
        id: QueueId,
        entries: u32,
        vector: Option<u16>,
        memory: impl FnOnce() -> Rc<dyn CompletionMemory>,
    ) -> Result<(), Status> {
        let slot = self.completion.get_mut(usize::from(id.0)).filter(|slot| slot.is_none());
        let slot = slot.ok_or(Status::INVALID_QUEUE_ID.final_())?;
        check_size(entries, self.max_entries)?;
        let (memory, overflow) = (memory(), VecDeque::new());
        *slot = Some(Completions { memory, entries, vector, head: 0, tail: 0, phase: true, overflow, users: 0 });
        Ok(())
    }

    /// Creates a submission queue that posts to completion queue `to`.
    pub(crate) fn create_submission(
        &mut self,
        id: QueueId,
        to: QueueId,
        entries: u32,
        memory: impl FnOnce() -> Rc<dyn SubmissionMemory>,
    ) -> Result<(), Status> {
        let completions = self.completion.get_mut(usize::from(to.0)).and_then(Option::as_mut);
        let completions = completions.ok_or(Status::COMPLETION_QUEUE_INVALID.final_())?;
        let blocked = !completions.overflow.is_empty();
        let slot = self.submission.get_mut(usize::from(id.0)).filter(|slot| slot.is_none());
        let slot = slot.ok_or(Status::INVALID_QUEUE_ID.final_())?;
        check_size(entries, self.max_entries)?;
        self.generations += 1;
        let generation = self.generations;
        *slot = Some(Submissions {
            memory: memory(),
            entries,
            generation,
            head: 0,
            tail: 0,
            to,
            blocked,
            in_work: 0,
            priority: None,
            aborts: Vec::new(),
            deletion: None,
        });
        completions.users += 1;
        Ok(())
    }

    /// Creates a submission and a completion queue of the same identifier.
    pub(crate) fn create_pair(
        &mut self,
        id: QueueId,
        submissions: Rc<dyn SubmissionMemory>,
        completions: Rc<dyn CompletionMemory>,
    ) -> Result<(), Status> {
        self.create_completion(id, completions.entries(), Some(id.0), || completions)?;
        let created = self.create_submission(id, id, submissions.entries(), || submissions);
        created.or_else(|status| self.delete_completion(id).and(Err(status)))
    }

    /// Commands that state no class or tenant get those of these rules, which are of this host.
    pub(crate) fn assign(&mut self, rules: Assignments) {
        self.assigned = (!rules.is_empty()).then(|| Box::new(rules));
    }

    /// The submission queues that exist, for the drive log.
    pub(crate) fn depths(&self) -> Vec<QueueDepth> {
        let depth = |(id, queue): (u16, &Option<Submissions>)| {
            let queue = queue.as_ref()?;
            Some(QueueDepth {
                id: id.into(),
                entries_z: ((queue.entries - 1) as u16).into(),
                waiting: (queue.waiting() as u16).into(),
                in_work: (queue.in_work.min(u16::MAX.into()) as u16).into(),
            })
        };
        (0..).zip(&self.submission).filter_map(depth).collect()
    }

    /// Whether any I/O queue exists.
    pub(crate) fn has_io_queues(&self) -> bool {
        self.submission[1..].iter().any(Option::is_some) || self.completion[1..].iter().any(Option::is_some)
    }

    /// Whether no queue exists.
    pub(crate) fn is_empty(&self) -> bool {
        self.submission.iter().all(Option::is_none) && self.completion.iter().all(Option::is_none)
    }

    /// Begins to delete a submission queue, and with `completions` its completion queue: fetching stops.
    /// [`Queues::end_deletion`] ends it.
    pub(crate) fn begin_deletion(&mut self, id: QueueId, completions: bool) -> Result<QueueKey, Status> {
        let key = self.key(id).filter(|key| self.serves(*key)).ok_or(Status::INVALID_QUEUE_ID.final_())?;
        let queue = self.get_mut(key).expect("it was found");
        queue.deletion = Some(completions);
        self.waiting.set(id, false);
        Ok(key)
    }

    /// Deletes a submission queue in deletion, if none of its commands is in work. Also deletes its completion queue, if
    /// requested and no other queue posts there.
    pub(crate) fn end_deletion(&mut self, id: QueueId) -> Option<Released> {
        let slot = &mut self.submission[usize::from(id.0)];
        let queue = slot.take_if(|queue| queue.deletion.is_some() && queue.in_work == 0)?;
        let completions = self.completions(queue.to);
        completions.users -= 1;
        // A command without a completion by now never gets one (Base 5.2.4).
        let waited = completions.overflow.len();
        completions.overflow.retain(|posted| posted.entry.sq_id.get() != id.0);
        let is_unblocked = waited > 0 && completions.overflow.is_empty();
        if is_unblocked {
            self.set_blocked(queue.to, false);
        }
        let slot = &mut self.completion[usize::from(queue.to.0)];
        let deleted = slot.take_if(|completions| queue.deletion == Some(true) && completions.users == 0);
        Some(Released { submissions: queue.memory, completions: deleted.map(|queue| queue.memory), is_unblocked })
    }

    /// The submission queues that exist.
    pub(crate) fn existing(&self) -> Vec<QueueId> {
        let ids = (0..self.submission.len() as u16).map(QueueId);
        ids.filter(|id| self.submission[usize::from(id.0)].is_some()).collect()
    }

    /// Deletes the completion queues to which no submission queue posts.
    pub(crate) fn take_unused_completions(&mut self) -> Vec<Rc<dyn CompletionMemory>> {
        let unused = self.completion.iter_mut().filter_map(|slot| slot.take_if(|queue| queue.users == 0));
        unused.map(|queue| queue.memory).collect()
    }

    /// Deletes a completion queue to which no submission queue posts any more. The caller must notify its memory.
    pub(crate) fn delete_completion(&mut self, id: QueueId) -> Result<Rc<dyn CompletionMemory>, Status> {
        let slot = self.completion.get_mut(usize::from(id.0)).filter(|slot| slot.is_some());
        let slot = slot.ok_or(Status::INVALID_QUEUE_ID.final_())?;
        let deleted = slot.take_if(|queue| queue.users == 0).ok_or(Status::INVALID_QUEUE_DELETION.final_())?;
        Ok(deleted.memory)
    }

    #[inline]
    fn get(&self, key: QueueKey) -> Option<&Submissions> {
        self.submission[usize::from(key.id.0)].as_ref().filter(|queue| queue.generation == key.generation)
    }

    fn get_mut(&mut self, key: QueueKey) -> Option<&mut Submissions> {
        self.submission[usize::from(key.id.0)].as_mut().filter(|queue| queue.generation == key.generation)
    }

    /// Whether a submission queue exists, and is not a later one with the same number.
    pub(crate) fn exists(&self, key: QueueKey) -> bool {
        self.get(key).is_some()
    }

    /// Whether commands of a submission queue are served: the queue exists, and is not being deleted.
    #[inline]
    pub(crate) fn serves(&self, key: QueueKey) -> bool {
        self.get(key).is_some_and(|queue| queue.deletion.is_none())
    }

    /// The key of a submission queue.
    pub(crate) fn key(&self, id: QueueId) -> Option<QueueKey> {
        let queue = self.submission.get(usize::from(id.0))?.as_ref()?;
        Some(QueueKey { id, generation: queue.generation })
    }

    /// Searches a submission queue for a command that is not fetched yet, and marks it for abort. Checks at most `limit`
    /// entries from `from` on, or from the head if `from` is no longer in the queue. An already marked command is not found:
    /// a second mark would outlive it and abort the next command with its identifier.
    pub(crate) fn abort_unfetched(&mut self, key: QueueKey, cid: u16, from: Option<u16>, limit: u32) -> Search {
        let Some(queue) = self.get_mut(key).filter(|queue| !queue.aborts.contains(&cid)) else { return Search::Absent };
        let mut index = from.filter(|index| queue.holds(*index)).unwrap_or(queue.head);
        for _ in 0..limit {
            if index == queue.tail {
                return Search::Absent;
            }
            if queue.memory.peek(index).is_some_and(|each| each.cid == cid) {
                queue.aborts.push(cid);
                return Search::Found;
            }
            index = after(index, queue.entries);
        }
        Search::Unfinished(index)
    }

    /// Checks that a fetched command may begin. Called once per command.
    ///
    /// # Errors
    /// The status with which the command is to end.
    #[inline]
    pub(crate) fn begin(&mut self, key: QueueKey, cid: u16) -> Result<(), Status> {
        let queue = self.get_mut(key).filter(|queue| queue.deletion.is_none()).ok_or(Status::ABORTED_SQ_DELETION)?;
        if queue.aborts.is_empty() {
            return Ok(());
        }
        match queue.aborts.iter().position(|each| *each == cid) {
            Some(at) => {
                queue.aborts.swap_remove(at);
                Err(Status::ABORT_REQUESTED)
            }
            None => Ok(()),
        }
    }

    /// A command of a submission queue has ended. Returns whether a deletion waits for it.
    #[inline]
    pub(crate) fn ended(&mut self, key: QueueKey) -> bool {
        let queue = self.get_mut(key).expect("a queue with commands in work is not deleted");
        queue.in_work -= 1;
        queue.deletion.is_some() && queue.in_work == 0
    }

    /// The host moved a submission tail.
    ///
    /// # Errors
    /// The event for a value outside the queue, or for a missing queue: the write is ignored.
    #[inline(always)]
    pub(crate) fn set_sq_tail(&mut self, id: QueueId, tail: u16) -> Result<(), Event> {
        let queue = self.submission.get_mut(usize::from(id.0)).and_then(Option::as_mut);
        let queue = queue.ok_or(Event::INVALID_DOORBELL)?;
        if u32::from(tail) >= queue.entries {
            return Err(Event::INVALID_DOORBELL_VALUE);
        }
        queue.memory.rung(queue.tail, tail);
        queue.tail = tail;
        let waits = queue.has_next();
        self.waiting.set(id, waits);
        Ok(())
    }

    /// The host moved a completion head. Overflowed completions are posted as far as they fit; then the caller must notify
    /// the queue's memory, and entries may be ready to fetch.
    ///
    /// # Errors
    /// The event for a value outside the queue or beyond the posted entries, or for a missing queue: the write is ignored.
    #[inline(always)]
    pub(crate) fn set_cq_head(&mut self, id: QueueId, head: u16) -> Result<Option<Rc<dyn CompletionMemory>>, Event> {
        let queue = self.completion.get_mut(usize::from(id.0)).and_then(Option::as_mut);
        let queue = queue.ok_or(Event::INVALID_DOORBELL)?;
        let entries = queue.entries;
        let distance = |from: u16, to: u16| {
            let (from, to) = (u32::from(from), u32::from(to));
            if to >= from { to - from } else { to + entries - from }
        };
        if u32::from(head) >= entries || distance(queue.head, head) > distance(queue.head, queue.tail) {
            return Err(Event::INVALID_DOORBELL_VALUE);
        }
        queue.head = head;
        if queue.overflow.is_empty() {
            return Ok(None);
        }
        queue.flush_overflow();
        let (memory, blocked, full) = (queue.memory.clone(), !queue.overflow.is_empty(), queue.is_full());
        self.lost |= blocked && !full;
        self.set_blocked(id, blocked);
        Ok(Some(memory))
    }

    /// Whether unreachable memory prevented a fetch or a post since the last call.
    pub(crate) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Queues with entries to fetch.
    #[inline]
    pub fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Unfetched entries of a queue; 0 for a missing queue.
    pub fn depth(&self, id: QueueId) -> u32 {
        self.submission.get(usize::from(id.0)).and_then(Option::as_ref).map_or(0, Submissions::waiting)
    }

    /// The next command of a queue that has one; `None` if its memory is not visible, or not yet.
    pub fn head(&self, id: QueueId) -> Option<Head> {
        let queue = self.submission.get(usize::from(id.0))?.as_ref().filter(|queue| queue.has_next())?;
        let next = queue.memory.peek(queue.head)?;
        let deadline = (next.cdw3 > 0).then(|| Span::from_us(next.cdw3.into()));
        let own = Attributes(next.cdw2);
        let attributes = self.assigned.as_ref().map_or(own, |rules| rules.complete(id, next.nsid, own));
        Some(Head { submitted: next.submitted, attributes, deadline })
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.sim.now()
    }

    /// A submission queue has a priority class.
    pub(crate) fn set_priority(&mut self, id: QueueId, priority: Priority) {
        if let Some(queue) = self.submission.get_mut(usize::from(id.0)).and_then(Option::as_mut) {
            queue.priority = Some(priority);
        }
    }

    /// The submission queues with a priority class.
    pub(crate) fn priorities(&self) -> Vec<(QueueId, Priority)> {
        let priority = |id: QueueId| Some((id, self.submission[usize::from(id.0)].as_ref()?.priority?));
        self.existing().into_iter().filter_map(priority).collect()
    }

    /// Fetches the next entry of a queue that has any. `None` if its memory is unreachable, or not available yet: then the
    /// doorbell rings again.
    #[inline(always)]
    pub(crate) fn fetch(&mut self, id: QueueId) -> Option<(QueueKey, Submission)> {
        let queue = self.submission[usize::from(id.0)].as_mut().expect("a waiting queue exists");
        let Some(mut submission) = queue.memory.fetch(queue.head) else {
            self.lost |= !queue.memory.is_coming();
            self.waiting.set(id, false);
            return None;
        };
        queue.head = after(queue.head, queue.entries);
        queue.in_work += 1;
        if queue.head == queue.tail {
            self.waiting.set(id, false);
        }
        let key = QueueKey { id, generation: queue.generation };
        if let Some(rules) = &self.assigned {
            attribute(rules, id, &mut submission.entry);
        }
        Some((key, submission))
    }

    /// Fetches the entry after the last fetched one, if its flags match. Any other entry stays in the queue.
    pub(crate) fn fetch_with(&mut self, id: QueueId, flags: impl Fn(u8) -> bool) -> Option<Submission> {
        if !self.waiting.contains(id) {
            return None;
        }
        let queue = self.submission[usize::from(id.0)].as_ref().expect("a waiting queue exists");
        queue.memory.peek(queue.head).filter(|next| flags(next.flags))?;
        self.fetch(id).map(|(_, submission)| submission)
    }

    /// Posts a completion; the caller must notify the queue's memory. `None` if the submission queue is gone, or the
    /// completion queue has no room.
    #[inline(always)]
    pub(crate) fn post(&mut self, key: QueueKey, mut posted: Posted) -> Option<Rc<dyn CompletionMemory>> {
        let queue = self.get(key)?;
        (posted.entry.sq_id, posted.entry.sq_head) = (key.id.0.into(), queue.head.into());
        let to = queue.to;
        let completions = self.completions(to);
        if completions.overflow.is_empty() && completions.has_room() {
            completions.put(posted);
            return Some(completions.memory.clone());
        }
        completions.overflow.push_back(posted);
        self.lost |= !completions.is_full();
        self.set_blocked(to, true);
        None
    }

    /// The memory of an I/O completion queue, if only the submission queue of the same number posts to it.
    pub(crate) fn lone_completions(&self, id: QueueId) -> Option<Rc<dyn CompletionMemory>> {
        let posts_here =
            |other: &QueueId| self.submission[usize::from(other.0)].as_ref().is_some_and(|queue| queue.to == id);
        let is_lone = id != QueueId::ADMIN
            && self.existing().iter().filter(|other| **other != id).all(|other| !posts_here(other));
        let queue = self.completion.get(usize::from(id.0))?.as_ref()?;
        is_lone.then(|| queue.memory.clone())
    }

    /// Whether a completion queue still has its memory.
    pub(crate) fn is_memory_of(&self, id: QueueId, memory: &Rc<dyn CompletionMemory>) -> bool {
        let queue = self.completion.get(usize::from(id.0)).and_then(Option::as_ref);
        queue.is_some_and(|queue| Rc::ptr_eq(&queue.memory, memory))
    }

    /// Posts a notice to a completion queue, if it still has this memory, and room. Without room the notice is dropped: it
    /// would be late.
    pub(crate) fn post_notice(
        &mut self,
        id: QueueId,
        memory: &Rc<dyn CompletionMemory>,
        entry: CompletionEntry,
    ) -> bool {
        let has_memory = self.is_memory_of(id, memory);
        let queue = self.completion.get_mut(usize::from(id.0)).and_then(Option::as_mut).filter(|_| has_memory);
        let Some(queue) = queue.filter(|queue| queue.overflow.is_empty() && queue.has_room()) else { return false };
        queue.put(Posted { entry, ..Posted::default() });
        true
    }

    /// The vector of the completion queue that a submission queue posts to, if they are of I/O commands.
    pub(crate) fn io_vector(&self, key: QueueKey) -> Option<u16> {
        let to = self.get(key)?.to;
        if to == QueueId::ADMIN { None } else { self.completion[usize::from(to.0)].as_ref()?.vector }
    }

    fn completions(&mut self, id: QueueId) -> &mut Completions {
        self.completion[usize::from(id.0)].as_mut().expect("a queue that submission queues post to is not deleted")
    }

    /// Stops or resumes fetching from queues that post to `to`.
    #[cold]
    fn set_blocked(&mut self, to: QueueId, blocked: bool) {
        for (id, queue) in (0u16..).zip(&mut self.submission) {
            if let Some(queue) = queue
                && queue.to == to
            {
                queue.blocked = blocked;
                self.waiting.set(QueueId(id), queue.has_next());
            }
        }
    }
}

/// Gives a command the class and the tenant of the rules. Admin commands have none.
#[inline(never)]
fn attribute(rules: &Assignments, id: QueueId, entry: &mut SubmissionEntry) {
    if id != QueueId::ADMIN {
        entry.cdw2 = rules.complete(id, entry.nsid.get(), Attributes(entry.cdw2.get())).0.into();
    }
}

fn check_size(entries: u32, max: u32) -> Result<(), Status> {
    if (MIN_ENTRIES..=max).contains(&entries) { Ok(()) } else { Err(Status::INVALID_QUEUE_SIZE.final_()) }
}
