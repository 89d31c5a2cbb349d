//! Arrays over drives of the model and over drives that answer as a test says.

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
