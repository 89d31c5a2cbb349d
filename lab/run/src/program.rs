//! Which program measured, for files of results: only the same program uses a result again.

use serde::{Deserialize, Serialize};

/// A program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The digest of the sources that results depend on. Each crate that keeps results takes its own when it is built.
    pub sources: String,
}

impl Program {
    /// This version, of these sources.
    pub fn of(sources: &str) -> Program {
        Program { version: env!("CARGO_PKG_VERSION").to_owned(), sources: sources.to_owned() }
    }
}
