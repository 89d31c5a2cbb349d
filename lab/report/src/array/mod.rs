//! A run on an array of drives, for people and for programs.
//!
//! | file | what |
//! |---|---|
//! | `document` | its files |
//! | `page` | its page |

mod document;
mod page;

pub use document::ArrayDocument;
