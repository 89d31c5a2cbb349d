//! Quantities as people write them: "40us", "16KiB", "1.2GB/s", "16KiB/60us", "12%".
//!
//! Numbers are decimal and are read exactly, without a detour through binary fractions. `K`, `M`, `G`, `T` and `KiB`,
//! `MiB`, ... are powers of 1024 in sizes, as in fio; `KB`, `MB`, ... are powers of 1000.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

use crate::time::Span;

/// Why a quantity could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{text}\" is not {expected}")]
pub struct UnitError {
    /// The text that was given.
    pub text: String,
    /// A valid form, with an example.
    pub expected: Cow<'static, str>,
}

/// A number of bytes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A transfer rate, exact as a fraction of bytes over time. 0 bytes in 0 time means "unlimited".
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Rate {
    bytes: u64,
    time: Span,
}

/// A share, as a fraction of one. Above 1 it is read and written with a percent sign only: a 7 that stands for 7% would
/// pass as 700%.
#[derive(Copy, Clone, PartialEq, PartialOrd, Default)]
pub struct Ratio(pub f64);

const SPAN_UNITS: &[(&str, u64)] = &[("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

const BYTE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("T", 1 << 40),
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
];

/// A decimal number times a unit, rounded to the nearest whole; `None` when it is malformed or too large.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let factor = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 18 || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let divisor = 10u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let value = (digits.checked_mul(u128::from(factor))? + divisor / 2) / divisor;
    u64::try_from(value).ok()
}

fn read(text: &str, units: &[(&str, u64)], expected: &'static str) -> Result<u64, UnitError> {
    scaled(text, units).ok_or_else(|| UnitError { text: text.to_owned(), expected: expected.into() })
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Span, UnitError> {
        read(text, SPAN_UNITS, "a time such as \"40us\" (ns, us, ms, s)").map(Span::from_ns)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        read(text, BYTE_UNITS, "a size such as \"16KiB\" (B, KiB, MiB, GiB, TiB; KB, MB, GB, TB; 4k as in fio)")
            .map(Bytes)
    }
}

impl fmt::Display for Bytes {
    /// An exact form: `16KiB`, `256GiB`, `1000B`. A size with seven digits or more in powers of 1024 is shown in powers of 1000 where it is
    /// a whole number of those: `1920GB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |units: &[(&'static str, u64)]| {
            let unit = units.iter().find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size));
            unit.map(|(unit, size)| (self.0 / size, *unit))
        };
        let binary = whole(&[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]);
        let (number, unit) = match binary.unwrap_or((self.0, "B")) {
            long @ (1_000_000.., _) => whole(&[("GB", 1_000_000_000), ("MB", 1_000_000)]).unwrap_or(long),
            short => short,
        };
        write!(f, "{number}{unit}")
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Rate {
    /// No limit: transfers take no time.
    pub const UNLIMITED: Rate = Rate { bytes: 0, time: Span::ZERO };

    /// `bytes` in `time`.
    pub const fn new(bytes: u64, time: Span) -> Rate {
        Rate { bytes, time }
    }

    /// Whether transfers take no time.
    pub const fn is_unlimited(self) -> bool {
        self.time.is_zero()
    }

    /// The time to move `bytes`, rounded to the nearest nanosecond.
    pub fn time_for(self, bytes: u64) -> Span {
        if self.is_unlimited() {
            return Span::ZERO;
        }
        let half = self.bytes / 2;
        // Almost always the product fits 64 bits, where division is quick.
        if let Some(scaled) = bytes.checked_mul(self.time.ns()).and_then(|product| product.checked_add(half)) {
            return Span::from_ns(scaled / self.bytes);
        }
        let scaled = u128::from(bytes) * u128::from(self.time.ns()) + u128::from(half);
        Span::from_ns(u64::try_from(scaled / u128::from(self.bytes)).unwrap_or(u64::MAX))
    }

    /// Bytes a second; infinite without a limit.
    pub fn bytes_per_s(self) -> f64 {
        self.bytes as f64 * 1e9 / self.time.ns() as f64
    }
}

/// A rate that keeps its last answer. Most transfers have the same size, and a division is slow.
#[derive(Debug)]
pub struct Remembering {
    rate: Rate,
    last: Cell<(u64, Span)>,
}

impl Remembering {
    /// The same rate.
    pub fn new(rate: Rate) -> Remembering {
        Remembering { rate, last: Cell::new((0, Span::ZERO)) }
    }

    /// As [`Rate::time_for`].
    #[inline]
    pub fn time_for(&self, bytes: u64) -> Span {
        let (before, time) = self.last.get();
        if bytes == before {
            return time;
        }
        let time = self.rate.time_for(bytes);
        self.last.set((bytes, time));
        time
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        let expected = "a rate such as \"800MB/s\" or \"16KiB/60us\", or \"unlimited\"";
        let wrong = || UnitError { text: text.to_owned(), expected: expected.into() };
        if text.trim() == "unlimited" {
            return Ok(Rate::UNLIMITED);
        }
        let (bytes, time) = text.split_once('/').ok_or_else(wrong)?;
        let bytes = scaled(bytes, BYTE_UNITS).filter(|&bytes| bytes > 0).ok_or_else(wrong)?;
        let time = match time.trim() {
            unit if unit.starts_with(|c: char| c.is_ascii_digit()) => scaled(unit, SPAN_UNITS),
            unit => scaled(&format!("1{unit}"), SPAN_UNITS),
        };
        let time = time.filter(|&ns| ns > 0).ok_or_else(wrong)?;
        Ok(Rate { bytes, time: Span::from_ns(time) })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            _ if self.is_unlimited() => f.write_str("unlimited"),
            Rate { bytes, time } if *time == Span::from_s(1) => match decimal(*bytes) {
                Some(bytes) => write!(f, "{bytes}/s"),
                None => write!(f, "{}/s", Bytes(*bytes)),
            },
            Rate { bytes, time } => write!(f, "{}/{time}", Bytes(*bytes)),
        }
    }
}

fn decimal(bytes: u64) -> Option<String> {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
    let (unit, factor) = units.into_iter().find(|(_, factor)| bytes.is_multiple_of(*factor))?;
    Some(format!("{}{unit}", bytes / factor))
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Ratio {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Ratio, UnitError> {
        let wrong = |expected: Cow<'static, str>| UnitError { text: text.to_owned(), expected };
        let malformed = || wrong("a share such as \"12%\" or 0.12".into());
        // By the exponent, not by a division, which would make 33.3% a 0.33299999999999996.
        let percent = text.trim().strip_suffix('%');
        let value: f64 = match percent {
            Some(number) => format!("{}e-2", number.trim()).parse(),
            None => text.trim().parse(),
        }
        .map_err(|_| malformed())?;
        if !value.is_finite() || value < 0.0 {
            return Err(malformed());
        }
        if percent.is_none() && value > 1.0 {
            let hundredth = value / 100.0;
            let meant = match hundredth <= 1.0 {
                true => format!("a share up to 1: write \"{value}%\" or {hundredth}, or \"{}\"", Ratio(value)),
                false => "a share: valid are numbers from 0 to 1, and percentages such as \"12%\"".to_owned(),
            };
            return Err(wrong(meant.into()));
        }
        Ok(Ratio(value))
    }
}

impl fmt::Display for Ratio {
    /// In a form that is read back exactly: `0.12`, and above 1 `150%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 <= 1.0 {
            return write!(f, "{}", self.0);
        }
        // The decimal point moves by two digits. A product with 100 would be rounded.
        let text = self.0.to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let (percent, rest) = fraction.split_at(fraction.len().min(2));
        let point = if rest.is_empty() { "" } else { "." };
        write!(f, "{whole}{percent:0<2}{point}{rest}%")
    }
}

impl fmt::Debug for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!("40us".parse(), Ok(Span::from_us(40)));
        assert_eq!("56.5 us".parse(), Ok(Span::from_ns(56_500)));
        assert_eq!("2ms".parse(), Ok(Span::from_ms(2)));
        assert_eq!("4k".parse(), Ok(Bytes(4_096)));
        assert_eq!("1.5GiB".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("256GB".parse(), Ok(Bytes(256_000_000_000)));
        assert_eq!("800MB/s".parse(), Ok(Rate::new(800_000_000, Span::from_s(1))));
        assert_eq!("16KiB/60us".parse(), Ok(Rate::new(16_384, Span::from_us(60))));
        assert_eq!("unlimited".parse(), Ok(Rate::UNLIMITED));
        for (text, share) in [("12%", 0.12), ("33.3%", 0.333), ("7.53 %", 0.0753), ("0.12", 0.12), ("100%", 1.0)] {
            assert_eq!(text.parse::<Ratio>().unwrap().0, share);
        }
    }

    #[test]
    fn what_is_malformed_is_refused_with_an_example() {
        for text in ["", "us", "4 0us", "1..5us", "1.us", "-3us", "40", "40lightyears", "999999999999999999999s"] {
            let error = text.parse::<Span>().unwrap_err();
            assert!(error.to_string().contains("such as \"40us\""), "{error}");
        }
        for text in ["0MB/s", "MB/s", "4KiB", "4KiB/0us", "fast"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["", "%", "-1", "inf", "nan"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_above_one_needs_its_percent_sign() {
        let error = "7".parse::<Ratio>().unwrap_err().to_string();
        assert_eq!(error, r#""7" is not a share up to 1: write "7%" or 0.07, or "700%""#);
        let error = "1e9".parse::<Ratio>().unwrap_err().to_string();
        assert_eq!(error, r#""1e9" is not a share: valid are numbers from 0 to 1, and percentages such as "12%""#);
        for (text, share) in [("700%", 7.0), ("150%", 1.5), ("101.25%", 1.0125), ("1234.567%", 12.345_67)] {
            let ratio: Ratio = text.parse().unwrap();
            assert_eq!((ratio.0, ratio.to_string().as_str()), (share, text));
        }
    }

    #[test]
    fn a_rate_that_remembers_answers_as_the_rate_does() {
        let rate = Rate::new(7, Span::from_ns(3));
        let remembering = Remembering::new(rate);
        for bytes in [0, 5, 5, 9, 0, 5] {
            assert_eq!(remembering.time_for(bytes), rate.time_for(bytes));
        }
    }

    #[test]
    fn a_transfer_takes_its_exact_time() {
        let rate: Rate = "16KiB/60us".parse().unwrap();
        assert_eq!(rate.time_for(16_384), Span::from_us(60));
        assert_eq!(rate.time_for(4_096), Span::from_us(15));
        assert_eq!(Rate::UNLIMITED.time_for(1 << 30), Span::ZERO);
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["800MB/s", "16KiB/60us", "unlimited", "1GiB/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["16KiB", "256GiB", "1000B", "0B", "1920GB", "8821707MiB", "1000001B", "1500MB"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
    }
}
