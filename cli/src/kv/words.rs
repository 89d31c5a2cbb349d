//! Values on the command line.

use std::path::Path;
use std::str::FromStr;

use nandscape_apps_kv_engine::noise::{OnOff, Pattern};
use nandscape_apps_kv_engine::policy::NAMES;
use nandscape_sim::Span;

/// The most bytes of a file of bursts.
const MOST_BYTES: u64 = 1 << 30;

/// `--noise`.
#[derive(Clone, Debug)]
pub(super) struct NoiseArg(pub(super) Option<Pattern>);

impl FromStr for NoiseArg {
    type Err = String;

    fn from_str(text: &str) -> Result<NoiseArg, String> {
        if let Some(depth) = text.strip_prefix("steady:") {
            let depth = depth.parse().ok().filter(|depth| (1..=1_024).contains(depth));
            let depth =
                depth.ok_or_else(|| format!("{text:?}: 1 to 1,024 writes at a time are valid, as in steady:4"))?;
            return Ok(NoiseArg(Some(Pattern::Steady { depth })));
        }
        match text {
            "none" => Ok(NoiseArg(None)),
            "bursts" => Ok(NoiseArg(Some(Pattern::Drawn(OnOff::DEFAULT)))),
            path => {
                let valid = "none, steady:N, bursts, or a file of bursts are valid";
                let recording = nandscape_files::input::text(Path::new(path), MOST_BYTES, "file of bursts");
                let recording = recording.map_err(|error| format!("{path}: {error}; {valid}"))?;
                recording.parse().map(|pattern| NoiseArg(Some(pattern))).map_err(|error| format!("{path}: {error}"))
            }
        }
    }
}

/// A number within bounds.
pub(super) fn count<const LEAST: usize, const MOST: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.ok_or_else(|| format!("{LEAST} to {MOST} are valid"))
}

/// A time above zero.
pub(crate) fn time(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|_| format!("{text:?} is no time; one such as 300us or 2ms is valid"))?;
    if span.is_zero() { Err("a time above zero is valid".to_owned()) } else { Ok(span) }
}

/// A time, or the 95th percentile of Base.
#[derive(Copy, Clone, Debug)]
pub(crate) enum TimeArg {
    P95,
    Given(Span),
}

impl FromStr for TimeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeArg, String> {
        match text {
            "p95" => Ok(TimeArg::P95),
            text => time(text).map(TimeArg::Given).map_err(|problem| format!("{problem}, and so is p95")),
        }
    }
}

impl TimeArg {
    /// The time, where Base has this percentile.
    pub(super) fn with(self, p95: Span) -> Span {
        match self {
            TimeArg::P95 => p95,
            TimeArg::Given(span) => span,
        }
    }
}

/// The name of a policy.
pub(crate) fn policy(text: &str) -> Result<String, String> {
    match NAMES.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is no policy; {} are", NAMES.join(", "))),
    }
}

/// A share of tries, in percent.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok().map(|percent| percent / 100.0);
    number.filter(|share| *share > 0.0 && *share < 1.0).ok_or_else(|| format!("{text:?}: a share such as 5% is valid"))
}
