//! The public interface: it changes only together with its listing, and its arrays, layers, policies and sweeps work.

mod listing;
mod signature;
mod source;
mod uses;
