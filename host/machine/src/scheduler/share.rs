//! What a policy knows of a thread: its weight and its virtual time, which runs faster the less the weight is.

use nandscape_sim::Span;

use crate::config::ConfigError;

/// The part of the processor that a thread wants: -20, the most, to 19, the least.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Nice(i8);

/// Linux's weights by nice value from -20 on: each step is about a quarter.
const WEIGHTS: [u32; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9_548, 7_620, 6_100, 4_904, 3_906,
    3_121, 2_501, 1_991, 1_586, 1_277, 1_024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

impl Nice {
    /// A nice value.
    ///
    /// # Errors
    /// If it is not between -20 and 19.
    pub fn new(nice: i8) -> Result<Nice, ConfigError> {
        if (-20..20).contains(&nice) {
            return Ok(Nice(nice));
        }
        Err(ConfigError::new("nice", format!("{nice} is not valid; valid is -20 to 19")))
    }

    /// The weight of a thread: 1,024 at nice 0.
    pub fn weight(self) -> u32 {
        WEIGHTS[(self.0 + 20) as usize]
    }
}

/// Units of virtual time: 1,024 a nanosecond of a thread of weight 1,024.
const UNITS: u64 = 1 << 10;
/// The weight of nice 0.
const BASE: u64 = 1_024;

/// See the file. A policy uses the fields as it needs them.
#[derive(Clone, Debug)]
pub struct Share {
    /// The weight.
    pub(super) weight: u32,
    /// Virtual time.
    pub(super) virtual_time: i64,
    /// Virtual deadline.
    pub(super) deadline: i64,
    /// Virtual time by which it was behind the average when it left.
    pub(super) lag: i64,
    /// How long it has run since it was taken.
    pub(super) used: Span,
    /// Its number among those that wait: equal ones are served in the order of joining.
    pub(super) number: u64,
    /// Whether its virtual time is that since the least of the queue, after a move.
    pub(super) is_relative: bool,
    /// Whether it has never joined a queue.
    pub(super) is_new: bool,
}

impl Share {
    pub(crate) fn new(nice: Nice) -> Share {
        Share {
            weight: nice.weight(),
            virtual_time: 0,
            deadline: 0,
            lag: 0,
            used: Span::ZERO,
            number: 0,
            is_relative: true,
            is_new: true,
        }
    }

    /// Virtual time of a span in which the thread runs.
    pub(super) fn to_virtual(&self, span: Span) -> i64 {
        i64::try_from(u128::from(span.ns()) * u128::from(UNITS * BASE) / u128::from(self.weight))
            .unwrap_or(i64::MAX / 4)
    }

    /// How long the thread must run until so much virtual time has passed.
    pub(super) fn until(&self, virtual_time: i64) -> Span {
        let units = u128::from(virtual_time.max(0) as u64) * u128::from(self.weight);
        Span::from_ns(units.div_ceil(u128::from(UNITS * BASE)) as u64)
    }

    /// Virtual time of a span at nice 0.
    pub(super) fn base(span: Span) -> i64 {
        i64::try_from(span.ns().saturating_mul(UNITS)).unwrap_or(i64::MAX / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_runs_faster_for_less_weight_and_spans_are_found_again() {
        assert!(Nice::new(20).unwrap_err().to_string().contains("-20 to 19") && Nice::new(-21).is_err());
        for nice in -20..20 {
            let share = Share::new(Nice::new(nice).unwrap());
            for ns in [1, 7, 1_000, 3_000_000] {
                let span = Span::from_ns(ns);
                let found = share.until(share.to_virtual(span)).ns();
                assert!(found == ns || found + 1 == ns, "{nice}: {found} is not {ns}");
            }
        }
        assert_eq!(Share::new(Nice::default()).to_virtual(Span::from_ns(3)), Share::base(Span::from_ns(3)));
    }
}
