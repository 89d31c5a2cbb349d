//! The engine and memcached's protocols over it: against a plain map, over crashes at any time, and on drives that collect on order.
//!
//! `NANDSCAPE_TEST_SEED` gives one seed, `NANDSCAPE_TEST_SEEDS` their number.

mod blocks;
mod campaign;
mod client;
mod crash;
mod degraded;
mod hedge;
mod hostile;
mod load;
mod mistakes;
mod opening;
mod parity;
mod policies;
mod pressure;
mod protocol;
mod reference;
mod replace;
mod rig;
mod small;
mod stand;
mod zones;
