//! Sizes from tables: percent of draws, and the range of each, in KiB, from which a whole number is drawn.

use nandscape_sim::Rng;

/// Percent, and the smallest and largest KiB.
pub(crate) struct SizeTable(pub(crate) &'static [(u64, u64, u64)]);

impl SizeTable {
    /// A size in bytes.
    pub(crate) fn next(&self, rng: &mut Rng) -> u64 {
        let mut draw = rng.below(100);
        let row = self.0.iter().find(|(percent, _, _)| match draw.checked_sub(*percent) {
            Some(rest) => {
                draw = rest;
                false
            }
            None => true,
        });
        let (_, least, most) = row.expect("a table of 100 percent");
        (least + rng.below(most - least + 1)) << 10
    }
}

#[cfg(test)]
mod tests {
    use crate::filebench::networkfs::{FILES, MEAN_FILE, READS, WRITES};
    use nandscape_sim::Seed;

    #[test]
    fn tables_are_whole_and_their_means_come_out() {
        let mut rng = Seed::new(2).rng();
        for (table, mean_kib) in [(&FILES, 26.71), (&READS, 12.52), (&WRITES, 35.2)] {
            assert_eq!(table.0.iter().map(|(percent, _, _)| percent).sum::<u64>(), 100);
            let of = |(percent, least, most): &(u64, u64, u64)| (percent * (least + most)) as f64 / 200.0;
            let exact: f64 = table.0.iter().map(of).sum();
            assert!((exact - mean_kib).abs() < 1e-9, "{exact}");
            let drawn = (0..400_000).map(|_| table.next(&mut rng)).sum::<u64>() as f64 / 400_000.0 / 1_024.0;
            assert!((drawn / mean_kib - 1.0).abs() < 0.03, "seed 2: {drawn}");
        }
        assert_eq!(MEAN_FILE, (26.71 * 1_024.0) as u64);
    }
}
