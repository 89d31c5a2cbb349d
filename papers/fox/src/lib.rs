//! uFLIP-OC and FOX: the response of an open-channel drive to patterns of reads, writes and erases on chosen parallel units
//! (Picoli, OX, 2019, 4.2 and 4.3).
//!
//! A benchmark is a list of runs. A run is a [`Plan`]: nodes, which are threads with their own parallel units, and an
//! [`Engine`], which gives the commands of each node. It runs on any
//! [`OpenChannel`](nandscape_host_open_channel::OpenChannel), in simulated time or at the wall clock.
//!
//! | file | what |
//! |---|---|
//! | `mix` | a mix of reads and writes |
//! | `layout` | nodes, rows and columns |
//! | `engine` | the form of an engine, and the list of engines |
//! | `engines` | the engines, a file each |
//! | `plan` | a run as wanted, checked against a drive |
//! | `run` | a run on a drive |
//! | `blocks` | blocks of a drive: choosing, erasing, filling |
//! | `wear` | uOC-1, which wears a block out |
//! | `benchmark` | uOC-0, uOC-2 and uOC-3 as lists of runs |
//! | `outcome` | the measurements, as figures |
//! | `text`, `tables` | figures for people, and as CSV |
//! | `simulated` | a drive of this process in simulated time, or any other |
//!
//! Left out: random patterns, of which uFLIP-OC has none; a time limit for a run; comparing the data that is read.

mod benchmark;
mod blocks;
mod engine;
mod engines;
mod layout;
mod mix;
mod outcome;
mod plan;
mod run;
mod simulated;
pub mod tables;
mod text;
mod wear;

pub use benchmark::{Benchmark, Choice, Wanted};
pub use engine::{Command, Engine, Engines};
pub use layout::{Cell, Node, Unit};
pub use mix::{Kind, Mix};
pub use outcome::{Band, Latency, Outcome, Report, Sample, scale};
pub use plan::{BadPlan, Plan, pages_of};
pub use run::{RunError, run};
pub use simulated::{Opened, OverError, simulated, simulated_over};
pub use text::{render, render_wear};
pub use wear::{WearPlan, WearPoint, WearReport, wear};
