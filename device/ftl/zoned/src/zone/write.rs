//! From the host into the write buffer, and from the buffer to flash.
//!
//! A write takes its blocks of the zone at once, and gets a ticket for them; its data may arrive later and in any
//! order. A strip is programmed when all its units are present.

use std::rc::Rc;

use nandscape_device_media::{Broken, MediaError, PageId, PageImage};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::Wait;
use nandscape_sim::credits::Holder;
use smallvec::SmallVec;

use super::ZoneFtl;
use super::body::Slot;
use super::table::ZoneError;

/// The tag of a unit that holds no data of the host.
pub(super) const NO_LPN: u32 = u32::MAX;

/// Units of a zone that a write has taken and not delivered yet.
#[derive(Debug)]
#[must_use = "the zone waits for the data"]
pub struct Ticket {
    /// The zone.
    pub zone: u32,
    generation: u32,
    /// The first unit, counted from the start of the zone.
    pub first: u32,
    units: u32,
    /// In a random write area, units may have been written before.
    is_random: bool,
}

/// Room in the write buffer for a zone, given back when dropped.
pub struct Reservation<'a> {
    ftl: &'a ZoneFtl,
    zone: u32,
    units: u32,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.units > 0 {
            self.ftl.room.give_back(self.zone, self.units as usize);
        }
    }
}

/// A strip to be programmed.
pub(super) struct Program {
    pub(super) zone: u32,
    pub(super) generation: u32,
    pub(super) strip: u32,
    pub(super) pages: SmallVec<[PageId; 4]>,
}

impl ZoneFtl {
    /// Takes units of a zone for a write: those from `at` on, or those at the write pointer.
    ///
    /// # Errors
    /// Why the zone rejects the write.
    pub fn begin_write(&self, zone: u32, at: Option<u32>, units: u32) -> Result<Ticket, ZoneError> {
        let mut state = self.state.borrow_mut();
        let is_random = state.table.zone(zone).has_zrwa;
        let first = state.table.write(zone, at, units)?;
        let generation = state.bodies[zone as usize].generation;
        if is_random {
            (first..first + units).for_each(|unit| state.bodies[zone as usize].expect(unit, &self.layout));
            state.commit(zone);
            drop(state);
            self.pump(zone);
        }
        Ok(Ticket { zone, generation, first, units, is_random })
    }

    /// Checks that a zone would take a write now, apart from other zones.
    ///
    /// # Errors
    /// Why not.
    pub fn check_write(&self, zone: u32, at: u32, units: u32) -> Result<(), ZoneError> {
        self.state.borrow().table.check_write(zone, Some(at), units).map(drop)
    }

    /// Waits for room in the write buffer; the time is added to `waited`. Holders of tickets must call in the order of
    /// tickets.
    ///
    /// Room that becomes free goes to the zone with the least room. In the order of commands it would go to zones whose
    /// next strips wait for a die, while zones with idle dies wait behind them: concurrently written zones would gather
    /// on a few dies.
    pub async fn reserve_units(&self, zone: u32, units: u32, waited: &mut Wait) -> Reservation<'_> {
        let keeps = if self.zone(zone).has_zrwa { self.config.zrwa.size as usize } else { 0 };
        self.room.take_for(Holder { number: zone, keeps }, units as usize, waited).await;
        Reservation { ftl: self, zone, units }
    }

    /// Takes the data of a write; `None` is zeros. Returns whether the zone still wants it: it may have been reset.
    pub fn deliver(&self, ticket: Ticket, data: Option<&HostMem>, mut reservation: Reservation<'_>) -> bool {
        let unit_bytes = self.unit.bytes() as usize;
        let keeps = self.media.keeps_data();
        let put = self.put(&ticket, |index| {
            let data = data.filter(|_| keeps).map(|mem| {
                let mut bytes = vec![0; unit_bytes];
                mem.read(index as usize * unit_bytes, &mut bytes);
                Rc::from(bytes)
            });
            Slot { data, takes_room: true, is_padding: false }
        });
        if let Some(replaced) = put {
            reservation.pass_to(ticket.zone);
            // The earlier data releases its room.
            reservation.units = replaced;
            self.state.borrow_mut().counters.host_bytes += u64::from(ticket.units) * unit_bytes as u64;
            self.pump(ticket.zone);
        }
        put.is_some()
    }

    /// A write has failed after it had taken its units: they read as zeros, since the zone cannot have a hole. In a random
    /// write area they keep their earlier data.
    pub fn abandon(&self, ticket: Ticket) {
        match ticket.is_random {
            true => self.give_up(&ticket),
            false => _ = self.put(&ticket, |_| Slot { data: None, takes_room: false, is_padding: false }),
        }
        self.pump(ticket.zone);
    }

    fn give_up(&self, ticket: &Ticket) {
        let mut state = self.state.borrow_mut();
        let body = &mut state.bodies[ticket.zone as usize];
        if body.generation == ticket.generation {
            (0..ticket.units).for_each(|index| body.give_up(ticket.first + index, &self.layout));
            state.commit(ticket.zone);
        }
    }

    /// Fills units that no command writes.
    pub(super) fn put_padding(&self, (zone, generation): (u32, u32), first: u32, units: u32, takes_room: bool) -> bool {
        let ticket = Ticket { zone, generation, first, units, is_random: false };
        let is_wanted = self.put(&ticket, |_| Slot { data: None, takes_room, is_padding: true }).is_some();
        if is_wanted {
            self.pump(zone);
        }
        is_wanted
    }

    /// The number of units replaced that took room; `None` if the zone does not want the data any more.
    fn put(&self, ticket: &Ticket, slot: impl Fn(u32) -> Slot) -> Option<u32> {
        let mut state = self.state.borrow_mut();
        let body = &mut state.bodies[ticket.zone as usize];
        if body.generation != ticket.generation {
            return None;
        }
        let replaces = |index: u32| u32::from(body.put(ticket.first + index, slot(index), &self.layout));
        Some((0..ticket.units).map(replaces).sum())
    }

    /// Starts the programs of a zone that can begin. Called whenever that may have changed.
    pub(super) fn pump(&self, zone: u32) {
        while self.is_running() {
            let before = self.zone(zone).state;
            let (program, room) = self.state.borrow_mut().next_program(zone);
            if self.zone(zone).state != before {
                (self.on_change.borrow())(zone);
            }
            if room > 0 {
                self.room.give_back(zone, room);
            }
            let Some(program) = program else {
                // Work that waits for the zone may have ended: the zone is out of blocks.
                self.progress.notify();
                return;
            };
            self.programs.start(program);
        }
    }

    /// Programs a strip: the buffer's data becomes the flash's.
    pub(super) async fn program(&self, job: &Program) {
        let image = self.image(job);
        let who = self.config.priority.who(cause::HOST_WRITE);
        let ended = self.media.program_together(&job.pages, &image, who, &mut Breakdown::new(), |_| ()).await;
        let unpinned = {
            let mut state = self.state.borrow_mut();
            // Each of them, not only up to the last one of a block.
            job.pages.iter().fold(false, |any, page| state.unpin(*page) | any)
        };
        if unpinned {
            self.unpinned.notify();
        }
        match ended {
            Ok(()) => self.programmed(job),
            Err(broken) => self.not_programmed(job, broken),
        }
        self.progress.notify();
        self.pump(job.zone);
    }

    /// The units of a strip. A zone that was reset meanwhile has none, and its blocks get data that is not read any
    /// more.
    fn image(&self, job: &Program) -> PageImage {
        let (state, mut image) = (self.state.borrow(), PageImage::default());
        let body = &state.bodies[job.zone as usize];
        if body.generation == job.generation {
            let first = job.zone * self.config.size + job.strip * self.layout.strip_units();
            for (slot, lpn) in body.strips[&job.strip].iter().zip(first..) {
                image.push(if slot.is_padding { NO_LPN } else { lpn }, slot.data.clone());
            }
        }
        image.pad(job.pages.len() * self.layout.page_units as usize, NO_LPN);
        image
    }

    fn programmed(&self, job: &Program) {
        let mut state = self.state.borrow_mut();
        let body = &mut state.bodies[job.zone as usize];
        if body.generation != job.generation {
            return;
        }
        let slots = body.strips.remove(&job.strip).expect("it was under way");
        body.columns[self.layout.strip(job.strip).0].is_busy = false;
        let padding = slots.iter().filter(|slot| slot.is_padding).count() as u64;
        state.counters.padding_units += padding;
        state.counters.host_units += slots.len() as u64 - padding;
        drop(state);
        let room = slots.iter().filter(|slot| slot.takes_room).count();
        if room > 0 {
            self.room.give_back(job.zone, room);
        }
    }

    /// A program has failed: its data is still in the buffer, and is written to other blocks. A page that was not
    /// begun, because power was off, can still be programmed.
    fn not_programmed(&self, job: &Program, Broken { error, page }: Broken) {
        assert!(!matches!(error, MediaError::Misuse(_)), "{page:?}: {error:?}");
        let mut state = self.state.borrow_mut();
        let geometry = state.geometry;
        let is_unused =
            |page: &PageId| self.media.pages_programmed(geometry.block_of(*page)) <= geometry.page_in_block(*page);
        let is_untouched = job.pages.iter().all(is_unused);
        if error != MediaError::PowerLost {
            state.blocks.broke(geometry.block_of(page));
        }
        let body = &mut state.bodies[job.zone as usize];
        if body.generation == job.generation {
            let column = &mut body.columns[self.layout.strip(job.strip).0];
            column.is_busy = false;
            column.again = Some(job.strip);
            column.needs_run |= !is_untouched;
        }
    }
}

impl<'a> Reservation<'a> {
    /// Takes a part of the room out.
    pub(crate) fn split(&mut self, units: u32) -> Reservation<'a> {
        self.units -= units;
        Reservation { units, ..*self }
    }

    /// Passes the room to another zone than the request named.
    fn pass_to(&mut self, zone: u32) {
        if self.zone != zone {
            self.ftl.room.pass(self.zone, zone, self.units as usize);
            self.zone = zone;
        }
    }

    /// The room is taken by the data put into the buffer.
    pub(super) fn keep(&mut self) {
        self.units = 0;
    }
}
