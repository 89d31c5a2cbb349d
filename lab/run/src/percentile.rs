//! A percentile that a user chooses, and the figures of a distribution by name.

use std::fmt;
use std::str::FromStr;

use nandscape_drive::{percentile, requests_needed};
use nandscape_sim::Histogram;

/// A percentile: between 0 and 100, with up to six decimals.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Percentile {
    /// In millionths of a percent.
    millionths: u32,
}

/// What is no percentile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{0}\" is not a percentile such as 95 or 99.999: above 0 and below 100, with up to 6 decimals")]
pub struct PercentileError(String);

impl Percentile {
    /// As a share from 0 to 1.
    pub fn quantile(self) -> f64 {
        f64::from(self.millionths) / 1e8
    }

    /// The name in reports: `p99_999`.
    pub fn key(self) -> String {
        format!("p{self}").replace('.', "_")
    }
}

impl FromStr for Percentile {
    type Err = PercentileError;

    fn from_str(text: &str) -> Result<Percentile, PercentileError> {
        let wrong = || PercentileError(text.to_owned());
        let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || whole.len() > 2 || !is_number(fraction) || fraction.len() > 6 {
            return Err(wrong());
        }
        let millionths = format!("{whole}{fraction:0<6}").parse().map_err(|_| wrong())?;
        if millionths == 0 { Err(wrong()) } else { Ok(Percentile { millionths }) }
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.millionths / 1_000_000, self.millionths % 1_000_000);
        match fraction {
            0 => write!(f, "{whole}"),
            fraction => f.write_str(format!("{whole}.{fraction:06}").trim_end_matches('0')),
        }
    }
}

/// A figure of a distribution of latencies.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// The mean.
    Mean,
    /// The maximum.
    Max,
    /// A percentile.
    Percentile(Percentile),
}

impl Quantity {
    /// The figure in microseconds; `None` where the requests are too few for it.
    pub fn of(self, latencies: &Histogram) -> Option<f64> {
        let count = latencies.count();
        match self {
            Quantity::Mean => (count > 0).then(|| latencies.mean_ns() / 1e3),
            Quantity::Max => (count > 0).then(|| latencies.max().as_us()),
            Quantity::Percentile(of) => percentile(latencies, count, of.quantile()),
        }
    }

    /// The fewest requests that it takes.
    pub fn needed(self) -> u64 {
        match self {
            Quantity::Mean | Quantity::Max => 1,
            Quantity::Percentile(of) => requests_needed(of.quantile()),
        }
    }
}

impl FromStr for Quantity {
    type Err = PercentileError;

    fn from_str(text: &str) -> Result<Quantity, PercentileError> {
        match text {
            "mean" => Ok(Quantity::Mean),
            "max" => Ok(Quantity::Max),
            text => {
                let digits = text.strip_prefix('p').ok_or_else(|| PercentileError(text.to_owned()))?;
                digits.parse().map(Quantity::Percentile)
            }
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Mean => f.write_str("mean"),
            Quantity::Max => f.write_str("max"),
            Quantity::Percentile(of) => write!(f, "p{of}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Span;

    #[test]
    fn percentiles_are_read_and_written() {
        for (text, quantile, key) in [("95", 0.95, "p95"), ("99.999", 0.99999, "p99_999"), ("0.5", 0.005, "p0_5")] {
            let percentile: Percentile = text.parse().unwrap();
            assert_eq!((percentile.quantile(), percentile.key().as_str()), (quantile, key));
            assert_eq!(percentile.to_string(), text);
        }
        for wrong in ["", "0", "100", "99.", ".9", "-1", "9e1", "99.1234567", "0.0"] {
            assert!(wrong.parse::<Percentile>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_figure_needs_enough_requests() {
        let mut latencies = Histogram::new();
        (1..=1_000).for_each(|us| latencies.record(Span::from_us(us)));
        let of = |text: &str| text.parse::<Quantity>().unwrap().of(&latencies);
        assert_eq!((of("mean"), of("max")), (Some(500.5), Some(1_000.0)));
        assert!(of("p95").is_some_and(|us| (us - 950.0).abs() < 1.0) && of("p99.99").is_none());
        assert_eq!("p99.9".parse::<Quantity>().unwrap().needed(), 1_000);
        assert!("99".parse::<Quantity>().is_err());
    }
}
