//! A queue pair in shared memory, filled and polled by one thread.

use std::io;

use nandscape_wire_nvme::{CompletionEntry, SubmissionEntry};
use zerocopy::IntoBytes as _;

use super::doorbells::Doorbells;

/// Bytes of an entry of a submission and of a completion queue.
pub(super) const SUBMISSION: u64 = size_of::<SubmissionEntry>() as u64;
pub(super) const COMPLETION: u64 = size_of::<CompletionEntry>() as u64;
/// The position of the phase tag in a completion: bit 16 of the last dword.
const PHASE_DWORD: u64 = 12;
const PHASE_BIT: u32 = 16;

/// See the module. The queues stay until the function is reset.
pub struct QueuePair {
    doorbells: Doorbells,
    id: u16,
    entries: u16,
    submissions: u64,
    completions: u64,
    tail: u16,
    head: u16,
    /// The head that the controller knows.
    told: u16,
    /// The phase tag of new completions.
    phase: bool,
    outstanding: u16,
}

impl QueuePair {
    pub(super) fn new(doorbells: Doorbells, id: u16, entries: u16, submissions: u64, completions: u64) -> QueuePair {
        assert!(entries >= 2, "a queue of {entries} entries");
        QueuePair {
            doorbells,
            id,
            entries,
            submissions,
            completions,
            tail: 0,
            head: 0,
            told: 0,
            phase: true,
            outstanding: 0,
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> u16 {
        self.id
    }

    /// Commands at a time: one entry always stays empty.
    pub fn depth(&self) -> u16 {
        self.entries - 1
    }

    /// Commands that have not completed.
    pub fn outstanding(&self) -> u16 {
        self.outstanding
    }

    /// Submits a command under its Command Identifier, and rings the doorbell.
    ///
    /// # Errors
    /// When all entries are taken, or the server has exited.
    #[inline]
    pub fn submit(&mut self, entry: &SubmissionEntry) -> io::Result<()> {
        if self.outstanding == self.depth() {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "the submission queue is full"));
        }
        let at = self.submissions + u64::from(self.tail) * SUBMISSION;
        self.doorbells.memory.write(at, entry.as_bytes())?;
        let before = self.tail;
        self.tail = self.next(before);
        self.outstanding += 1;
        self.doorbells.ring(u64::from(self.id) * 8, before, self.tail)
    }

    /// Takes a completion, if there is one. The controller may reuse its entry after [`QueuePair::tell_head`].
    ///
    /// # Errors
    /// When the memory cannot be read.
    #[inline]
    pub fn reap(&mut self) -> io::Result<Option<CompletionEntry>> {
        let at = self.completions + u64::from(self.head) * COMPLETION;
        // The phase tag first: the controller writes it last, so the whole entry is valid.
        let last = self.doorbells.memory.load(at + PHASE_DWORD)?;
        if (last >> PHASE_BIT & 1 != 0) != self.phase {
            return Ok(None);
        }
        let mut entry = CompletionEntry::default();
        self.doorbells.memory.read(at, entry.as_mut_bytes())?;
        self.head = self.next(self.head);
        self.phase ^= self.head == 0;
        self.outstanding = self.outstanding.saturating_sub(1);
        Ok(Some(entry))
    }

    /// Rings the head doorbell for all completions taken since the last time, if there are any.
    ///
    /// # Errors
    /// When the server has exited.
    #[inline]
    pub fn tell_head(&mut self) -> io::Result<()> {
        if self.told == self.head {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.told, self.head);
        self.doorbells.ring(u64::from(self.id) * 8 + 4, before, self.head)
    }

    fn next(&self, index: u16) -> u16 {
        if index + 1 == self.entries { 0 } else { index + 1 }
    }
}
