//! The key-value store on drives that behave like those of the product, over a network in virtual time.

mod seeds;
mod store;
