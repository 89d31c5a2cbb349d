//! An NVMe/TCP initiator: the namespace of a remote controller as a drive, in real time.
//!
//! [`NvmeTcp::connect`] connects, blocking, and returns a drive. Its owner polls it in a loop, as every
//! [`Remote`](crate::Remote). A poll sends submitted commands, receives, and completes commands, and never blocks.
//! When idle, the owner waits until [`Remote::socket`](crate::Remote::socket) is readable:
//!
//! ```text
//! let drive = NvmeTcp::connect("nvme-tcp://127.0.0.1:4420/nqn.x".parse()?, Box::new(move || clock.now()))?;
//! loop {
//!     drive.submit(io);
//!     drive.poll()?;
//! }
//! ```
//!
//! A connection that breaks, or is silent while commands wait, is re-established on a side thread, after growing
//! pauses. Outstanding commands are then submitted again, as in Linux, if they are idempotent: [`REPLAYS`] times
//! each. Others fail with Host Pathing Error. All commands do when the target is unreachable or silent for longer
//! than [`Target::patience`]. A slow drive is not silent: its target answers a probe on the connection.
//!
//! | file | what |
//! |---|---|
//! | `target` | the address of a target, `nvme-tcp://HOST:PORT/NQN`, and its options |
//! | `establish` | connecting, blocking: initialisation, Connect, Identify |
//! | `identity` | the identity of the drive behind a target |
//! | `queue` | one connection: commands to PDUs, PDUs to completions |
//! | `association` | the queues together |
//! | `look` | a check of the drive after reconnection |
//! | `state` | reconnection, Keep Alive, silence, waiting commands |
//! | `initiator` | all of it as a drive |
//! | `admin` | the admin queue as a drive |
//!
//! Left out: TLS and authentication; several paths to a drive. Each drive is one namespace with its own connections.

mod admin;
mod association;
mod establish;
#[cfg(test)]
mod hostile;
mod identity;
mod initiator;
mod look;
mod queue;
mod state;
mod target;

pub use admin::AdminQueue;
pub use establish::ConnectError;
pub use identity::Identity;
pub use initiator::{Clock, Connected, NvmeTcp};
pub use look::{Execute, Look, Refusal};
pub use state::REPLAYS;
pub use target::Target;
pub(crate) use target::check_port;

/// CRC-32C, the digest of NVMe/TCP (3.3.1.1).
fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
