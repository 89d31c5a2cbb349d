//! fio's terms, parsed to values.

use std::fmt;
use std::str::FromStr;

use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Ratio};

use crate::each::Each;

/// A value that could not be parsed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{text}\" is not {expected}")]
pub struct WordError {
    /// The text.
    pub text: String,
    /// The valid values.
    pub expected: &'static str,
}

impl WordError {
    pub(crate) fn new(text: &str, expected: &'static str) -> WordError {
        WordError { text: text.to_owned(), expected }
    }
}

/// Directions of requests, and order of addresses (fio's `rw`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Whether addresses are random; otherwise sequential.
    pub random: bool,
    /// The directions.
    pub action: Action,
}

/// The directions of requests.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Read only.
    Read,
    /// Write only.
    Write,
    /// Read and write, mixed.
    Mixed,
    /// Deallocate.
    Trim,
}

const PATTERNS: [(&str, Pattern); 8] = [
    ("read", Pattern { random: false, action: Action::Read }),
    ("write", Pattern { random: false, action: Action::Write }),
    ("rw", Pattern { random: false, action: Action::Mixed }),
    ("trim", Pattern { random: false, action: Action::Trim }),
    ("randread", Pattern { random: true, action: Action::Read }),
    ("randwrite", Pattern { random: true, action: Action::Write }),
    ("randrw", Pattern { random: true, action: Action::Mixed }),
    ("randtrim", Pattern { random: true, action: Action::Trim }),
];

impl FromStr for Pattern {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Pattern, WordError> {
        let found = PATTERNS.iter().find(|(name, _)| *name == text);
        let expected = "a pattern: read, write, rw, trim, randread, randwrite, randrw or randtrim";
        found.map(|(_, pattern)| *pattern).ok_or_else(|| WordError::new(text, expected))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = PATTERNS.iter().find(|(_, pattern)| pattern == self).map_or("?", |(name, _)| name);
        f.write_str(name)
    }
}

/// Request sizes: one, or several with weights (fio's `bs` and `bssplit`).
#[derive(Clone, PartialEq, Debug)]
pub struct BlockSizes {
    sizes: Vec<(u64, u32)>,
}

impl BlockSizes {
    /// Sizes in bytes with their weights.
    pub fn sizes(&self) -> &[(u64, u32)] {
        &self.sizes
    }

    /// The smallest size: addresses are multiples of it.
    pub fn smallest(&self) -> u64 {
        self.sizes.iter().map(|(bytes, _)| *bytes).min().unwrap_or(512)
    }

    /// The largest size.
    pub fn largest(&self) -> u64 {
        self.sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(512)
    }

    /// One of them, by their weights.
    pub(crate) fn draw(&self, rng: &mut nandscape_sim::Rng) -> u64 {
        let weights: u64 = self.sizes().iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut draw = if let [_] = self.sizes() { 0 } else { rng.below(weights) };
        for (bytes, weight) in self.sizes() {
            match draw.checked_sub(u64::from(*weight)) {
                Some(rest) => draw = rest,
                None => return *bytes,
            }
        }
        unreachable!("the draw is below the sum of the weights")
    }
}

impl FromStr for BlockSizes {
    type Err = WordError;

    fn from_str(text: &str) -> Result<BlockSizes, WordError> {
        let wrong = || {
            WordError::new(text, "a size such as \"4k\" in multiples of 512, or sizes with weights: \"4k/60:64k/40\"")
        };
        let size =
            |part: &str| part.parse().ok().map(|Bytes(bytes)| bytes).filter(|bytes| *bytes > 0 && bytes % 512 == 0);
        let pair = |part: &str| match part.split_once('/') {
            None => Some((size(part)?, 1)),
            Some((bytes, weight)) => Some((size(bytes)?, weight.parse().ok().filter(|weight| *weight > 0)?)),
        };
        let sizes: Option<Vec<(u64, u32)>> = text.split(':').map(pair).collect();
        Ok(BlockSizes { sizes: sizes.filter(|sizes| !sizes.is_empty()).ok_or_else(wrong)? })
    }
}

impl fmt::Display for BlockSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(bytes, _)] = self.sizes[..] {
            return write!(f, "{}", Bytes(bytes));
        }
        let parts: Vec<String> =
            self.sizes.iter().map(|(bytes, weight)| format!("{}/{weight}", Bytes(*bytes))).collect();
        f.write_str(&parts.join(":"))
    }
}

/// A part of a drive: a share of it, or a number of bytes.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Share {
    /// A share of the drive's capacity, from 0 to 1.
    Of(f64),
    /// Bytes.
    Bytes(u64),
}

impl Share {
    /// The part in bytes of a drive with the given capacity.
    pub fn bytes(self, capacity: u64) -> u64 {
        match self {
            Share::Of(share) => (capacity as f64 * share) as u64,
            Share::Bytes(bytes) => bytes,
        }
    }
}

impl FromStr for Share {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Share, WordError> {
        let share = text.strip_suffix('%').and_then(|_| text.parse().ok()).map(|Ratio(share)| share);
        match (share, text.parse()) {
            (Some(share), _) if share <= 1.0 => Ok(Share::Of(share)),
            (None, Ok(Bytes(bytes))) => Ok(Share::Bytes(bytes)),
            _ => Err(WordError::new(text, "a size such as \"10GiB\", or a share such as \"50%\", up to \"100%\"")),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Of(share) => write!(f, "{}%", share * 100.0),
            Share::Bytes(bytes) => write!(f, "{}", Bytes(*bytes)),
        }
    }
}

/// Alternating periods with and without requests.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Burst {
    /// The on period.
    pub on: Span,
    /// The off period.
    pub off: Span,
}

impl FromStr for Burst {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Burst, WordError> {
        let parts = text.split_once('/').and_then(|(on, off)| Some((on.parse().ok()?, off.parse().ok()?)));
        match parts {
            Some((on, off)) if on > Span::ZERO => Ok(Burst { on, off }),
            _ => Err(WordError::new(text, "a time on and a time off such as \"10ms/90ms\"")),
        }
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.on, self.off)
    }
}

/// A number such as `10k`, `1.5M` or `2G`: powers of 1000, as rates and counts have them.
///
/// # Errors
/// When it is none.
pub fn number(text: &str) -> Result<f64, WordError> {
    let wrong = || WordError::new(text, "a number such as 500, 10k or 1.5M (k, M and G are powers of 1000)");
    let units = [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)];
    let (digits, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor))).unwrap_or((text, 1.0));
    digits.trim().parse().map(|number: f64| number * factor).map_err(|_| wrong())
}

/// A rate for reads and writes together, or one for each: `1000,500`.
///
/// # Errors
/// When it is none.
pub fn rates(text: &str) -> Result<Each<f64>, WordError> {
    Ok(match text.split_once(',') {
        None => number(text)?.into(),
        Some((reads, writes)) => Each { reads: number(reads)?, writes: Some(number(writes)?) },
    })
}

/// A whole number such as `200000` or `200k`.
///
/// # Errors
/// When it is none.
pub fn count(text: &str) -> Result<u64, WordError> {
    let plain = text.trim().parse().ok();
    let scaled = || number(text).ok().filter(|number| (0.0..1e18).contains(number) && libm::round(*number) == *number);
    let found = plain.or_else(|| scaled().map(|number| number as u64));
    found.ok_or_else(|| WordError::new(text, "a whole number such as 200000 or 200k (k, M and G are powers of 1000)"))
}

/// A time such as `10s`; a number alone is of seconds, as in fio.
///
/// # Errors
/// When it is none.
pub fn runtime(text: &str) -> Result<Span, WordError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let with_unit = if is_number { format!("{text}s") } else { text.to_owned() };
    with_unit
        .parse()
        .map_err(|_| WordError::new(text, "a time such as \"10s\" (ns, us, ms, s; a number alone is seconds)"))
}

/// A value of a workload file that may be a number or text.
#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "expected a number, or text such as \"10k\" or \"10s\"")]
pub(crate) enum NumberOrText {
    /// A whole number.
    Whole(u64),
    /// Any number.
    Number(f64),
    /// Text.
    Text(String),
}

impl std::fmt::Display for NumberOrText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberOrText::Whole(number) => number.fmt(f),
            NumberOrText::Number(number) => number.fmt(f),
            NumberOrText::Text(text) => f.write_str(text),
        }
    }
}

/// A value of a workload file that may be a switch, a number or text, as fio's `sync` is.
#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "expected true or false, or text such as \"dsync\"")]
pub(crate) enum SwitchOrText {
    /// A switch.
    Switch(bool),
    /// A whole number.
    Whole(u64),
    /// Text.
    Text(String),
}

impl std::fmt::Display for SwitchOrText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchOrText::Switch(on) => u8::from(*on).fmt(f),
            SwitchOrText::Whole(number) => number.fmt(f),
            SwitchOrText::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written_back() {
        for text in ["read", "randrw", "randtrim"] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        assert_eq!("4k".parse::<BlockSizes>().unwrap().to_string(), "4KiB");
        assert_eq!("4k/60:64k/40".parse::<BlockSizes>().unwrap().to_string(), "4KiB/60:64KiB/40");
        assert_eq!("50%".parse(), Ok(Share::Of(0.5)));
        assert_eq!("1GiB".parse(), Ok(Share::Bytes(1 << 30)));
        assert_eq!("10ms/90ms".parse::<Burst>().unwrap().to_string(), "10ms/90ms");
    }

    #[test]
    fn numbers_have_prefixes_and_times_are_seconds() {
        assert_eq!((number("10k"), number("1.5M"), number("-3")), (Ok(10_000.0), Ok(1.5e6), Ok(-3.0)));
        assert_eq!((count("200k"), count("7"), count("1.5k")), (Ok(200_000), Ok(7), Ok(1_500)));
        assert_eq!(
            (runtime("1"), runtime("0.5"), runtime("20ms")),
            (Ok(Span::from_s(1)), Ok(Span::from_ms(500)), Ok(Span::from_ms(20)))
        );
        assert!(number("10x").is_err() && count("1.5").is_err() && count("-1").is_err() && runtime("1x").is_err());
        assert!(count("").is_err() && runtime("").is_err() && number("k").is_err());
    }

    #[test]
    fn what_is_no_word_is_refused_with_those_that_are() {
        assert!("random".parse::<Pattern>().unwrap_err().to_string().contains("randread"));
        for text in ["", "0", "100", "4k/0", "4k:", "4k/x"] {
            assert!(text.parse::<BlockSizes>().is_err(), "{text}");
        }
        for text in ["150%", "x", "-1"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        for text in ["10ms", "0ms/1ms", "/"] {
            assert!(text.parse::<Burst>().is_err(), "{text}");
        }
    }
}
