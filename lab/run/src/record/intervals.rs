//! Intervals of a run whose length is not known: equally long, few, and as short as that allows. When a time lies
//! beyond the last, neighbours are merged in pairs and all are twice as long.

use nandscape_sim::{Span, Time};

/// The most intervals; at least half as many once a run is longer than the first length times this.
pub(crate) const MOST: usize = 256;

/// The contents of an interval.
pub(crate) trait Cell: Default {
    /// Adds the contents of the next interval.
    fn merge(&mut self, next: Self);
}

/// See the module.
pub(crate) struct Intervals<C> {
    begun: Time,
    width_ns: u64,
    cells: Vec<C>,
}

impl<C: Cell> Intervals<C> {
    /// Intervals from `begun` on, `width` long as long as there are few.
    pub(crate) fn new(begun: Time, width: Span) -> Intervals<C> {
        Intervals { begun, width_ns: width.ns(), cells: Vec::new() }
    }

    /// The interval in which a time lies; times before the beginning lie in the first.
    pub(crate) fn at(&mut self, time: Time) -> &mut C {
        let index = self.index(time);
        if index >= self.cells.len() {
            self.cells.resize_with(index + 1, C::default);
        }
        &mut self.cells[index]
    }

    /// Calls `part` with each interval between two times, and the nanoseconds of the interval between them.
    pub(crate) fn spread(&mut self, start: Time, end: Time, mut part: impl FnMut(&mut C, u64)) {
        let start = start.max(self.begun);
        if end <= start {
            return;
        }
        // Makes room for all of them first, so that the width stays.
        self.at(Time::from_ns(end.ns() - 1));
        let (from, to) = (start.ns() - self.begun.ns(), end.ns() - self.begun.ns());
        for index in from / self.width_ns..=(to - 1) / self.width_ns {
            let (left, right) = (index * self.width_ns, (index + 1) * self.width_ns);
            part(&mut self.cells[index as usize], to.min(right) - from.max(left));
        }
    }

    fn index(&mut self, time: Time) -> usize {
        let since = time.ns().saturating_sub(self.begun.ns());
        while since / self.width_ns >= MOST as u64 {
            self.halve();
        }
        (since / self.width_ns) as usize
    }

    fn halve(&mut self) {
        let mut old = std::mem::take(&mut self.cells).into_iter();
        while let Some(mut cell) = old.next() {
            if let Some(next) = old.next() {
                cell.merge(next);
            }
            self.cells.push(cell);
        }
        self.width_ns *= 2;
    }

    /// How long an interval is.
    pub(crate) fn width(&self) -> Span {
        Span::from_ns(self.width_ns)
    }

    /// The intervals, and how much of each lies before `ended`.
    pub(crate) fn until(&self, ended: Time) -> impl Iterator<Item = (&C, Span)> {
        let total = ended.ns().saturating_sub(self.begun.ns());
        let length = move |index: u64| total.saturating_sub(index * self.width_ns).min(self.width_ns);
        self.cells.iter().zip(0..).map(move |(cell, index)| (cell, Span::from_ns(length(index))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default, Clone, PartialEq, Debug)]
    struct Sum(u64);

    impl Cell for Sum {
        fn merge(&mut self, next: Sum) {
            self.0 += next.0;
        }
    }

    proptest! {
        /// As if the final width had been known from the beginning.
        #[test]
        fn merged_intervals_are_those_of_the_final_width(times in prop::collection::vec(0u64..50_000, 1..300)) {
            let mut intervals = Intervals::<Sum>::new(Time::from_ns(100), Span::from_ns(1));
            times.iter().for_each(|time| intervals.at(Time::from_ns(100 + time)).0 += 1);
            let longest = *times.iter().max().unwrap();
            let width = intervals.width().ns();
            prop_assert!(longest / width < MOST as u64 && (width == 1 || longest / (width / 2) >= MOST as u64));
            let mut expected = vec![Sum(0); (longest / width) as usize + 1];
            times.iter().for_each(|time| expected[(time / width) as usize].0 += 1);
            let ended = Time::from_ns(100 + longest + 1);
            let (cells, lengths): (Vec<Sum>, Vec<Span>) =
                intervals.until(ended).map(|(sum, length)| (sum.clone(), length)).unzip();
            prop_assert_eq!(cells, expected);
            prop_assert_eq!(lengths.iter().map(|length| length.ns()).sum::<u64>(), longest + 1);
        }

        /// A spread keeps the whole amount, and no interval gets more than its length.
        #[test]
        fn spans_are_spread_whole(spans in prop::collection::vec((0u64..20_000, 0u64..3_000), 1..100)) {
            let mut intervals = Intervals::<Sum>::new(Time::from_ns(50), Span::from_ns(2));
            let mut expected = 0;
            for (start, length) in &spans {
                let (start, end) = (Time::from_ns(*start), Time::from_ns(start + length));
                intervals.spread(start, end, |sum, ns| sum.0 += ns);
                expected += end.ns().max(50) - start.ns().max(50);
            }
            let width = intervals.width().ns();
            let cells: Vec<u64> = intervals.until(Time::MAX).map(|(sum, _)| sum.0).collect();
            prop_assert_eq!(cells.iter().sum::<u64>(), expected);
            prop_assert!(cells.iter().all(|sum| *sum <= width * spans.len() as u64));
        }
    }
}
