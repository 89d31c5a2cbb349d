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
use crate::totals::Totals;
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
    /// How often it is replayed, one after the other.
    repeat: u64,
}

/// The greatest factor, either way, by which time may be scaled.
const MOST_SCALE: f64 = 1e9;

impl Replay {
    /// A workload of the requests of a trace.
    ///
    /// # Errors
    /// When the trace has no usable times, or the scale is out of range.
    pub fn workload(trace: Trace, pace: Pace, address: Address) -> Result<Workload, TraceError> {
        Replay::repeated(trace, pace, address, 1)
    }

    /// A workload of the requests of a trace, `repeat` times. Each time begins a mean gap after the last request of the time before.
    ///
    /// # Errors
    /// As [`Replay::workload`], and when it is repeated 0 times or more often than can be counted.
    pub fn repeated(trace: Trace, pace: Pace, address: Address, repeat: u64) -> Result<Workload, TraceError> {
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
        let Some(requests) = totals.requests().checked_mul(repeat).filter(|requests| *requests > 0) else {
            return refuse(format!(
                "it cannot be repeated {repeat} times; from 1 on is valid, as far as its requests can be counted"
            ));
        };
        let name = trace.name();
        let iodepth = if let Pace::NoStall(iodepth) = pace { iodepth } else { 1 };
        let replay = Replay { trace: Arc::new(trace), pace, address, repeat };
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
    let totals = replay.trace.totals();
    let ns = totals.last as f64 + period_ns(totals) as f64 * (replay.repeat - 1) as f64;
    ns / 1e9 / replay.scale() / (365.25 * 86_400.0)
}

/// From the first request of a trace to the first of its next repetition: its length and a mean gap, so that the rate stays.
fn period_ns(totals: &Totals) -> u64 {
    let gaps = totals.requests().saturating_sub(1).max(1);
    totals.duration_ns() + totals.duration_ns() / gaps
}

fn pace_keeps_times(pace: Pace) -> bool {
    !matches!(pace, Pace::NoStall(_))
}

impl RequestStream for Replay {
    fn open(&self, drive: &DriveInfo, _clone: u32, _seed: Seed) -> Result<Box<dyn RequestSource>, SourceError> {
        Ok(Box::new(Replayed {
            records: self.trace.records()?,
            trace: self.trace.clone(),
            left: self.repeat - 1,
            shift: 0,
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
        let repeat = if self.repeat == 1 { String::new() } else { format!(", {} times", self.repeat) };
        format!(
            "the trace {}, {} requests of {} bytes in all, digest {digest:08x}, {pace}, addresses {address}{repeat}",
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
        if self.repeat > 1 {
            let period = Span::from_ns(period_ns(self.trace.totals()));
            notes.push(format!(
                "the trace is replayed {} times, each {period} of its time after the one before",
                self.repeat
            ));
        }
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
    trace: Arc<Trace>,
    /// Repetitions that follow, and nanoseconds of the trace's time that passed before this one.
    left: u64,
    shift: u64,
    fit: Fit,
    scale: f64,
    notes: Vec<String>,
}

impl RequestSource for Replayed {
    fn next(&mut self) -> Result<Option<TimedRequest>, SourceError> {
        let record = match self.records.next().transpose()? {
            Some(record) => record,
            None if self.left == 0 => return Ok(None),
            None => {
                self.left -= 1;
                self.shift = self.shift.saturating_add(period_ns(self.trace.totals()));
                self.records = self.trace.records()?;
                let Some(record) = self.records.next().transpose()? else { return Ok(None) };
                record
            }
        };
        let at = record.at.saturating_add(self.shift);
        let ns = if self.scale == 1.0 { at } else { (at as f64 / self.scale + 0.5) as u64 };
        let (at, request) = (Span::from_ns(ns), self.fit.request(&record));
        Ok(Some(TimedRequest { at, request, after_flush: record.after_flush }))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.iter().cloned().chain(self.fit.notes()).collect()
    }
}
