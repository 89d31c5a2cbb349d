//! The files that a user names: every program and library here opens its inputs and makes its outputs through this crate.
//!
//! | file | what |
//! |---|---|
//! | `kind` | what lies at a path, in words |
//! | `identity` | whether two paths name one file |
//! | `input` | files that are read: regular, of a bounded length, and never waited for |
//! | `output` | files that are written: nothing but a regular file is ever replaced or changed |
//!
//! Errors are those of the system, or say what lies at the path and what would be valid; the caller names the path.
//!
//! Left out: whether an output is an input of the same run, which only the caller knows; sockets, whose owner replaces its own.

pub mod identity;
pub mod input;
mod kind;
pub mod output;
