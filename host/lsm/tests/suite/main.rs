//! The store on both forms of storage: against a plain map, and over crashes at any time.
//!
//! `NANDSCAPE_TEST_SEED` gives one seed, `NANDSCAPE_TEST_SEEDS` their number.

mod crash;
mod limits;
mod reference;
mod rig;
#[path = "../../../kv/tests/suite/seeds.rs"]
mod seeds;
