//! A fused Compare and Write (Base 3.4.2, NVM 2.1.2): if the comparison finds no difference, the write is done, and no other
//! command changes the blocks in between.
//!
//! The write gets its buffer room and its data before it holds the blocks. While other commands wait for it, it waits for
//! none.

use std::rc::Rc;

use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_device_ftl_core::offers::{RandomWrites, Reserved};
use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_wire_nvme::Status;

use super::Nvm;
use super::command::NvmCommand;
use super::turns::Work;
use super::write::{FromHost, Source};
use crate::command_set::{Command, Failure, Reply};
use crate::refusal::Refusal;

/// Bytes compared at once, which fit the processor's cache.
const COMPARED: usize = 64 << 10;

/// The failure of each of the two commands, if any.
pub(super) type Failures = [Option<Failure>; 2];

impl<F: Ftl> Nvm<F> {
    pub(super) async fn compare_and_write(&self, pair: [Command<'_>; 2], breakdown: &mut Breakdown) -> [Reply; 2] {
        let served = match self.fused_extent(&pair) {
            Ok((extent, fua)) => self.serve_pair(&pair, extent, fua, breakdown).await,
            Err(failures) => Err(failures),
        };
        replies(served)
    }

    /// The extent of both commands, and whether the write is to reach the flash. A malformed command has the other one
    /// aborted; two that do not fit each other are both malformed.
    fn fused_extent(&self, pair: &[Command<'_>; 2]) -> Result<(Extent, bool), Failures> {
        let [compare, write] = pair.map(|command| NvmCommand::parse(command.entry, command.mem, command.namespace));
        match both_parsed(compare, write)? {
            (NvmCommand::Compare { extent: compared }, NvmCommand::Write { extent, fua }) if compared == extent => {
                self.check_atomic(extent)?;
                Ok((extent, fua))
            }
            _ => Err(both_failed(Status::INVALID_FIELD)),
        }
    }

    /// The pair is one atomic unit.
    pub(super) fn check_atomic(&self, extent: Extent) -> Result<(), Failures> {
        match extent.sectors > self.atomic_sectors() {
            true => Err(both_failed(Status::ATOMIC_WRITE_UNIT_EXCEEDED)),
            false => Ok(()),
        }
    }

    async fn serve_pair(
        &self,
        pair: &[Command<'_>; 2],
        extent: Extent,
        fua: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failures> {
        let (bytes, [compare, write]) = (extent.bytes(), pair);
        let compared = async |breakdown: &mut Breakdown| self.compare_own(compare, extent, breakdown).await;
        let accept = |room, watch| {
            FromHost::<()>::of(write.mem).accept(&*self.ftl, self.random_writes()?, (extent, 0), room, watch)
        };
        self.hold_and_serve(pair, extent, ([bytes; 2], bytes as usize, fua), compared, accept, breakdown).await
    }

    /// Serves a pair over `extent`: `bytes` of each command cross the link, `compared` compares, with `memory` bytes of the
    /// controller, and then `accept` has the FTL take the write.
    pub(super) async fn hold_and_serve<'f>(
        &'f self,
        [compare, write]: &[Command<'_>; 2],
        extent: Extent,
        (bytes, memory, fua): ([u64; 2], usize, bool),
        compared: impl AsyncFnOnce(&mut Breakdown) -> Result<(), Failure>,
        accept: impl FnOnce(Reserved<'f, F>, Option<Milestone>) -> Result<Option<Rc<Settling>>, Status>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failures> {
        self.check_writable().map_err(second_failed)?;
        self.take_turn(compare, (Work::Read, extent.sectors.into()), breakdown).await.map_err(first_failed)?;
        let _memory = self.memory(compare, memory, breakdown).await.map_err(first_failed)?;
        let begun = self.sim.now();
        let writes = self.random_writes().map_err(second_failed)?;
        let room = write.stop.or_stopped(writes.reserve(extent, breakdown.waits(Stage::Queue))).await;
        let room = room.map_err(|status| {
            breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
            second_failed(status)
        })?;
        compare.link.receive(bytes[0], breakdown).await;
        write.link.receive(bytes[1], breakdown).await;
        let begun = self.sim.now();
        // The comparison must see any transaction that the write would replace.
        let held = write.stop.or_stopped(self.hold_settled(extent)).await;
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        let held = held.map_err(second_failed)?;
        compared(breakdown).await.map_err(first_failed)?;
        // From here, no other command is served until the data is accepted.
        compare.stop.check().map_err(first_failed)?;
        self.check_writable().map_err(second_failed)?;
        let watch = self.write_waits_for(fua, write.settings);
        let settling = accept(room, watch).map_err(second_failed)?;
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
        let part = |mem: &HostMem, at: usize| mem.part(at, COMPARED.min(own.len() - at)).to_vec();
        match (0..own.len()).step_by(COMPARED).all(|at| part(&own, at) == part(command.mem, at)) {
            true => Ok(()),
            false => Err(Status::COMPARE_FAILURE.into()),
        }
    }
}

/// Both commands, which are well formed. A malformed one has the other one aborted.
pub(super) fn both_parsed<T>(compare: Result<T, Refusal>, write: Result<T, Refusal>) -> Result<(T, T), Failures> {
    match (compare, write) {
        (Ok(compare), Ok(write)) => Ok((compare, write)),
        (Err(refusal), Ok(_)) => Err(first_failed(refusal)),
        (Ok(_), Err(refusal)) => Err(second_failed(refusal)),
        (Err(first), Err(second)) => Err([Some(first.into()), Some(second.into())]),
    }
}

/// The replies to a pair.
pub(super) fn replies(served: Result<(), Failures>) -> [Reply; 2] {
    let failures = served.err().unwrap_or_default();
    failures.map(|failure| failure.map_or(Ok(()), Err).into())
}

/// The two do not fit each other.
pub(super) fn both_failed(status: Status) -> Failures {
    [Some(status.final_().into()); 2]
}

/// The comparison failed, and the write was not started.
fn first_failed(failure: impl Into<Failure>) -> Failures {
    [Some(failure.into()), Some(Status::FUSED_FAILED.into())]
}

/// The write failed, so the comparison was skipped or is irrelevant.
fn second_failed(failure: impl Into<Failure>) -> Failures {
    [Some(Status::FUSED_FAILED.into()), Some(failure.into())]
}
