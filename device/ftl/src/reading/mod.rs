//! What the reads of all FTLs have in common.
//!
//! | file | what |
//! |---|---|
//! | `pages` | the pages that an extent is read from, and what is copied of them |
//! | `parts` | pages of an extent that are read concurrently |

mod pages;
mod parts;

pub(crate) use pages::{CopyOut, PageRead, PageReads, add, lay_over};
pub(crate) use parts::{Parts, SensePage};
