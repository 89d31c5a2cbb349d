//! Keeps the machine's processors out of their idle states: a request to Linux's power management for a wake-up latency
//! of zero (kernel documentation, "PM Quality of Service Interface", CPU latency limits).
//!
//! A client that waits for a reply longer than some microseconds has its processor put to sleep, and the reply has to wake
//! it. On a virtual machine that goes through the hypervisor and takes tens of microseconds, which add to every latency
//! that the client measures.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

/// Where the request is made. It counts as long as the file is open.
const DEVICE: &str = "/dev/cpu_dma_latency";
/// The largest wake-up latency that is borne, in microseconds, as the kernel takes it.
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
    /// When the system does not take such requests, or not from this user: as a rule it is root's right.
    pub fn request() -> io::Result<NoIdleStates> {
        let mut device = OpenOptions::new().write(true).open(DEVICE)?;
        device.write_all(&NONE_US.to_ne_bytes())?;
        Ok(NoIdleStates { _device: device })
    }
}
