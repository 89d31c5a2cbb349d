//! Keeps the machine's processors out of their idle states, by requesting a wake-up latency of zero from Linux's
//! power management (kernel documentation, "PM Quality of Service Interface", CPU latency limits).
//!
//! When a client waits for a reply for more than some microseconds, its processor sleeps, and the reply has to wake
//! it. On a virtual machine the wake-up passes the hypervisor and takes tens of microseconds, which add to every
//! latency that the client measures.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

/// The file for the request, which holds while the file is open.
const DEVICE: &str = "/dev/cpu_dma_latency";
/// The largest wake-up latency allowed, in microseconds, in the kernel's format.
const NONE_US: i32 = 0;

/// While this is kept, no processor of the machine enters an idle state: those without work spin.
#[must_use = "the request ends when this is dropped"]
pub struct NoIdleStates {
    _device: File,
}

impl NoIdleStates {
    /// Makes the request.
    ///
    /// # Errors
    /// When the system does not support such requests, or not by this user: they usually need root.
    pub fn request() -> io::Result<NoIdleStates> {
        let mut device = OpenOptions::new().write(true).open(DEVICE)?;
        device.write_all(&NONE_US.to_ne_bytes())?;
        Ok(NoIdleStates { _device: device })
    }
}
