//! Hostile input. Each target is a function that passes any bytes to the code under test, and panics if that code
//! breaks a promise. The fuzzer (`fuzz/` in the root) and the tests on the stable toolchain call the same functions.
//!
//! Most targets read the bytes as a script of small steps ([`Input`]), so that a mutation of a byte changes one field of one
//! message. A script that ends early is complete: missing bytes are zeros.
//!
//! | file | what |
//! |---|---|
//! | `input` | bytes as numbers and choices |
//! | `entry` | a submission queue entry from bytes |
//! | `commands` | commands of two hosts on one drive in simulated time, and on one with other command sets |
//! | `kinds` | the drives of these commands |
//! | `buffers` | buffers and batches of pages of any length |
//! | `pair` | a queue pair that counts what completes |
//! | `data_pointer` | PRPs and SGLs in the memory of a host |
//! | `memcached` | a client of memcached's protocols, its bytes in pieces |
//! | `messages` | parsers of messages: NVMe/TCP PDUs, vfio-user, the key-value store's |
//! | `served` | sessions with a live drive: NBD, NVMe/TCP, vfio-user (Linux) |
//! | `traces` | trace files |
//! | `recordings` | recordings of live drives (Linux) |
//! | `profiles` | profiles, and the drives that they describe |
//! | `cases` | inputs at random, made from seeds and from known inputs |
//!
//! Left out: the command line, which the user controls.

mod buffers;
pub mod cases;
mod commands;
mod data_pointer;
mod entry;
mod input;
mod kinds;
mod memcached;
mod messages;
mod pair;
mod profiles;
#[cfg(target_os = "linux")]
mod recordings;
#[cfg(target_os = "linux")]
mod served;
mod traces;

pub use commands::{command_sets, commands};
pub use data_pointer::data_pointer;
pub use input::Input;
pub use memcached::memcached;
pub use messages::{kv_message, nvme_tcp_pdu, vfio_user_message};
pub use profiles::profile;
#[cfg(target_os = "linux")]
pub use recordings::recording;
#[cfg(target_os = "linux")]
pub use served::{NvmeTcpHost, NvmeTcpTarget, nbd, nbd_client, nvme_tcp, nvme_tcp_host, vfio_user, vfio_user_machine};
pub use traces::trace;

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// All targets by name: the name of the fuzzer's program, and of the folder of its known inputs.
pub const TARGETS: &[(&str, Target)] = &[
    ("commands", commands),
    ("command_sets", command_sets),
    ("data_pointer", data_pointer),
    ("nvme_tcp_pdu", nvme_tcp_pdu),
    ("vfio_user_message", vfio_user_message),
    ("kv_message", kv_message),
    ("memcached", memcached),
    ("trace", trace),
    ("profile", profile),
    #[cfg(target_os = "linux")]
    ("nbd", nbd),
    #[cfg(target_os = "linux")]
    ("nvme_tcp", nvme_tcp),
    #[cfg(target_os = "linux")]
    ("vfio_user", vfio_user),
    #[cfg(target_os = "linux")]
    ("recording", recording),
];
