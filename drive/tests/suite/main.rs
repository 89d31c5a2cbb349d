//! The common parts of drives and hosts: memory, queues, the conformance suite. One program, which links and starts
//! once.

mod conformance;
mod data_pointer;
mod fake_drive;
mod layer;
mod queue_drive;
