//! Memory of the controller in which commands hold data: a bounded amount for the commands of all hosts, which wait for it in
//! order.
//!
//! A command takes all of it at once, before room in the write buffer and before it holds blocks. So no command waits for
//! memory while another waits for what it has.
//!
//! Left out: memory of hosts, which their transports lend; metadata of zeros, which is made when the FTL takes it.

use nandscape_device_ftl::Ftl;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::credits::Credits;
use nandscape_sim::{Cause, Sim};
use nandscape_wire_nvme::Status;

use super::Nvm;
use crate::command_set::Command;

/// KiB for the data of Copy. One that needs more has all of it.
const OF_COPIES: usize = 16 << 10;
/// KiB for the data of other commands: Compare, and those on blocks with metadata.
const OF_OTHERS: usize = 64 << 10;

/// See the file.
pub(super) struct Memory {
    copies: Pool,
    others: Pool,
}

struct Pool {
    /// One is a KiB.
    credits: Credits,
    kib: usize,
    cause: Cause,
}

impl Memory {
    pub(super) fn new(sim: &Sim) -> Memory {
        let pool = |kib, cause| Pool { credits: Credits::new(sim, kib, cause), kib, cause };
        Memory { copies: pool(OF_COPIES, cause::HOST_WRITE), others: pool(OF_OTHERS, cause::HOST_READ) }
    }
}

/// Memory that a command has until this is dropped.
#[must_use]
pub(super) struct Held<'a> {
    of: &'a Credits,
    kib: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.of.give(self.kib);
    }
}

impl<F: Ftl> Nvm<F> {
    /// Waits for memory for the data of a Copy.
    ///
    /// # Errors
    /// The status of a command that is to end early.
    pub(super) async fn copy_memory(
        &self,
        command: &Command<'_>,
        bytes: usize,
        breakdown: &mut Breakdown,
    ) -> Result<Held<'_>, Status> {
        self.take_of(&self.memory.copies, command, bytes, breakdown).await
    }

    /// Waits for memory for the data of another command.
    ///
    /// # Errors
    /// The status of a command that is to end early.
    pub(super) async fn memory(
        &self,
        command: &Command<'_>,
        bytes: usize,
        breakdown: &mut Breakdown,
    ) -> Result<Held<'_>, Status> {
        self.take_of(&self.memory.others, command, bytes, breakdown).await
    }

    async fn take_of<'a>(
        &self,
        pool: &'a Pool,
        command: &Command<'_>,
        bytes: usize,
        breakdown: &mut Breakdown,
    ) -> Result<Held<'a>, Status> {
        let (begun, kib) = (self.sim.now(), bytes.div_ceil(1 << 10).min(pool.kib));
        let taken = command.stop.or_stopped(pool.credits.take(kib, breakdown.waits(Stage::Queue))).await;
        if let Err(status) = taken {
            breakdown.waits(Stage::Queue).add(pool.cause, self.sim.now() - begun);
            return Err(status);
        }
        Ok(Held { of: &pool.credits, kib })
    }
}
