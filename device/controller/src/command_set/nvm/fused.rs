//! A fused Compare and Write (Base 3.4.2, NVM 2.1.2): the write happens if the comparison finds no difference, and no other
//! command changes the blocks in between.
//!
//! The write has its room in the buffer and its data before the blocks are held, so that it waits for nobody while others
//! wait for it.

use nandscape_device_ftl::{Extent, Ftl};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_wire_nvme::Status;

use super::Nvm;
use super::command::NvmCommand;
use crate::command_set::{Command, Failure, Reply};

/// How each of the two commands has failed, or whether it has.
type Failures = [Option<Failure>; 2];

impl<F: Ftl> Nvm<F> {
    pub(super) async fn compare_and_write(&self, pair: [Command<'_>; 2], breakdown: &mut Breakdown) -> [Reply; 2] {
        let served = match self.fused_extent(&pair) {
            Ok((extent, fua)) => self.serve_pair(&pair, extent, fua, breakdown).await,
            Err(failures) => Err(failures),
        };
        let failures = served.err().unwrap_or_default();
        failures.map(|failure| failure.map_or(Ok(()), Err).into())
    }

    /// The extent of both commands, and whether the write is to reach the flash. A malformed command has the other one
    /// aborted; two that do not fit each other are both malformed.
    fn fused_extent(&self, pair: &[Command<'_>; 2]) -> Result<(Extent, bool), Failures> {
        let [compare, write] = pair.map(|command| NvmCommand::parse(command.entry, command.mem, command.namespace));
        let both = |status: Status| [Some(status.final_().into()); 2];
        let (compared, written, fua) = match (compare, write) {
            (Ok(NvmCommand::Compare { extent: compared }), Ok(NvmCommand::Write { extent, fua })) => {
                (compared, extent, fua)
            }
            (Ok(_), Ok(_)) => return Err(both(Status::INVALID_FIELD)),
            (Err(status), Ok(_)) => return Err(first_failed(status)),
            (Ok(_), Err(status)) => return Err(second_failed(status)),
            (Err(first), Err(second)) => return Err([Some(first.into()), Some(second.into())]),
        };
        match compared == written {
            false => Err(both(Status::INVALID_FIELD)),
            true if written.sectors > self.atomic_sectors() => Err(both(Status::ATOMIC_WRITE_UNIT_EXCEEDED)),
            true => Ok((written, fua)),
        }
    }

    async fn serve_pair(
        &self,
        [compare, write]: &[Command<'_>; 2],
        extent: Extent,
        fua: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failures> {
        let bytes = extent.bytes();
        self.check_writable().map_err(second_failed)?;
        let begun = self.sim.now();
        let room = write.stop.or_stopped(self.ftl.reserve(extent, breakdown.waits(Stage::Queue))).await;
        let room = room.map_err(|status| {
            breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
            second_failed(status)
        })?;
        compare.link.receive(bytes, breakdown).await;
        write.link.receive(bytes, breakdown).await;
        let begun = self.sim.now();
        let held = write.stop.or_stopped(self.exclusive.hold(extent)).await;
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        let held = held.map_err(second_failed)?;
        self.compare_own(compare, extent, breakdown).await.map_err(first_failed)?;
        // From here on nothing else is served until the data is accepted.
        compare.stop.check().map_err(first_failed)?;
        self.check_writable().and_then(|()| write.mem.cover(bytes as usize)).map_err(second_failed)?;
        let data = write.mem.part(0, bytes as usize);
        let watch = self.write_waits_for(fua, write.settings);
        let settling = self.ftl.accept(extent, Some(&data), room, watch);
        drop(held);
        let settled = self.settle(write, settling.into_iter().collect(), breakdown).await;
        settled.map_err(|status| [None, Some(status.into())])
    }

    /// Compares what the drive holds with the host's data, which has crossed the link.
    pub(super) async fn compare_own(
        &self,
        command: &Command<'_>,
        extent: Extent,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let own = HostMem::zeroed(extent.bytes() as usize);
        self.read_inside(command, extent, &own, breakdown).await?;
        match own.to_vec() == command.mem.part(0, own.len()).to_vec() {
            true => Ok(()),
            false => Err(Status::COMPARE_FAILURE.into()),
        }
    }
}

/// The comparison has failed, and the write is not begun.
fn first_failed(failure: impl Into<Failure>) -> Failures {
    [Some(failure.into()), Some(Status::FUSED_FAILED.into())]
}

/// The write cannot be done, and the comparison is not made, or is of no use.
fn second_failed(status: Status) -> Failures {
    [Some(Status::FUSED_FAILED.into()), Some(status.into())]
}
