//! The steps of a garbage collection that keeps others out while it runs: of the plane, of its channel, of the whole
//! controller (Li 2.3, Fig. 2.4). How far it reaches is the only difference between the blocking schemes.
//!
//! The holder works alone, one step after the other, as the papers' for-loop does. A channel that is not seized is
//! shared with others, transfer by transfer.

use nandscape_drive::Breakdown;
use nandscape_sim::resource::Hold;
use nandscape_sim::{Span, Wait, Who};

use crate::geometry::{BlockId, PageId, PlaneId};
use crate::media::{Media, PageImage};
use crate::plane::Register;

/// What a collection keeps others out of.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum GcScheme {
    /// Nothing, and its work takes no time: the ideal drive that others are compared with.
    Nothing,
    /// The plane it cleans.
    Plane,
    /// The plane's channel too.
    Channel,
    /// The whole controller: no operation of the host is begun.
    Controller,
}

impl GcScheme {
    /// All reaches, by their names in profiles.
    pub const ALL: [(&str, GcScheme); 4] = [
        ("controller", GcScheme::Controller),
        ("channel", GcScheme::Channel),
        ("plane", GcScheme::Plane),
        ("none", GcScheme::Nothing),
    ];
}

/// A plane, and what its [`GcScheme`] adds, held for one collector until dropped.
pub struct Seized<'a> {
    media: &'a Media,
    plane: PlaneId,
    who: Who,
    /// `None` for [`GcScheme::Nothing`].
    register: Option<Register<'a>>,
    channel: Option<Hold<'a>>,
    _controller: Option<Hold<'a>>,
}

impl Media {
    /// Waits until a plane, and what `scheme` adds, is free for a collector, widest first.
    pub async fn seize(&self, plane: PlaneId, scheme: GcScheme, who: Who) -> Seized<'_> {
        let mut seized = Seized { media: self, plane, who, register: None, channel: None, _controller: None };
        if scheme == GcScheme::Controller {
            seized._controller = Some(self.controller.take(who, &mut Wait::default()).await);
        }
        if scheme >= GcScheme::Plane {
            seized.register = Some(self.planes[plane.0 as usize].seize(who).await);
        }
        if scheme >= GcScheme::Channel {
            let channel = self.geometry.channel_of(plane) as usize;
            seized.channel = Some(self.channels[channel].take(who, &mut Wait::default()).await);
        }
        seized
    }
}

impl Seized<'_> {
    /// Copies pages within the plane, in order, without using the channel: 00h-35h and 85h-10h for each.
    ///
    /// # Panics
    /// When a target is not the next page of its block.
    pub async fn copyback(&mut self, moves: &[(PageId, PageId)]) {
        let Media { geometry, page_times, .. } = self.media;
        let number = |page| geometry.page_in_block(page);
        let time = moves.iter().map(|&(from, to)| page_times.read(number(from)) + page_times.program(number(to))).sum();
        moves.iter().for_each(|&(_, to)| self.media.contents.borrow_mut().advance(geometry, to));
        self.array(time, "copyback", moves.len() as u32).await;
        let contents = &mut *self.media.contents.borrow_mut();
        moves.iter().for_each(|&(from, to)| contents.copy(geometry, from, to));
    }

    /// Reads `bytes` of each page into the controller: 00h-30h, data out.
    pub async fn read(&mut self, pages: &[(PageId, u32)]) {
        for &(page, bytes) in pages {
            let number = self.media.geometry.page_in_block(page);
            self.array(self.media.page_times.read(number), "gc read", page.0).await;
            self.transfer(self.media.read_transfer(bytes)).await;
        }
        self.media.contents.borrow_mut().counts.reads += pages.len() as u64;
    }

    /// Programs a page from the controller: 80h, data in, 10h.
    ///
    /// # Panics
    /// When it is not the next page of its block.
    pub async fn program(&mut self, page: PageId, image: PageImage) {
        let Media { geometry, contents, timing, page_times, .. } = self.media;
        contents.borrow_mut().advance(geometry, page);
        self.transfer(timing.bus.time_for(u64::from(geometry.page_size()))).await;
        self.array(page_times.program(geometry.page_in_block(page)), "gc program", page.0).await;
        contents.borrow_mut().fill(geometry, page, image);
    }

    /// Erases a block: 60h-D0h.
    pub async fn erase(&mut self, block: BlockId) {
        self.array(self.media.timing.erase, "erase", block.0).await;
        self.media.contents.borrow_mut().erase(block);
    }

    async fn array(&mut self, time: Span, name: &'static str, detail: u32) {
        if let Some(register) = &mut self.register {
            register.array(time, &mut Breakdown::new()).await;
            self.media.trace_array(self.plane, name, time, detail);
        }
    }

    async fn transfer(&mut self, time: Span) {
        let channel = self.media.geometry.channel_of(self.plane) as usize;
        match &mut self.channel {
            Some(held) => held.occupy(time, &mut Wait::default()).await,
            None if self.register.is_some() => {
                self.media.channels[channel].occupy(time, self.who, &mut Wait::default()).await;
            }
            None => return,
        }
        self.media.trace_transfer(channel, time, self.who);
    }
}
