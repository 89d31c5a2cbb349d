//! What a switch, a wake-up, a system call and an interrupt cost on the machine that this runs on, measured from user space without
//! privileges, as a [host profile](nandscape_host_path::Profile). Linux only.
//!
//! | file | what |
//! |---|---|
//! | `samples` | the median and the spread of a figure |
//! | `processors` | the processors that the process may use, their cores and caches |
//! | `nodes` | their NUMA nodes |
//! | `placed` | threads on given processors |
//! | `calls` | system calls, and a lock that is free |
//! | `threads` | switches, wake-ups, slices, and leaving a power state |
//! | `interrupts` | interrupts of a timer and of another processor |
//! | `memory` | cold caches, and a cache line of another core |
//! | `findings` | what was measured, key by key, and what cannot be |
//! | `form` | the profile as text |
//!
//! Each figure is a median, so that other work on the machine moves it little; the spread shows how much there was.
//!
//! Left out: costs inside the kernel's block layer and drivers, and hard interrupts of a device, which a program does not see.
#![forbid(unsafe_code)]

mod calls;
mod findings;
mod form;
mod interrupts;
mod memory;
mod nodes;
mod placed;
mod processors;
mod samples;
mod threads;

pub use findings::{Finding, MEASUREMENTS, Measured, measure};
pub use form::profile;
