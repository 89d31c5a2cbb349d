//! Writes that end when their data is in the registers of their dies, which then program it (`buffer.mode = "register"`). The
//! Dragon Fire Card seems to do so (Picoli 2019, 4.4.1.1).
//!
//! A chunk is still programmed one write after the other: a write gets the register when the previous write is on
//! flash. Reads of data in a register wait until it was programmed; so do resets and flushes.
//!
//! A power cut reverts data that was not programmed. A failed program closes its chunk early. The host, whose write has
//! ended, is notified which blocks cannot be read, and its next Flush fails.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::ftl::{Milestone, Settling, Unwritable};
use nandscape_device_media::{MediaError, PageId};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::account::Totals;

use super::OpenChannel;
use super::notices::Notice;
use super::table::ChunkError;
use super::write::Ticket;

/// A write on its way to flash, whose host waits until its data is in registers.
pub(super) struct Landing {
    ticket: Ticket,
    data: RefCell<Option<HostMem>>,
    /// Its place among all of the drive.
    number: u64,
    arrival: Rc<Arrival>,
}

/// The event that the host of a write waits for.
#[derive(Default)]
struct Arrival {
    ended: Cell<Option<Result<(), ChunkError>>>,
    breakdown: RefCell<Breakdown>,
}

impl Arrival {
    /// The first call counts.
    fn end(&self, ended: Result<(), ChunkError>, breakdown: &Breakdown) {
        if self.ended.get().is_none() {
            self.ended.set(Some(ended));
            *self.breakdown.borrow_mut() += breakdown;
        }
    }
}

/// A flush that waits for the writes that had begun before it.
struct Flush {
    /// It waits for those with lower numbers.
    before: u64,
    settling: Rc<Settling>,
}

/// Writes that are on their way, and flushes that wait for them.
#[derive(Default)]
pub(super) struct Landings {
    begun: Cell<u64>,
    under_way: Cell<u32>,
    /// A write that had ended was lost, and no flush has reported it yet.
    lost: Cell<bool>,
    flushes: RefCell<Vec<Flush>>,
}

impl OpenChannel {
    /// Programs the data of a write; ends when all of it is in registers.
    pub(super) async fn write_back(
        &self,
        ticket: Ticket,
        data: Option<&HostMem>,
        breakdown: &mut Breakdown,
    ) -> Result<(), ChunkError> {
        let arrival = Rc::new(Arrival::default());
        let number = self.landings.begun.get();
        self.landings.begun.set(number + 1);
        self.landings.under_way.set(self.landings.under_way.get() + 1);
        let data = RefCell::new(data.cloned());
        self.lands.start(Landing { ticket, data, number, arrival: arrival.clone() });
        loop {
            if let Some(ended) = arrival.ended.get() {
                *breakdown += &*arrival.breakdown.borrow();
                return ended;
            }
            self.progress.changed().await;
        }
    }

    pub(super) async fn land(&self, landing: &Landing) {
        let Landing { ticket, data, arrival, .. } = landing;
        let (mut breakdown, data) = (Breakdown::new(), data.take());
        let ended = self
            .program_strips(*ticket, data, &mut breakdown, |so_far| {
                if self.in_registers(*ticket) {
                    arrival.end(Ok(()), so_far);
                    self.progress.notify();
                }
            })
            .await;
        // The write itself reports its failure as long as it has not ended.
        let has_ended = arrival.ended.get().is_some();
        arrival.end(ended, &breakdown);
        self.landed(landing.number, if has_ended { ended } else { Ok(()) });
        self.progress.notify();
    }

    /// All of a write is in registers; `false` when it is of an earlier generation.
    fn in_registers(&self, ticket: Ticket) -> bool {
        let chunk = &mut self.chunks.borrow_mut()[ticket.chunk as usize];
        let is_current = chunk.generation == ticket.generation && self.media.is_powered();
        if is_current {
            chunk.accepted = ticket.first + ticket.units;
        }
        is_current
    }

    fn landed(&self, number: u64, ended: Result<(), ChunkError>) {
        let Landings { under_way, lost, flushes, .. } = &self.landings;
        under_way.set(under_way.get() - 1);
        let mut flushes = flushes.borrow_mut();
        let mut is_told = false;
        for Flush { settling, .. } in flushes.iter().filter(|flush| number < flush.before) {
            is_told = true;
            match ended {
                Ok(()) => settling.one_settled(None),
                Err(ChunkError::PowerLost) => settling.give_up(1, Unwritable::PowerLost),
                Err(_) => settling.give_up(1, Unwritable::Lost),
            }
        }
        let is_lost = ended.is_err_and(|error| error != ChunkError::PowerLost);
        lost.set(lost.get() || is_lost && !is_told);
        flushes.retain(|flush| !flush.settling.is_settled());
    }

    /// A program has failed: blocks whose writes had ended are lost.
    pub(super) fn tell_lost(&self, chunk: u32) {
        let of_chunk = self.chunk(chunk);
        if of_chunk.accepted > of_chunk.programmed {
            let address = self.layout.address(chunk, of_chunk.programmed);
            self.tell(Notice::Unreadable { address, blocks: of_chunk.accepted - of_chunk.programmed });
        }
    }

    /// Waits for data on its way to flash; fails if a write that had ended was lost since the last flush. `None` when
    /// there is neither.
    pub(super) fn flush_landings(&self) -> Option<Rc<Settling>> {
        let Landings { begun, under_way, lost, flushes } = &self.landings;
        let (waited_for, lost) = (under_way.get(), lost.take());
        if waited_for == 0 && !lost {
            return None;
        }
        let settling = Settling::new(&self.sim, waited_for + u32::from(lost), Milestone::Flash, Totals::default());
        if lost {
            settling.give_up(1, Unwritable::Lost);
        }
        if waited_for > 0 {
            flushes.borrow_mut().push(Flush { before: begun.get(), settling: settling.clone() });
        }
        Some(settling)
    }

    /// Waits until a page whose write has ended is on flash.
    pub(super) async fn wait_for_program(&self, page: PageId, breakdown: &mut Breakdown) -> Result<(), MediaError> {
        let geometry = self.media.geometry();
        let number = self.layout.chunk_of(geometry, geometry.block_of(page));
        let end = (geometry.page_in_block(page) / self.layout.word_line + 1) * self.layout.strip_units();
        let before = self.chunk(number);
        if end <= before.programmed {
            return Ok(());
        }
        let (begun, cuts) = (self.sim.now(), self.media.power_cuts());
        let ended = loop {
            let chunk = self.chunk(number);
            if end <= chunk.programmed && chunk.generation == before.generation {
                break Ok(());
            }
            if self.media.power_cuts() != cuts || !self.media.is_powered() {
                break Err(MediaError::PowerLost);
            }
            if chunk.generation != before.generation {
                break Err(MediaError::Uncorrectable);
            }
            self.progress.changed().await;
        };
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        ended
    }

    /// Waits until all of a chunk whose writes have ended is on flash.
    pub(super) async fn wait_for_programs(&self, number: u32) {
        let generation = self.chunk(number).generation;
        loop {
            let chunk = self.chunk(number);
            if chunk.generation != generation || chunk.programmed == chunk.accepted {
                return;
            }
            self.progress.changed().await;
        }
    }
}
