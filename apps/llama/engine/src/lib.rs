//! LLAMA and a Bw-tree (OX 7.2): a log-structured store of pages, and ordered keys and values over it.
//!
//! A [`BwTree`] has its pages in a [cache](Config::memory) of limited memory. A change puts a delta before its page;
//! long chains of deltas are consolidated. Changed pages gather until a buffer is full or a client requests a
//! [commit](BwTree::commit), and are flushed together. After a crash the tree has the state of one of its flushes,
//! complete and no older than the last commit.
//!
//! The pages are stored in a [`PageStore`], which has two forms. The conventional form, [`LogStore`], is a log on any
//! [`Drive`](nandscape_drive::Drive): the host keeps the place of each piece of a page, writes checkpoints of these
//! places, and cleans the log. In the offloaded form the drive does all of this (OX-ELEOS): [`EleosStore`] has pages
//! of 4 KiB, and [`ChainStore`] pages of any length.
//!
//! | file | what |
//! |---|---|
//! | `tree` | the Bw-tree: keys and values, splits, scans, flushes |
//! | `page` | a page in memory: its base and its deltas |
//! | `codec` | pages and deltas as bytes |
//! | `cache` | the mapping table and the cache |
//! | `pages` | the interface of a store of pages |
//! | `log` | the conventional form |
//! | `offloaded` | the offloaded form with pages of 4 KiB |
//! | `chains` | the offloaded form with pages of any length, and deltas |
//! | `any` | either form |
//! | `error` | the errors |
//!
//! Left out: latches, because everything runs on one thread; merging of pages that became empty; a transaction
//! component with a separate log, whose place commits take; drives that keep no data.
#![forbid(unsafe_code)]

mod any;
mod cache;
mod chains;
mod codec;
mod error;
mod log;
mod offloaded;
mod page;
mod pages;
mod tree;

pub use any::AnyStore;
pub use chains::{ChainConfig, ChainStore};
pub use error::{Error, OpenError};
pub use log::{LogConfig, LogStore};
pub use nandscape_apps_store::{Costs, Host, StoreError};
pub use offloaded::EleosStore;
pub use pages::{Kind, PageStats, PageStore, Piece, Shape};
pub use tree::{BwTree, Change, Config, MAX_KEY, Record, TreeStats};
