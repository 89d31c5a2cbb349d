//! The predicted next time of a component: the mean of its last three times (Shin 4.3.1), or of fewer if it has fewer.

use nandscape_sim::Span;

/// Times that are remembered.
const REMEMBERED: usize = 3;

/// The last times of a component.
#[derive(Copy, Clone, Default, Debug)]
pub struct Recent {
    times: [Span; REMEMBERED],
    /// Times observed in total.
    count: u64,
}

impl Recent {
    /// Records a time of the component.
    pub fn observe(&mut self, time: Span) {
        self.times[(self.count % REMEMBERED as u64) as usize] = time;
        self.count += 1;
    }

    /// The predicted time; `None` without history.
    pub fn predict(&self) -> Option<Span> {
        let known = self.count.min(REMEMBERED as u64);
        let sum: u64 = self.times[..known as usize].iter().map(|time| time.ns()).sum();
        sum.checked_div(known).map(Span::from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    /// Against the mean of the end of the whole history.
    #[test]
    fn a_prediction_is_the_mean_of_the_last_three() {
        let (mut rng, mut recent, mut all) = (Seed::new(7).rng(), Recent::default(), Vec::new());
        assert_eq!(recent.predict(), None);
        for _ in 0..1_000 {
            let time = 1 + rng.below(1_000_000);
            recent.observe(Span::from_ns(time));
            all.push(time);
            let last = &all[all.len().saturating_sub(3)..];
            let mean = last.iter().sum::<u64>() / last.len() as u64;
            assert_eq!(recent.predict(), Some(Span::from_ns(mean)), "seed 7, {last:?}");
        }
    }
}
