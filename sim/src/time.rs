//! Instants and spans in integer nanoseconds.
//!
//! Model code never sees a wall clock: it is handed a [`Time`] and adds [`Span`]s to it. Left out: calendars
//! and time zones.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// An instant of the run's clock, in nanoseconds since the run began.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The instant at which a run begins.
    pub const ZERO: Time = Time(0);
    /// Later than every instant a run can reach (584 years).
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `ns` nanoseconds after the run began.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns)
    }

    /// Nanoseconds since the run began.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to `self`; zero when `earlier` is the later one.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span there is.
    pub const MAX: Span = Span(u64::MAX);

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns)
    }

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }

    /// `s` seconds.
    pub const fn from_s(s: u64) -> Span {
        Span(s * 1_000_000_000)
    }

    /// Length in nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Length in microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Length in seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether no time passes.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or zero when `other` is longer.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        debug_assert!(self >= earlier, "{self:?} is before {earlier:?}");
        self.since(earlier)
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        debug_assert!(self >= other, "{self:?} is shorter than {other:?}");
        self.saturating_sub(other)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    fn div(self, parts: u64) -> Span {
        Span(self.0 / parts)
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, Add::add)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}ns", self.0)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

impl fmt::Display for Span {
    /// The shortest exact form: `40us`, `2ms`, `1500ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0 => (0, "ns"),
            ns if ns % 1_000_000_000 == 0 => (ns / 1_000_000_000, "s"),
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "ms"),
            ns if ns % 1_000 == 0 => (ns / 1_000, "us"),
            ns => (ns, "ns"),
        };
        write!(f, "{value}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::MAX + Span::from_ns(1), Time::MAX);
        assert_eq!(Span::MAX * 2, Span::MAX);
        assert_eq!(Time::from_ns(3).since(Time::from_ns(5)), Span::ZERO);
    }

    #[test]
    fn spans_print_in_the_largest_exact_unit() {
        for (span, text) in [
            (Span::ZERO, "0ns"),
            (Span::from_us(40), "40us"),
            (Span::from_ms(2), "2ms"),
            (Span::from_ns(1_500), "1500ns"),
            (Span::from_s(3), "3s"),
        ] {
            assert_eq!(span.to_string(), text);
        }
    }
}
