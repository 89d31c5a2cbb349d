//! What all drives and hosts share: memory, queues, the conformance suite. One program, which links and starts once.

mod conformance;
mod data_pointer;
mod fake_drive;
mod queue_drive;
