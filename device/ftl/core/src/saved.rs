//! The state of an FTL with tables in memory, saved from a drive at rest.
//!
//! Left out: the contents of the tables, which each FTL defines.

use nandscape_sim::table::Table;

/// The state of an FTL at rest.
pub struct SavedFtl {
    /// The place of each logical unit; empty if units are not mapped one by one.
    pub map: Table,
    /// The rest of its state, as bytes.
    pub tables: Vec<u8>,
}
