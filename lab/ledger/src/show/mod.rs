//! Outcomes for people: as text on a terminal, as Markdown, and as HTML generated from the Markdown.

mod figure;
mod html;
mod markdown;
mod text;

pub use html::page;
pub use markdown::{NO_VERDICT, report, verdicts};
pub use text::{entry, list, outcome};
