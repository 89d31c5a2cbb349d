//! Linux guests under stock QEMU, as hosts of emulated drives. QEMU, a kernel and the programs of the guest come from
//! Debian's archive by package name, are cached, and run without root.
//!
//! | file | what |
//! |---|---|
//! | `kit` | QEMU, the kernel and the guest's first file system: fetched once, then cached |
//! | `image` | that file system: programs with their libraries, kernel modules, `init.sh` |
//! | `machine` | what a guest has: memory, processors, devices, files; QEMU's arguments for it |
//! | `saved` | a start that is saved once, from which guests continue |
//! | `guest` | a guest that runs commands, one after the other |
//! | `pulse` | distinguishes a stuck guest from a slow one |
//! | `processes` | what a signal has to end with this process |
//! | `shell` | a guest on the terminal |
//! | `error` | what can fail |
//!
//! Left out: hardware virtualization (guests run under TCG), other architectures than x86-64, and drives: a machine gets
//! the socket or the address of a drive.
#![cfg(target_os = "linux")]

mod error;
mod guest;
mod image;
mod kit;
mod machine;
pub mod processes;
mod pulse;
mod saved;
mod shell;

pub use error::GuestError;
pub use guest::{Guest, Output};
pub use kit::Kit;
pub use machine::{Device, ExtraFile, Machine};
