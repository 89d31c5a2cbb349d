//! A drive is rebuilt while the store is served.
//!
//! From the beginning it gets all that is written, as a replica that counts for nothing: no client reads it, and no change is done because this drive
//! has it. Segments from before are copied to it, oldest first, and none of them is given up before. Then it is recorded as whole, between
//! two epochs and once it lacks nothing that another drive has. A crash before that begins the rebuild anew.
//!
//! A segment is heavy I/O: it is copied in an epoch, with the tokens of its group, after the writes of that epoch. So an epoch is longer by one segment at most, and
//! copies never compete with writes. Segments are copied in pieces: reads of clients get between two of them.
//!
//! On drives with zones the log has begun another zone by then: what is copied and what is new are in different zones, and each of these is
//! written in order.

use std::collections::VecDeque;

use crate::engine::Engine;
use crate::error::{EngineError, Event};
use crate::membership::Part;
use crate::placement::rows;
use crate::record::Header;

/// Bytes that are copied at a time.
const PIECE: usize = 256 << 10;

/// What a drive lacks.
pub(crate) struct Rebuild {
    /// Segments from before and their slots, oldest first.
    todo: VecDeque<(u64, u32)>,
    /// How many there were.
    count: usize,
    /// Moves of items whose segments were given up before. It gets their new records.
    moves: u64,
}

impl Engine {
    /// Begins to rebuild the drives that are to be.
    pub(crate) fn begin_rebuilds(&self, parts: &[Part]) {
        (0..parts.len()).filter(|drive| parts[*drive] == Part::Rebuilt).for_each(|drive| self.begin_rebuild(drive));
    }

    /// Begins to rebuild a drive. All that was packed is on the others.
    pub(crate) fn begin_rebuild(&self, drive: usize) {
        self.member(drive).begin_rebuild();
        let log = &mut self.state.borrow_mut().logs[drive / self.replicas()];
        let todo = log.begin_rebuild(drive % self.replicas());
        let rebuild = Rebuild { count: todo.len(), todo, moves: log.moves_queued };
        self.rebuilds.borrow_mut().insert(drive, rebuild);
    }

    /// A drive is not rebuilt any more.
    pub(crate) fn end_rebuild(&self, drive: usize) {
        let Some(rebuild) = self.rebuilds.borrow_mut().remove(&drive) else { return };
        let log = &mut self.state.borrow_mut().logs[drive / self.replicas()];
        rebuild.todo.iter().for_each(|(number, _)| log.has_copy(*number));
    }

    /// Bytes that are copied to drives that are rebuilt, and those of them that are still to be.
    pub(crate) fn rebuild_bytes(&self) -> (u64, u64) {
        let rebuilds = self.rebuilds.borrow();
        let sum = |of: fn(&Rebuild) -> usize| rebuilds.values().map(of).sum::<usize>() as u64 * self.segment;
        (sum(|rebuild| rebuild.count), sum(|rebuild| rebuild.todo.len()))
    }

    /// Bytes that are still to be copied to a drive that is rebuilt.
    pub(crate) fn bytes_left_of(&self, drive: usize) -> u64 {
        self.rebuilds.borrow().get(&drive).map_or(0, |rebuild| rebuild.todo.len() as u64 * self.segment)
    }

    /// The drive of a group that lacks segments.
    fn drive_to_copy(&self, pair: usize) -> Option<usize> {
        let rebuilds = self.rebuilds.borrow();
        let mut of_group = rebuilds.range(pair * self.replicas()..(pair + 1) * self.replicas());
        of_group.find(|(_, rebuild)| !rebuild.todo.is_empty()).map(|(drive, _)| *drive)
    }

    /// Whether a segment is to be copied to a drive of a group.
    pub(crate) fn has_copies(&self, pair: usize) -> bool {
        !self.is_closing.get() && self.drive_to_copy(pair).is_some()
    }

    /// Copies the next segment to a drive of a group that lacks some. Whether one was to be copied.
    ///
    /// # Errors
    /// The failure of a drive that cannot be done without.
    pub(crate) async fn copy_next(&self, pair: usize) -> Result<bool, EngineError> {
        let Some(drive) = self.drive_to_copy(pair).filter(|_| !self.is_closing.get()) else { return Ok(false) };
        let next =
            |place: usize| self.rebuilds.borrow().get(&drive).and_then(|rebuild| rebuild.todo.get(place).copied());
        let Some(segment) = next(0) else { return Ok(false) };
        if let Err(error) = self.copy(drive, segment, next(1).map(|(_, slot)| slot)).await {
            // The drive itself, or one that it is made from.
            return self.lose(error).await.map(|()| true);
        }
        if let Some(rebuild) = self.rebuilds.borrow_mut().get_mut(&drive) {
            rebuild.todo.pop_front();
            self.state.borrow_mut().logs[pair].has_copy(segment.0);
        }
        self.changed.notify();
        Ok(true)
    }

    /// Copies a segment, a number and its slot, to a drive: its own part, and zeros for the rest, which a zone does not need. `next` is the
    /// slot that is copied next.
    async fn copy(&self, drive: usize, (number, slot): (u64, u32), next: Option<u32>) -> Result<(), EngineError> {
        let (width, start, len) = (self.replicas(), self.start_of(slot), self.segment as usize);
        let pieces = || (0..len).step_by(PIECE).map(|at| at..len.min(at + PIECE));
        let mut images = vec![None; width];
        for other in self.group(drive / width).iter().filter(|other| !other.is_incomplete()) {
            let mut image = Vec::with_capacity(len);
            for piece in pieces() {
                image.extend(other.read_what_is_left(start + piece.start as u64, piece.len(), self.block).await?);
            }
            images[other.number() % width] = Some(image);
        }
        let rows = rows(self.layout, &mut images, number, (self.id, self.block));
        self.host.bytes(len).await;
        let (member, image) = (self.member(drive), images[drive % width].take().unwrap_or_else(|| vec![0; len]));
        if !self.is_zoned() {
            for piece in pieces() {
                let at = start + piece.start as u64;
                member.write_by(at, &image[piece], self.policy.handle()).await?;
            }
            return Ok(());
        }
        let end = |header: Header| (header.offset as usize + header.len as usize).next_multiple_of(self.block);
        let used = rows.values().map(|row| end(row.header)).max().unwrap_or(0);
        member.write_in_order(start, &image[..used]).await?;
        let zone = |slot: u32| slot / self.slots.together;
        match next.map(zone) == Some(zone(slot)) {
            true => Ok(()),
            false => member.end_zone(start).await,
        }
    }

    /// Drives that have all segments from before, and all that was written meanwhile.
    fn rebuilt(&self) -> Vec<usize> {
        let (rebuilds, state) = (self.rebuilds.borrow(), self.state.borrow());
        let is_done = |(drive, rebuild): &(&usize, &Rebuild)| {
            let log = &state.logs[**drive / self.replicas()];
            let has_all = log.queues[**drive % self.replicas()].is_empty() && log.moves_done() >= rebuild.moves;
            rebuild.todo.is_empty() && has_all
        };
        rebuilds.iter().filter(is_done).map(|(drive, _)| *drive).collect()
    }

    /// Records drives as whole that have all items. No drive has a token.
    ///
    /// # Errors
    /// The failure of a drive that cannot be done without.
    pub(crate) async fn join_rebuilt(&self) -> Result<(), EngineError> {
        for drive in self.rebuilt() {
            let member = self.member(drive);
            self.begin_round(self.shape.get().lost & !(1 << drive));
            // It is the first that counts itself: only then may the others count it.
            if let Err(error) = self.record(&member).await {
                self.lose(error).await?;
                continue;
            }
            member.end_rebuild();
            self.end_rebuild(drive);
            self.state.borrow_mut().logs[drive / self.replicas()].joining[drive % self.replicas()] = false;
            self.event(Event::Rebuilt { drive, twin: self.twin(drive) });
            let members = self.members();
            for other in members.iter().filter(|other| !other.is_incomplete() && other.number() != drive) {
                if let Err(error) = self.record(other).await {
                    self.lose(error).await?;
                }
            }
            self.changed.notify();
        }
        Ok(())
    }
}
