//! Reads that wait behind a scheduler with classes, by the additional delay that they tolerate. Later work of a
//! higher class overtakes them, and the reads that it makes late are rejected.
//!
//! The reads are in order of their tolerance, and the work since then is one sum for each class. New work therefore
//! costs one addition, and a step for each read that it makes late.

use std::collections::BTreeSet;

use nandscape_sim::Span;

use crate::scheduler::Class;

/// See the file.
#[derive(Default)]
pub(crate) struct Tolerance([OfClass; 3]);

#[derive(Default)]
struct OfClass {
    /// Work that has overtaken the commands of this class, in nanoseconds.
    before: i64,
    /// The tolerance of each read: the largest `before` at which it is in time.
    reads: BTreeSet<(i64, u64)>,
}

/// The entry of a read.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Tolerated {
    class: Class,
    until: i64,
    since: i64,
}

fn ns(span: Span) -> i64 {
    i64::try_from(span.ns()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

impl Tolerance {
    /// A read waits that tolerates `more` than the waits that are known.
    pub(crate) fn wait(&mut self, key: u64, class: Class, more: Span) -> Tolerated {
        let of = &mut self.0[class as usize];
        let until = of.before.saturating_add(ns(more));
        of.reads.insert((until, key));
        Tolerated { class, until, since: of.before }
    }

    /// The read no longer waits. Returns the unexpected work that overtook it; work that was withdrawn does not
    /// count.
    pub(crate) fn leave(&mut self, key: u64, tolerated: Tolerated) -> Span {
        let of = &mut self.0[tolerated.class as usize];
        of.reads.remove(&(tolerated.until, key));
        Span::from_ns(u64::try_from(of.before - tolerated.since).unwrap_or(0))
    }

    /// Work of a class overtakes waiting commands of lower ones. Removes and returns the reads that it makes late.
    pub(crate) fn goes_before(&mut self, class: Class, takes: Span) -> Vec<u64> {
        let mut late = Vec::new();
        for of in &mut self.0[class as usize + 1..] {
            of.before = of.before.saturating_add(ns(takes));
            while let Some(&first) = of.reads.first().filter(|(until, _)| *until < of.before) {
                of.reads.remove(&first);
                late.push(first.1);
            }
        }
        late
    }

    /// Such work is withdrawn.
    pub(crate) fn takes_back(&mut self, class: Class, takes: Span) {
        self.0[class as usize + 1..].iter_mut().for_each(|of| of.before = of.before.saturating_sub(ns(takes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_tolerate_least_become_late_first_and_only_by_higher_classes() {
        let ms = Span::from_ms;
        let mut tolerance = Tolerance::default();
        tolerance.wait(1, Class::BestEffort, ms(10));
        tolerance.wait(2, Class::BestEffort, ms(4));
        let third = tolerance.wait(3, Class::RealTime, ms(1));
        tolerance.wait(4, Class::Idle, ms(100));
        assert!(tolerance.goes_before(Class::BestEffort, ms(50)).is_empty());
        assert_eq!(tolerance.goes_before(Class::RealTime, ms(6)), [2]);
        let fifth = tolerance.wait(5, Class::BestEffort, ms(10));
        assert_eq!(tolerance.goes_before(Class::RealTime, ms(6)), [1]);
        assert_eq!((tolerance.leave(5, fifth), tolerance.leave(3, third)), (ms(6), ms(0)));
        tolerance.takes_back(Class::RealTime, ms(12));
        assert_eq!(tolerance.goes_before(Class::RealTime, ms(51)), [4]);
        let longest = tolerance.wait(6, Class::Idle, Span::MAX);
        assert!(tolerance.goes_before(Class::RealTime, ms(1_000)).is_empty());
        assert_eq!(tolerance.leave(6, longest), ms(1_000));
    }
}
