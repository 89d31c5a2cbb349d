//! The FTL against independent references: closed forms, a naive model of the data, counts taken below and above it.
//! Each file names its reference. The tests run FTL and media without controller, link or commands.
//!
//! | file | what |
//! |---|---|
//! | `rig` | an FTL on its media, and how tests use it |
//! | `theory` | write amplification of greedy cleaning, in closed form |
//! | `write_amplification` | greedy cleaning against the closed form and published figures; trim; accounting |
//! | `steady` | the planted steady state against one reached by running |
//! | `data` | reads against a model map, under collection |
//! | `wear` | wear levelling, bad blocks |
//! | `lifetime` | a drive written until it is read-only, against its closed form |
//! | `scrub` | all blocks are read in turn, and those near the correctable limit are found |
//! | `refresh` | blocks with retention or disturb errors are rewritten |
//! | `together` | pages programmed with one command |
//! | `allocation` | the order in which planes are written |

#![expect(clippy::print_stdout, reason = "the measured figures, for --nocapture and the Validation page")]

mod allocation;
mod data;
mod lifetime;
mod refresh;
mod rig;
mod scrub;
mod steady;
mod theory;
mod together;
mod wear;
mod write_amplification;
