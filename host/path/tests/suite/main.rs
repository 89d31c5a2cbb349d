//! I/O paths on small hosts with round costs, over a drive that takes a fixed time.

mod closed_forms;
mod properties;
mod rig;
mod strategies;
