//! A submission and a completion queue in the memory of this process, by NVMe's own rules (Base 3.3.1): fixed
//! size, one entry always empty, tail and head doorbells, and a phase tag that distinguishes new completions from
//! old ones.
//!
//! The host owns the submission tail and the completion head, the controller the other two. Next to each entry is
//! data that memory shared with a real host would not hold: the command's memory, its submission time and its
//! breakdown.
//!
//! Left out: queues in a guest's memory (`guest_queues`), and queues between threads.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_sim::Time;
use nandscape_wire_nvme::{CompletionEntry, SubmissionEntry};

use crate::breakdown::Breakdown;
use crate::mem::HostMem;
use crate::queue_memory::{CompletionMemory, MAX_ENTRIES, MIN_ENTRIES, Peeked, SubmissionMemory};

/// An entry of the submission queue, with its memory and submission time.
#[derive(Clone, Debug, Default)]
pub struct Submission {
    /// The command as bytes.
    pub entry: SubmissionEntry,
    /// The memory of its data.
    pub mem: HostMem,
    /// When the host submitted it.
    pub submitted: Time,
}

/// An entry of the completion queue, with its breakdown.
#[derive(Clone, Debug, Default)]
pub struct Posted {
    /// The completion as bytes.
    pub entry: CompletionEntry,
    /// The command's latency by stage.
    pub breakdown: Breakdown,
}

/// Called when a completion was posted: an interrupt, or nothing for a host that polls.
pub type Notify = Rc<dyn Fn()>;

/// The memory of one queue pair.
pub struct Ring {
    entries: u32,
    submissions: RefCell<Box<[Submission]>>,
    completions: RefCell<Box<[Posted]>>,
    notify: Option<Notify>,
    on_release: Cell<Option<OnRelease>>,
}

/// Called once, when the controller has deleted the queues of a ring and has released all memory.
pub type OnRelease = Box<dyn FnOnce(&Ring)>;

impl Ring {
    /// A pair of queues of `entries` each, both empty. Without `notify`, the host polls.
    ///
    /// # Panics
    /// When `entries` is not from [`MIN_ENTRIES`] to [`MAX_ENTRIES`].
    pub fn new(entries: u32, notify: Option<Notify>) -> Ring {
        assert!((MIN_ENTRIES..=MAX_ENTRIES).contains(&entries), "a queue of {entries} entries");
        let len = entries as usize;
        Ring {
            entries,
            submissions: RefCell::new(vec![Submission::default(); len].into()),
            completions: RefCell::new(vec![Posted::default(); len].into()),
            notify,
            on_release: Cell::new(None),
        }
    }

    /// A submission queue alone, empty, whose commands complete in the ring of another queue.
    ///
    /// # Panics
    /// As [`Ring::new`].
    pub fn of_submissions(entries: u32) -> Ring {
        Ring { completions: RefCell::default(), ..Ring::new(entries, None) }
    }

    /// Replaces the function that is called when the controller has deleted the queues.
    pub fn on_release(&self, released: OnRelease) {
        self.on_release.set(Some(released));
    }

    /// Entries of each queue, one of which always stays empty.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// The index after `index`.
    #[inline(always)]
    pub fn next(&self, index: u16) -> u16 {
        if u32::from(index) + 1 == self.entries { 0 } else { index + 1 }
    }

    /// The host is notified once, and the memory of its commands is free again.
    fn free(&self) {
        self.submissions.borrow_mut().iter_mut().for_each(|submission| submission.mem = HostMem::none());
        if let Some(released) = self.on_release.take() {
            released(self);
        }
    }

    /// Host: puts an entry at `tail`.
    #[inline(always)]
    pub fn put(&self, tail: u16, submission: Submission) {
        self.submissions.borrow_mut()[usize::from(tail)] = submission;
    }

    /// Host: takes the completion at `head` if its phase tag is `phase`, that is, if it is new.
    #[inline(always)]
    pub fn reap(&self, head: u16, phase: bool) -> Option<Posted> {
        let mut completions = self.completions.borrow_mut();
        let posted = &mut completions[usize::from(head)];
        if posted.entry.phase() != phase {
            return None;
        }
        Some(Posted { entry: posted.entry, breakdown: std::mem::take(&mut posted.breakdown) })
    }
}

impl SubmissionMemory for Ring {
    fn entries(&self) -> u32 {
        self.entries
    }

    fn fetch(&self, head: u16) -> Option<Submission> {
        let slot = &mut self.submissions.borrow_mut()[usize::from(head)];
        Some(Submission { entry: slot.entry, mem: std::mem::take(&mut slot.mem), submitted: slot.submitted })
    }

    fn peek(&self, index: u16) -> Option<Peeked> {
        let Submission { entry, submitted, .. } = &self.submissions.borrow()[usize::from(index)];
        Some(Peeked::of(entry, *submitted))
    }

    fn released(&self) {
        // The memory of a pair is released with its completion queue.
        if self.completions.borrow().is_empty() {
            self.free();
        }
    }
}

impl CompletionMemory for Ring {
    fn entries(&self) -> u32 {
        self.entries
    }

    fn post(&self, tail: u16, posted: Posted) {
        self.completions.borrow_mut()[usize::from(tail)] = posted;
    }

    fn notify(&self) {
        if let Some(notify) = &self.notify {
            notify();
        }
    }

    fn released(&self) {
        self.free();
    }
}
