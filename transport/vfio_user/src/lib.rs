//! A vfio-user server: a drive as a PCI NVMe controller, for a virtual machine whose monitor is a vfio-user client, such as
//! QEMU.
//!
//! Each client has a side thread, which answers its messages and may block. It passes requests for the controller to
//! the reactor and waits for the outcome. Doorbells, data and interrupts bypass it: they use memory that the client
//! shares, and event descriptors.
//!
//! | file | what |
//! |---|---|
//! | `listener` | accepts clients, one at a time for each socket |
//! | `channel` | messages with descriptors over the socket |
//! | `session` | a client's thread: answers messages |
//! | `regions`, `maps` | the messages on regions, and on the client's memory |
//! | `layout` | the layout of the base address registers |
//! | `config_space` | the PCI configuration space |
//! | `device` | the reactor's side: passes on what the guest does |
//! | `doorbells` | watches doorbells, in registers or in the guest's memory |
//! | `interrupts` | MSI-X vectors: event descriptors, masks, pending bits |
//! | `memory` | the guest's memory, as far as the device may reach it |
//! | `asking`, `writer` | messages to the client for memory that only it reaches |
//!
//! Left out: MSI and interrupt pins, migration and dirty page logs, doorbell buffers in memory that only the client reaches.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod asking;
mod channel;
mod config_space;
mod device;
mod doorbells;
mod interrupts;
mod layout;
mod listener;
mod maps;
mod memory;
mod regions;
mod session;
mod writer;

pub use listener::{DoorbellMode, Function, Listener};
