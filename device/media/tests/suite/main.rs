//! The flash, operation by operation: contents, rules, faults, aging, a file for each. One program, which links and starts once.
//!
//! Next to it: files, features, networks of customers, and a second simulator.

mod aging;
mod contents;
mod faults;
mod misuse;
mod operations;
mod published;
