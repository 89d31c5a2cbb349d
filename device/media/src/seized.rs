//! The steps of a collector that holds its plane, or its plane and channel, while it works (Li 2.3, Fig. 2.4).
//!
//! The holder works alone, one step after the other, as the papers' for-loop does. A channel that is not held is shared
//! with others, transfer by transfer. A preemptible holder lets urgent reads in between its steps, and within those of the
//! array that can be suspended.
//!
//! Left out: the choice of held resources, and collections that stop the whole drive, which belong to the FTL.

use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::resource::Hold;
use nandscape_sim::{Cause, Span, Wait, Who};
use smallvec::SmallVec;

use crate::busy::{Busy, Used, Way};
use crate::fault::{MediaError, Operation};
use crate::geometry::{BlockId, PageId, PlaneId, UnitId};
use crate::image::{Oob, PageImage};
use crate::lun::Register;
use crate::media::Media;
use crate::outcome::Broken;
use crate::power::Underway;
use crate::remote::Purpose;
use crate::steps::Step;
use crate::watch::{For, Watched};

/// The resources that a collector holds while it works.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holding {
    /// Nothing, and its work takes no time: the ideal drive for comparison.
    Nothing,
    /// The plane it cleans.
    Plane,
    /// The plane's channel too.
    Channel,
}

impl Holding {
    /// All of them.
    pub const ALL: [Holding; 3] = [Holding::Nothing, Holding::Plane, Holding::Channel];
}

/// Which bytes of a page cross the channel while it is copied within its plane.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Crossing {
    /// None.
    Nothing,
    /// The out-of-band areas of its units, into the controller.
    OutOfBand,
    /// The whole page: the controller corrects it on the way.
    Page,
}

/// Pages that could not be read.
pub type Unreadable = SmallVec<[PageId; 1]>;

/// A plane, and perhaps its channel, held for one collector until dropped.
pub struct Seized<'a> {
    media: &'a Media,
    plane: PlaneId,
    who: Who,
    preemptible: bool,
    /// Tags of out-of-band areas that have crossed the channel, if they are kept.
    tags: Option<Box<Tags>>,
    /// `None` for [`Holding::Nothing`].
    register: Option<Register<'a>>,
    channel: Option<Hold<'a>>,
    /// The breakdown of time, which a collection does not need.
    breakdown: Breakdown,
    /// Notifies the watching host that the chip is free.
    _watched: Option<Box<Watched>>,
}

/// Tags of units. In a box, because few collections keep them, and a seizure is moved often.
#[derive(Default)]
struct Tags(Vec<(UnitId, u32)>);

impl Media {
    /// Waits until a plane is free for a collector, and then its channel if `holding` includes it.
    pub async fn seize(&self, plane: PlaneId, holding: Holding, who: Who) -> Seized<'_> {
        self.seize_for(plane, holding, who, Span::ZERO).await
    }

    /// The same, with the estimated time, which a watching host is given.
    pub async fn seize_for(&self, plane: PlaneId, holding: Holding, who: Who, time: Span) -> Seized<'_> {
        let keeps = holding >= Holding::Plane;
        let _watched = if keeps { self.tell_of_hold(plane, holding, who.cause, time).map(Box::new) } else { None };
        let breakdown = Breakdown::new();
        let mut seized = Seized {
            media: self,
            plane,
            who,
            preemptible: false,
            tags: None,
            register: None,
            channel: None,
            breakdown,
            _watched,
        };
        if keeps {
            seized.register = Some(self.lun(plane).seize(who).await);
        }
        if holding >= Holding::Channel {
            let channel = self.geometry.channel_of(plane) as usize;
            seized.channel = Some(self.channels[channel].take(who, &mut Wait::default()).await);
        }
        seized
    }
}

impl<'a> Seized<'a> {
    /// From now on, whether more urgent reads are admitted.
    pub fn set_preemptible(&mut self, preemptible: bool) {
        self.preemptible = preemptible;
    }

    /// From now on, keeps the tags of out-of-band areas that cross the channel, for [`Seized::take_tags`]. Those are the areas
    /// of pages that are read, in bytes that the caller counts, and of pages that are copied with a [`Crossing`].
    pub fn keep_tags(&mut self) {
        self.tags.get_or_insert_default();
    }

    /// The tags kept so far, by unit, in order of arrival. Areas have a separate code, so they exist for pages whose
    /// data could not be corrected as well.
    pub fn take_tags(&mut self) -> impl Iterator<Item = (UnitId, u32)> {
        self.tags.iter_mut().flat_map(|tags| tags.0.drain(..))
    }

    /// The out-of-band areas of a page have crossed the channel.
    #[inline]
    fn areas_crossed(&mut self, page: PageId) {
        if let Some(tags) = &mut self.tags {
            self.media.note_tags(page, &mut tags.0);
        }
    }

    /// Copies pages within the plane, in order. Where whole pages cross the channel the controller corrects each page,
    /// and the uncorrectable ones are returned. Otherwise pages keep their errors.
    ///
    /// # Errors
    /// When a copy failed. All targets are used up then, unless there was no power at the start or the moves break a rule
    /// of NAND ([`Misuse`](crate::Misuse)).
    pub async fn copyback(&mut self, moves: &[(PageId, PageId)], crossing: Crossing) -> Result<Unreadable, Broken> {
        let Media { geometry, timing, supply, contents, .. } = self.media;
        let page = moves[0].1;
        if !self.media.is_powered() {
            return Err(Broken { error: MediaError::PowerLost, page });
        }
        contents.borrow_mut().use_up_for_copies(geometry, moves)?;
        let is_plain = crossing == Crossing::Nothing && !self.preemptible && timing.features.command.is_zero();
        if !is_plain || supply.faults.is_armed() {
            return Box::pin(self.copy_pages(moves, crossing)).await;
        }
        let copying = self.begin(Operation::Program, page, 0)?;
        let time = moves.iter().map(|&(from, to)| self.copy_times(from, to)).map(|(read, write)| read + write).sum();
        self.array("copyback", time, moves.len() as u32).await;
        copying.end().map_err(|error| Broken { error, page })?;
        let contents = &mut *contents.borrow_mut();
        for &(from, to) in moves {
            contents.copy(geometry, from, to).map_err(|error| Broken { error, page: to })?;
        }
        Ok(Unreadable::new())
    }

    async fn copy_pages(&mut self, moves: &[(PageId, PageId)], crossing: Crossing) -> Result<Unreadable, Broken> {
        let mut unreadable = Unreadable::new();
        for (done, &(from, to)) in moves.iter().enumerate() {
            match self.copy_page(from, to, crossing).await {
                Ok(true) => {}
                Ok(false) => unreadable.push(from),
                Err(broken) => {
                    let mut contents = self.media.contents.borrow_mut();
                    moves[done..].iter().for_each(|(_, to)| contents.set_unreadable(*to));
                    return Err(broken);
                }
            }
        }
        Ok(unreadable)
    }

    fn use_for(&self, bytes: u32) -> For {
        For { cause: self.who.cause, bytes, is_held: self.register.is_some() }
    }

    fn begin(&self, operation: Operation, page: PageId, bytes: u32) -> Result<Underway<'a>, Broken> {
        let block = self.media.geometry.block_of(page);
        let under_way = self.media.begin(operation, std::iter::once(page), block, self.use_for(bytes));
        under_way.map_err(|error| Broken { error, page })
    }

    /// The array time of a copy: sensing, programming.
    fn copy_times(&self, from: PageId, to: PageId) -> (Span, Span) {
        let Media { geometry, page_times, .. } = self.media;
        (page_times.read(geometry.page_in_block(from)), page_times.program(geometry.page_in_block(to)))
    }

    /// Copies a page that has been taken. Returns whether it was readable, as far as the controller can detect.
    async fn copy_page(&mut self, from: PageId, to: PageId, crossing: Crossing) -> Result<bool, Broken> {
        let Media { geometry, timing, contents, .. } = self.media;
        if self.media.is_remote() {
            let programming = self.begin(Operation::Program, to, 0)?;
            let units: Vec<UnitId> = (0..geometry.units_per_page()).map(|unit| geometry.unit_at(from, unit)).collect();
            self.media.copy_elsewhere(&programming, &units, to).await?;
            self.areas_crossed(from);
            return Ok(true);
        }
        let (read, program) = self.copy_times(from, to);
        // 00h, address, 35h.
        let reading = self.begin(Operation::Read, from, 0)?;
        if self.media.has_command_cycles() {
            self.command().await;
        }
        match reading.hang() {
            Some(time) => self.no_answer(time, from.0).await,
            None => {
                self.array("copyback read", read, from.0).await;
                if let Some(time) = reading.delay() {
                    let step = Step { name: "copyback read", time: read, detail: from.0, suspend: None };
                    self.delay(time, step).await;
                }
            }
        }
        match crossing {
            Crossing::Nothing => {}
            Crossing::OutOfBand => self.read_out(geometry.units_per_page() * Oob::SIZE).await,
            Crossing::Page => self.read_out(geometry.page_size()).await,
        }
        let sensed = self.media.sensed(&reading, from);
        let sensed =
            if crossing == Crossing::Page { sensed.and_then(|()| self.media.check_sound(from)) } else { sensed };
        if let Err(error @ (MediaError::NoAnswer | MediaError::PowerLost | MediaError::Misuse(_))) = sensed {
            return Err(Broken { error, page: from });
        }
        if crossing != Crossing::Nothing {
            self.areas_crossed(from);
        }
        drop(reading);
        // 85h, address, 10h.
        let programming = self.begin(Operation::Program, to, 0)?;
        if self.media.has_command_cycles() {
            self.command().await;
        }
        let suspend = timing.features.suspend.program;
        match programming.hang() {
            Some(time) => self.no_answer(time, to.0).await,
            None => {
                let step = Step { name: "copyback", time: program, detail: to.0, suspend };
                self.step(step).await;
                if let Some(time) = programming.delay() {
                    self.delay(time, step).await;
                }
            }
        }
        programming.end().map_err(|error| Broken { error, page: to })?;
        let mut contents = contents.borrow_mut();
        contents.copy(geometry, from, to).map_err(|error| Broken { error, page: to })?;
        if programming.corrupts().is_some() {
            contents.corrupt(geometry, to);
        }
        if sensed.is_err() {
            contents.set_unreadable(to);
        }
        Ok(sensed.is_ok() || crossing != Crossing::Page)
    }

    /// Reads `bytes` of each page into the controller, again if it has to. Returns those that could not be read.
    ///
    /// # Errors
    /// When the LUN does not answer, or there is no power.
    pub async fn read(&mut self, pages: &[(PageId, u32)]) -> Result<Unreadable, Broken> {
        let mut unreadable = Unreadable::new();
        for &(page, bytes) in pages {
            let reading = self.begin(Operation::Read, page, bytes)?;
            let fetched = match self.media.reads_plainly && !reading.is_struck() {
                true => {
                    self.array("gc read", self.media.sensing(page, 0), page.0).await;
                    self.transfer(self.media.read_transfer(bytes)).await;
                    Ok(())
                }
                false => self.read_in_steps(page, bytes, &reading).await,
            };
            match self.media.end_read(&reading, page).and(fetched).and_then(|()| self.media.check_sound(page)) {
                Ok(()) => {}
                Err(MediaError::Uncorrectable | MediaError::Failed) => unreadable.push(page),
                Err(error) => return Err(Broken { error, page }),
            }
            self.areas_crossed(page);
        }
        Ok(unreadable)
    }

    /// A read with all steps that it may have: those of options, and those that faults add.
    async fn read_in_steps(&mut self, page: PageId, bytes: u32, reading: &Underway<'_>) -> Result<(), MediaError> {
        match reading.hang() {
            Some(_) if self.media.is_remote() => return self.media.fetch(page, Purpose::Move).await,
            Some(time) => self.hang(time, page.0).await,
            None => self.read_page(page, bytes, reading).await,
        }
        Ok(())
    }

    async fn read_page(&mut self, page: PageId, bytes: u32, reading: &Underway<'_>) {
        for attempt in 0..=self.media.retries_of(page, reading) {
            // 00h, address, 30h; 05h, address, E0h, data out.
            if self.media.has_command_cycles() {
                self.command().await;
            }
            let time = self.media.sensing(page, attempt);
            self.array("gc read", time, page.0).await;
            if let Some(longer) = reading.delay().filter(|_| attempt == 0) {
                let step = Step { name: "gc read", time, detail: page.0, suspend: None };
                self.delay(longer, step).await;
            }
            self.transfer(self.media.read_transfer(bytes)).await;
            if self.media.corrects() {
                self.decode(bytes).await;
            }
        }
    }

    /// Moves bytes of a page that was sensed into the controller, which corrects them.
    async fn read_out(&mut self, bytes: u32) {
        self.transfer(self.media.read_transfer(bytes)).await;
        if self.media.corrects() {
            self.decode(bytes).await;
        }
    }

    /// Programs a page from the controller.
    ///
    /// # Errors
    /// Like [`Media::program`].
    pub async fn program(&mut self, page: PageId, image: PageImage) -> Result<(), Broken> {
        self.program_together(&[page], &image).await
    }

    /// Programs the pages of a word line with one command, `image` into all of them: 80h, address, data in, 1Ah between pages, 10h.
    ///
    /// # Errors
    /// Like [`Media::program_together`].
    pub async fn program_together(&mut self, pages: &[PageId], image: &PageImage) -> Result<(), Broken> {
        let programming = self.media.begin_program(pages, self.use_for(0))?;
        if programming.is_struck() {
            return Box::pin(self.program_struck(&programming, pages, image)).await;
        }
        for _ in pages {
            self.transfer(self.media.whole_page()).await;
        }
        self.step(Step { name: "gc program", ..self.media.program_step(pages) }).await;
        self.media.end_program(&programming, pages, image)
    }

    /// The same for a program that the fault plan, or remote flash, changes.
    async fn program_struck(
        &mut self,
        programming: &Underway<'_>,
        pages: &[PageId],
        image: &PageImage,
    ) -> Result<(), Broken> {
        match programming.hang() {
            Some(_) if self.media.is_remote() => return self.media.put_all(programming, pages, image).await,
            Some(time) => self.hang(time, pages[0].0).await,
            None => {
                for _ in pages {
                    self.transfer(self.media.whole_page()).await;
                }
                let step = Step { name: "gc program", ..self.media.program_step(pages) };
                self.step(step).await;
                if let Some(time) = programming.delay() {
                    self.delay(time, step).await;
                }
            }
        }
        self.media.end_program(programming, pages, image)
    }

    /// Whether [`Seized::copy_together`] may replace reads and programs: the flash is remote, and copies by itself.
    pub fn can_copy_together(&self) -> bool {
        self.media.copies_remotely()
    }

    /// Copies units from anywhere to a page, without a transfer of their data to the host. Their out-of-band areas are
    /// copied with them.
    ///
    /// # Errors
    /// Like [`Media::program_together`].
    pub async fn copy_together(&mut self, units: &[UnitId], page: PageId) -> Result<(), Broken> {
        let programming = self.media.begin_program(&[page], self.use_for(0))?;
        self.media.copy_elsewhere(&programming, units, page).await
    }

    /// The out-of-band areas of pages that are copied by [`Seized::copy_together`].
    pub fn cross_areas(&mut self, pages: impl Iterator<Item = PageId>) {
        pages.for_each(|page| self.areas_crossed(page));
    }

    /// Erases a block: 60h, address, D0h.
    ///
    /// # Errors
    /// When it has failed.
    pub async fn erase(&mut self, block: BlockId) -> Result<(), MediaError> {
        let erasing = self.media.begin(Operation::Erase, std::iter::empty(), block, self.use_for(0))?;
        match erasing.hang() {
            Some(_) if self.media.is_remote() => return self.media.erase_elsewhere(&erasing, block).await,
            Some(time) => self.hang(time, block.0).await,
            None => {
                if self.media.has_command_cycles() {
                    self.command().await;
                }
                let step = self.media.erase_step(block, erasing.longer());
                self.step(step).await;
                if let Some(time) = erasing.delay() {
                    self.delay(time, step).await;
                }
            }
        }
        self.media.end_erase(&erasing, block)
    }

    /// The LUN is busy for `time` after a command, and is reset.
    async fn hang(&mut self, time: Span, detail: u32) {
        if self.media.has_command_cycles() {
            self.command().await;
        }
        self.no_answer(time, detail).await;
    }

    /// The LUN is busy for `time` until it is reset. Others wait behind the fault.
    async fn no_answer(&mut self, time: Span, detail: u32) {
        let owner = self.charge_to(cause::FAULT);
        self.array("no answer", time, detail).await;
        self.charge_to(owner);
    }

    /// Continues a step for the time that a rule of the fault plan adds. Others wait behind the fault.
    async fn delay(&mut self, time: Span, step: Step) {
        let owner = self.charge_to(cause::FAULT);
        self.step(Step { time, ..step }).await;
        self.charge_to(owner);
    }

    fn charge_to(&mut self, cause: Cause) -> Cause {
        self.register.as_mut().map_or(cause, |register| register.charge_to(cause))
    }

    /// Work of the array that is not suspended.
    #[inline(always)]
    fn array(&mut self, name: &'static str, time: Span, detail: u32) -> Busy<'_> {
        self.step(Step { name, time, detail, suspend: None })
    }

    /// Work of the array, which may be suspended if the holder is preemptible.
    #[inline(always)]
    fn step(&mut self, step: Step) -> Busy<'_> {
        let (media, used) = (self.media, Used::Array(self.plane, step.name, step.detail));
        if self.preemptible {
            return Busy::new(media, self.boxed_step(step), used, step.time);
        }
        let way = match &self.register {
            Some(register) => Way::Uses(register.array_unwatched(step.time)),
            None => Way::AtOnce,
        };
        Busy::new(media, way, used, step.time)
    }

    #[cold]
    fn boxed_step(&mut self, step: Step) -> Way<'_> {
        Way::Boxed(Box::pin(self.preemptible_step(step)))
    }

    async fn preemptible_step(&mut self, step: Step) {
        if let Some(register) = &mut self.register {
            register.let_reads_in(&mut self.breakdown).await;
            self.media.array(register, self.plane, step, &mut self.breakdown).await;
        }
    }

    async fn command(&mut self) {
        self.transfer(self.media.timing.features.command).await;
    }

    async fn decode(&mut self, bytes: u32) {
        if self.register.is_some() {
            let channel = self.media.geometry.channel_of(self.plane) as usize;
            self.media.decode(channel, bytes, self.who, &mut self.breakdown).await;
        }
    }

    #[inline(always)]
    fn transfer(&mut self, time: Span) -> Busy<'_> {
        match self.preemptible && self.register.is_some() {
            true => self.preemptible_transfer(time),
            false => self.transfer_now(time),
        }
    }

    #[inline(always)]
    fn transfer_now(&self, time: Span) -> Busy<'_> {
        let (media, channel) = (self.media, self.media.geometry.channel_of(self.plane) as usize);
        let way = match &self.channel {
            Some(_held) => Way::Held(media.sim.sleep(time)),
            None if self.register.is_some() => Way::Uses(media.channels[channel].keep_busy(time, self.who)),
            None => Way::AtOnce,
        };
        Busy::new(media, way, Used::Channel(channel, self.who), time)
    }

    /// A transfer before which more urgent reads are let in.
    #[cold]
    fn preemptible_transfer(&mut self, time: Span) -> Busy<'_> {
        let (media, channel, who) = (self.media, self.media.geometry.channel_of(self.plane) as usize, self.who);
        let way = Way::Boxed(Box::pin(async move {
            if let Some(register) = &mut self.register {
                register.let_reads_in(&mut self.breakdown).await;
            }
            self.transfer_now(time).await;
        }));
        Busy::new(media, way, Used::Channel(channel, who), time)
    }
}
