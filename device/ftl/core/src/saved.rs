//! The state of an FTL that has its tables in memory, taken out of a drive at rest.
//!
//! Left out: the contents of the tables, which each FTL defines.

use nandscape_sim::table::Table;

/// The state of an FTL at rest.
pub struct SavedFtl {
    /// Where each logical unit is; empty where units are not mapped one by one.
    pub map: Table,
    /// All else that it knows, as bytes.
    pub tables: Vec<u8>,
}
