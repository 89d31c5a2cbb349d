//! The seam between a drive and everything above it.
//!
//! A [`Controller`] is a set of queue pairs, as in NVMe: host drivers, completion strategies and guests use it. A
//! [`Subsystem`] gives each host its own controller. A [`Drive`] takes one command with its data and completes it:
//! arrays, services and transports use drives and are drives themselves. [`QueueDrive`] is a drive over a queue pair.
//!
//! | file | what |
//! |---|---|
//! | `drive` | the `Drive` trait |
//! | `command` | checked commands to drives that are not controllers |
//! | `node` | the `Node` trait: what users connect to |
//! | `foresight` | the view of nodes that know how long a read would take |
//! | `layer` | the traits of layers over nodes, and of their reports |
//! | `opening` | how a layer is opened: states, progress |
//! | `offers` | the commands and fields that a drive takes or a layer passes |
//! | `flash` | flash operations and data locations, for a host that manages flash |
//! | `shingle` | the same of a shingled disk |
//! | `controller` | the `Controller` trait |
//! | `subsystem` | the `Subsystem` trait: several controllers of one drive |
//! | `assign` | rules that give commands a class and a tenant |
//! | `block_sizes` | bytes of a logical block of each namespace |
//! | `io` | a command in flight: command, host memory, and the token that completes it exactly once |
//! | `mem` | the memory of a command's data |
//! | `parity` | the exclusive or of data, for drives with stripes and for arrays |
//! | `notice_queue` | the queue of notices ahead of completions, for a host of this process |
//! | `announcements` | such a queue for drives over queue pairs |
//! | `queue_memory` | the memory of queues, as a controller sees it |
//! | `ring` | a submission and a completion queue in the memory of this process |
//! | `guest_queues` | queues in the memory of a guest |
//! | `queue_drive` | a drive over a queue pair |
//! | `issuer` | awaiting one command |
//! | `mark` | a mark that hosts of a drive set to find one another |
//! | `breakdown` | a command's latency by stage, and the causes of its waits |
//! | `latency` | latencies by percentile, as reports have them |
//! | `conformance` | the checks every drive must pass |
//! | `testing` | a drive, hosts and memory for tests of the layers above drives |
//!
//! Left out: what happens inside a drive, and how a client outside this process reaches one.

mod announcements;
mod assign;
pub mod block_sizes;
pub mod breakdown;
pub mod command;
pub mod conformance;
pub mod controller;
pub mod drive;
pub mod flash;
pub mod foresight;
pub mod guest_queues;
pub mod io;
pub mod issuer;
mod latency;
pub mod layer;
pub mod mark;
pub mod mem;
pub mod node;
mod notice_queue;
mod offers;
mod opening;
pub mod parity;
pub mod queue_drive;
pub mod queue_memory;
pub mod ring;
pub mod shingle;
pub mod subsystem;
pub mod testing;

pub use announcements::Announcements;
pub use assign::Assignments;
pub use block_sizes::BlockSizes;
pub use breakdown::{Breakdown, Stage};
pub use controller::{Controller, QueueId};
pub use drive::{Drive, DriveInfo};
pub use foresight::{Expected, Foresight};
pub use io::{CommandRef, Completion, Io, Token};
pub use issuer::Issuer;
pub use latency::{Latency, percentile, requests_needed};
pub use layer::{Layer, LayerNode, LayerReport};
pub use mem::HostMem;
pub use node::{Node, Refused, Role, Use};
pub use notice_queue::{Notice, NoticeQueue};
pub use offers::Offers;
pub use opening::{Opening, Phase, Precondition, Progress};
pub use queue_drive::QueueDrive;
pub use queue_memory::{CompletionMemory, HostMemory, SubmissionMemory};
pub use subsystem::{HostIdentity, Names, Subsystem, TransportModel};
