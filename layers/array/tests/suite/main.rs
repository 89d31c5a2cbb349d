//! Arrays over modelled drives, and over drives with answers defined by a test.

mod background;
mod cancel;
mod conformance;
mod crash;
mod degraded;
mod hardships;
mod hazards;
mod memory;
mod moment;
mod records;
mod rig;
mod tails;
mod windows;
