//! Jobs that make their writes durable, with fio's words: `fsync`, `fdatasync`, `sync` and `end_fsync`.
//!
//! A flush follows every N-th write that a job issues. It takes a slot of `iodepth`, as with fio's `io_uring`, and is no part of
//! `io_count`. A flush at the end (`end_fsync`) follows the last request of the job's group. A drive without a volatile cache gets neither a flush nor Force Unit Access: Linux sends it none.
//!
//! A closed job with one slot commits as a database writes its log: from the submission of the write that a flush follows to the
//! end of the flush, or of the write where none is sent. These times are the operation `commit`.

use std::cell::Cell;

use nandscape_drive::DriveInfo;
use nandscape_sim::Time;

use crate::record::Direction;
use crate::request::Request;
use crate::spec::JobSpec;
use crate::words::Action;

/// How a job makes its writes durable.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Flushes {
    /// Writes between two flushes (`fsync`); 0 is none.
    pub fsync: u32,
    /// The same by `fdatasync`, which is the same command to a drive.
    pub fdatasync: u32,
    /// Whether each write has Force Unit Access (`sync`).
    pub sync: bool,
    /// Whether a flush follows the last write of the job (`end_fsync`).
    pub end: bool,
}

/// The words of a job about flushes, as given.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlushWords {
    /// Writes to a flush.
    pub fsync: Option<u32>,
    /// The same.
    pub fdatasync: Option<u32>,
    /// `none` or 0, `sync` or 1, `dsync`.
    pub sync: Option<String>,
    /// Whether a flush ends the job.
    pub end: Option<bool>,
}

impl FlushWords {
    /// What they mean.
    ///
    /// # Errors
    /// The word that is not valid, and what would be.
    pub fn flushes(&self) -> Result<Flushes, String> {
        let sync = match self.sync.as_deref() {
            None | Some("none" | "0") => false,
            Some("sync" | "1" | "dsync") => true,
            Some(other) => return Err(format!("sync = {other} is not known; none, sync and dsync are valid")),
        };
        let (fsync, fdatasync) = (self.fsync.unwrap_or(0), self.fdatasync.unwrap_or(0));
        Ok(Flushes { fsync, fdatasync, sync, end: self.end.unwrap_or(false) })
    }
}

impl Flushes {
    /// Whether there is one.
    pub fn is_some(&self) -> bool {
        *self != Flushes::default()
    }

    /// The words as a line has them; empty without any.
    pub fn describe(&self) -> String {
        let each = [
            ("fsync", self.fsync),
            ("fdatasync", self.fdatasync),
            ("sync", self.sync.into()),
            ("end_fsync", self.end.into()),
        ];
        each.iter().filter(|(_, value)| *value > 0).map(|(word, value)| format!(" {word}={value}")).collect()
    }

    /// Checks the words of a job against each other.
    pub(crate) fn check(&self, job: &JobSpec) -> Result<(), String> {
        let word = if self.fsync > 0 {
            "fsync"
        } else if self.fdatasync > 0 {
            "fdatasync"
        } else if self.sync {
            "sync"
        } else {
            "end_fsync"
        };
        if self.is_some() && job.source.is_some() {
            return Err(format!("{word} is for jobs of drawn requests"));
        }
        if self.is_some() && matches!(job.rw.action, Action::Read | Action::Trim) {
            return Err(format!("{word} is for jobs that write, which {} does not", job.rw));
        }
        Ok(())
    }

    /// Whether a flush follows this number of writes.
    fn is_due(&self, writes: u64) -> bool {
        [self.fsync, self.fdatasync].iter().any(|every| *every > 0 && writes.is_multiple_of((*every).into()))
    }
}

/// The flush of a job.
pub(crate) const FLUSH: Request = Request { direction: Direction::Flush, offset: 0, bytes: 0 };

/// The writes of a running job, and the flush that follows them.
pub(crate) struct Syncs {
    /// What the drive gets.
    flushes: Flushes,
    /// What the job was given.
    given: Flushes,
    writes: Cell<u64>,
    is_due: Cell<bool>,
    /// Whether its commits are timed.
    has_one_slot: bool,
    /// When the write of the commit under way was submitted.
    committing: Cell<Option<Time>>,
}

impl Syncs {
    /// Of a job on a drive.
    pub(crate) fn new(spec: &JobSpec, info: &DriveInfo) -> Syncs {
        let flushes = if info.volatile_cache { spec.flushes } else { Flushes::default() };
        let has_one_slot = spec.iodepth == 1 && !spec.is_open();
        let (writes, is_due, committing) = Default::default();
        Syncs { flushes, given: spec.flushes, writes, is_due, has_one_slot, committing }
    }

    /// The note of a job whose words have no effect on this drive.
    pub(crate) fn note(spec: &JobSpec, info: &DriveInfo) -> Option<String> {
        let is_idle = spec.flushes.is_some() && !info.volatile_cache;
        is_idle.then(|| {
            format!(
                "{} of job {} has no effect: the drive has no volatile write cache, and Linux sends such a drive neither Flush nor \
                 Force Unit Access (a drive with buffer.mode = \"volatile\" has one)",
                spec.flushes.describe().trim(),
                spec.name
            )
        })
    }

    /// A request of a direction is issued. Returns the direction in which it goes: a write of a synchronous job with Force Unit
    /// Access.
    #[inline(always)]
    pub(crate) fn issued(&self, direction: Direction, now: Time) -> Direction {
        if !direction.is_write() {
            return direction;
        }
        self.writes.set(self.writes.get() + 1);
        if self.given.is_due(self.writes.get()) {
            self.is_due.set(self.flushes.is_due(self.writes.get()));
            self.committing.set(self.has_one_slot.then_some(now));
        }
        if self.flushes.sync { Direction::Fua } else { direction }
    }

    /// A request has ended. Returns when its commit began, if it ends one.
    #[inline(always)]
    pub(crate) fn ended(&self) -> Option<Time> {
        if self.is_due.get() { None } else { self.committing.take() }
    }

    /// Whether a flush is to be issued now, once.
    #[inline(always)]
    pub(crate) fn take_due(&self) -> bool {
        self.is_due.replace(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_meaning_or_valid_values() {
        let words = |fsync, fdatasync, sync: Option<&str>| {
            FlushWords { fsync, fdatasync, sync: sync.map(str::to_owned), end: fsync.map(|_| true) }.flushes()
        };
        assert_eq!(words(None, None, None), Ok(Flushes::default()));
        assert_eq!(words(Some(32), None, Some("dsync")).unwrap().describe(), " fsync=32 sync=1 end_fsync=1");
        assert_eq!(words(None, Some(4), Some("0")).unwrap().describe(), " fdatasync=4");
        assert!(words(None, None, Some("2")).unwrap_err().contains("none, sync and dsync are valid"));
    }

    /// fio issues one flush where both words ask for one.
    #[test]
    fn a_flush_follows_every_so_many_writes() {
        let flushes = Flushes { fsync: 4, fdatasync: 6, ..Flushes::default() };
        let due: Vec<u64> = (1..=24).filter(|writes| flushes.is_due(*writes)).collect();
        assert_eq!(due, [4, 6, 8, 12, 16, 18, 20, 24]);
    }
}
