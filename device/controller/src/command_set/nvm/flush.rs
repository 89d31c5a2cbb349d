//! Flush (Base 7.2).

use nandscape_device_ftl_core::Ftl;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_wire_nvme::Status;

use super::Nvm;
use super::write::refused;
use crate::command_set::Command;
use crate::config::BufferMode;

impl<F: Ftl> Nvm<F> {
    /// Waits until everything in a volatile write buffer is on flash. If the buffer survives a power cut, or writes complete
    /// on flash, it returns at once.
    pub(super) async fn flush_command(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Status> {
        if self.has_volatile_cache()
            && let Some(settling) = self.ftl.flush()
        {
            let begun = self.sim.now();
            let settled = command.stop.or_stopped(settling.settled()).await;
            breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
            settled?.map_err(refused)?;
        }
        Ok(())
    }

    /// Whether the write buffer keeps its data over a power cut.
    pub(super) fn keeps_buffer(&self) -> bool {
        self.buffer == BufferMode::Capacitor
    }

    /// Whether a power cut can lose completed writes, because the write cache is volatile.
    pub(super) fn has_volatile_cache(&self) -> bool {
        matches!(self.buffer, BufferMode::Volatile | BufferMode::Register | BufferMode::Programmed)
    }
}
