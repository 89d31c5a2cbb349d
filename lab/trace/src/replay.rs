//! A trace as a workload: its requests at their times, faster or slower (open loop), or in their order at a fixed queue
//! depth (closed loop).

use std::sync::Arc;

use nandscape_drive::DriveInfo;
use nandscape_lab_workload::{
    JobSpec, Limit, RequestSource, RequestStream, Source, SourceError, TimedRequest, Workload, shown,
};
use nandscape_sim::{Seed, Span};

use crate::error::TraceError;
use crate::fit::{Address, Fit};
use crate::trace::{Records, Trace};

/// The timing of requests.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Pace {
    /// At their times divided by this: at 2, twice as fast.
    Scaled(f64),
    /// At times scaled to this mean rate, in requests a second. The gaps keep their proportions.
    Rate(f64),
    /// In their order, with this many outstanding, regardless of their times.
    NoStall(u32),
}

/// A trace to be replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    trace: Arc<Trace>,
    pace: Pace,
    address: Address,
}

/// The greatest factor, either way, by which time may be scaled.
const MOST_SCALE: f64 = 1e9;

impl Replay {
    /// A workload of the requests of a trace.
    ///
    /// # Errors
    /// When the trace has no usable times, or the scale is out of range.
    pub fn workload(trace: Trace, pace: Pace, address: Address) -> Result<Workload, TraceError> {
        let refuse = |problem: String| Err(TraceError::unusable(&trace.name(), problem));
        let totals = trace.totals();
        if pace_keeps_times(pace) && totals.requests() > 1 && totals.duration_ns() == 0 {
            return refuse(format!(
                "all {} requests arrive at the same time; --replay-no-stall replays them --iodepth at a time",
                totals.requests()
            ));
        }
        match pace {
            Pace::Scaled(scale) if !(1.0 / MOST_SCALE..=MOST_SCALE).contains(&scale) => {
                return refuse(format!("a time scale of {} is out of range; from 1e-9 to 1e9 is valid", shown(&scale)));
            }
            Pace::Rate(rate) if !(1e-6..=1e9).contains(&rate) => {
                return refuse(format!("a rate of {} is out of range; from 0.000001 to 1e9 is valid", shown(&rate)));
            }
            _ => {}
        }
        let (name, requests) = (trace.name(), totals.requests());
        let iodepth = if let Pace::NoStall(iodepth) = pace { iodepth } else { 1 };
        let replay = Replay { trace: Arc::new(trace), pace, address };
        let years = totals_years(&replay);
        if years > MOST_YEARS {
            let problem = format!("takes {years:.0} years at this pace; at most {MOST_YEARS} are valid");
            return Err(TraceError::unusable(&name, problem));
        }
        let job = JobSpec { name, iodepth, source: Some(Source(Arc::new(replay))), ..JobSpec::default() };
        Ok(Workload { limit: Limit::Requests(requests), ..Workload::of(job) })
    }

    /// The divisor of times.
    fn scale(&self) -> f64 {
        match self.pace {
            Pace::Scaled(scale) => scale,
            Pace::Rate(rate) => self.trace.totals().rate().map_or(1.0, |mean| rate / mean),
            Pace::NoStall(_) => 1.0,
        }
    }
}

/// Drive time that a replay may take: the clock counts 584 years.
const MOST_YEARS: f64 = 300.0;

fn totals_years(replay: &Replay) -> f64 {
    replay.trace.totals().last as f64 / 1e9 / replay.scale() / (365.25 * 86_400.0)
}

fn pace_keeps_times(pace: Pace) -> bool {
    !matches!(pace, Pace::NoStall(_))
}

impl RequestStream for Replay {
    fn open(&self, drive: &DriveInfo, _clone: u32, _seed: Seed) -> Result<Box<dyn RequestSource>, SourceError> {
        Ok(Box::new(Replayed {
            records: self.trace.records()?,
            fit: Fit::new(self.trace.totals(), self.address, drive),
            scale: self.scale(),
            notes: self.notes(),
        }))
    }

    /// Two replays have the same description if they issue the same requests.
    fn describe(&self) -> String {
        let totals = self.trace.totals();
        let pace = match self.pace {
            Pace::Scaled(1.0) => "at its times".to_owned(),
            Pace::Scaled(scale) => format!("{scale} times as fast"),
            Pace::Rate(rate) => format!("at {rate} requests a second"),
            Pace::NoStall(iodepth) => format!("{iodepth} outstanding at a time"),
        };
        let address = match self.address {
            Address::Wrap => "wrapped",
            Address::Scale => "scaled",
        };
        let digest = totals.digest();
        format!(
            "the trace {}, {} requests of {} bytes in all, digest {digest:08x}, {pace}, addresses {address}",
            self.trace.name(),
            totals.requests(),
            totals.bytes()
        )
    }

    fn is_timed(&self) -> bool {
        pace_keeps_times(self.pace)
    }
}

impl Replay {
    fn notes(&self) -> Vec<String> {
        let mut notes = self.trace.notes();
        match self.pace {
            Pace::Scaled(1.0) => {}
            Pace::Scaled(scale) => notes.push(format!("the trace is replayed {scale} times as fast as recorded")),
            Pace::Rate(rate) => {
                let scale = self.scale();
                notes.push(format!(
                    "the trace is replayed {scale:.3} times as fast as recorded, at {rate} requests a second"
                ));
            }
            Pace::NoStall(iodepth) => {
                notes.push(format!("the times of the trace are ignored: {iodepth} requests are outstanding at a time"));
            }
        }
        notes
    }
}

/// The requests of a replay, in order.
struct Replayed {
    records: Records,
    fit: Fit,
    scale: f64,
    notes: Vec<String>,
}

impl RequestSource for Replayed {
    fn next(&mut self) -> Result<Option<TimedRequest>, SourceError> {
        let Some(record) = self.records.next().transpose()? else { return Ok(None) };
        let ns = if self.scale == 1.0 { record.at } else { (record.at as f64 / self.scale + 0.5) as u64 };
        Ok(Some(TimedRequest { at: Span::from_ns(ns), request: self.fit.request(&record) }))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.iter().cloned().chain(self.fit.notes()).collect()
    }
}
