//! How garbage is collected: the resources that a collection blocks, and how it learns whose data it moves.

mod owner;
mod scheme;

pub use owner::OwnerSource;
pub use scheme::GcScheme;
