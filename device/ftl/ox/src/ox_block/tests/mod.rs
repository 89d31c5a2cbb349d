//! OX-Block, driven directly: data under load, and the state after a power cut at any operation of the flash.
//!
//! | file | what |
//! |---|---|
//! | `kinds` | the kinds of drive |
//! | `rig` | an FTL on its flash, and commands to it |
//! | `model` | the permitted contents of the drive |
//! | `load` | loads drawn from a seed |
//! | `case` | a run, as a line of text |
//! | `lose` | additional losses of flash, and the requirements after each |
//! | `run` | a run that is cut, recovery, and the check |
//! | `standstill` | work in progress on a stalled drive |
//! | `cuts` | power cuts at every operation of short runs and of recoveries |
//! | `campaign` | runs drawn from seeds, as many as requested |
//! | `other_components` | components other than the first of each set |
//! | `damage` | flash that is damaged at random |
//! | `data` | loads without cuts |
//! | `lines` | the layouts without a log |
//! | `transactions` | transactions of several extents next to other writes |
//! | `visibility` | the view of readers during transactions |
//! | `overlap` | commands under way at the same time on one unit |
//! | `seeds` | tests that run as many seeds as requested |
//! | `acknowledge` | the waits before the end of a write |
//! | `idle` | an idle drive; CLEAR |
//! | `counters` | programs and recoveries are counted |
//! | `padding` | padding |
//! | `mistakes` | each of a number of deliberate mistakes is noticed |
//! | `replay`, `journal` | a failed run once more, line by line |
//!
//! The checks after each cut: every unit holds a state that it had at or after the last flush or forced write; with
//! transactions, all units together hold the state after some whole number of writes; the tables agree with each other and
//! with the flash; and the drive continues to work.
//!
//! Not covered: concurrent commands that touch one unit, except writes next to writes and Write Uncorrectable
//! (`overlap`) and reads next to transactions (`visibility`). Loss of the last page of the log, which cannot be
//! distinguished from a torn one. Loss of one copy of a fixed place when the other has failed before. Pages that read
//! differently from time to time after a power cut, and damage of a cut to earlier pages of a word line.
#![expect(clippy::print_stdout, reason = "the progress of campaigns and the events of a replay, for --nocapture")]

mod acknowledge;
mod campaign;
mod case;
mod counters;
mod cuts;
mod damage;
mod data;
mod idle;
mod journal;
mod kinds;
mod lines;
mod load;
mod lose;
mod mistakes;
mod model;
mod other_components;
mod overlap;
mod padding;
mod replay;
mod rig;
mod run;
mod seeds;
mod standstill;
mod transactions;
mod visibility;
