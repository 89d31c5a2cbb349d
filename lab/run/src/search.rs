//! The highest rate of arrivals at which a latency stays below a bound: a bracket that doubles or halves from the first rate,
//! then bisection. A rate at which requests pile up during the run exceeds the bound. A figure needs ten requests
//! above it, so that the answer does not depend on a single request; at a run with fewer the search ends with the bracket so far.
//!
//! Latencies need not grow with the rate: the answer is a bracket of a rate that holds, and the next higher rate tried, which
//! does not.

use std::fmt;
use std::str::FromStr;

use nandscape_lab_workload::{Direction, Limit, Rate, RateProcess, Workload};
use nandscape_sim::{Histogram, Span};
use serde::Serialize;

use crate::percentile::Quantity;
use crate::pressure::Arrivals;

/// A latency and its bound: `read.p99.9 < 1ms`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Of which requests.
    pub direction: Direction,
    /// Which figure.
    pub quantity: Quantity,
    /// Below what it must stay.
    pub below: Span,
}

/// What is no bound.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{text}\" is not a bound such as \"read.p99.9 < 1ms\" or \"write.mean < 200us\"{}", .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
pub struct BoundError {
    text: String,
    why: Option<String>,
}

impl FromStr for Bound {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Bound, BoundError> {
        let wrong = |why: Option<String>| BoundError { text: text.to_owned(), why };
        let (figure, below) = text.split_once('<').ok_or_else(|| wrong(None))?;
        let (way, quantity) = figure.trim().split_once('.').ok_or_else(|| wrong(None))?;
        let direction = Direction::of(way);
        Ok(Bound {
            direction: direction.ok_or_else(|| wrong(Some("read, write, trim, flush and fua are valid".to_owned())))?,
            quantity: quantity.parse().map_err(|error| wrong(Some(format!("{error}; or mean, or max"))))?,
            below: below.trim().parse().map_err(|error| wrong(Some(format!("{error}"))))?,
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} < {}", self.direction.name(), self.quantity, self.below)
    }
}

/// A rate that was tried.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Probe {
    /// Arrivals a second, of all jobs with a rate.
    pub rate_iops: f64,
    /// The figure; null with too few requests.
    pub figure_us: Option<f64>,
    /// Requests that the figure covers.
    pub samples: u64,
    /// Whether the number of outstanding requests grew throughout.
    pub overloaded: bool,
    /// Whether the figure stays below its bound, and the drive keeps up.
    pub holds: bool,
}

/// The result of a search.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Search {
    /// Rates in the order in which they were tried.
    pub probes: Vec<Probe>,
    /// The highest rate that holds; null if none does.
    pub holds_iops: Option<f64>,
    /// The lowest higher rate that does not; null if all hold.
    pub exceeds_iops: Option<f64>,
    /// Why the search ended before the bracket was narrow; left out if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// A rate as it was tried.
#[derive(Clone, PartialEq, Debug)]
pub enum Trial {
    /// What it shows.
    Shown(Probe),
    /// Why it shows nothing.
    TooFew(String),
}

/// The lowest and highest rates that are tried.
const RATES: (f64, f64) = (1.0, 1e8);
/// Requests above a percentile that a rate is judged by.
const ABOVE: u64 = 10;
/// The bracket's width, relative to its lower end, at which the search ends.
const WIDTH: f64 = 0.01;

impl Search {
    /// Searches from a first rate. `measure` tries a rate.
    ///
    /// # Errors
    /// That of `measure`.
    pub fn run<E>(first: f64, mut measure: impl FnMut(f64) -> Result<Trial, E>) -> Result<Search, E> {
        let mut search = Search { probes: Vec::new(), holds_iops: None, exceeds_iops: None, ended: None };
        let mut rate = first.clamp(RATES.0, RATES.1);
        loop {
            let probe = match measure(rate)? {
                Trial::Shown(probe) => probe,
                Trial::TooFew(why) => {
                    search.ended = Some(why);
                    return Ok(search);
                }
            };
            search.probes.push(probe);
            match probe.holds {
                true => search.holds_iops = Some(rate),
                false => search.exceeds_iops = Some(rate),
            }
            rate = match (search.holds_iops, search.exceeds_iops) {
                (Some(low), Some(high)) if high - low <= WIDTH * low => return Ok(search),
                (Some(low), Some(high)) => (low + high) / 2.0,
                (Some(low), None) if low >= RATES.1 => return Ok(search),
                (Some(low), None) => (low * 2.0).min(RATES.1),
                (None, Some(high)) if high <= RATES.0 => return Ok(search),
                (None, high) => (high.unwrap_or(rate) / 2.0).max(RATES.0),
            };
        }
    }

    /// The probe of the answer.
    pub fn answer(&self) -> Option<&Probe> {
        self.probes.iter().rev().find(|probe| Some(probe.rate_iops) == self.holds_iops)
    }
}

impl Bound {
    /// The fewest requests that a rate is judged by: ten lie above a percentile.
    pub fn needed(&self) -> u64 {
        match self.quantity {
            Quantity::Percentile(_) => self.quantity.needed().saturating_mul(ABOVE),
            Quantity::Mean | Quantity::Max => self.quantity.needed(),
        }
    }

    /// What a run at a rate shows.
    pub fn probe(&self, rate_iops: f64, latencies: &Histogram, overloaded: bool) -> Trial {
        let (samples, needed) = (latencies.count(), self.needed());
        let figure_us = self.quantity.of(latencies).filter(|_| samples >= needed);
        let Some(figure) = figure_us else {
            return Trial::TooFew(format!(
                "{}.{} is judged by {needed} {} or more, and the run at {rate_iops:.0} a second has {samples}; raise \
                 --io-count or --runtime",
                self.direction.name(),
                self.quantity,
                self.direction.plural(),
            ));
        };
        let holds = figure < self.below.as_us() && !overloaded;
        Trial::Shown(Probe { rate_iops, figure_us, samples, overloaded, holds })
    }
}

/// The first rate, if the workload has none.
const FIRST: f64 = 1_000.0;

/// The part of a run that a search uses.
pub trait Measured {
    /// The latencies of one direction.
    fn latencies(&self, direction: Direction) -> &Histogram;

    /// How requests arrived, if they did so at their own times.
    fn arrivals(&self) -> Option<&Arrivals>;
}

/// The result of a search, and the run at the rate of the answer.
pub struct Found<R> {
    /// The search.
    pub search: Search,
    /// The run.
    pub finished: Option<R>,
}

/// The highest rate at which the latency under a workload stays below a bound. `run` runs the workload at a rate; `wrong` returns
/// why the workload has no rate to search for.
///
/// # Errors
/// Those of `run` and `wrong`.
pub fn find<R: Measured, E>(
    workload: &Workload,
    bound: Bound,
    wrong: impl Fn(String) -> E,
    mut run: impl FnMut(Workload) -> Result<R, E>,
) -> Result<Found<R>, E> {
    let first = total(workload).unwrap_or(FIRST);
    let mut best: Option<R> = None;
    let search = Search::run(first, |rate| -> Result<Trial, E> {
        let finished = run(at_rate(workload, rate).map_err(&wrong)?)?;
        let overloaded = finished.arrivals().is_some_and(|arrivals| arrivals.overloaded);
        let shown = bound.probe(rate, finished.latencies(bound.direction), overloaded);
        if matches!(&shown, Trial::Shown(probe) if probe.holds) {
            best = Some(finished);
        }
        Ok(shown)
    })?;
    Ok(Found { search, finished: best })
}

/// The workload with this many arrivals a second in all; the rates of several jobs keep their proportions. A single job
/// without a rate gets one.
///
/// # Errors
/// When there is no job whose rate could change.
pub fn at_rate(workload: &Workload, iops: f64) -> Result<Workload, String> {
    let mut workload = workload.clone();
    if let [job] = &mut workload.jobs[..]
        && job.rate.is_none()
        && job.source.is_none()
        && workload.loads.is_empty()
    {
        job.rate = Some(Rate { iops: 1.0, process: RateProcess::Poisson });
    }
    let sum = total(&workload).ok_or("the workload has no job with rate_iops, whose rate could be searched for")?;
    for rate in workload.jobs.iter_mut().filter_map(|job| job.rate.as_mut()) {
        rate.iops *= iops / sum;
    }
    if let Limit::Requests(0) = workload.limit {
        return Err("a run without requests shows nothing; raise --io-count".to_owned());
    }
    Ok(workload)
}

/// Arrivals a second of all jobs with a rate.
pub fn total(workload: &Workload) -> Option<f64> {
    let rates = workload.jobs.iter().filter_map(|job| job.rate.map(|rate| rate.iops));
    rates.reduce(|sum, iops| sum + iops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_workload::JobSpec;

    fn search(first: f64, limit: f64) -> Search {
        let measure = |rate_iops| {
            let holds = rate_iops < limit;
            Ok::<_, ()>(Trial::Shown(Probe {
                rate_iops,
                figure_us: Some(rate_iops),
                samples: 9,
                overloaded: false,
                holds,
            }))
        };
        Search::run(first, measure).unwrap()
    }

    #[test]
    fn the_bracket_is_narrow_and_holds_the_limit() {
        for (first, limit) in [(1_000.0, 41_234.0), (1_000.0, 17.0), (500.0, 500.0), (1e6, 999_999.0)] {
            let found = search(first, limit);
            let (low, high) = (found.holds_iops.unwrap(), found.exceeds_iops.unwrap());
            assert!(low < limit && limit <= high && high - low <= 0.01 * low, "{low} {limit} {high}");
            assert!(found.probes.len() < 30, "{}", found.probes.len());
            assert_eq!(found.answer().unwrap().rate_iops, low);
        }
    }

    #[test]
    fn limits_beyond_all_rates_end_the_search() {
        let (none, all) = (search(1_000.0, 0.5), search(1_000.0, 1e12));
        assert_eq!((none.holds_iops, none.exceeds_iops, none.answer()), (None, Some(1.0), None));
        assert_eq!((all.holds_iops, all.exceeds_iops), (Some(1e8), None));
    }

    #[test]
    fn bounds_are_read_and_mistakes_explained() {
        let bound: Bound = "read.p99.9 < 1ms".parse().unwrap();
        assert_eq!(
            (bound.direction, bound.below, bound.to_string().as_str()),
            (Direction::Read, Span::from_ms(1), "read.p99.9 < 1ms")
        );
        assert_eq!("write.mean<200us".parse::<Bound>().unwrap().quantity, Quantity::Mean);
        let wrong = |text: &str| text.parse::<Bound>().unwrap_err().to_string();
        assert!(wrong("read.p99").contains("is not a bound such as"));
        assert!(wrong("reads.p99 < 1ms").contains("read, write, trim, flush and fua"));
        assert!(wrong("read.p100 < 1ms").contains("below 100"));
        assert!(wrong("read.p99 < 5").contains("a time such as"));
    }

    #[test]
    fn too_few_requests_are_an_error_and_overload_exceeds() {
        let bound: Bound = "read.p99 < 1ms".parse().unwrap();
        let mut latencies = Histogram::new();
        (0..999).for_each(|_| latencies.record(Span::from_us(50)));
        let Trial::TooFew(why) = bound.probe(5.0, &latencies, false) else { panic!("999 reads are too few") };
        assert!(why.contains("is judged by 1000 reads or more, and the run at 5 a second has 999"), "{why}");
        latencies.record(Span::from_us(50));
        let holds = |overloaded| match bound.probe(5.0, &latencies, overloaded) {
            Trial::Shown(probe) => probe.holds,
            Trial::TooFew(why) => panic!("{why}"),
        };
        assert!(holds(false) && !holds(true));
    }

    #[test]
    fn a_search_that_meets_a_run_too_short_keeps_what_it_found() {
        let measure = |rate_iops: f64| {
            let probe = Probe { rate_iops, figure_us: Some(1.0), samples: 9, overloaded: false, holds: true };
            Ok::<_, ()>(if rate_iops < 3_000.0 { Trial::Shown(probe) } else { Trial::TooFew("few".to_owned()) })
        };
        let search = Search::run(1_000.0, measure).unwrap();
        assert_eq!((search.holds_iops, search.exceeds_iops), (Some(2_000.0), None));
        assert_eq!((search.probes.len(), search.ended.as_deref()), (2, Some("few")));
    }

    #[test]
    fn rates_keep_their_proportions() {
        let job = |iops: Option<f64>| JobSpec {
            rate: iops.map(|iops| Rate { iops, process: RateProcess::Linear }),
            ..JobSpec::default()
        };
        let jobs = |jobs: &[Option<f64>]| Workload {
            jobs: jobs.iter().map(|iops| job(*iops)).collect(),
            ..Workload::of(job(None))
        };
        let rates =
            |workload: &Workload| workload.jobs.iter().map(|job| job.rate.map(|rate| rate.iops)).collect::<Vec<_>>();
        let scaled = at_rate(&jobs(&[Some(10.0), None, Some(30.0)]), 400.0).unwrap();
        assert_eq!(rates(&scaled), [Some(100.0), None, Some(300.0)]);
        assert_eq!(rates(&at_rate(&jobs(&[None]), 5.0).unwrap()), [Some(5.0)]);
        assert!(at_rate(&jobs(&[None, None]), 5.0).unwrap_err().contains("no job with rate_iops"));
    }
}
