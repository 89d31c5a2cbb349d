//! A drive is rebuilt while the store is served.
//!
//! From the beginning it gets all that is written, as a replica that counts for nothing: no client reads it, and no change is done because this drive
//! has it. Segments from before are copied to it, oldest first, and none of them is given up before. Then it is recorded as whole, between
//! two epochs and once it lacks nothing that another drive has. A crash before that begins the rebuild anew.
//!
//! On drives with zones the log has begun another zone by then: what is copied and what is new are in different zones, and each of these is
//! written in order.

use std::rc::Rc;

use crate::engine::Engine;
use crate::error::{EngineError, Event};
use crate::open::{Part, Super};
use crate::placement::rows;
use crate::record::Header;

impl Engine {
    /// Begins to rebuild the drives that are to be.
    pub(crate) fn begin_rebuilds(self: &Rc<Self>, parts: &[Part]) {
        for drive in (0..parts.len()).filter(|drive| parts[*drive] == Part::Rebuilt) {
            let (pair, replica) = (drive / self.replicas(), drive % self.replicas());
            self.members[drive].begin_rebuild();
            let todo = {
                let log = &mut self.state.borrow_mut().logs[pair];
                log.joining[replica] = true;
                log.segments.values_mut().for_each(|segment| segment.pending += 1);
                log.segments.iter().map(|(number, segment)| (*number, segment.slot)).collect()
            };
            self.host.sim().spawn(self.clone().rebuild(drive, todo));
        }
    }

    /// Copies segments to a drive.
    async fn rebuild(self: Rc<Self>, drive: usize, todo: Vec<(u64, u32)>) {
        let (pair, member) = (drive / self.replicas(), self.members[drive].clone());
        let goes_on = || member.is_rebuilt() && !self.is_closing.get() && self.failure().is_none();
        for (place, segment) in todo.iter().copied().enumerate() {
            while goes_on() {
                member.is_copying.set(true);
                let copied = self.copy(drive, segment, todo.get(place + 1).map(|(_, slot)| *slot)).await;
                member.is_copying.set(false);
                let Err(error) = copied else { break };
                // The drive itself, or one that it is made from.
                if let Err(error) = self.lose(error).await {
                    self.failed.borrow_mut().get_or_insert(error);
                }
            }
            let log = &mut self.state.borrow_mut().logs[pair];
            log.segments.get_mut(&segment.0).into_iter().for_each(|segment| segment.pending -= 1);
            self.changed.notify();
        }
        if goes_on() {
            member.is_copied.set(true);
            self.changed.notify();
        }
    }

    /// Copies a segment, a number and its slot, to a drive: its own part, and zeros for the rest, which a zone does not need. `next` is the
    /// slot that is copied next.
    async fn copy(&self, drive: usize, (number, slot): (u64, u32), next: Option<u32>) -> Result<(), EngineError> {
        let (width, start, len) = (self.replicas(), self.start_of(slot), self.segment as usize);
        let mut images = vec![None; width];
        for other in self.group(drive / width).iter().filter(|other| !other.is_incomplete()) {
            images[other.number() % width] = Some(other.read_what_is_left(start, len, self.block).await?);
        }
        let rows = rows(self.layout, &mut images, number, (self.id, self.block));
        self.host.bytes(len).await;
        let (member, image) = (&self.members[drive], images[drive % width].take().unwrap_or_else(|| vec![0; len]));
        if !self.is_zoned() {
            return member.write_by(start, &image, self.policy.handle()).await;
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

    /// Records drives as whole that are copied and have all that was written meanwhile. No drive has a token.
    ///
    /// # Errors
    /// The failure of a drive that cannot be done without.
    pub(crate) async fn join_rebuilt(&self) -> Result<(), EngineError> {
        for member in self.members.iter().filter(|member| member.is_rebuilt() && member.is_copied.get()) {
            let drive = member.number();
            let (pair, replica) = (drive / self.replicas(), drive % self.replicas());
            if !self.state.borrow().logs[pair].queues[replica].is_empty() {
                continue;
            }
            let before = self.shape.get();
            let shape = Super { generation: before.generation + 1, lost: before.lost & !(1 << drive), ..before };
            self.shape.set(shape);
            // It is the first that counts itself: the others would have it rebuilt again.
            if let Err(error) = shape.write(member).await {
                self.lose(error).await?;
                continue;
            }
            member.end_rebuild();
            self.event(Event::Rebuilt { drive, twin: self.twin(drive) });
            self.state.borrow_mut().logs[pair].joining[replica] = false;
            for other in self.members.iter().filter(|other| !other.is_incomplete() && other.number() != drive) {
                if let Err(error) = shape.write(other).await {
                    self.lose(error).await?;
                }
            }
            self.changed.notify();
        }
        Ok(())
    }
}
