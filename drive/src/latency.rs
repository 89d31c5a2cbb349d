//! Latencies as a report has them, and how many requests a percentile needs.

use std::collections::BTreeMap;

use nandscape_sim::Histogram;
use serde::Serialize;

/// Latencies of one kind of request.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// Exact mean; null without requests.
    pub mean: Option<f64>,
    /// Percentiles, within 0.1%; null without a request above them.
    pub p50: Option<f64>,
    /// 90%.
    pub p90: Option<f64>,
    /// 99%.
    pub p99: Option<f64>,
    /// 99.9%.
    pub p99_9: Option<f64>,
    /// 99.99%.
    pub p99_99: Option<f64>,
    /// 99.9999%.
    pub p99_9999: Option<f64>,
    /// Exact maximum; null without requests.
    pub max: Option<f64>,
    /// Percentiles that the user chose besides.
    #[serde(flatten)]
    pub chosen: BTreeMap<String, Option<f64>>,
}

/// The fewest requests with one above the percentile: with fewer, the percentile would be the maximum under
/// another name.
pub fn requests_needed(quantile: f64) -> u64 {
    let exact = 1.0 / (1.0 - quantile);
    // 1 - 0.999 is a little less than a thousandth; the whole number is meant.
    let whole = exact.round();
    if (exact - whole).abs() <= 1e-7 * whole { whole as u64 } else { exact.ceil() as u64 }
}

/// A percentile of a distribution in microseconds; `None` where `samples` are too few for it.
pub fn percentile(latencies: &Histogram, samples: u64, quantile: f64) -> Option<f64> {
    (samples >= requests_needed(quantile)).then(|| latencies.quantile(quantile).as_us())
}

impl Latency {
    /// The percentiles that all of them have.
    pub const ALWAYS: [&str; 6] = ["p50", "p90", "p99", "p99_9", "p99_99", "p99_9999"];

    /// Of measured latencies.
    pub fn of(latencies: &Histogram) -> Latency {
        Latency::resting_on(latencies, latencies.count())
    }

    /// With percentiles as far as `samples` requests allow. A corrected distribution holds more values than were
    /// measured.
    pub fn resting_on(latencies: &Histogram, samples: u64) -> Latency {
        let given = |value: f64| (samples > 0).then_some(value);
        let percentile = |quantile: f64| percentile(latencies, samples, quantile);
        Latency {
            count: latencies.count(),
            mean: given(latencies.mean_ns() / 1e3),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
            p99_9: percentile(0.999),
            p99_99: percentile(0.9999),
            p99_9999: percentile(0.999_999),
            max: given(latencies.max().as_us()),
            chosen: BTreeMap::new(),
        }
    }

    /// All figures but the chosen ones, with their names for people.
    pub fn figures(&self) -> [(&'static str, Option<f64>); 8] {
        let Latency { mean, p50, p90, p99, p99_9, p99_99, p99_9999, max, .. } = *self;
        [
            ("mean", mean),
            ("p50", p50),
            ("p90", p90),
            ("p99", p99),
            ("p99.9", p99_9),
            ("p99.99", p99_99),
            ("p99.9999", p99_9999),
            ("max", max),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Span;

    fn latency(count: u64) -> Latency {
        let mut histogram = Histogram::new();
        (1..=count).for_each(|us| histogram.record(Span::from_us(us)));
        Latency::of(&histogram)
    }

    #[test]
    fn a_percentile_needs_a_request_above_it() {
        for (quantile, count) in
            [(0.5, 2), (0.9, 10), (0.99, 100), (0.999, 1_000), (0.9999, 10_000), (0.93, 15), (0.95, 20), (0.97, 34)]
        {
            assert_eq!(requests_needed(quantile), count);
        }
        assert_eq!(requests_needed(0.999_999), 1_000_000);
        let few = latency(3);
        assert_eq!((few.p50, few.p90, few.p99_9999, few.max), (Some(2.0), None, None, Some(3.0)));
        let (below, enough) = (latency(999), latency(1_000));
        assert!(below.p99.is_some() && below.p99_9.is_none());
        assert!(enough.p99_9.is_some_and(|p99_9| p99_9 < 1_000.0), "{enough:?}");
        assert!(latency(0).figures().iter().all(|(_, figure)| figure.is_none()));
    }
}
