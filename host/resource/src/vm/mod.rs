//! A core that virtual machines share in slices (Li 6.1: 30 ms by default, so that a request for a machine that
//! sleeps is parked for tens of milliseconds). A request is work of one of the machines, and waits for that machine's
//! turn.
//!
//! | file | what |
//! |---|---|
//! | `core` | machines and their work |
//! | `queue` | turns: the run queue of the core |
//! | `scheduler` | which machine has the next turn, one policy a file |
//! | `guest` | the machine that serves requests, and the prediction of their time |
//!
//! The core is that of a [host machine](nandscape_host_machine) whose switches take no time. A virtual machine is a thread of it.
//!
//! Left out: several cores, migration between them, and the cost of a switch.

mod core;
mod guest;
mod queue;
pub mod scheduler;

pub use core::Core;
pub use guest::{Guest, Work};
pub use scheduler::SchedulerKind;
