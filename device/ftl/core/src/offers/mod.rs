//! Optional features of FTLs, a trait each. [`Ftl::offers`] returns those of an FTL, and [`Ftl::random_writes`] the one on
//! the path of most commands; `None` is a feature that the FTL lacks.
//!
//! | file | what |
//! |---|---|
//! | `random_writes` | sectors that are written in any order |
//! | `windows` | windows for the FTL's background work |
//! | `delays` | the delays of reads by background work |
//! | `placement` | handles by which hosts place data |
//! | `metadata` | metadata next to the data of sectors |
//! | `transactions` | extents that are written all or none |
//! | `sanitize` | removal of all data from the flash |
//! | `stored_tables` | tables that are kept in flash |
//!
//! Garbage collection at a host's command is in [`collections`](crate::collections).

mod delays;
mod metadata;
mod placement;
mod random_writes;
mod sanitize;
mod stored_tables;
mod transactions;
mod windows;

use std::future::Future;
use std::pin::Pin;

use crate::collections::Collections;
use crate::ftl::Ftl;
pub use delays::{Delay, Delays};
pub use metadata::Metadata;
pub use placement::Placement;
pub use random_writes::{NoRandomWrites, RandomWrites, Reserved};
pub use sanitize::{Overwrite, Sanitization, Sanitize};
pub use stored_tables::{Held, StoredTables};
pub use transactions::Transactions;
pub use windows::{LatencyWindow, Windows};

/// A boxed future, for rare calls of a trait behind a pointer.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The optional features of an FTL.
pub struct Offers<'a, F: Ftl + ?Sized> {
    /// Windows for its background work.
    pub windows: Option<&'a dyn Windows>,
    /// The delays of reads by its background work.
    pub delays: Option<&'a dyn Delays>,
    /// Garbage collection at a host's command.
    pub collections: Option<&'a dyn Collections>,
    /// Handles by which hosts place data.
    pub placement: Option<&'a dyn Placement<F::RandomWrites>>,
    /// Metadata of sectors; destinations may request it.
    pub metadata: Option<&'a dyn Metadata<F::RandomWrites>>,
    /// Extents that are written all or none.
    pub transactions: Option<&'a dyn Transactions<F::RandomWrites>>,
    /// Removal of all data from the flash.
    pub sanitize: Option<&'a dyn Sanitize>,
    /// Tables in flash.
    pub stored_tables: Option<&'a dyn StoredTables>,
}

impl<F: Ftl + ?Sized> Offers<'_, F> {
    /// No optional feature.
    pub const NONE: Self = Offers {
        windows: None,
        delays: None,
        collections: None,
        placement: None,
        metadata: None,
        transactions: None,
        sanitize: None,
        stored_tables: None,
    };
}
