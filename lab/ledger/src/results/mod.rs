//! The folder of results: a folder per claim, a file per point. Each file holds its inputs and a digest of itself, so
//! that a later run knows which points to keep, and detects torn and foreign files.
//!
//! | file | what |
//! |---|---|
//! | `stored` | one file: its form, its inputs, its integrity |
//! | `folder` | paths of files, writing, and the results of a claim |

mod folder;
mod stored;

pub use folder::{Folder, Held};
pub(crate) use stored::seed_of;
pub use stored::{EffortOf, Found, Inputs, Stored, this_program};
