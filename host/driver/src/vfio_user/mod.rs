//! A user-space driver for a PCI NVMe controller behind a vfio-user socket: it does the work of a guest's driver,
//! without a guest.
//!
//! [`Function::connect`] shares memory with the controller and enables it. [`Function::create_pair`] creates a queue
//! pair in that memory, which one thread fills and polls:
//!
//! ```text
//! let mut function = Function::connect(path, 1 << 20)?;
//! let data = function.memory().take(4_096)?;
//! let mut pair = function.create_pair(64)?;
//! pair.submit(SubmissionEntry { prp1: data.into(), ..SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8) })?;
//! while pair.reap()?.is_none() {}
//! ```
//!
//! Doorbells use the way that the server offers: the page of doorbells if it can be mapped, otherwise messages
//! without answers, as in QEMU. After [`Function::use_doorbell_buffers`], doorbells of later pairs are written to the
//! driver's own memory (Doorbell Buffer Config), with a message only if the event index requires one.
//!
//! | file | what |
//! |---|---|
//! | `messages` | messages to the server, and its answers |
//! | `memory` | the shared memory |
//! | `doorbells` | the three ways of a doorbell |
//! | `queue_pair` | a polled queue pair |
//! | `function` | connecting, enabling, admin commands |
//! | `drive` | queue pairs as drives |
//! | `slot` | the memory of a command of a drive |
//! | `announced` | the queue of notices ahead of completions |
//!
//! All queues that interrupt have the first vector. Left out: a vector for each queue; reconnection.

mod announced;
mod doorbells;
mod drive;
mod function;
mod memory;
mod messages;
mod queue_pair;
mod slot;

use std::io;

use nandscape_wire_nvme::Status;

pub use drive::{FunctionDrive, Signals};
pub use function::Function;
pub use memory::SharedMemory;
pub use queue_pair::QueuePair;

/// Why the function cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// The socket, or the system's memory.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server has refused a message.
    #[error("{message}: the server answers with error {errno}")]
    Refused {
        /// The request.
        message: &'static str,
        /// The system's number of the error.
        errno: u32,
    },
    /// The controller has refused an admin command.
    #[error("{step}: the controller answers {status}")]
    Failed {
        /// The command.
        step: &'static str,
        /// Its status.
        status: Status,
    },
    /// The other side breaks rules, or is no such function.
    #[error("{0}")]
    Unusable(String),
}

impl FunctionError {
    fn unusable(problem: impl Into<String>) -> FunctionError {
        FunctionError::Unusable(problem.into())
    }
}
