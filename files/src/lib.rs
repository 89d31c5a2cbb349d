//! The files that a user names: every program and library here opens its inputs and creates its outputs through this
//! crate. `cargo xtask tidy` rejects other ways, and lists the few files that read `/proc` and the like.
//!
//! | file | what |
//! |---|---|
//! | `kind` | the kind of file at a path, in words |
//! | `identity` | whether two paths name one file |
//! | `input` | input files: regular, of a bounded length, opened without blocking |
//! | `excerpt` | places of faults in a text, and long lines and values cut for messages |
//! | `output` | output files: only a regular file is ever replaced or changed |
//!
//! Errors are the system's, or name the kind of file found and the valid kinds; the caller adds the path.
//!
//! Left out: whether an output is an input of the same run, which only the caller knows; sockets, whose owner
//! replaces its own.

pub mod excerpt;
pub mod identity;
pub mod input;
mod kind;
pub mod output;
