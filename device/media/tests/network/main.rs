//! Closed networks of planes and channels: the media model against a plain event simulation of the same network
//! (`reference`), which shares no code with it. Every operation of every customer must end at the same nanosecond.
//!
//! `NANDSCAPE_TEST_SEED` sets the seed of the scripts.

mod closed;
mod model;
mod polls;
mod reference;
mod script;
