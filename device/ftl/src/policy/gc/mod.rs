//! How garbage is collected: what a collection keeps the host out of, and how it learns whose data it moves.

mod owner;
mod scheme;

pub use owner::OwnerSource;
pub use scheme::GcScheme;
