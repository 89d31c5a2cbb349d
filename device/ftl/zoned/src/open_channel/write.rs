//! From the host to flash. A write takes its units of a chunk at once, and gets a ticket for them. When its data has
//! arrived, the write waits until earlier data is programmed, and is programmed itself: nothing waits in a buffer for
//! more data.
//!
//! A write ends when it is on flash, or when it is in registers (`write_back`). A program that fails closes the chunk early.

use std::rc::Rc;

use nandscape_device_ftl_core::ftl::Milestone;
use nandscape_device_media::{Broken, MediaError, PageImage};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_sim::Wait;
use smallvec::SmallVec;

use super::OpenChannel;
use super::table::ChunkError;

/// Units of a chunk that a write has taken.
#[derive(Copy, Clone, Debug)]
pub struct Ticket {
    pub(super) chunk: u32,
    pub(super) generation: u32,
    pub(super) first: u32,
    /// Units.
    pub units: u32,
}

/// Room for data in the controller, given back when dropped.
pub struct Reservation<'a> {
    ftl: &'a OpenChannel,
    units: u32,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.units > 0 {
            self.ftl.room.give(self.units as usize);
        }
    }
}

impl OpenChannel {
    /// Whether writes, each of units of a chunk, may all begin, one after the other. A chunk may occur again: a later
    /// write continues where the previous one ends.
    ///
    /// # Errors
    /// The first write that may not, by its number, and why.
    pub fn check_writes(&self, writes: &[(u32, u32, u32)]) -> Result<(), (usize, ChunkError)> {
        let (chunks, strip) = (self.chunks.borrow(), self.layout.strip_units());
        for (number, (chunk, at, units)) in writes.iter().enumerate() {
            let mut state = chunks[*chunk as usize];
            for (_, _, units) in writes[..number].iter().filter(|before| before.0 == *chunk) {
                state.write(*units, self.layout.chunk_units());
            }
            state.check_write(*at, *units, strip).map_err(|error| (number, error))?;
        }
        Ok(())
    }

    /// Takes units of a chunk, from `at` on, for a write.
    ///
    /// # Errors
    /// Why the chunk rejects the write.
    pub fn begin_write(&self, chunk: u32, at: u32, units: u32) -> Result<Ticket, ChunkError> {
        let of_chunk = &mut self.chunks.borrow_mut()[chunk as usize];
        of_chunk.check_write(at, units, self.layout.strip_units())?;
        of_chunk.write(units, self.layout.chunk_units());
        Ok(Ticket { chunk, generation: of_chunk.generation, first: at, units })
    }

    /// Waits for room in the controller; the time is added to `waited`. Holders of tickets must call in the order of tickets.
    pub async fn reserve_units(&self, units: u32, waited: &mut Wait) -> Reservation<'_> {
        self.room.take(units as usize, waited).await;
        Reservation { ftl: self, units }
    }

    /// Programs the data of a write. Ends when the data has reached `until`. `None` is data that is not kept or did not
    /// arrive: a chunk has no holes, and such units read as zeros. Every ticket must be passed here. The time is added to
    /// `breakdown`.
    ///
    /// # Errors
    /// Why the data did not reach it.
    pub async fn program(
        &self,
        ticket: Ticket,
        data: Option<&HostMem>,
        until: Milestone,
        breakdown: &mut Breakdown,
    ) -> Result<(), ChunkError> {
        match until {
            Milestone::Register => self.write_back(ticket, data, breakdown).await,
            Milestone::Programmed | Milestone::Flash => {
                self.program_strips(ticket, data.cloned(), breakdown, |_| ()).await
            }
        }
    }

    /// Programs a write. Calls `loaded` with the breakdown so far when all its data is in registers.
    pub(super) async fn program_strips(
        &self,
        ticket: Ticket,
        data: Option<HostMem>,
        breakdown: &mut Breakdown,
        loaded: impl FnOnce(&Breakdown),
    ) -> Result<(), ChunkError> {
        self.turn(ticket, breakdown).await?;
        let units = self.layout.strip_units();
        let last = ticket.units - units;
        for at in (0..last).step_by(units as usize) {
            let image = self.image(ticket, at, data.as_ref());
            self.program_strip(ticket, at, image, breakdown, |_| ()).await?;
        }
        let image = self.image(ticket, last, data.as_ref());
        drop(data);
        self.program_strip(ticket, last, image, breakdown, loaded).await
    }

    /// Waits until the data before a write was programmed.
    async fn turn(&self, ticket: Ticket, breakdown: &mut Breakdown) -> Result<(), ChunkError> {
        let (begun, cuts) = (self.sim.now(), self.media.power_cuts());
        let ended = loop {
            let chunk = self.chunk(ticket.chunk);
            if self.media.power_cuts() != cuts || !self.media.is_powered() {
                break Err(ChunkError::PowerLost);
            }
            if chunk.generation != ticket.generation {
                break Err(ChunkError::EarlyClose);
            }
            if chunk.programmed == ticket.first {
                break Ok(());
            }
            self.progress.changed().await;
        };
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        ended
    }

    /// Programs the strip that begins `at` units after the start of a write.
    async fn program_strip(
        &self,
        ticket: Ticket,
        at: u32,
        image: PageImage,
        breakdown: &mut Breakdown,
        loaded: impl FnOnce(&Breakdown),
    ) -> Result<(), ChunkError> {
        let (unit, units) = (ticket.first + at, self.layout.strip_units());
        let strip = unit / units;
        let pages: SmallVec<[_; 4]> = self.layout.pages(self.media.geometry(), ticket.chunk, strip).collect();
        let who = self.config.priority.who(cause::HOST_WRITE);
        let ended = self.media.program_together(&pages, &image, who, breakdown, loaded).await;
        let result = match ended {
            Ok(()) => {
                self.programmed(ticket, units);
                Ok(())
            }
            Err(Broken { error: MediaError::PowerLost, .. }) => Err(ChunkError::PowerLost),
            Err(Broken { error: MediaError::Misuse(misuse), page }) => unreachable!("{page:?}: {misuse:?}"),
            Err(_) => {
                self.tell_lost(ticket.chunk);
                let chunk = &mut self.chunks.borrow_mut()[ticket.chunk as usize];
                chunk.is_broken = true;
                chunk.close_early();
                Err(ChunkError::EarlyClose)
            }
        };
        self.progress.notify();
        result
    }

    fn programmed(&self, ticket: Ticket, units: u32) {
        self.chunks.borrow_mut()[ticket.chunk as usize].programmed(units);
        let mut counters = self.counters.get();
        counters.host_units += u64::from(units);
        counters.host_bytes += u64::from(units) * u64::from(self.unit.bytes());
        self.counters.set(counters);
    }

    /// The units of the strip that begins `at` units after the start of a write.
    fn image(&self, ticket: Ticket, at: u32, data: Option<&HostMem>) -> PageImage {
        let tag = self.layout.address(ticket.chunk, ticket.first + at) as u32;
        let (mut image, bytes) = (PageImage::default(), self.unit.bytes() as usize);
        let data = data.filter(|_| self.media.keeps_data());
        for index in 0..self.layout.strip_units() {
            let unit = data.map(|mem| {
                let mut unit = vec![0; bytes];
                mem.read((at + index) as usize * bytes, &mut unit);
                Rc::from(unit)
            });
            image.push(tag + index, unit);
        }
        image
    }
}
