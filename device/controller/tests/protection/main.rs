//! Logical blocks with metadata and protection information: every command against a model that keeps a block's bytes in a
//! map and knows nothing of flash; what becomes of blocks that are not written; and each wrong field.
//!
//! `NANDSCAPE_TEST_SEED` sets the first seed of what is random; failures print theirs.
#![allow(clippy::print_stdout, reason = "a failing test names its seed")]

mod against_model;
#[path = "../common/mod.rs"]
mod common;
mod host;
mod model;
mod wrong;
