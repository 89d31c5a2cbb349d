//! A replicated key-value store on drives.
mod cancel;
mod race;
pub mod store;
pub mod testing;

pub use cancel::Cancel;
