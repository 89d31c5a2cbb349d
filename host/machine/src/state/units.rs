//! Amounts of work. A core of speed 1 does [`Units::PER_NS`] units in a nanosecond, so that slower and shared cores are exact.

use nandscape_sim::Span;

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Units(u64);

impl Units {
    /// Units that a core of speed 1 does in a nanosecond.
    pub(crate) const PER_NS: u64 = 10_000;
    pub(crate) const ZERO: Units = Units(0);
    /// More than is ever done.
    pub(crate) const FOREVER: Units = Units(u64::MAX);

    /// What a core of speed 1 does in a span; 21 days at most.
    #[inline]
    pub(crate) const fn of(span: Span) -> Units {
        Units(if span.ns() < u64::MAX / Units::PER_NS { span.ns() * Units::PER_NS } else { u64::MAX - 1 })
    }

    #[inline]
    pub(crate) const fn is_zero(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) const fn plus(self, other: Units) -> Units {
        Units(self.0.saturating_add(other.0))
    }

    /// How long it takes at `rate` units a nanosecond.
    #[inline]
    pub(crate) const fn time(self, rate: u64) -> Span {
        Span::from_ns(self.0.div_ceil(rate))
    }

    /// Does what can be done in `elapsed`, and takes the time for it from that. Returns this time.
    #[inline]
    pub(crate) fn spend(&mut self, rate: u64, elapsed: &mut Span) -> Span {
        if self.is_zero() || elapsed.is_zero() {
            return Span::ZERO;
        }
        let whole = self.time(rate);
        let spent = whole.min(*elapsed);
        *elapsed -= spent;
        if *self != Units::FOREVER {
            self.0 = if spent == whole { 0 } else { self.0 - spent.ns() * rate };
        }
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_parts_takes_as_long_as_work_in_one_go() {
        for rate in [10_000, 6_200, 15_000, 1] {
            let mut work = Units::of(Span::from_ns(97));
            let (whole, mut took) = (work.time(rate), Span::ZERO);
            while !work.is_zero() {
                let mut elapsed = Span::from_ns(10);
                took += work.spend(rate, &mut elapsed);
            }
            assert_eq!(took, whole, "{rate}");
        }
        let (mut forever, mut elapsed) = (Units::FOREVER, Span::from_s(1_000_000_000));
        assert_eq!(forever.spend(10_000, &mut elapsed), Span::from_ns(u64::MAX / 10_000 + 1));
        assert_eq!(forever, Units::FOREVER);
    }
}
