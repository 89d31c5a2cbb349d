//! The seeds of a campaign: `NANDSCAPE_TEST_SEED` is one, `NANDSCAPE_TEST_SEEDS` their number.

use nandscape_sim::Seed;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

/// Runs a test with each seed, by default this many. A seed that fails is printed with the setting that repeats it.
///
/// # Panics
/// If the test panics, or a variable is no number.
pub fn each(usual: u64, mut test: impl FnMut(Seed)) {
    let seeds = match number("NANDSCAPE_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("NANDSCAPE_TEST_SEEDS").unwrap_or(usual),
    };
    for seed in seeds {
        let told = Told(seed);
        test(Seed::new(seed));
        std::mem::forget(told);
    }
}

struct Told(u64);

impl Drop for Told {
    #[expect(clippy::print_stderr, reason = "a failing campaign prints how its seed is repeated")]
    fn drop(&mut self) {
        eprintln!("seed {0}: repeat it with NANDSCAPE_TEST_SEED={0}", self.0);
    }
}
