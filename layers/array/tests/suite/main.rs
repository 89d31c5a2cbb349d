//! Arrays over drives of the model and over drives whose answers a test defines.

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
