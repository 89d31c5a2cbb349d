//! Code that the reads of all FTLs share.
//!
//! | file | what |
//! |---|---|
//! | `pages` | the pages of an extent, and the parts copied of them |
//! | `parts` | pages of an extent that are read concurrently |

mod pages;
mod parts;

pub use pages::{CopyOut, PageRead, PageReads, add, lay_over};
pub use parts::{Parts, SensePage};
