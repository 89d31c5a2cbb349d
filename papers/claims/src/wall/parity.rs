//! The time of this machine to compute the parity of some pages, by the common code of arrays and drives with stripes.

use nandscape_drive::parity;
use nandscape_sim::{Histogram, Rng, Span};
use nandscape_transport_reactor::WallClock;

use crate::wall::cores::{DRIVE, on_core};

/// The location of the pages before.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Pages {
    /// The same pages repeatedly: in the processor's caches.
    Cached,
    /// Different pages each time, at random places of a range larger than the caches.
    Scattered,
}

/// Bytes of that range, more than any processor cache holds.
const BEYOND_CACHES: usize = 256 << 20;

/// Computes the parity of `count` pages of `bytes` repeatedly for this time. Returns the time of each.
pub(crate) fn run(
    clock: WallClock,
    kind: Pages,
    count: usize,
    bytes: usize,
    lasting: Span,
    rng: &mut Rng,
    times: &mut Histogram,
) {
    let pool = match kind {
        Pages::Cached => count * bytes,
        Pages::Scattered => BEYOND_CACHES,
    };
    // Written, so that the system backs it with memory.
    let pool: Vec<u8> = (0..pool).map(|place| (place / bytes + place) as u8).collect();
    let places = (pool.len() / bytes) as u64;
    let mut sum = vec![0; bytes];
    on_core(DRIVE, || {
        let end = clock.now() + lasting;
        while clock.now() < end {
            let numbers = (0..count).map(|number| match kind {
                Pages::Cached => number,
                Pages::Scattered => rng.below(places) as usize,
            });
            let pages: Vec<&[u8]> = numbers.map(|number| &pool[number * bytes..][..bytes]).collect();
            let begun = clock.now();
            parity::of(std::hint::black_box(&pages).iter().copied(), &mut sum);
            std::hint::black_box(&sum);
            times.record(clock.now() - begun);
        }
    });
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Seed;

    use super::*;

    #[test]
    fn both_kinds_are_timed() {
        for kind in [Pages::Cached, Pages::Scattered] {
            let (mut times, mut rng) = (Histogram::new(), Seed::new(1).rng());
            run(WallClock::start(), kind, 8, 4_096, Span::from_ms(1), &mut rng, &mut times);
            assert!(times.count() > 0 && times.mean_ns() > 0.0, "{kind:?}");
        }
    }
}
