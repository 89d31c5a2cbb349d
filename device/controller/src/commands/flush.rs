//! Flush (Base 7.2).

use nandscape_device_ftl::Ftl;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_wire_nvme::Status;

use super::write::refused;
use crate::config::BufferMode;
use crate::controller::NvmeController;

impl<F: Ftl> NvmeController<F> {
    /// Waits until everything in a volatile write buffer is on flash. Where the buffer survives a power cut, or writes
    /// complete on flash anyway, there is nothing to do.
    pub(crate) async fn flush(&self, log: &mut Breakdown) -> Result<(), Status> {
        if self.has_volatile_cache()
            && let Some(settling) = self.ftl.flush()
        {
            let begun = self.sim.now();
            let settled = settling.settled().await;
            log.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
            settled.map_err(refused)?;
        }
        Ok(())
    }

    /// Whether the write buffer is there again after a power cut.
    pub(crate) fn keeps_buffer(&self) -> bool {
        self.config.buffer == BufferMode::Capacitor
    }

    /// Whether the controller has a write cache that a power cut empties.
    pub(crate) fn has_volatile_cache(&self) -> bool {
        matches!(self.config.buffer, BufferMode::Volatile | BufferMode::Register)
    }
}
