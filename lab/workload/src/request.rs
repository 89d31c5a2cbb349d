//! A request, and the interface for sources of requests: traces, generators.
//!
//! A [`RequestStream`] is part of a workload, and is opened for each run. The run reads the resulting [`RequestSource`]
//! as it proceeds, so a load of any length takes bounded memory.

use std::fmt;

use nandscape_drive::DriveInfo;
use nandscape_sim::{Seed, Span};

use crate::record::Direction;

/// One request, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its direction.
    pub direction: Direction,
    /// Its address in bytes; 0 for a flush.
    pub offset: u64,
    /// Its length in bytes; 0 for a flush.
    pub bytes: u64,
}

/// A request and its arrival time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimedRequest {
    /// Time since the load began. Ignored in a closed loop.
    pub at: Span,
    /// The request.
    pub request: Request,
    /// Whether it is sent when the request before it, a flush, has ended.
    pub after_flush: bool,
}

impl TimedRequest {
    /// A request that waits for no other.
    pub fn new(at: Span, request: Request) -> TimedRequest {
        TimedRequest { at, request, after_flush: false }
    }
}

/// The error of a source.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Requests, in order.
pub trait RequestSource {
    /// The next request, `None` after the last. Times do not decrease, and requests lie within the drive, in whole
    /// logical blocks.
    ///
    /// # Errors
    /// When further requests exist but cannot be read. The run ends.
    fn next(&mut self) -> Result<Option<TimedRequest>, SourceError>;

    /// Notes on changes made to fit the drive, called after the run for its report.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A source of requests as part of a workload.
pub trait RequestStream: fmt::Debug + Send + Sync {
    /// Its requests from the first on, for the `clone`-th of the jobs that share it.
    ///
    /// # Errors
    /// When they cannot be read, or do not fit this drive.
    fn open(&self, drive: &DriveInfo, clone: u32, seed: Seed) -> Result<Box<dyn RequestSource>, SourceError>;

    /// Checks that it can be opened on a drive of `capacity` bytes in logical blocks of `lba_bytes`; called before the
    /// drive is created.
    ///
    /// # Errors
    /// Why not, and what would be valid.
    fn check_on(&self, _capacity: u64, _lba_bytes: u32) -> Result<(), String> {
        Ok(())
    }

    /// Their description for reports.
    fn describe(&self) -> String {
        "requests of a source".to_owned()
    }

    /// Mean time between requests in seconds if they have times and never end; else 0.
    fn interval_s(&self) -> f64 {
        0.0
    }

    /// Whether requests have their own arrival times. If not, the job's `iodepth` or `rate` determines the times.
    fn is_timed(&self) -> bool;
}
