//! Controller memory for the data of commands: a bounded amount shared by all hosts. Commands wait for it in order.
//!
//! A command takes all its memory at once, before room in the write buffer and before it holds blocks. This prevents
//! deadlock: no command waits for memory while it holds what another needs.
//!
//! Left out: host memory, which transports lend; metadata of zeros, which is generated when the FTL takes it.

use std::cell::Cell;

use nandscape_device_ftl_core::Ftl;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::credits::Credits;
use nandscape_sim::{Cause, Sim};
use nandscape_wire_nvme::{IoOpcode, Status};

use super::Nvm;
use crate::command_set::Command;

/// KiB for the data of Copy. A Copy that needs more gets all of it.
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
    /// KiB that commands hold whose main work is to read, and to write.
    holders: Cell<[usize; 2]>,
}

impl Memory {
    pub(super) fn new(sim: &Sim) -> Memory {
        Memory { copies: Pool::new(sim, OF_COPIES), others: Pool::new(sim, OF_OTHERS) }
    }
}

impl Pool {
    fn new(sim: &Sim, kib: usize) -> Pool {
        Pool { credits: Credits::new(sim, kib, cause::HOST_READ), kib, holders: Cell::default() }
    }

    /// Waits are charged to the commands that hold the most.
    fn cause(&self) -> Cause {
        let [reads, writes] = self.holders.get();
        if writes > reads { cause::HOST_WRITE } else { cause::HOST_READ }
    }

    fn set_holders(&self, change: impl FnOnce(&mut [usize; 2])) {
        let mut holders = self.holders.get();
        change(&mut holders);
        self.holders.set(holders);
        self.credits.blame(self.cause());
    }

    /// Marks memory as taken.
    fn held(&self, writes: bool, kib: usize) -> Held<'_> {
        self.set_holders(|holders| holders[usize::from(writes)] += kib);
        Held { of: self, writes, kib }
    }
}

/// Memory that a command has until this is dropped.
#[must_use]
pub(in crate::command_set) struct Held<'a> {
    of: &'a Pool,
    /// Whether the command writes.
    writes: bool,
    kib: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.of.credits.give(self.kib);
        self.of.set_holders(|holders| holders[usize::from(self.writes)] -= self.kib);
    }
}

/// Whether the main work of a command is to write.
fn writes(command: &Command<'_>) -> bool {
    !matches!(IoOpcode(command.entry.opcode), IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY)
}

impl<F: Ftl> Nvm<F> {
    /// Waits for memory for the data of a Copy.
    ///
    /// # Errors
    /// The status of a command that is to end early.
    pub(in crate::command_set) async fn copy_memory(
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
            breakdown.waits(Stage::Queue).add(pool.cause(), self.sim.now() - begun);
            return Err(status);
        }
        Ok(pool.held(writes(command), kib))
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::{Executor, Span, Wait};

    use super::*;

    #[test]
    fn a_wait_is_behind_the_commands_that_hold_the_most() {
        for (reads, writes, expected) in [(6, 2, cause::HOST_READ), (2, 6, cause::HOST_WRITE)] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let pool = Pool::new(&sim, 8);
            assert!(pool.credits.try_take(8));
            let held = [pool.held(false, reads), pool.held(true, writes)];
            let mut waited = Wait::ZERO;
            let take = pool.credits.take(1, &mut waited);
            let free = async {
                sim.sleep(Span::from_us(3)).await;
                drop(held);
            };
            let both = async {
                let (mut take, mut free) = (Box::pin(take), Box::pin(free));
                let mut freed = false;
                std::future::poll_fn(|context| {
                    freed = freed || free.as_mut().poll(context).is_ready();
                    take.as_mut().poll(context)
                })
                .await;
            };
            executor.block_on(both).unwrap();
            assert_eq!(waited.by(expected), Span::from_us(3));
        }
    }
}
