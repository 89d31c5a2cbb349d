//! The time this machine takes to compute the parity of some pages: their exclusive or, accumulated in one page.

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

/// The exclusive or of pages of one size.
pub(crate) fn parity(pages: &[&[u8]], into: &mut [u8]) {
    into.fill(0);
    for page in pages {
        into.iter_mut().zip(*page).for_each(|(sum, byte)| *sum ^= byte);
    }
}

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
            parity(std::hint::black_box(&pages), &mut sum);
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
    fn a_page_comes_back_from_the_parity_and_the_others() {
        let mut rng = Seed::new(3).rng();
        let pages: Vec<Vec<u8>> = (0..8).map(|_| (0..4_096).map(|_| rng.below(256) as u8).collect()).collect();
        let mut sum = vec![0; 4_096];
        parity(&pages.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut sum);
        let mut others: Vec<&[u8]> = pages[..7].iter().map(Vec::as_slice).collect();
        others.push(&sum);
        let mut rebuilt = vec![0xff; 4_096];
        parity(&others, &mut rebuilt);
        assert!(rebuilt == pages[7], "seed 3");
    }

    #[test]
    fn both_kinds_are_timed() {
        for kind in [Pages::Cached, Pages::Scattered] {
            let (mut times, mut rng) = (Histogram::new(), Seed::new(1).rng());
            run(WallClock::start(), kind, 8, 4_096, Span::from_ms(1), &mut rng, &mut times);
            assert!(times.count() > 0 && times.mean_ns() > 0.0, "{kind:?}");
        }
    }
}
