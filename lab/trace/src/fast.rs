//! Whether a format guessed by exclusion makes a trace impossibly fast or slow. Times in the wrong unit are wrong by a
//! thousand or a million: a trace in seconds that is read in milliseconds requires the throughput of a thousand disks.
//!
//! Traces in milliseconds are of disks and servers: 100,000 requests a second leave room for everything ever recorded.
//! Traces in nanoseconds are of simulators and fast drives. Their bound is 500,000: microseconds read as nanoseconds are
//! above it from 500 requests a second on, while a faster trace has to name its format. Below the bound a note names the
//! rate (`guessed`). No trace has more than 64 GiB/s, nor less than a request in an hour.

use std::str::FromStr;

use crate::format::Format;

/// The least number of requests that a rate is judged by.
const LEAST: u64 = 16;
/// The most bytes a second.
const MOST_BYTES: f64 = 64.0 * (1u64 << 30) as f64;
/// The fewest requests a second.
const SLOWEST: f64 = 1.0 / 3_600.0;

/// The first requests of a trace whose unit of time is not known.
#[derive(Default)]
pub(crate) struct Stretch {
    /// The earliest and the latest time, in whatever unit.
    times: Option<(f64, f64)>,
    requests: u64,
    /// The sum of sizes, in bytes or sectors.
    sizes: u64,
}

/// The first requests as read by a format.
struct Meaning {
    seconds: f64,
    requests: f64,
    bytes: f64,
}

impl Stretch {
    pub(crate) fn add(&mut self, at: &[u8], size: u64) {
        let Some(at) = std::str::from_utf8(at).ok().and_then(|text| f64::from_str(text).ok()) else { return };
        let (first, last) = self.times.unwrap_or((at, at));
        self.times = Some((first.min(at), last.max(at)));
        self.requests += 1;
        self.sizes = self.sizes.saturating_add(size);
    }

    /// The pace with such times and sizes; `None` where all requests arrive at once, or there are too few to judge.
    fn meaning(&self, unit_s: f64, format: Format) -> Option<Meaning> {
        let (first, last) = self.times.filter(|_| self.requests >= LEAST)?;
        let seconds = Some((last - first) * unit_s).filter(|seconds| *seconds > 0.0)?;
        let unit_bytes = if format == Format::Replay { 1.0 } else { 512.0 };
        let requests = (self.requests - 1) as f64 / seconds;
        Some(Meaning { seconds, requests, bytes: self.sizes as f64 * unit_bytes / seconds })
    }

    /// Checks that a format gives the trace plausible rates.
    ///
    /// # Errors
    /// The fitting formats, with the resulting rates of each.
    pub(crate) fn check(&self, guess: Format, fitting: &[Format]) -> Result<(), String> {
        let Some(meaning) = self.meaning(unit_s(guess), guess) else { return Ok(()) };
        let most = if guess == Format::Mqsim { 5e5 } else { 1e5 };
        if (SLOWEST..=most).contains(&meaning.requests) && meaning.bytes <= MOST_BYTES {
            return Ok(());
        }
        let told = |meaning: Option<Meaning>| meaning.map_or(String::new(), |meaning| meaning.told());
        let one = |format: &Format| {
            let meaning = told(self.meaning(unit_s(*format), *format));
            format!("\n  --format {format}: {meaning} ({})", format.layout())
        };
        let each: Vec<String> = fitting.iter().map(one).collect();
        let units: &[(&str, f64)] = match guess {
            Format::Mqsim => &[("microseconds", 1e-6), ("seconds", 1.0)],
            _ => &[("seconds", 1.0)],
        };
        let in_unit = |(name, seconds): &(&str, f64)| {
            let faster = (seconds / unit_s(guess)).round();
            let meaning = told(self.meaning(*seconds, guess));
            format!("\n  times in {name}: {meaning}; replay it with --format {guess} --time-scale {}", 1.0 / faster)
        };
        let units: Vec<String> = units.iter().map(in_unit).collect();
        Err(format!(
            "has five numbers a line; only {guess} fits, but its first {} requests would be {}, which is implausible. Say which format it \
             is:{}{}",
            self.requests,
            meaning.told(),
            each.concat(),
            units.concat()
        ))
    }
}

impl Meaning {
    fn told(&self) -> String {
        format!("{} at {} requests a second, {}/s", time(self.seconds), figure(self.requests), bytes(self.bytes))
    }
}

/// The rate from which a guess of nanoseconds is noted.
const NOTED: f64 = 1e4;

/// The note of a trace whose times were guessed to be nanoseconds, if microseconds are as likely.
pub(crate) fn guessed(requests: u64, seconds: f64) -> Option<String> {
    let rate = requests.saturating_sub(1) as f64 / seconds;
    (requests >= LEAST && rate.is_finite() && rate >= NOTED).then(|| {
        format!(
            "the times of the trace were guessed to be nanoseconds: {} requests a second for {}; --format mqsim confirms that, and \
             --time-scale 0.001 replays microseconds",
            figure(rate),
            time(seconds)
        )
    })
}

/// Seconds of a format's unit of time.
fn unit_s(format: Format) -> f64 {
    if format == Format::Mqsim { 1e-9 } else { 1e-3 }
}

/// Three digits and a unit.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let (size, unit) = units.iter().copied().find(|(size, _)| value >= *size).unwrap_or(units[units.len() - 1]);
    format!("{}{unit}", figure(value / size))
}

fn time(seconds: f64) -> String {
    scaled(seconds, &[(3_600.0, " h"), (1.0, " s"), (1e-3, " ms"), (1e-6, " us"), (1e-9, " ns")])
}

fn bytes(bytes: f64) -> String {
    scaled(bytes, &[(1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")])
}

fn figure(value: f64) -> String {
    match value {
        small if small < 0.01 => format!("{small:.1e}"),
        small if small < 9.995 => format!("{small:.2}"),
        medium if medium < 99.95 => format!("{medium:.1}"),
        large => format!("{large:.0}"),
    }
}
