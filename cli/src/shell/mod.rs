//! The program's interface to a shell: completion of its command line, and pages for man(1). Both are made from the tree of
//! commands that parses it.
//!
//! | file | what |
//! |---|---|
//! | `completions` | `nandscape completions`, and the answers to a shell that completes a word |
//! | `candidates` | values of options that only this program knows: drives, keys, workloads, claims |
//! | `man` | `nandscape man` |
//! | `roff` | the pages |

mod candidates;
mod completions;
mod man;
mod roff;

pub(crate) use self::completions::{CompletionsArgs, answer, run as completions};
pub(crate) use self::man::{ManArgs, run as man};
