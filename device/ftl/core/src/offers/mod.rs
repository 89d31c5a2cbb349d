//! What only some FTLs do, a trait for each. [`Ftl::offers`] names those of an FTL, and [`Ftl::random_writes`] the one
//! on the path of most commands; whatever is `None` there cannot be asked for.
//!
//! | file | what |
//! |---|---|
//! | `random_writes` | sectors that are written in any order |
//! | `windows` | windows in which the FTL does its own work |
//! | `delays` | how long its own work delays reads |
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

/// A future in a box: what is asked for rarely, of a trait that stands behind a pointer.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What an FTL does in addition to what all do.
pub struct Offers<'a, F: Ftl + ?Sized> {
    /// Windows in which it does its own work.
    pub windows: Option<&'a dyn Windows>,
    /// How long its own work delays reads.
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
    /// Nothing.
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
