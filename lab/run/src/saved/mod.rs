//! States of drives, and of drives under layers, saved to files and loaded again: the start of a run, and its history.
//!
//! | file | what |
//! |---|---|
//! | `history` | how a state came about |
//! | `directory` | head and directory of a file |
//! | `write`, `read` | files |
//! | `settle` | preconditioning under a load until write amplification settles |
//! | `start` | the drive of a run, from any state |
//! | `from_state` | a file by its path and its content |
//! | `after` | the state after a run |
//!
//! A state is a drive at rest, so that no operation in progress needs to be saved. A run that saves its state continues
//! with that state, taken out of the drive and put into a new one; a run that is preconditioned under a load does so even if nothing
//! is saved. So a run from a file is the same, byte for byte, as the run that wrote it.

mod after;
mod directory;
mod from_state;
mod history;
mod read;
mod settle;
mod start;
mod write;

use std::path::PathBuf;

use crate::chain::Chain;

pub(crate) use after::{at_rest, check_can_rest, held, save, save_all};
pub use from_state::FromState;
pub use history::{History, Settled};
pub use read::StateFile;
pub(crate) use settle::without_faults;
pub(crate) use start::States;
pub use start::{Begin, Start};
pub use write::check as check_can_write;

/// Layers as text, and the contents of each working layer.
pub type HeldLayers<'a> = (&'a Chain, Vec<Vec<u8>>);

/// Why a state cannot be saved, or taken from a file.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read.
    #[error("{}: {error}; a file of `nandscape sim --save-state` is valid", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file cannot be written.
    #[error("the state cannot be written to {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is no state, is of an unknown version, or is damaged.
    #[error("{}: {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong, where, and what would be valid.
        problem: String,
    },
    /// The state of the drive cannot be taken.
    #[error("{0}")]
    Drive(String),
}

impl StateError {
    /// Whether the input is invalid, as opposed to a failed run.
    pub(crate) fn is_input(&self) -> bool {
        !matches!(self, StateError::Write { .. })
    }
}
