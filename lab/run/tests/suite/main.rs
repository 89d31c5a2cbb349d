//! Runs of workloads on drives in simulated time, a file for each property. One program, which links and starts once.
//!
//! Separate programs: recordings and their replays, and remote drives.

mod ahci;
mod alone;
mod arbitration;
mod array;
mod cancel;
mod capacity;
mod chain_faults;
mod chain_files;
mod chains;
mod engines;
mod full_drive;
mod host;
mod host_ftl;
mod host_path;
mod keeps_going;
#[path = "../kinds/mod.rs"]
mod kinds;
mod layer_states;
mod limits;
mod md1;
mod members;
mod notices;
mod opcodes;
mod placed_jobs;
mod served;
mod stack;
mod states;
mod steady_windows;
mod waf;
mod zoned_jobs;
