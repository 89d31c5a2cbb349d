//! The steps of a garbage collection that keeps others out while it runs: of the plane, of its channel, of the whole
//! controller (Li 2.3, Fig. 2.4). How far it reaches is the only difference between the blocking schemes.
//!
//! The holder works alone, one step after the other, as the papers' for-loop does. A channel that is not seized is
//! shared with others, transfer by transfer. A preemptible holder lets urgent reads in between its steps, and within
//! those of the array that can be suspended.

use nandscape_drive::Breakdown;
use nandscape_sim::resource::Hold;
use nandscape_sim::{Span, Wait, Who};

use crate::geometry::{BlockId, PageId, PlaneId};
use crate::lun::Register;
use crate::media::{Media, PageImage, Step};

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
    preemptible: bool,
    /// `None` for [`GcScheme::Nothing`].
    register: Option<Register<'a>>,
    channel: Option<Hold<'a>>,
    _controller: Option<Hold<'a>>,
    /// Where the time goes, which nobody asks of a collection.
    log: Breakdown,
}

impl Media {
    /// Waits until a plane, and what `scheme` adds, is free for a collector, widest first.
    pub async fn seize(&self, plane: PlaneId, scheme: GcScheme, who: Who) -> Seized<'_> {
        let log = Breakdown::new();
        let mut seized = Seized {
            media: self,
            plane,
            who,
            preemptible: false,
            register: None,
            channel: None,
            _controller: None,
            log,
        };
        if scheme == GcScheme::Controller {
            seized._controller = Some(self.controller.take(who, &mut Wait::default()).await);
        }
        if scheme >= GcScheme::Plane {
            seized.register = Some(self.lun(plane).seize(who).await);
        }
        if scheme >= GcScheme::Channel {
            let channel = self.geometry.channel_of(plane) as usize;
            seized.channel = Some(self.channels[channel].take(who, &mut Wait::default()).await);
        }
        seized
    }
}

impl Seized<'_> {
    /// From now on, whether reads that are more urgent are let in.
    pub fn set_preemptible(&mut self, preemptible: bool) {
        self.preemptible = preemptible;
    }

    /// Copies pages within the plane, in order. With `check` the controller corrects each on the way, for which the page
    /// crosses the channel; otherwise it does not.
    ///
    /// # Panics
    /// When a target is not the next page of its block.
    pub async fn copyback(&mut self, moves: &[(PageId, PageId)], check: bool) {
        let Media { geometry, timing, .. } = self.media;
        moves.iter().for_each(|&(_, to)| self.media.contents.borrow_mut().advance(geometry, to));
        if check || self.preemptible || !timing.features.command.is_zero() {
            for &(from, to) in moves {
                Box::pin(self.copy_page(from, to, check)).await;
            }
        } else {
            let time =
                moves.iter().map(|&(from, to)| self.copy_times(from, to)).map(|(read, write)| read + write).sum();
            self.array("copyback", time, moves.len() as u32).await;
        }
        let contents = &mut *self.media.contents.borrow_mut();
        moves.iter().for_each(|&(from, to)| contents.copy(geometry, from, to));
    }

    /// What a copy takes of the array: sensing, programming.
    fn copy_times(&self, from: PageId, to: PageId) -> (Span, Span) {
        let Media { geometry, page_times, .. } = self.media;
        (page_times.read(geometry.page_in_block(from)), page_times.program(geometry.page_in_block(to)))
    }

    async fn copy_page(&mut self, from: PageId, to: PageId, check: bool) {
        let (read, program) = self.copy_times(from, to);
        // 00h, address, 35h.
        self.command().await;
        self.array("copyback read", read, from.0).await;
        if check {
            self.transfer(self.media.whole_page()).await;
            if self.media.corrects() {
                self.decode(self.media.geometry.page_size()).await;
            }
        }
        // 85h, address, 10h.
        self.command().await;
        let suspend = self.media.timing.features.suspend.program;
        self.step(Step { name: "copyback", time: program, detail: to.0, suspend }).await;
    }

    /// Reads `bytes` of each page into the controller, again if it has to.
    pub async fn read(&mut self, pages: &[(PageId, u32)]) {
        for &(page, bytes) in pages {
            for attempt in 0..=self.media.retries_of(page) {
                // 00h, address, 30h; 05h, address, E0h, data out.
                self.command().await;
                self.array("gc read", self.media.sensing(page, attempt), page.0).await;
                self.transfer(self.media.read_transfer(bytes)).await;
                if self.media.corrects() {
                    self.decode(bytes).await;
                }
            }
        }
        self.media.contents.borrow_mut().counts.reads += pages.len() as u64;
    }

    /// Programs a page from the controller.
    ///
    /// # Panics
    /// When it is not the next page of its block.
    pub async fn program(&mut self, page: PageId, image: PageImage) {
        self.program_together(&[page], &image).await;
    }

    /// Programs the pages of a word line with one command, `image` into all of them: 80h, address, data in, 1Ah between pages, 10h.
    ///
    /// # Panics
    /// When one is not the next page of its block, or they are not of one LUN.
    pub async fn program_together(&mut self, pages: &[PageId], image: &PageImage) {
        self.media.advance(pages);
        for _ in pages {
            self.transfer(self.media.whole_page()).await;
        }
        let step = Step { name: "gc program", ..self.media.program_step(pages) };
        self.step(step).await;
        self.media.fill(pages, image);
    }

    /// Erases a block: 60h, address, D0h.
    pub async fn erase(&mut self, block: BlockId) {
        self.command().await;
        let step = self.media.erase_step(block);
        self.step(step).await;
        self.media.contents.borrow_mut().erase(block);
    }

    /// Work of the array that is not suspended.
    fn array(&mut self, name: &'static str, time: Span, detail: u32) -> impl Future<Output = ()> {
        self.step(Step { name, time, detail, suspend: None })
    }

    /// Work of the array, which may be suspended if the holder is preemptible.
    async fn step(&mut self, step: Step) {
        let Step { name, time, detail, .. } = step;
        let Some(register) = &mut self.register else { return };
        if self.preemptible {
            register.let_reads_in(&mut self.log).await;
            self.media.array(register, self.plane, step, &mut self.log).await;
        } else {
            register.array(time, &mut self.log).await;
            self.media.trace_array(self.plane, name, time, detail);
        }
    }

    async fn command(&mut self) {
        let time = self.media.timing.features.command;
        if !time.is_zero() {
            self.transfer(time).await;
        }
    }

    async fn decode(&mut self, bytes: u32) {
        if self.register.is_some() {
            let channel = self.media.geometry.channel_of(self.plane) as usize;
            self.media.decode(channel, bytes, self.who, &mut self.log).await;
        }
    }

    async fn transfer(&mut self, time: Span) {
        if let Some(register) = self.register.as_mut().filter(|_| self.preemptible) {
            register.let_reads_in(&mut self.log).await;
        }
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
