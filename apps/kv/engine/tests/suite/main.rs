//! The key-value store on drives that behave like those of the product, over a network in simulated time.

mod cluster;
mod crash;
mod fairness;
mod faults;
mod policies;
mod store;
