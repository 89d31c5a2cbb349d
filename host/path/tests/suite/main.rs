//! I/O paths on small hosts with round costs, over a drive that takes a fixed time.

mod announcing;
mod clients;
mod closed_forms;
mod locks;
mod notices;
mod properties;
mod rig;
mod rings;
mod run_delay;
mod strategies;
