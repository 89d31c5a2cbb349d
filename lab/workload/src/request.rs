//! A request, and the seam through which requests come from elsewhere: traces, generators.
//!
//! A [`RequestStream`] is part of a workload, and is opened anew for each run; the [`RequestSource`] that this gives is
//! read as the run goes on, so that a load of any length takes bounded memory.

use std::fmt;

use nandscape_drive::DriveInfo;
use nandscape_sim::{Seed, Span};

use crate::record::Direction;

/// One request, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// What it does.
    pub direction: Direction,
    /// Where it begins. A flush has no place: 0.
    pub offset: u64,
    /// How much it covers. A flush covers nothing: 0.
    pub bytes: u64,
}

/// A request and when it arrives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimedRequest {
    /// Since the load began. Does not matter where requests are kept outstanding.
    pub at: Span,
    /// The request.
    pub request: Request,
}

/// Why a source could not go on.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Requests, one after the other.
pub trait RequestSource {
    /// The next request, `None` after the last. Times do not decrease, and requests lie within the drive, in whole
    /// logical blocks.
    ///
    /// # Errors
    /// When there are more requests, but they cannot be had. The run ends.
    fn next(&mut self) -> Result<Option<TimedRequest>, SourceError>;

    /// What had to be decided to make these requests fit the drive; asked for after the run, for its report.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Where requests come from, as part of a workload.
pub trait RequestStream: fmt::Debug + Send + Sync {
    /// Its requests from the first on, for the `clone`-th of the jobs that share it.
    ///
    /// # Errors
    /// When they cannot be had, or not on this drive.
    fn open(&self, drive: &DriveInfo, clone: u32, seed: Seed) -> Result<Box<dyn RequestSource>, SourceError>;

    /// Whether it can be opened on a drive of `capacity` bytes in logical blocks of `lba_bytes`; asked for before the
    /// drive is made.
    ///
    /// # Errors
    /// Why not, and what would be valid.
    fn check_on(&self, _capacity: u64, _lba_bytes: u32) -> Result<(), String> {
        Ok(())
    }

    /// What they are, in words, for reports.
    fn describe(&self) -> String {
        "requests of a source".to_owned()
    }

    /// Mean time between requests in seconds, where they have times and do not end by themselves; else 0.
    fn interval_s(&self) -> f64 {
        0.0
    }

    /// Whether requests arrive at their own times. Else the job's `iodepth` or `rate` decides when.
    fn is_timed(&self) -> bool;
}
