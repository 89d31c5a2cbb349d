//! Batched read of pages that are chains of pieces. All of them are looked up at one instant and read in parallel.

use nandscape_device_ftl_core::{Ftl, ReadError, Reader};
use nandscape_device_ftl_ox::pieces::{Area, Piece, PieceError, Place as Lies};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_wire_nvme::lss::{LIST, MOST_BATCHED, PAGE};
use nandscape_wire_nvme::pieces::{LEAST_BATCH, Place};
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::super::super::Nvm;
use super::super::super::atomic::too_large;
use super::super::super::read::{ToController, failure};
use super::{TRIES, failed};
use crate::command_set::together::{Part, together};
use crate::command_set::{Command, Failure};
use crate::namespace::Namespace;
use crate::refusal::Refusal;

/// Bytes of the length of a piece.
const LENGTH: usize = size_of::<u32>();

impl Namespace {
    /// Checks a batched read: its pages, and the bytes of its data.
    fn piece_batch(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<(Vec<u64>, usize), Refusal> {
        let pages = (entry.cdw10.get() & 0xffff) as usize + 1;
        if pages > MOST_BATCHED {
            return Err(Refusal::field(10, 0).final_());
        }
        let bytes = ((entry.cdw11.get() & 0xffff) as usize + 1) * PAGE;
        if bytes < LEAST_BATCH {
            return Err(Refusal::field(11, 0).final_());
        }
        if bytes as u64 > self.max_bytes() {
            return Err(too_large());
        }
        mem.must_fit(bytes)?;
        let mut list = vec![0; pages * size_of::<u64>()];
        mem.read(0, &mut list);
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let (lpids, _) = list.as_chunks();
        Ok((lpids.iter().map(|lpid| u64::from_le_bytes(*lpid)).collect(), bytes))
    }
}

/// The reads of a batch, and the lengths reported to the host.
#[derive(Default)]
struct Layout {
    places: Vec<Place>,
    /// Lengths of pieces, and where they go.
    lengths: Vec<(usize, u32)>,
    /// Where pieces lie, and where in the data they go.
    reads: Vec<(Lies, usize)>,
    /// Bytes of the data that are used.
    end: usize,
}

impl Layout {
    /// Lays pages out in `bytes` bytes.
    fn of(pages: &[Vec<Piece>], bytes: usize) -> Layout {
        let mut layout = Layout { end: LIST, ..Layout::default() };
        for pieces in pages {
            let sum: usize = pieces.iter().map(|piece| piece.bytes as usize).sum();
            let fits = layout.end + pieces.len() * LENGTH + sum <= bytes;
            layout.places.push(Place {
                bytes: (sum as u32).into(),
                pieces: (pieces.len() as u16).into(),
                left_out: u16::from(!fits).into(),
            });
            if fits {
                layout.add(pieces);
            }
        }
        layout
    }

    fn add(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            self.lengths.push((self.end, piece.bytes));
            self.end += LENGTH;
        }
        for lies in pieces.iter().flat_map(|piece| &piece.places) {
            self.reads.push((*lies, self.end));
            self.end += lies.bytes as usize;
        }
    }
}

impl<F: Ftl> Nvm<F> {
    /// Serves a batched read of such pages.
    pub(super) async fn read_pieces(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let namespace = command.namespace;
        let (lpids, bytes) = namespace.piece_batch(command.entry, command.mem)?;
        let limits = self.piece_limits(namespace).ok_or(Status::INVALID_NAMESPACE.final_())?;
        if lpids.iter().any(|lpid| *lpid >= limits.lpids) {
            return Err(failed(namespace, PieceError::Misfit(nandscape_device_ftl_ox::pieces::Misfit::Beyond)));
        }
        command.link.receive(LIST as u64, breakdown).await;
        for _ in 0..TRIES {
            command.stop.check()?;
            let store = self.store_of(namespace);
            let begun = self.sim.now();
            let found = command.stop.or_stopped(store.find(&lpids)).await;
            breakdown.waits(Stage::Queue).add(cause::METADATA, self.sim.now() - begun);
            let found = match found? {
                Ok(found) => found,
                Err(PieceError::Stale) => continue,
                Err(error) => return Err(failed(namespace, error)),
            };
            let layout = Layout::of(&found.pages, bytes);
            self.read_layout(command, store.area(), &layout, breakdown).await?;
            // Another store may have rewritten frames that this one held.
            if !store.is_stale() {
                self.count_read(1, namespace, ((layout.end - LIST) as u32).div_ceil(namespace.lba_bytes));
                return Ok(command.stop.check()?);
            }
        }
        Err(Status::ABORTED_POWER_LOSS.into())
    }

    async fn read_layout(
        &self,
        command: &Command<'_>,
        area: &Area,
        layout: &Layout,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let part = |(lies, at): &(Lies, usize)| {
            let ((extent, skip), len, at) = (area.cover(*lies), lies.bytes as usize, *at);
            Box::pin(async move {
                let (mut breakdown, mem) = (Breakdown::new(), HostMem::zeroed(extent.bytes() as usize));
                let to = ToController::of_all(mem.clone());
                let read = self.inside.read::<()>(extent, &to, &mut breakdown).await;
                if read.is_ok() {
                    command.link.send(len as u64, &mut breakdown).await;
                    command.mem.write(at, &mem.to_vec()[skip..skip + len]);
                }
                (read, breakdown)
            }) as Part<'_, Result<(), ReadError>>
        };
        let ended = together(layout.reads.iter().map(part).collect(), breakdown).await;
        ended.into_iter().try_for_each(|read| read.map_err(|error| failure(command.namespace, error)))?;
        layout.lengths.iter().for_each(|(at, len)| command.mem.write(*at, &len.to_le_bytes()));
        command.mem.write(0, layout.places.as_bytes());
        command.link.send(LIST as u64, breakdown).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_room_are_left_out_and_smaller_ones_behind_them_are_not() {
        let piece = |bytes| Piece { bytes, places: vec![Lies { frame: 9, offset: 0, bytes }] };
        let pages = [vec![piece(100), piece(7)], Vec::new(), vec![piece(5_000)], vec![piece(30)]];
        let layout = Layout::of(&pages, LIST + 200);
        let told: Vec<_> =
            layout.places.iter().map(|place| (place.bytes.get(), place.pieces.get(), place.left_out.get())).collect();
        assert_eq!(told, [(107, 2, 0), (0, 0, 0), (5_000, 1, 1), (30, 1, 0)]);
        assert_eq!(layout.lengths, [(LIST, 100), (LIST + 4, 7), (LIST + 115, 30)]);
        let at: Vec<usize> = layout.reads.iter().map(|(_, at)| *at).collect();
        assert_eq!((at, layout.end), (vec![LIST + 8, LIST + 108, LIST + 119], LIST + 149));
    }
}
