//! FTLs with their tables in flash, after OX.
//!
//! | file or folder | what |
//! |---|---|
//! | `ox_block` | OX-Block, and two rivals of it with other logs and recoveries |
//! | `pieces` | OX-ELEOS: pages of any length and chains of deltas, over an FTL with transactions |
//! | `parts` | implementations of the components of OX-Block |
//! | `registry` | components by name |

pub mod ox_block;
pub mod parts;
pub mod pieces;
pub mod registry;

pub use ox_block::{OxBlock, OxBlockConfig};
