//! Flush of a buffer of pieces: bases and deltas of pages become current together.
//!
//! Buffers of a namespace are served one after the other (the serial queue of OX 7.3.1), each until it is durable.
//!
//! Left out: the processor time of parsing beyond that of a command.

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_ox::pieces::{Change, Limits, PieceError, Turn};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::Cause;
use nandscape_wire_nvme::lss::{Head, PAGE};
use nandscape_wire_nvme::pieces::{Entry, entries};
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::super::super::Nvm;
use super::super::super::atomic::too_large;
use super::super::malformed;
use super::{TRIES, failed};
use crate::command_set::{Command, Failure};
use crate::namespace::Namespace;
use crate::refusal::Refusal;

/// A checked buffer.
struct Buffer {
    changes: Vec<Change>,
    /// Where each piece begins in the buffer.
    offsets: Vec<usize>,
    /// Bytes of the buffer.
    bytes: usize,
}

impl Namespace {
    /// Checks a buffer of pieces, but not the state of its pages.
    fn piece_buffer(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Buffer, Refusal> {
        let bytes = ((entry.cdw10.get() & 0xffff) as usize + 1) * PAGE;
        if bytes as u64 > self.max_bytes() {
            return Err(too_large());
        }
        mem.must_fit(bytes)?;
        let mut head = Head::default();
        mem.read(0, head.as_mut_bytes());
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let count = entries(&head).ok_or_else(malformed)?;
        let begin = size_of::<Head>() + count * size_of::<Entry>();
        if begin > bytes {
            return Err(malformed());
        }
        let mut list = vec![Entry::default(); count];
        mem.read(size_of::<Head>(), list.as_mut_bytes());
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let (mut changes, mut offsets) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for entry in list {
            let (len, is_delta) = entry.piece().ok_or_else(malformed)?;
            let offset = entry.offset.get() as usize;
            if offset < begin || offset + len as usize > bytes {
                return Err(malformed());
            }
            changes.push(Change { lpid: entry.lpid.get(), is_delta, bytes: len });
            offsets.push(offset);
        }
        Ok(Buffer { changes, offsets, bytes })
    }
}

impl<F: Ftl> Nvm<F> {
    /// Serves a flush of a buffer of pieces.
    pub(super) async fn flush_pieces(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let namespace = command.namespace;
        let buffer = namespace.piece_buffer(command.entry, command.mem)?;
        let limits = self.piece_limits(namespace).ok_or(Status::INVALID_NAMESPACE.final_())?;
        self.count_write();
        for _ in 0..TRIES {
            command.stop.check()?;
            let store = self.store_of(namespace);
            match self.timed(command, cause::HOST_WRITE, store.turn(), breakdown).await? {
                Ok(turn) => return self.flush_in_turn(command, &buffer, &limits, turn, breakdown).await,
                Err(PieceError::Stale) => {}
                Err(error) => return Err(failed(namespace, error)),
            }
        }
        Err(Status::ABORTED_POWER_LOSS.into())
    }

    /// Awaits a part of a command, unless the command is stopped.
    async fn timed<T>(
        &self,
        command: &Command<'_>,
        why: Cause,
        work: impl Future<Output = T>,
        breakdown: &mut Breakdown,
    ) -> Result<T, Status> {
        let begun = self.sim.now();
        let ended = command.stop.or_stopped(work).await;
        breakdown.waits(Stage::Queue).add(why, self.sim.now() - begun);
        ended
    }

    /// Flushes the buffer whose turn it is.
    async fn flush_in_turn(
        &self,
        command: &Command<'_>,
        buffer: &Buffer,
        limits: &Limits,
        mut turn: Turn<'_, F>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let namespace = command.namespace;
        let failed = |error| failed(namespace, error);
        turn.admit(&buffer.changes, limits).map_err(failed)?;
        self.check_writable()?;
        let watch = self.write_waits_for(true, command.settings);
        self.timed(command, cause::GC, turn.make_room(&buffer.changes, watch), breakdown).await?.map_err(failed)?;
        let extents = turn.plan(&buffer.changes).map_err(failed)?;
        let begun = self.sim.now();
        let transactions = self.transactions()?;
        let room = transactions.reserve(&extents, breakdown.waits(Stage::Queue));
        let reservation = match command.stop.or_stopped(room).await {
            Ok(reservation) => reservation,
            Err(status) => {
                breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
                return Err(status.into());
            }
        };
        command.link.receive(buffer.bytes as u64, breakdown).await;
        command.stop.check()?;
        self.check_writable()?;
        // A guest may have unmapped the memory since: better no data than zeros.
        command.mem.cover(buffer.bytes)?;
        let put = |bytes: &mut [u8]| {
            let mut at = 0;
            for (change, offset) in buffer.changes.iter().zip(&buffer.offsets) {
                let end = at + change.bytes as usize;
                command.mem.read(*offset, &mut bytes[at..end]);
                at = end;
            }
        };
        let data = HostMem::from_bytes(&turn.data(put).map_err(failed)?);
        let settling = transactions.accept(&extents, Some(&data), reservation, watch);
        self.settle(command, settling.into_iter().collect(), breakdown).await?;
        turn.end().map_err(failed)
    }
}
