//! Arrays: RAID-0, 1, 5, 6 and 10 as a [`Drive`](nandscape_drive::Drive) over any drives, and ways to evade read
//! tails (TeaFA and its rivals).
//!
//! | file | what |
//! |---|---|
//! | `array` | an array and the state that its users share |
//! | `config` | the settings and their keys |
//! | `level` | which member holds which chunk |
//! | `geometry` | the parts of a command in stripes and chunks |
//! | `member` | the drives under it, and the meaning of their answers |
//! | `front` | commands on arrival; reads within one chunk |
//! | `serve` | a command with a task, to its end |
//! | `read` | the read of a stripe |
//! | `tail` | policies: how reads are issued, and what busy answers lead to |
//! | `rails` | a drive to read and a drive to write, which change roles |
//! | `write` | the write of a stripe |
//! | `news` | events of members, reported as they happen |
//! | `windows` | when members do their own work |
//! | `parity` | P and Q |
//! | `locks` | locks of stripes |
//! | `flight` | several commands at once |
//! | `condemn` | chunks whose content is lost |
//! | `failure` | members that fail, chunks that cannot be read |
//! | `journal` | records on the members, by which an array outlasts crashes |
//! | `rebuild` | rebuilds on spares, and scrubs |
//! | `stats` | counters |
//! | `layer` | arrays as layers of a chain |
//! | `report` | an array in the report of a run, and its metrics |
//! | `history` | failures and rebuilds of members under a run |
//!
//! Left out: growing and reshaping; merging of sub-I/Os of neighbouring stripes; protection information and metadata.

mod array;
mod condemn;
mod config;
mod failure;
mod flight;
mod front;
mod geometry;
mod history;
mod journal;
mod layer;
pub mod level;
mod locks;
mod member;
mod news;
pub mod parity;
mod rails;
mod read;
mod rebuild;
mod report;
mod serve;
mod stats;
pub mod tail;
mod windows;
mod write;

pub use array::{Array, ArrayError, Connection, Recovered};
pub use config::{Config, ConfigError, JournalMode, WindowMode};
pub use geometry::Geometry;
pub use history::{MemberFailure, Rebuild};
pub use journal::{Seen, Witness};
pub use layer::ArrayLayer;
pub use level::{Kind, Shape};
pub use member::{ENTRIES, Member};
pub use news::News;
pub use rails::Rails;
pub use rebuild::ScrubReport;
pub use report::{ArrayReport, MemberReport, RailsReport, counters};
pub use serve::LAYER;
pub use stats::{MemberStats, Stats};
pub use tail::Technique;
pub use windows::Schedule;
