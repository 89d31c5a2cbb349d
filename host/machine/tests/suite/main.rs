//! The machine against closed forms, against a simulator that takes one nanosecond after the other, and by its properties.
//!
//! `NANDSCAPE_TEST_SEED` sets the seed of random tests.

mod behaviour;
mod case;
mod closed_forms;
mod locks;
mod naive;
mod properties;
mod random;

/// The seed of a random test.
fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}
