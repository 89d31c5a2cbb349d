//! The page FTL over flash in a file, killed at any write of the file and started again.
//!
//! | file | what |
//! |---|---|
//! | `drive` | an FTL on its flash, and commands to it |
//! | `model` | what each sector may hold |
//! | `kill` | lives that end with a kill or in order, and the check after each |
//! | `mistakes` | each of a number of deliberate mistakes is noticed |
//!
//! The checks after each start: every sector holds the last content that is promised or a later one; tables and flash agree.
//! Left out: a host behind a controller, loss of the host's power and full disks, which the tests of whole drives have
//! (`device/ssd/tests/store`).
#![expect(clippy::print_stdout, reason = "the run that notices a mistake, for --nocapture")]

mod drive;
mod kill;
mod mistakes;
mod model;
