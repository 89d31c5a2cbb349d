//! Read, program and erase, step by step.
//!
//! Their effect on the cells is in `contents`, how they end in `outcome`; bad blocks are in `bad`, constructed states
//! in `planted`.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::flash::FlashWatch;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::account::Totals;
use nandscape_sim::divisor::Divisor;
use nandscape_sim::trace::{Event, Track};
use nandscape_sim::units::Remembering;
use nandscape_sim::{Resource, Seed, Sim, Span, Time, Who};
use smallvec::SmallVec;

use crate::aging::{Aging, AgingCells, AgingCounts, Past};
use crate::announce::ReadWatch;
use crate::bad::{choose_bad, keep_first_blocks};
use crate::contents::{Contents, OpCounts};
use crate::durable::DurableMemory;
use crate::fault::{FaultPlan, MediaError, Misuse, Operation, Place, Rule};
use crate::features::PlaneMode;
use crate::geometry::{BlockId, Geometry, PageId, PlaneId, UnitId};
use crate::image::{Oob, PageImage};
use crate::interleave::{Interleaving, Rows, Turn};
use crate::lun::{Lun, Register};
use crate::multi_plane::{ReadTarget, Sensing};
use crate::outcome::Broken;
use crate::power::Underway;
use crate::remote::Remote;
use crate::store::{StoreKind, UnitData};
use crate::supply::{Channel, Group, Supply};
use crate::timing::{PageTimes, Timing};
use crate::watch::For;
use crate::work::FlashWork;

/// The configuration of a drive's flash.
#[derive(Clone, Debug)]
pub struct MediaConfig {
    /// The geometry.
    pub geometry: Geometry,
    /// The times.
    pub timing: Timing,
    /// Where data is kept.
    pub store: StoreKind,
    /// Blocks of each plane that are bad from the factory.
    pub factory_bad: u32,
    /// Bytes of a logical block, by which faults may be placed.
    pub lba_bytes: u32,
    /// The fault rules.
    pub faults: Vec<Rule>,
    /// Its aging; `None` is flash that does not age.
    pub aging: Option<Aging>,
    /// Seed of factory-bad blocks, read retries, faults and aging.
    pub seed: Seed,
    /// Which channels of the drive these are; `None` is all. With a group, fault rules and decoders are those of its
    /// [`Supply`].
    pub group: Option<Group>,
}

/// The flash of one drive, or of a group of its channels.
pub struct Media {
    pub(crate) sim: Sim,
    pub(crate) geometry: Geometry,
    pub(crate) timing: Timing,
    pub(crate) page_times: PageTimes,
    /// The rate at which channels transfer read data, and the channel time of a command that moves a page.
    read_rate: Remembering,
    whole_page: Span,
    /// The units that execute commands independently: planes, or dies.
    pub(crate) luns: Vec<Lun>,
    pub(crate) planes_per_lun: Divisor,
    /// Whether the planes of a LUN can read, program and erase together.
    pub(crate) planes_together: bool,
    pub(crate) channels: Vec<Rc<Resource>>,
    /// The rows in which channels program, if they do.
    rows: Option<Box<Rows>>,
    /// Whether reports of this flash list a channel. A shared channel is listed by one flash only.
    tells_of: Vec<bool>,
    pub(crate) contents: RefCell<Contents>,
    tracks: Tracks,
    pub(crate) factory_bad: Vec<bool>,
    /// Blocks that went bad in a life before the run; empty if none did.
    pub(crate) grown_bad: Vec<bool>,
    retries: Seed,
    policies: Seed,
    /// The most retries of a read.
    most_retries: u32,
    /// Whether reads have no steps but sensing and a transfer: no command cycles, no correction, no retries, and each plane alone.
    pub(crate) reads_plainly: bool,
    pub(crate) aging: Option<Box<AgingCells>>,
    pub(crate) supply: Rc<Supply>,
    /// The group of channels, if the drive has others.
    group: Option<Group>,
    /// The number of each channel in the drive.
    channels_of_drive: Rc<[u32]>,
    /// The number of each die in its channel.
    dies_of_drive: Rc<[u32]>,
    /// The durable memory, if the flash is in a file.
    pub(crate) durable: Option<Rc<DurableMemory>>,
    /// The remote array, if the flash is remote. Then every operation is diverted.
    pub(crate) remote: Option<Box<Remote>>,
    /// The host that is notified of each operation, if one exists.
    pub(crate) watch: OnceCell<Rc<dyn FlashWatch>>,
    /// The watch that is notified of the issue of reads, if one exists.
    pub(crate) reads: OnceCell<Rc<dyn ReadWatch>>,
    /// The cost of operations for the controller's processors, if any.
    pub(crate) work: OnceCell<FlashWork>,
}

/// A step of the array.
#[derive(Copy, Clone)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) time: Span,
    pub(crate) detail: u32,
    /// The time to suspend it; `None` if it cannot be suspended.
    pub(crate) suspend: Option<Span>,
}

struct Tracks {
    planes: Vec<Track>,
    channels: Vec<Track>,
}

impl Media {
    /// Erased flash, with the wear of its life before the run.
    ///
    /// # Errors
    /// If the system does not provide memory for out-of-band tags.
    pub fn new(sim: &Sim, config: MediaConfig) -> io::Result<Media> {
        let contents = Contents::new(&config.geometry, config.store)?;
        let mut media = Media::with_contents(sim, config, contents, None);
        media.live();
        Ok(media)
    }

    /// Applies the life before the run, if any, to new flash. A file that can no longer be written reports this later.
    pub(crate) fn live(&mut self) {
        let Some(mut aging) = self.aging.take() else { return };
        let mut grown = vec![false; self.geometry.blocks() as usize];
        let (mut worn, mut sum) = (vec![0; grown.len()], 0);
        for block in (0..self.geometry.blocks()).map(BlockId).filter(|block| !self.factory_bad[block.0 as usize]) {
            let (erases, is_bad) = aging.at_start(block);
            self.contents.get_mut().set_block(block, 0, erases);
            (worn[block.0 as usize], grown[block.0 as usize]) = (erases, is_bad && !self.holds_identifier(block));
            sum += u64::from(erases);
        }
        aging.has_lived(sum, &self.geometry);
        self.aging = Some(aging);
        if let Some(file) = self.contents.get_mut().file_mut().filter(|_| sum > 0) {
            let _ = file.live(&worn, &grown);
        }
        self.set_grown_bad(grown);
    }

    /// Its totals of its life before the run: zero, if it had none.
    pub fn past(&self) -> Past {
        self.aging.as_ref().map(|cells| cells.past()).unwrap_or_default()
    }

    /// How it ages, if it does.
    pub fn aging(&self) -> Option<&Aging> {
        self.aging.as_ref().map(|cells| &cells.aging)
    }

    /// The effects of aging so far, if it ages.
    pub fn aging_counts(&self) -> Option<AgingCounts> {
        self.aging.as_ref().map(|cells| cells.counts())
    }

    /// Flash with its content.
    pub(crate) fn with_contents(
        sim: &Sim,
        config: MediaConfig,
        contents: Contents,
        durable: Option<Rc<DurableMemory>>,
    ) -> Media {
        let MediaConfig { geometry, timing, store: _, factory_bad, lba_bytes, faults, aging, seed, group } = config;
        let supply = match &group {
            Some(group) => group.supply.clone(),
            None => Supply::new(sim, &faults, lba_bytes, timing.features.ecc.engines, seed.child("faults")),
        };
        let (channels_of_drive, dies_of_drive): (Rc<[u32]>, Rc<[u32]>) = match &group {
            Some(group) => (group.channels.clone(), group.dies.clone()),
            None => ((0..geometry.channels()).collect(), (0..geometry.counts().dies_per_channel).collect()),
        };
        let mut factory_bad = choose_bad(&geometry, factory_bad, seed.child("factory-bad-blocks"));
        if group.is_some() {
            keep_first_blocks(&geometry, &mut factory_bad);
        }
        if aging.is_some() {
            supply.faults.look_at_all();
        }
        let planes_per_lun = match timing.features.planes {
            PlaneMode::Independent => 1,
            PlaneMode::Die | PlaneMode::MultiPlane => geometry.counts().planes_per_die,
        };
        let planes = plane_tracks(sim, &geometry, (&channels_of_drive, &dies_of_drive));
        let channels: Vec<Channel> = channels_of_drive.iter().map(|number| supply.channel(sim, *number)).collect();
        Media {
            sim: sim.clone(),
            geometry,
            read_rate: Remembering::new(timing.bus),
            whole_page: timing.features.command + timing.bus.time_for(u64::from(geometry.page_size())),
            page_times: PageTimes::new(&timing, geometry.pages_per_block()),
            luns: (0..geometry.planes() / planes_per_lun).map(|_| Lun::new(sim, &timing)).collect(),
            planes_per_lun: Divisor::new(planes_per_lun),
            rows: (timing.features.interleaving == Interleaving::Rows).then(|| {
                let rows = channels_of_drive.iter().map(|number| supply.row(sim, *number)).collect();
                Box::new(Rows::new(sim, rows, &dies_of_drive, geometry.counts().planes_per_die / planes_per_lun))
            }),
            planes_together: timing.features.planes == PlaneMode::MultiPlane,
            retries: seed.child("read-retry"),
            policies: seed.child("policies"),
            most_retries: most_retries(&timing, aging.as_ref()),
            reads_plainly: most_retries(&timing, aging.as_ref()) == 0
                && timing.features.planes != PlaneMode::MultiPlane
                && timing.features.command.is_zero()
                && timing.features.ecc.time.is_zero(),
            aging: aging.map(|aging| Box::new(AgingCells::new(aging, &geometry, timing.cell, seed.child("aging")))),
            supply,
            tells_of: channels.iter().map(|channel| channel.is_first).collect(),
            contents: RefCell::new(contents),
            tracks: Tracks { planes, channels: channels.iter().map(|channel| channel.track).collect() },
            channels: channels.into_iter().map(|channel| channel.bus).collect(),
            factory_bad,
            grown_bad: Vec::new(),
            group,
            channels_of_drive,
            dies_of_drive,
            durable,
            remote: None,
            watch: OnceCell::new(),
            reads: OnceCell::new(),
            work: OnceCell::new(),
            timing,
        }
    }

    /// The seed for random decisions about this flash by the policies and components of the FTL over it.
    pub fn policy_seed(&self) -> Seed {
        self.policies
    }

    /// The geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The times.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The fault plan.
    pub fn faults(&self) -> &FaultPlan {
        &self.supply.faults
    }

    /// The number of each channel in the drive.
    pub fn channels_of_drive(&self) -> &[u32] {
        &self.channels_of_drive
    }

    /// The number of each die in its channel.
    pub fn dies_of_drive(&self) -> &[u32] {
        &self.dies_of_drive
    }

    /// Whether each channel begins with a block that holds an identifier, because the drive also has other flash.
    pub(crate) fn has_identifiers(&self) -> bool {
        self.group.is_some()
    }

    /// Where this flash is in the drive.
    pub(crate) fn place(&self) -> Place<'_> {
        let bytes = self.group.as_ref().map_or(0..u64::MAX, |group| group.bytes.clone());
        Place { geometry: &self.geometry, channels: &self.channels_of_drive, dies: &self.dies_of_drive, bytes }
    }

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

    /// Programs a page from the controller.
    ///
    /// # Errors
    /// When it failed. The page is still used up, unless power was off at the start or the page is not the next of its
    /// block.
    pub async fn program(
        &self,
        page: PageId,
        image: PageImage,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Result<(), Broken> {
        self.program_together(&[page], &image, who, breakdown, |_| ()).await
    }

    /// Programs pages of one LUN with one command: pages of the same number in several planes, or of a word line. `image`
    /// has the units of all pages. Calls `loaded` with the breakdown so far when all pages are in the register.
    ///
    /// # Errors
    /// When it failed. The pages are still used up, unless power was off at the start or the command breaks a rule of
    /// NAND ([`Misuse`]).
    pub async fn program_together(
        &self,
        pages: &[PageId],
        image: &PageImage,
        who: Who,
        breakdown: &mut Breakdown,
        loaded: impl FnOnce(&Breakdown),
    ) -> Result<(), Broken> {
        let under_way = self.begin_program(pages, For::new(who.cause, 0))?;
        under_way.tell(breakdown);
        let (plane, channel, _) = self.locate(pages[0]);
        if let Some(time) = under_way.hang() {
            if self.remote.is_some() {
                loaded(breakdown);
                return Box::pin(self.program_elsewhere(&under_way, pages, image, who, breakdown)).await;
            }
            Box::pin(self.hang(pages[0], time, who, breakdown)).await;
            return self.end_program(&under_way, pages, image);
        }

        let turn = match &self.rows {
            None => None,
            Some(rows) => Some(Box::pin(rows.turn(&self.sim, channel, self.lun_number(plane), who, breakdown)).await),
        };
        // 80h, address, data in, and 11h or 1Ah between pages: the channel fills the register.
        let mut register = self.lun(plane).load(who, breakdown).await;
        let _in_row = turn.map(Turn::begin);
        for _ in pages {
            self.transfer(channel, self.whole_page(), who, breakdown).await;
        }
        loaded(breakdown);

        // 10h: the array programs the content of the register.
        register.move_in(breakdown).await;
        let step = self.program_step(pages);
        self.array(&mut register, plane, step, breakdown).await;
        if let Some(time) = under_way.delay() {
            Box::pin(self.delay(&mut register, plane, Step { time, ..step }, breakdown)).await;
        }
        drop(register);
        self.end_program(&under_way, pages, image)
    }

    /// Whether host data is kept.
    pub fn keeps_data(&self) -> bool {
        self.contents.borrow().keeps_data()
    }

    /// Adds the tag and the data of a programmed unit to an image, for a caller that has read its page and keeps its block
    /// from being erased.
    #[inline]
    pub fn copy_to(&self, image: &mut PageImage, unit: UnitId) {
        let contents = self.contents.borrow();
        match contents.file() {
            None => image.push(contents.tag(unit), contents.data(unit)),
            Some(file) => image.push_with_oob(file.oob(unit), file.data(unit)),
        }
    }

    /// The same for several units, in order.
    pub fn copy_all_to(&self, image: &mut PageImage, units: &[UnitId]) {
        let contents = self.contents.borrow();
        match contents.has_tags_alone() {
            true => image.push_all(units.iter().map(|unit| contents.tag(*unit))),
            false => units.iter().for_each(|unit| self.copy_to(image, *unit)),
        }
    }

    /// Adds the units of a page and their tags.
    pub(crate) fn note_tags(&self, page: PageId, to: &mut Vec<(UnitId, u32)>) {
        let contents = self.contents.borrow();
        let units = (0..self.geometry.units_per_page()).map(|unit| self.geometry.unit_at(page, unit));
        to.extend(units.map(|unit| (unit, contents.tag(unit))));
    }

    /// The data of a programmed unit, for a caller that has read its page and keeps its block from being erased.
    pub fn data(&self, unit: UnitId) -> Option<UnitData> {
        self.note_reader(unit);
        self.contents.borrow().data(unit)
    }

    /// The out-of-band area of a programmed unit, for a caller that has read its page and keeps its block from being erased.
    pub fn oob(&self, unit: UnitId) -> Oob {
        self.contents.borrow().oob(unit)
    }

    /// The out-of-band tag of a programmed unit, without a read. For tests, checks and planting, and for an FTL table
    /// that holds the same numbers, which the model does not store twice. Other callers read the tag, which takes time:
    /// [`Media::read_oob`], or [`Seized::take_tags`](crate::Seized::take_tags).
    #[inline]
    pub fn tag(&self, unit: UnitId) -> u32 {
        self.contents.borrow().tag(unit)
    }

    /// Counts of operations so far.
    pub fn counts(&self) -> OpCounts {
        self.contents.borrow().counts
    }

    /// Arrays of a die that work independently: one for each plane, or one for all.
    pub fn arrays_per_die(&self) -> u32 {
        self.geometry.counts().planes_per_die / self.planes_per_lun.get()
    }

    /// Busy time of each LUN's array by cause: of each plane, or of each die whose planes do not work independently.
    pub fn array_usage(&self) -> Vec<Totals> {
        self.luns.iter().map(|lun| lun.array.usage()).collect()
    }

    /// The time in which a register of each LUN was taken, by cause.
    pub fn register_usage(&self) -> Vec<Totals> {
        self.luns.iter().map(Lun::register_usage).collect()
    }

    /// The drive's numbers of the channels that reports of this flash list. A channel with dies of several owners is
    /// listed by the first of them.
    pub fn told_channels(&self) -> Vec<u32> {
        self.told(&self.channels_of_drive).copied().collect()
    }

    /// Whether the channel of a plane is in use or waited for.
    pub fn is_channel_busy(&self, plane: PlaneId) -> bool {
        !self.channels[self.geometry.channel_of(plane) as usize].is_idle()
    }

    /// Busy time of these channels by cause.
    pub fn channel_usage(&self) -> Vec<Totals> {
        self.told(&self.channels).map(|channel| channel.usage()).collect()
    }

    fn told<'a, T>(&'a self, channels: &'a [T]) -> impl Iterator<Item = &'a T> {
        channels.iter().zip(&self.tells_of).filter(|(_, tells)| **tells).map(|(channel, _)| channel)
    }

    /// The track of each plane's array in the event trace, in the order of planes.
    pub fn plane_tracks(&self) -> &[Track] {
        &self.tracks.planes
    }

    /// The tracks in the event trace of the channels that reports of this flash list.
    pub fn channel_tracks(&self) -> Vec<Track> {
        self.told(&self.tracks.channels).copied().collect()
    }

    /// Whether the command and address cycles of a command that moves no data take time.
    #[inline]
    pub(crate) fn has_command_cycles(&self) -> bool {
        !self.timing.features.command.is_zero()
    }

    /// The command and address cycles.
    pub(crate) async fn command(&self, channel: usize, who: Who, breakdown: &mut Breakdown) {
        self.transfer(channel, self.timing.features.command, who, breakdown).await;
    }

    pub(crate) async fn transfer(&self, channel: usize, time: Span, who: Who, breakdown: &mut Breakdown) {
        self.channels[channel].occupy(time, who, breakdown.waits(Stage::ChannelWait)).await;
        self.transferred(channel, time, who, breakdown);
    }

    #[inline]
    pub(crate) fn transferred(&self, channel: usize, time: Span, who: Who, breakdown: &mut Breakdown) {
        breakdown.spend(Stage::Transfer, time);
        self.trace_transfer(channel, time, who);
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

    /// Keeps the array busy with a step, which is suspended for urgent reads if it can be.
    pub(crate) async fn array(
        &self,
        register: &mut Register<'_>,
        plane: PlaneId,
        step: Step,
        breakdown: &mut Breakdown,
    ) {
        let Step { name, time, detail, suspend } = step;
        match suspend {
            None => {
                register.array(time, breakdown).await;
                self.trace_array(plane, name, time, detail);
            }
            Some(cost) => {
                let terms = self.timing.features.suspend.terms(cost);
                let part = |time| self.trace_array(plane, name, time, detail);
                Box::pin(register.array_suspendable(time, terms, breakdown, part)).await;
            }
        }
    }

    /// Continues a step of the array for the time that a rule of the fault plan adds. For the operation, and for those that
    /// wait for the LUN, it is a wait behind the fault.
    pub(crate) async fn delay(
        &self,
        register: &mut Register<'_>,
        plane: PlaneId,
        step: Step,
        breakdown: &mut Breakdown,
    ) {
        let (owner, mut delayed) = (register.charge_to(cause::FAULT), Breakdown::new());
        self.array(register, plane, step, &mut delayed).await;
        register.charge_to(owner);
        breakdown.add_behind(cause::FAULT, &delayed);
    }

    /// The LUN of a plane.
    #[inline]
    pub(crate) fn lun(&self, plane: PlaneId) -> &Lun {
        &self.luns[self.lun_number(plane)]
    }

    #[inline]
    pub(crate) fn lun_number(&self, plane: PlaneId) -> usize {
        self.planes_per_lun.quotient(plane.0) as usize
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

    /// The array step of a program: the time of the slowest page.
    #[inline]
    pub(crate) fn program_step(&self, pages: &[PageId]) -> Step {
        let time = |page: &PageId| self.page_times.program(self.geometry.page_in_block(*page));
        let time = match pages {
            [page] => time(page),
            _ => pages.iter().map(time).max().expect("at least one page is programmed"),
        };
        Step { name: "program", time, detail: pages[0].0, suspend: self.timing.features.suspend.program }
    }

    /// The array step of an erase, which takes `longer` in a worn block.
    pub(crate) fn erase_step(&self, block: BlockId, longer: Span) -> Step {
        let suspend = self.timing.features.suspend.erase;
        Step { name: "erase", time: self.timing.erase + longer, detail: block.0, suspend }
    }

    /// Uses pages up for one program command: all of them, or none.
    ///
    /// # Errors
    /// The rule that the command breaks.
    #[inline]
    pub(crate) fn use_up(&self, pages: &[PageId]) -> Result<(), Broken> {
        if let [page] = *pages {
            let used = self.contents.borrow_mut().use_up_page(&self.geometry, page);
            return used.map_err(|misuse| Broken { error: misuse.into(), page });
        }
        if !self.fit_together(pages) {
            return Err(Broken { error: Misuse::NotTogether.into(), page: pages[0] });
        }
        self.contents.borrow_mut().use_up(&self.geometry, pages.iter().copied())
    }

    /// The rules of multi-plane and word-line programs: one LUN, one block of each plane, the same numbers on all of them.
    fn fit_together(&self, pages: &[PageId]) -> bool {
        let block = |page: &PageId| self.geometry.block_of(*page);
        let lun = |page| self.planes_per_lun.quotient(self.geometry.plane_of(block(page)).0);
        let numbers = |group: &[PageId]| -> SmallVec<[u32; 4]> {
            group.iter().map(|page| self.geometry.page_in_block(*page)).collect()
        };
        let mut groups = pages.chunk_by(|one, other| block(one) == block(other));
        let first = numbers(groups.next().expect("there are pages"));
        pages.iter().all(|page| lun(page) == lun(&pages[0])) && groups.all(|group| numbers(group) == first)
    }

    /// The plane, channel and number within its block of a page.
    #[inline]
    pub(crate) fn locate(&self, page: PageId) -> (PlaneId, usize, u32) {
        let block = self.geometry.block_of(page);
        let plane = self.geometry.plane_of(block);
        (plane, self.geometry.channel_of(plane) as usize, self.geometry.page_in_block(page))
    }

    /// Channel time of a command that moves `bytes` out.
    #[inline]
    pub(crate) fn read_transfer(&self, bytes: u32) -> Span {
        let bytes = if self.timing.partial_transfer { bytes } else { self.geometry.page_size() };
        self.timing.features.command + self.read_rate.time_for(u64::from(bytes))
    }

    /// Channel time of a command that moves a page.
    #[inline]
    pub(crate) fn whole_page(&self) -> Span {
        self.whole_page
    }

    /// Traces an array operation of `time` in a plane.
    pub(crate) fn trace_array(&self, plane: PlaneId, name: &'static str, time: Span, detail: u32) {
        self.trace(|tracks| tracks.planes[plane.0 as usize], name, time, u64::from(detail));
    }

    /// Traces a transfer of `time` on a channel.
    pub(crate) fn trace_transfer(&self, channel: usize, time: Span, who: Who) {
        self.trace(|tracks| tracks.channels[channel], "transfer", time, who.cause.index() as u64);
    }

    #[inline]
    fn trace(&self, track: impl FnOnce(&Tracks) -> Track, name: &'static str, time: Span, detail: u64) {
        self.sim.trace_event(|end| {
            let start = Time::from_ns(end.ns() - time.ns());
            Event { track: track(&self.tracks), name, start, end, detail }
        });
    }
}

/// The most retries of a read.
fn most_retries(timing: &Timing, aging: Option<&Aging>) -> u32 {
    let given = timing.features.read_retry.probability.len() as u32;
    aging.map_or(given, |aging| aging.retries.steps.max(given))
}

/// The tracks of planes in the event trace, by the numbers of channels and dies in the drive.
fn plane_tracks(sim: &Sim, geometry: &Geometry, (channels, dies): (&[u32], &[u32])) -> Vec<Track> {
    let plane = |index| {
        let (channel, die, plane) = geometry.place(PlaneId(index));
        let (channel, die) = (channels[channel as usize], dies[die as usize]);
        sim.trace().track(format!("channel {channel} die {die} plane {plane}"))
    };
    (0..geometry.planes()).map(plane).collect()
}
