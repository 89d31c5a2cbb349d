//! Loads generated from characteristics, as papers print them: share of reads, mean and largest sizes, sequentiality,
//! times between requests.
//!
//! | file | what |
//! |---|---|
//! | `sizes` | sizes of a given mean and maximum |
//! | `gaps` | times between requests of a given mean, alone or in bursts |
//! | `stream` | the requests |
//! | `keys` | the table `[[characteristics]]` of a workload file |
//!
//! Such a table does not determine a load. Choices made here: sizes follow a power law; directions and sizes are
//! independent of each other and of earlier requests; addresses that do not follow the previous request are random over
//! the footprint. Left out: correlations, phases, skew that changes with time; use the trace for those.

mod gaps;
mod keys;
mod sizes;
mod stream;

use nandscape_sim::units::Bytes;

pub use gaps::Bursts;
pub(crate) use keys::Keys;
pub use sizes::SizeSpec;

use crate::distribution::Distribution;
use crate::keys::shown;
use crate::words::Share;

/// A load described by a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Characteristics {
    /// The share of reads among the requests, from 0 to 1.
    pub reads: f64,
    /// Sizes of reads.
    pub read_size: SizeSpec,
    /// Sizes of writes.
    pub write_size: SizeSpec,
    /// Sizes and random addresses are multiples of this number of bytes.
    pub align: u64,
    /// The share of requests that begin at the end of the previous one, from 0 to 1.
    pub sequential: f64,
    /// The part of the drive that is used, from the beginning.
    pub footprint: Share,
    /// The distribution of the other addresses over it.
    pub distribution: Distribution,
    /// Mean time between arrivals in nanoseconds; without it the job's `iodepth` keeps requests outstanding.
    pub interval_ns: Option<f64>,
    /// Arrivals in bursts.
    pub bursts: Option<Bursts>,
}

impl Characteristics {
    /// Checks the figures, independently of the drive.
    ///
    /// # Errors
    /// The invalid figure, with valid values.
    pub fn check(&self) -> Result<(), String> {
        for (name, share) in [("reads", self.reads), ("sequential", self.sequential)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!(
                    "{name} = {} is out of range; from 0 to 1, or 0% to 100%, is valid",
                    shown(&share)
                ));
            }
        }
        if self.align == 0 || !self.align.is_multiple_of(512) {
            return Err(format!("align = {} is not a multiple of 512B", Bytes(self.align)));
        }
        // The size of a direction that never occurs does not matter.
        if self.reads > 0.0 {
            self.read_size.check(self.align).map_err(|problem| format!("reads: {problem}"))?;
        }
        if self.reads < 1.0 {
            self.write_size.check(self.align).map_err(|problem| format!("writes: {problem}"))?;
        }
        match (self.interval_ns, self.bursts) {
            (Some(mean), _) if !(1.0..=1e15).contains(&mean) => {
                Err(format!("an interval of {} ns is out of range; from 1ns to 1000000s is valid", shown(&mean)))
            }
            (Some(mean), bursts) => gaps::Gaps::new(mean, bursts).map(drop),
            (None, Some(_)) => Err("bursts need an interval: give interval, the mean time between requests".to_owned()),
            (None, None) => Ok(()),
        }
    }

    /// The largest request.
    fn largest(&self) -> u64 {
        let reads = if self.reads > 0.0 { self.read_size.max } else { 0 };
        let writes = if self.reads < 1.0 { self.write_size.max } else { 0 };
        reads.max(writes)
    }

    /// Checks that the load fits a drive.
    fn fits(&self, capacity: u64, lba_bytes: u32) -> Result<(), String> {
        if !self.align.is_multiple_of(u64::from(lba_bytes)) {
            let align = Bytes(self.align);
            return Err(format!("align = {align} is not a multiple of the drive's logical block, {lba_bytes}B"));
        }
        let (space, largest) = (self.footprint.bytes(capacity), self.largest());
        if space > capacity {
            return Err(format!("footprint = {} is more than the drive has, {}", self.footprint, Bytes(capacity)));
        }
        if space / self.align * self.align < largest {
            let (footprint, capacity, largest) = (self.footprint, Bytes(capacity), Bytes(largest));
            return Err(format!(
                "footprint = {footprint} of a drive of {capacity} has no room for the largest request, {largest}; \
                 a larger drive, or a smaller max_size, is needed"
            ));
        }
        Ok(())
    }
}
