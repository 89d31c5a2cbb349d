//! OX-Block, driven directly: data under load, and what a power cut at any operation of the flash leaves.
//!
//! | file | what |
//! |---|---|
//! | `rig` | an FTL on its flash, and commands to it |
//! | `model` | what the drive may hold |
//! | `load` | loads drawn from a seed |
//! | `crash` | a run that is cut, recovery, and the check |
//! | `cuts` | power cuts at every operation of short runs, and at random ones of long runs |
//! | `data` | loads without cuts |
//! | `lines` | the layouts without a log |
//! | `transactions` | transactions of several extents beside other writes |
//! | `counters` | that programs and recoveries are counted |
//! | `mistakes` | that each of a number of deliberate mistakes is noticed |
//!
//! What is checked after each cut: every unit holds a state that it had at or after the last flush or forced write; with
//! transactions, all units together hold the state after some whole number of writes; the tables agree with each other and
//! with the flash; and the drive goes on working.
//!
//! Not covered: flash operations that end partly (a torn page cannot be read, it never holds half of its data); several hosts'
//! writes to one unit at the same time; loss of both copies of a fixed place, after which the drive is out of service.

mod counters;
mod crash;
mod cuts;
mod data;
mod lines;
mod load;
mod mistakes;
mod model;
mod rig;
mod transactions;
