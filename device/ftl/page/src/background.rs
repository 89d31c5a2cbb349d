//! Background work that delays host reads: collections, and background programs, whose writes ended in the buffer. For each
//! LUN, each channel and the whole drive, this module estimates when the work ahead of a read ends (the T_rem of TeaFA, Li
//! 3.2.2: until the read's command reaches the chip).
//!
//! Work is entered when it is requested, with its expected time. The time counts down once the work has begun, and is
//! corrected between its steps. It is estimated from the mean times of the flash and from counts: a figure costs the
//! same however much work there is. The next batch of a collection is estimated by the pages that it reads, and by the
//! times of the pages that it programs; a program of the host's data by the times of its pages. A collection counts for
//! as long as it holds the plane without a pause, up to the end of its batch, or of its block.
//!
//! Times are counted where reads may ask for them: with a policy of reads, unless no host that fails fast is expected, and with
//! stripes. An unexpected read that fails fast sees the work requested after it.
//!
//! Left out: waits for shared channels, retries, faults, and reads that are admitted, all of which a correction between
//! steps repairs; the host's own operations; and that a collection, before its erase, admits reads from the block that
//! it has emptied.

use std::cell::Cell;

use nandscape_device_ftl_core::address::{Extent, Location};
use nandscape_device_ftl_core::offers::Delay;
use nandscape_device_ftl_core::policy::{GcScheme, PendingRead, Verdict};
use nandscape_device_media::{Geometry, Media, PageId, PlaneId, Priority};
use nandscape_sim::units::Rate;
use nandscape_sim::{Sim, Span, Time};

use super::moves::Moves;
use super::state::State;
use super::together::Together;
use super::{GcConfig, PageFtl, PageFtlConfig};

/// See the module.
pub(super) struct Background {
    sim: Sim,
    costs: Costs,
    scheme: GcScheme,
    /// Reads overtake what waits.
    reads_first: bool,
    /// Reads are admitted between the steps of collections.
    lets_in: bool,
    /// Writes end when their data is in the buffer.
    writes_end_in_buffer: bool,
    together: Together,
    /// By the first plane of each LUN.
    luns: Vec<Lane>,
    channels: Vec<Lane>,
    drive: Lane,
    geometry: Geometry,
    longest: Span,
    takes_no_time: bool,
    /// Whether the time of work is counted.
    counts: Cell<bool>,
    /// Whether stripes need the times, whatever hosts expect.
    has_stripes: bool,
}

/// Mean times of steps of collections and programs.
struct Costs {
    read: Span,
    program: Span,
    /// Programs of each page of a block.
    programs: Vec<Span>,
    erase: Span,
    command: Span,
    bus: Rate,
    page_size: u32,
    unit_size: u32,
    /// Whether a read moves only the requested part of a page.
    partial_transfer: bool,
    word_line: u32,
    per_page: u32,
}

/// Work done in sequence.
#[derive(Default)]
struct Lane {
    /// The begun part, and when it ends.
    begun: Cell<u32>,
    ends: Cell<Time>,
    /// The time of the rest.
    asked: Cell<Span>,
}

impl Lane {
    /// The time of begun work. Overdue work still has to end.
    fn under_way(&self, now: Time) -> Span {
        if self.begun.get() == 0 { Span::ZERO } else { self.ends.get().since(now).max(Span::from_ns(1)) }
    }

    fn left(&self, now: Time) -> Span {
        self.under_way(now) + self.asked.get()
    }
}

impl Costs {
    fn new(media: &Media, word_line: u32) -> Costs {
        let (geometry, timing) = (media.geometry(), media.timing());
        let mean = |times: &[Span]| Span::from_ns(times.iter().map(|time| time.ns()).sum::<u64>() / times.len() as u64);
        let of_pages = timing.cell.pattern(geometry.pages_per_block()).into_iter();
        Costs {
            read: mean(&timing.read),
            program: mean(&timing.program),
            programs: of_pages.map(|kind| timing.program[usize::from(kind)]).collect(),
            erase: timing.erase,
            command: timing.features.command,
            bus: timing.bus,
            page_size: geometry.page_size(),
            unit_size: geometry.unit_size(),
            partial_transfer: timing.partial_transfer,
            word_line,
            per_page: geometry.units_per_page(),
        }
    }

    /// Reading `pages` pages with `units` units.
    fn reading(&self, pages: u32, units: u32) -> Span {
        let bytes = u64::from(units) * u64::from(self.unit_size);
        (self.read + self.command) * u64::from(pages) + self.bus.time_for(self.moved(pages, bytes))
    }

    /// Bytes on the channel for `bytes` of `pages` pages.
    fn moved(&self, pages: u32, bytes: u64) -> u64 {
        if self.partial_transfer { bytes } else { u64::from(pages) * u64::from(self.page_size) }
    }

    /// Programming `pages` pages, in whole word lines.
    fn programming(&self, pages: u32) -> Span {
        let bytes = u64::from(pages) * u64::from(self.page_size);
        let commands = u64::from(pages.div_ceil(self.word_line));
        self.program * commands + self.command * u64::from(pages) + self.bus.time_for(bytes)
    }

    /// The array's part of that time.
    fn array(&self, pages: u32) -> Span {
        self.program * u64::from(pages.div_ceil(self.word_line))
    }

    /// Programming these pages one after the other.
    fn programming_of(&self, geometry: &Geometry, pages: &[PageId]) -> Span {
        let count = pages.len() as u32;
        match self.word_line {
            1 => self.programming(count) - self.array(count) + self.arrays(geometry, pages.iter().copied()),
            _ => self.programming(count),
        }
    }

    /// The array time to program pages one after the other.
    fn arrays(&self, geometry: &Geometry, pages: impl Iterator<Item = PageId>) -> Span {
        pages.fold(Span::ZERO, |sum, page| sum + self.of_page(geometry, page))
    }

    fn of_page(&self, geometry: &Geometry, page: PageId) -> Span {
        self.programs[geometry.page_in_block(page) as usize]
    }

    /// The array time of a command that programs these pages together: of several planes, the longest.
    fn together(&self, geometry: &Geometry, pages: &[PageId]) -> Span {
        match self.word_line {
            1 => pages.iter().map(|page| self.of_page(geometry, *page)).max().unwrap_or(self.program),
            _ => self.program,
        }
    }

    /// Programming `pages` pages of a block, from page `from` on; those of a next block by the mean.
    fn programming_from(&self, from: u32, pages: u32) -> Span {
        let known = self.programs.iter().skip(from as usize).take(pages as usize);
        match self.word_line {
            1 => {
                let mean = self.program * known.len() as u64;
                self.programming(pages) + known.copied().fold(Span::ZERO, |sum, time| sum + time) - mean
            }
            _ => self.programming(pages),
        }
    }

    /// Moving `units` units, without further information.
    fn moving(&self, units: u32) -> Span {
        let pages = units.div_ceil(self.per_page);
        self.reading(pages, units) + self.programming(pages)
    }
}

impl Background {
    /// `has_read_policy` is whether the fate of delayed reads is a policy's.
    pub(super) fn new(sim: &Sim, media: &Media, config: &PageFtlConfig, has_read_policy: bool) -> Background {
        let (geometry, timing) = (*media.geometry(), media.timing());
        let together = Together::new(&geometry, timing);
        let costs = Costs::new(media, together.word_line);
        let GcConfig { scheme, batch, preempt_above, .. } = config.gc;
        let reads_first = config.priority == Priority::ReadsFirst;
        let block = geometry.units_per_block();
        let moves = batch.map_or(block, |batch| batch.saturating_mul(geometry.units_per_page()).min(block));
        let erase = if batch.is_none() { costs.erase } else { Span::ZERO };
        let collection = if scheme == GcScheme::Nothing { Span::ZERO } else { costs.moving(moves) + erase };
        let takes_no_time = (costs.moving(1) + costs.erase).is_zero();
        let longest = collection.max(costs.erase).max(costs.programming(together.word_line));
        let lanes = |count: u32| (0..count).map(|_| Lane::default()).collect();
        Background {
            sim: sim.clone(),
            costs,
            scheme,
            reads_first,
            lets_in: preempt_above.is_some() && reads_first,
            writes_end_in_buffer: config.writes_end_in_buffer,
            together,
            luns: lanes(geometry.planes()),
            channels: lanes(geometry.channels()),
            drive: Lane::default(),
            geometry,
            longest,
            takes_no_time,
            counts: Cell::new(has_read_policy || config.rain.is_some()),
            has_stripes: config.rain.is_some(),
        }
    }

    /// Whether the time of work is counted.
    #[inline]
    pub(super) fn counts(&self) -> bool {
        self.counts.get()
    }

    /// Whether reads that fail fast are expected. Work under way stays as it is counted.
    pub(super) fn expect(&self, fail_fast: bool) {
        self.counts.set(fail_fast || self.has_stripes);
    }

    /// The approximate maximum delay of a read by one piece of work.
    pub(super) fn longest(&self) -> Span {
        self.longest
    }

    /// The delay by background work of a read of a plane that arrives now; zero without such work.
    pub(super) fn remaining(&self, plane: PlaneId) -> Span {
        let (now, lun) = (self.sim.now(), self.lun(plane));
        let of = |lane: &Lane| if self.reads_first { lane.under_way(now) } else { lane.left(now) };
        let of_lun = if self.lets_in { of(lun).min(self.longest_step()) } else { of(lun) };
        match self.scheme {
            GcScheme::Nothing | GcScheme::Plane => of_lun,
            GcScheme::Channel | GcScheme::Controller => {
                let channel = &self.channels[self.geometry.channel_of(plane) as usize];
                of_lun.max(of(channel)).max(self.drive.left(now))
            }
        }
    }

    /// The time of a read of a page alone.
    pub(super) fn alone(&self, bytes: u32) -> Span {
        self.costs.read + self.costs.command + self.costs.bus.time_for(self.costs.moved(1, bytes.into()))
    }

    fn longest_step(&self) -> Span {
        self.costs.program.max(self.costs.erase)
    }

    fn lun(&self, plane: PlaneId) -> &Lane {
        &self.luns[self.together.lun_of(plane).start as usize]
    }

    /// Whether the flash takes no time.
    #[inline]
    pub(super) fn takes_no_time(&self) -> bool {
        self.takes_no_time
    }

    /// The time to move units out of a block and to erase it, without a pause.
    pub(super) fn cleaning(&self, units: u32) -> Span {
        self.moving(units) + self.costs.erase
    }

    /// The time to move units.
    pub(super) fn moving(&self, units: u32) -> Span {
        if units == 0 { Span::ZERO } else { self.costs.moving(units) }
    }

    /// The time to move units out of `from` pages to the pages of a block from page `to` on.
    pub(super) fn moving_to(&self, (from, to): (u32, u32), units: u32) -> Span {
        let pages = units.div_ceil(self.costs.per_page);
        self.costs.reading(from, units) + self.costs.programming_from(to, pages)
    }

    /// A collection requests its resources, for `time`; `None` if times are not counted.
    #[inline]
    pub(super) fn collection(&self, plane: PlaneId, time: Span) -> Option<Work<'_>> {
        self.counts().then(|| self.enter(plane, self.scheme, (time, self.costs.program)))
    }

    /// A program of the host's data begins, of these pages together; `None` if its time is not counted.
    #[inline]
    pub(super) fn program(&self, plane: PlaneId, pages: &[PageId]) -> Option<Work<'_>> {
        (self.counts() && self.writes_end_in_buffer).then(|| self.host_program(plane, pages))
    }

    fn host_program(&self, plane: PlaneId, pages: &[PageId]) -> Work<'_> {
        let of_array = self.costs.together(&self.geometry, pages);
        let count = pages.len() as u32;
        let time = self.costs.programming(count) - self.costs.array(count) + of_array;
        self.enter(plane, GcScheme::Plane, (time, of_array))
    }

    fn enter(&self, plane: PlaneId, reach: GcScheme, (time, of_array): (Span, Span)) -> Work<'_> {
        let work = Work { of: self, plane, reach, asked: Cell::new(Some(time)), of_array };
        work.lanes().for_each(|lane| lane.asked.set(lane.asked.get() + time));
        work
    }
}

/// Work in progress or requested, until it is dropped.
pub(super) struct Work<'a> {
    of: &'a Background,
    plane: PlaneId,
    reach: GcScheme,
    /// Its time, until it has begun.
    asked: Cell<Option<Span>>,
    /// Of a program, what its array takes.
    of_array: Span,
}

impl<'a> Work<'a> {
    fn lanes(&self) -> impl Iterator<Item = &'a Lane> {
        let (of, channel) = (self.of, self.of.geometry.channel_of(self.plane) as usize);
        let lun = (self.reach > GcScheme::Nothing).then(|| of.lun(self.plane));
        let channel = (self.reach >= GcScheme::Channel).then(|| &of.channels[channel]);
        let drive = (self.reach >= GcScheme::Controller).then_some(&of.drive);
        lun.into_iter().chain(channel).chain(drive)
    }

    /// A collection has its resources, and keeps them for these moves and the following ones.
    pub(super) fn moves(&self, moves: &Moves, after: Span) {
        let costs = &self.of.costs;
        let to = moves.copybacks.iter().map(|(_, to)| *to);
        let copies = costs.read * moves.copybacks.len() as u64 + costs.arrays(&self.of.geometry, to);
        let reads = costs.reading(moves.reads.len() as u32, moves.units.len() as u32);
        self.expect(copies + reads + costs.programming_of(&self.of.geometry, &moves.targets) + after);
    }

    /// Its reads are done.
    pub(super) fn has_read(&self, moves: &Moves, after: Span) {
        self.expect(self.of.costs.programming_of(&self.of.geometry, &moves.targets) + after);
    }

    /// It erases its block.
    pub(super) fn erases(&self) {
        self.expect(self.of.costs.erase);
    }

    /// A program is in the register, from which it is programmed once the programs before it are.
    pub(super) fn is_loaded(&self) {
        let (now, program) = (self.of.sim.now(), self.of_array);
        self.begin(|lane| if lane.begun.get() > 0 { lane.ends.get().max(now) + program } else { now + program });
    }

    /// A collection has begun, and takes `time` from now on. It is alone.
    fn expect(&self, time: Span) {
        let ends = self.of.sim.now() + time;
        self.begin(|_| ends);
    }

    fn begin(&self, ends: impl Fn(&Lane) -> Time) {
        let asked = self.asked.take();
        self.lanes().for_each(|lane| {
            lane.ends.set(ends(lane));
            if let Some(asked) = asked {
                lane.asked.set(lane.asked.get() - asked);
                lane.begun.set(lane.begun.get() + 1);
            }
        });
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let asked = self.asked.get();
        self.lanes().for_each(|lane| match asked {
            Some(asked) => lane.asked.set(lane.asked.get() - asked),
            None => lane.begun.set(lane.begun.get() - 1),
        });
    }
}

impl State {
    /// Calls `page` with each page that a read of an extent senses, and the bytes requested of the page.
    fn pages_of(&self, extent: Extent, mut page: impl FnMut(PageId, u32)) {
        let mut last: Option<(PageId, u32)> = None;
        for piece in extent.pieces(self.unit) {
            let mut location = self.tables.location(piece.lpn);
            if let Location::Buffered(slot) = location {
                let slot = self.buffer.slot(slot);
                let is_whole = slot.mask & piece.mask() == piece.mask();
                location = if is_whole { Location::Unmapped } else { slot.previous };
            }
            let Location::Flash(unit) = location else { continue };
            let (of, bytes) = (self.geometry.page_of(unit), self.unit.bytes());
            last = match last {
                Some((page, more)) if page == of => Some((page, more + bytes)),
                other => {
                    other.into_iter().for_each(|(of, bytes)| page(of, bytes));
                    Some((of, bytes))
                }
            };
        }
        last.into_iter().for_each(|(of, bytes)| page(of, bytes));
    }
}

impl PageFtl {
    /// The background work that delays a read of an extent with fast-fail, if the policy fails the read because of it:
    /// the work before the page that would wait longest.
    pub(super) fn delay_of(&self, extent: Extent) -> Option<Delay> {
        let policy = self.read_policy.as_deref()?;
        if !self.background.counts() {
            self.background.expect(true);
        }
        let (state, mut longest) = (self.state.borrow(), None);
        state.pages_of(extent, |page, bytes| {
            let remaining = self.background.remaining(state.geometry.plane_of(state.geometry.block_of(page)));
            let read =
                PendingRead { remaining, alone: self.background.alone(bytes), may_fail: true, busy_channels: None };
            if !remaining.is_zero() && policy.verdict(&read) == Verdict::FailFast {
                longest = longest.max(Some(remaining));
            }
        });
        let remaining = longest?;
        let share = remaining.ns().saturating_mul(256) / self.background.longest().ns().max(1);
        Some(Delay { remaining, share: share.min(255) as u8 })
    }
}
