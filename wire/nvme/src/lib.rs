//! NVMe as bytes: what host and device share, and all that they share.
//!
//! Sources: "Base" is the NVM Express Base Specification 2.1, "NVM" the NVM Command Set Specification 1.1, "ZNS" the Zoned
//! Namespace Command Set Specification 1.2. Figures are named by their subject, and section numbers are given at each
//! field. Everything is little-endian, has its size asserted and holds any bit pattern: an unknown opcode or status is
//! a value, not an error.
//!
//! | file | what |
//! |---|---|
//! | `command` | the submission queue entry, and one constructor a command |
//! | `completion` | the completion queue entry |
//! | `opcode`, `status` | open enumerations |
//! | `parameter` | fields of a command, as the error log names them |
//! | `sgl` | descriptors of scatter gather lists |
//! | `blocks` | what commands do to logical blocks, as figures count it |
//! | `io` | the command dwords of the NVM command set, Dataset Management ranges |
//! | `register` | controller properties |
//! | `identify`, `feature`, `log` | what a controller reports of itself |
//! | `manage` | namespace management, format, sanitize, self-test |
//! | `reservation` | reservations |
//! | `fdp` | Flexible Data Placement |
//! | `directive` | Directive Send and Receive, the Streams directive |
//! | `predictable_latency` | Predictable Latency Mode |
//! | `fabrics`, `discovery` | commands of NVMe over Fabrics, the discovery log |
//! | `tcp` | NVMe/TCP: the units that are sent, and the checks of their headers |
//! | `zns` | the Zoned Namespace command set |
//! | `open_channel` | open-channel drives |
//! | `lss` | buffers of a log-structured store, and batched reads |
//! | `pieces` | the same of pages of any length, as chains of pieces |
//! | `runs` | sorted runs of LSM-trees |
//! | `vendor` | every extension of the source papers, planned once |
//!
//! A field that the specification counts from zero ends in `_z`.
//!
//! Left out: authentication over Fabrics.
#![no_std]
#![forbid(unsafe_code)]

pub mod blocks;
pub mod command;
pub mod completion;
pub mod directive;
pub mod discovery;
pub mod fabrics;
pub mod fdp;
pub mod feature;
pub mod identify;
pub mod io;
pub mod log;
pub mod lss;
pub mod manage;
pub mod opcode;
pub mod open_channel;
pub mod parameter;
pub mod pieces;
pub mod predictable_latency;
pub mod register;
pub mod reservation;
pub mod runs;
pub mod sgl;
pub mod status;
pub mod tcp;
pub mod vendor;
pub mod zns;

pub use command::SubmissionEntry;
pub use completion::CompletionEntry;
pub use opcode::{AdminOpcode, IoOpcode};
pub use parameter::Parameter;
pub use status::Status;

/// The namespace identifier that means all namespaces (Base 3.2.1.2).
pub const NSID_ALL: u32 = 0xffff_ffff;
