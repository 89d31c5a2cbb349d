//! A key-value storage engine on several drives (Shin 2017, chapter 5), and memcached's protocols over it.
//!
//! Items lie in logs on pairs of drives, striped and mirrored (RAID-1+0), each pair an even and an odd drive; or in one log on all drives, as
//! data and parity. A policy decides which drives are written and collect garbage, and reads go to the others.
//!
//! | file | what |
//! |---|---|
//! | `engine`, `item` | what users call: get, put, delete, touch, clear, flush |
//! | `blocks` | blocks at fixed places, without items: the engine as the thesis has it |
//! | `config`, `error` | settings; why it does not open or serve |
//! | `policy` | tokens and garbage collection: one policy a file |
//! | `placement` | copies, or data and their parity |
//! | `state`, `index`, `entry`, `stats` | index and cache, and what is counted |
//! | `void` | what the removal of all items leaves in memory, freed in steps |
//! | `log`, `waiting` | the log of a pair: segments, and what waits |
//! | `pack`, `filling` | changes become chunks |
//! | `flush` | epochs: tokens, writes |
//! | `read` | get: from memory, a drive without a token, or all others |
//! | `hedge` | reads at drives that have fallen silent |
//! | `reclaim` | old segments are given up; eviction |
//! | `small` | items that share a record, and have no entry in the index |
//! | `open`, `recover`, `replay` | making a store, and finding its items again |
//! | `shape`, `lives`, `membership` | the record of the store on each drive, and what a drive is for it |
//! | `room` | the room of drives for segments |
//! | `lost`, `reach` | drives that are missing or fail, or are out of reach |
//! | `witness` | whether a drive that was out of reach is as the engine left it |
//! | `rebuild`, `replace` | drives that are made anew from the others of their group, also in the place of lost ones |
//! | `record` | records and chunks as bytes |
//! | `drives`, `offer` | drives with tokens, and what a policy needs of them |
//! | `zones` | drives with zones, written in order and reset; in its folder the record of the store, and repairs of zones |
//! | `slots` | where the slots of a log are on a drive |
//! | `lock` | what one task at a time may do |
//! | `in_order` | drives with zones are made equal after a crash |
//! | `pack_tests` | tests of the order in which changes and moves become chunks |
//! | `tail_tests` | tests of when a slot is free again |
//! | `zones_tests` | tests of new contents of a zone, and of what would lose them |
//! | `memcached` | the text and the meta protocol |
//! | `testing` | for tests: commands, and the answers of a plain map |
//!
//! Left out: sockets, which `apps/memcached/run` has.
#![forbid(unsafe_code)]

mod blocks;
mod config;
mod drives;
mod engine;
mod entry;
mod error;
mod filling;
mod flush;
mod hedge;
mod in_order;
mod index;
mod item;
mod lives;
mod lock;
mod log;
mod lost;
mod membership;
pub mod memcached;
mod offer;
mod open;
mod pack;
#[cfg(test)]
mod pack_tests;
mod placement;
pub mod policy;
mod reach;
mod read;
mod rebuild;
mod reclaim;
mod record;
mod recover;
mod replace;
mod replay;
mod room;
mod shape;
mod slots;
mod small;
mod state;
mod stats;
#[cfg(test)]
mod tail_tests;
pub mod testing;
mod void;
mod waiting;
mod witness;
mod zones;
#[cfg(test)]
mod zones_tests;

pub use blocks::{Blocks, BlocksConfig, BlocksError};
pub use config::{Ack, Config, PATIENCE_MS};
pub use drives::{Given, Member};
pub use engine::Engine;
pub use error::{EngineError, Event, OpenError};
pub use item::{Access, Expect, Item, MOST_KEY, Marks, New, Refused};
pub use nandscape_host_control::Error as ControlError;
pub use placement::{PARITY_DRIVES, Placement};
pub use reach::DriveState;
pub use read::Miss;
pub use replace::ReplaceError;
pub use shape::Format;
pub use small::MOST_SMALL;
pub use stats::Stats;
pub use witness::{Witness, clear, format_on};
