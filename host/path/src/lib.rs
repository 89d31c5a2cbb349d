//! The way of an I/O through a host: a thread of a [`Machine`](nandscape_host_machine::Machine) enters the kernel, passes the block
//! layer and the driver, and learns of the completion by an interrupt or by polling.
//!
//! | file | what |
//! |---|---|
//! | `config` | settings, their keys, and which hosts are impossible |
//! | `profile` | hosts as TOML, built in or of the user, with the source of each cost |
//! | `policy` | how a thread learns of a completion, one policy a file |
//! | `queues` | queues and ports, their tags, and requests that wait for one |
//! | `strategy` | who takes completions, finishes I/Os and issues waiting requests, one part a file |
//! | `locks` | the locks of request queues and of the controller, and who takes them |
//! | `queue_run` | a thread that issues requests without a tag, on the path of SCSI |
//! | `path` | one I/O of a thread, from the system call to its return |
//! | `vector` | the interrupt of a queue, and what it leaves to a softirq |
//! | `notices` | the interrupt of the drive's notices ahead of completions, and what they gained |
//! | `buffer` | the room in the drive's write buffer, as a host knows it |
//! | `stages` | the stages of an I/O, and the time in each |
//! | `ring` | applications with io_uring, as a drive |
//! | `reactor` | a thread a processor that submits and polls outside the kernel, as a drive |
//! | `threads` | the threads of an application, as a drive |
//! | `clients` | clients on another machine, each with a connection to a thread of this host |
//!
//! # Rules
//! - A queue pair belongs to one processor or several; its interrupt is raised on the first of them.
//! - The stages of an I/O and the drive's time sum to its latency, to the nanosecond.
//! - An I/O that is dropped leaves its thread, and its completion has no effect.
//!
//! Left out: page cache, separate queues for polling (a polled command raises no interrupt), the locks of shared queue pairs,
//! timeouts, and the split of requests above the drive's transfer limit: each command has a thread.
#![forbid(unsafe_code)]

mod buffer;
mod clients;
mod config;
mod locks;
mod notices;
mod path;
pub mod policy;
mod profile;
mod queue_run;
mod queues;
mod reactor;
mod ring;
mod stages;
pub mod strategy;
mod threads;
mod vector;

pub use buffer::BufferAccount;
pub use clients::Clients;
pub use config::{COSTS, Config, ConfigError, Costs, KEYS, PathKind, RingKind, Window};
pub use notices::NoticeFigures;
pub use path::{Path, Waiting};
pub use profile::{BUILTIN, Builtin, Profile, ProfileError};
pub use queues::{Queues, Stripe};
pub use reactor::Reactor;
pub use ring::Ring;
pub use stages::{LAYER, stage};
pub use threads::Threads;
