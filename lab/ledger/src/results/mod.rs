//! The folder of results: a folder a claim, a file a point. Each file says what it was measured from and carries a digest
//! of itself, so that a later run knows which points it need not measure again, and a torn or foreign file is found out.
//!
//! | file | what |
//! |---|---|
//! | `stored` | one file: its form, its inputs, whether it is whole |
//! | `folder` | where files lie, how they are written, and what they hold of a claim |

mod folder;
mod stored;

pub use folder::{Folder, Held, Lock};
pub use stored::{EffortOf, Found, Inputs, Program, Stored};
