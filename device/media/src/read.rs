//! Reads of a page, step by step: sensing, transfer, correction, retries.

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Span, Who};
use smallvec::SmallVec;

use crate::fault::{MediaError, Operation};
use crate::geometry::PageId;
use crate::image::Oob;
use crate::media::Media;
use crate::multi_plane::{ReadTarget, Sensing};
use crate::power::Underway;
use crate::steps::Step;
use crate::watch::For;

impl Media {
    /// Reads `bytes` of a page into the controller, with as many retries as the page needs.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub fn read<'a>(
        &'a self,
        page: PageId,
        bytes: u32,
        who: Who,
        breakdown: &'a mut Breakdown,
    ) -> impl Future<Output = Result<(), MediaError>> + 'a {
        self.read_for::<()>(page, bytes, who, breakdown)
    }

    /// The same. `Caller` is a type for the caller alone. The compiler makes a copy of the function for it and merges
    /// the copy with the caller, so polling a read polls one future less.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub async fn read_for<Caller>(
        &self,
        page: PageId,
        bytes: u32,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Result<(), MediaError> {
        let under_way = self.begin(
            Operation::Read,
            std::iter::once(page),
            self.geometry.block_of(page),
            For::new(who.cause, bytes),
        )?;
        if !self.reads_plainly || under_way.is_struck() {
            return self.read_in_steps(&under_way, page, bytes, who, breakdown).await;
        }
        let (plane, channel, _) = self.locate(page);
        // 00h, address, 30h; 05h, address, E0h, data out.
        let mut register = self.lun(plane).sense(who, breakdown).await;
        let time = self.sensing(page, 0);
        register.array(time, breakdown).await;
        self.trace_array(plane, "read", time, page.0);
        register.move_out(breakdown).await;
        let time = self.read_transfer(bytes);
        self.channels[channel].occupy(time, who, breakdown.waits(Stage::ChannelWait)).await;
        self.transferred(channel, time, who, breakdown);
        drop(register);
        self.end_read(&under_way, page)
    }

    /// A read with all steps that it may have: those of options, and those that faults add.
    async fn read_in_steps(
        &self,
        under_way: &Underway<'_>,
        page: PageId,
        bytes: u32,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Result<(), MediaError> {
        under_way.tell(breakdown);
        if let Some(time) = under_way.hang() {
            if self.remote.is_some() {
                return Box::pin(self.read_elsewhere(under_way, page, breakdown)).await;
            }
            if under_way.is_watched() {
                return Box::pin(self.read_watched(under_way, page, bytes, who, breakdown)).await;
            }
            Box::pin(self.hang(page, time, who, breakdown)).await;
            return self.end_read(under_way, page);
        }
        let (plane, channel, _) = self.locate(page);
        let retries = self.retries_of(page, under_way);
        if self.planes_together {
            Box::pin(self.read_with_others(page, bytes, under_way.delay(), who, &|| (), breakdown)).await;
        } else {
            // 00h, address, 30h: the array senses the page into the data register, from where it moves on to the cache
            // register.
            let mut register = self.lun(plane).sense(who, breakdown).await;
            if self.has_command_cycles() {
                self.command(channel, who, breakdown).await;
            }
            let time = self.sensing(page, 0);
            register.array(time, breakdown).await;
            self.trace_array(plane, "read", time, page.0);
            if let Some(time) = under_way.delay() {
                let step = Step { name: "read", time, detail: page.0, suspend: None };
                Box::pin(self.delay(&mut register, plane, step, breakdown)).await;
            }
            register.move_out(breakdown).await;

            // 05h, address, E0h, data out: the channel moves the register to the controller, which corrects it.
            let time = self.read_transfer(bytes);
            self.channels[channel].occupy(time, who, breakdown.waits(Stage::ChannelWait)).await;
            self.transferred(channel, time, who, breakdown);
            drop(register);
        }
        if self.corrects() {
            self.decode(channel, bytes, who, breakdown).await;
        }
        if retries > 0 {
            Box::pin(self.retry(page, bytes, retries, who, breakdown)).await;
        }
        self.end_read(under_way, page)
    }

    /// The retries of a read, each with all steps again. Others wait for the die behind a retry then.
    pub(crate) async fn retry(&self, page: PageId, bytes: u32, retries: u32, who: Who, breakdown: &mut Breakdown) {
        let (who, mut again) = (Who { cause: cause::RETRY, ..who }, Breakdown::new());
        let (plane, channel, _) = self.locate(page);
        for attempt in 1..=retries {
            let mut register = self.lun(plane).sense(who, &mut again).await;
            if self.has_command_cycles() {
                self.command(channel, who, &mut again).await;
            }
            let time = self.sensing(page, attempt);
            register.array(time, &mut again).await;
            self.trace_array(plane, "read", time, page.0);
            register.move_out(&mut again).await;
            self.transfer(channel, self.read_transfer(bytes), who, &mut again).await;
            drop(register);
            if self.corrects() {
                self.decode(channel, bytes, who, &mut again).await;
            }
        }
        breakdown.add_behind(cause::RETRY, &again);
    }

    /// Reads the out-of-band areas of a page into the controller, one a unit: a read that moves [`Oob::SIZE`] bytes a unit.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub async fn read_oob(
        &self,
        page: PageId,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Result<SmallVec<[Oob; 4]>, MediaError> {
        let units = self.geometry.units_per_page();
        self.read(page, units * Oob::SIZE, who, breakdown).await?;
        Ok((0..units).map(|unit| self.oob(self.geometry.unit_at(page, unit))).collect())
    }

    /// Senses a page, together with waiting reads of the same page number in other planes, and sends it. Calls `issued` when its chip has
    /// the command.
    pub(crate) async fn read_with_others(
        &self,
        page: PageId,
        bytes: u32,
        delay: Option<Span>,
        who: Who,
        issued: &dyn Fn(),
        breakdown: &mut Breakdown,
    ) {
        let (plane, channel, number) = self.locate(page);
        let target = ReadTarget { plane, page, number };
        let mut register = self.lun(plane).sense_with_others(target, who, breakdown).await;
        if register.is_shared() {
            // Reads that are requested at the same instant can join before the array starts.
            self.sim.after_what_is_due().await;
        }
        // 00h, address, 32h or 30h.
        if self.has_command_cycles() {
            self.command(channel, who, breakdown).await;
        }
        issued();
        let trace = |of: ReadTarget, time| self.trace_array(of.plane, "read", time, of.page.0);
        let times = Sensing { time: self.sensing(page, 0), delay: delay.unwrap_or(Span::ZERO) };
        register.sense_shared(target, times, breakdown, trace).await;

        // 05h, address, E0h, data out.
        self.transfer(channel, self.read_transfer(bytes), who, breakdown).await;
    }

    /// Whether data that comes off a channel is corrected.
    #[inline]
    pub(crate) fn corrects(&self) -> bool {
        !self.timing.features.ecc.time.is_zero()
    }

    /// Corrects data that has come off a channel. Waiting for a decoder counts as correction.
    pub(crate) async fn decode(&self, channel: usize, bytes: u32, who: Who, breakdown: &mut Breakdown) {
        let begun = self.sim.now();
        let time = self.timing.features.ecc.tail(bytes, self.timing.bus);
        let decoders = &self.supply.decoders;
        match decoders.len() {
            0 => self.sim.sleep(time).await,
            engines => {
                let channel = self.channels_of_drive[channel] as usize;
                decoders[channel % engines].keep_busy(time, who).await;
            }
        }
        breakdown.spend(Stage::Ecc, self.sim.now() - begun);
    }

    /// How many retries a page of a block that was erased `erases` times needs.
    pub fn retries(&self, page: PageId, erases: u32) -> u32 {
        self.timing.features.read_retry.count(self.retries, page.0, erases)
    }

    /// The number of retries of a read: the maximum, if the page is uncorrectable.
    #[inline]
    pub(crate) fn retries_of(&self, page: PageId, reading: &Underway<'_>) -> u32 {
        let most = self.most_retries;
        if most == 0 {
            return 0;
        }
        let contents = self.contents.borrow();
        match reading.is_hopeless() || contents.is_unreadable(page) {
            true => most,
            false => reading.retries().max(self.retries(page, contents.erases(self.geometry.block_of(page)))),
        }
    }

    /// Array time to sense a page at an attempt: 0 is the first, others are retries.
    #[inline]
    pub(crate) fn sensing(&self, page: PageId, attempt: u32) -> Span {
        let time = self.page_times.read(self.geometry.page_in_block(page));
        time + if attempt == 0 { Span::ZERO } else { self.timing.features.read_retry.time }
    }

    /// Channel time of a command that moves `bytes` out.
    #[inline]
    pub(crate) fn read_transfer(&self, bytes: u32) -> Span {
        let bytes = if self.timing.partial_transfer { bytes } else { self.geometry.page_size() };
        self.timing.features.command + self.read_rate.time_for(u64::from(bytes))
    }
}
