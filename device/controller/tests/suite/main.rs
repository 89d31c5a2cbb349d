//! The controller's commands, logs, queues and limits, as seen by a host: a file for each. One program, which links and
//! starts once.
//!
//! Separate test programs: `fields`, `pairs`, `protection`.

mod common;

mod admin;
mod admin_queues;
mod arbiters;
mod atomicity;
mod buffer;
mod coalescing;
mod copy;
mod events;
mod faults;
mod features;
mod features_model;
mod fused;
mod guest_memory;
mod guest_queues;
mod lifecycle;
mod logs;
mod long_commands;
mod namespaces;
mod notices;
mod nvme_page;
mod overlapping;
mod placement;
mod queues;
mod reservations;
mod sanitize;
mod sanitize_media;
mod several;
mod shared_queues;
mod storm;
mod streams;
mod traced;
mod write_protection;
