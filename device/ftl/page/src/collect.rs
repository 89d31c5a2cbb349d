//! P8-GC (OX table 5.9) and wear levelling: moving the current data out of a block, and erasing the block.
//!
//! Each plane has a collector, which moves data within the plane. It works in the background; the host's writes wait for it
//! only when the plane has no free block left except the collector's.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Mapping, Provisioning, Stream};
use nandscape_device_ftl_core::ftl::ReadOnly;
use nandscape_device_ftl_core::policy::OwnerSource;
use nandscape_device_media::{BlockId, Broken, Crossing, MediaError, PageId, PageImage, PlaneId, Seized, UnitId};
use nandscape_drive::breakdown::cause;
use nandscape_sim::resource::Hold;
use nandscape_sim::{Cause, Span, Who};

use super::background::Work;
use super::moves::{Cursor, Moves};
use super::schedule::Phase;
use super::state::State;
use super::streams::LEVELLED;
use super::tables::Tables;
use super::write::NO_LPN;
use super::{GcConfig, PageFtl};

/// Pages that a collection moves in one go where flash takes no time.
const AT_ONE_INSTANT: u32 = 32;

/// The resources of a collection while it works; the flash is released first.
struct Seizure<'a> {
    flash: Seized<'a>,
    _controller: Option<Hold<'a>>,
    /// Its expected time, where that is counted; in a box, because few drives need it.
    work: Option<Box<Work<'a>>>,
}

impl State {
    /// Starts emptying a block for `cause`.
    pub(super) fn begin(&mut self, victim: BlockId, copyback: bool, cause: Cause) -> Cursor {
        let info = self.tables.blocks.get_mut(victim);
        let retiring = std::mem::replace(&mut info.state, BlockState::Collecting) == BlockState::Retiring;
        let cost = info.valid;
        self.collectors.of_mut(self.geometry.plane_of(victim)).chosen(cost);
        let stream = if cause == cause::WEAR { LEVELLED } else { self.moves_to(victim) };
        Cursor { retiring, ..Cursor::new(&self.geometry, victim, stream, copyback) }
    }

    /// Plans the next moves out of a block into `moves`, and takes their target pages, at most `batch` of them. The
    /// plan is empty when nothing is left to move. Returns `false` when there are no pages, which happens only after
    /// blocks have gone bad. The memory of `moves` is reused.
    pub(super) fn plan(&mut self, cursor: &mut Cursor, batch: Option<u32>, moves: &mut Moves) -> bool {
        moves.clear(&self.geometry, cursor);
        let most = batch.map_or(usize::MAX, |batch| self.programs.together.whole(batch) as usize);
        let mut planned = Some(());
        if cursor.copybacks {
            planned = self.plan_copybacks(cursor, most, moves);
        }
        // The units left after the copies are packed.
        if planned.is_some() && moves.is_empty() {
            planned = self.plan_packing(cursor, most, moves);
        }
        if planned.is_none() {
            // Nothing has been begun: all pages are withdrawn, from the first of each block on.
            let geometry = self.geometry;
            let of = |block| moves.all_targets().filter(move |page| geometry.block_of(*page) == block);
            self.abandon(moves, |block| of(block).map(|page| geometry.page_in_block(page)).min().unwrap_or_default());
        }
        planned.is_some()
    }

    /// Planned moves have failed. Of their target pages, those that were begun are used up; `used` returns how many
    /// pages of a block are used up.
    fn abandon(&mut self, moves: &Moves, used: impl Fn(BlockId) -> u32) {
        for page in moves.all_targets() {
            let block = self.geometry.block_of(page);
            if self.geometry.page_in_block(page) < used(block) {
                self.page_programmed(page);
            } else if self.tables.blocks.get(block).allocated > used(block) {
                self.tables.free.take_back(&mut self.tables.blocks, block, used(block));
            }
            self.check_retiring(block);
        }
    }

    /// Pages that are current as a whole.
    fn plan_copybacks(&mut self, cursor: &mut Cursor, most: usize, moves: &mut Moves) -> Option<()> {
        let (geometry, plane) = (self.geometry, self.geometry.plane_of(cursor.victim));
        while let Some(page) = self.next_whole_page(cursor) {
            if moves.copybacks.len() == most {
                return Some(());
            }
            cursor.next = geometry.unit_at(page, geometry.units_per_page());
            moves.copybacks.push((page, self.collector_page(plane, cursor.stream)?));
        }
        let retiring = cursor.retiring;
        *cursor = Cursor { retiring, ..Cursor::new(&geometry, cursor.victim, cursor.stream, false) };
        Some(())
    }

    /// The next fully current page.
    fn next_whole_page(&self, cursor: &Cursor) -> Option<PageId> {
        let per_page = self.geometry.units_per_page();
        let (mut page, mut count) = (PageId(u32::MAX), 0);
        self.left(cursor).find_map(|unit| {
            let of = self.geometry.page_of(unit);
            (page, count) = (of, if of == page { count + 1 } else { 1 });
            (count == per_page).then_some(page)
        })
    }

    /// The other units, packed into as few pages as they fit.
    fn plan_packing(&mut self, cursor: &mut Cursor, most: usize, moves: &mut Moves) -> Option<()> {
        let (geometry, plane) = (self.geometry, self.geometry.plane_of(cursor.victim));
        let bytes_per_unit = geometry.unit_size() + self.owner_bytes;
        let per_page = geometry.units_per_page() as usize;
        self.tables.blocks.take_valid((cursor.victim, cursor.next), most.saturating_mul(per_page), &mut moves.units);
        for unit in &moves.units {
            let page = geometry.page_of(*unit);
            match moves.reads.last_mut() {
                Some((last, bytes)) if *last == page => *bytes += bytes_per_unit,
                // The previous batch read this page; its other units are still in the controller.
                _ if cursor.read == Some(page) => {}
                _ => moves.reads.push((page, bytes_per_unit)),
            }
        }
        if let Some(last) = moves.units.last() {
            cursor.next = UnitId(last.0 + 1);
            cursor.read = Some(geometry.page_of(*last));
        }
        for _ in 0..self.programs.together.whole(moves.units.len().div_ceil(per_page) as u32) {
            moves.targets.push(self.collector_page(plane, cursor.stream)?);
        }
        Some(())
    }

    /// Pages that are read to move the next `units` units.
    fn pages_to_read(&self, cursor: &Cursor, units: u32) -> u32 {
        let mut last = cursor.read;
        let is_next = |unit: &UnitId| {
            let page = Some(self.geometry.page_of(*unit));
            std::mem::replace(&mut last, page) != page
        };
        self.left(cursor).take(units as usize).filter(is_next).count() as u32
    }

    /// The current units of a block that are not planned yet.
    fn left(&self, cursor: &Cursor) -> impl Iterator<Item = UnitId> {
        self.tables.blocks.valid_units(cursor.victim, cursor.next)
    }

    /// A plane's next page for moved data. If no block has gone bad, the collector's reserve has room for any block's data;
    /// otherwise the collector may have to take over the host's open block.
    fn collector_page(&mut self, plane: PlaneId, stream: Stream) -> Option<PageId> {
        let host = self.host_beside(stream);
        let Tables { free, blocks, .. } = &mut self.tables;
        let page = free.get(blocks, plane, stream).or_else(|| {
            self.taken_over(plane, host);
            let Tables { free, blocks, .. } = &mut self.tables;
            free.take_over(blocks, plane, host, stream);
            free.get(blocks, plane, stream)
        });
        if let Some(page) = page {
            self.opened(page, stream);
        }
        // A block that the collector opens is one less for the host.
        self.update_ready(plane);
        page
    }

    /// Enters moves that were done for `cause` into the tables and counts them. Data that the host has replaced meanwhile is
    /// skipped. `lpn` returns the logical unit of the data at a unit.
    #[inline(never)]
    pub(super) fn commit(&mut self, moves: &Moves, cause: Cause, lpn: impl Fn(UnitId) -> Lpn) {
        self.count_moves(moves, cause);
        if self.placed.is_some() {
            self.count_placed(moves, &lpn);
        }
        if self.rain.is_some() {
            self.has_copied(moves);
        }
        let (per_page, geometry) = (self.geometry.units_per_page(), self.geometry);
        let mut owners = std::mem::take(&mut self.owners);
        let copied =
            moves.copybacks.iter().flat_map(|(from, _)| (0..per_page).map(|number| geometry.unit_at(*from, number)));
        owners.extend(copied.map(&lpn));
        owners.extend(moves.units.iter().map(|unit| lpn(*unit)));
        owners.iter().for_each(|owner| self.tables.map.prefetch(*owner));
        let of_copybacks = moves.copybacks.len() * per_page as usize;
        if of_copybacks > 0 {
            self.commit_copybacks(moves, &owners[..of_copybacks]);
        }
        let mut owner = owners[of_copybacks..].iter();
        for (page, group) in moves.packed(per_page) {
            for ((from, owner), number) in group.iter().zip(owner.by_ref()).zip(0..) {
                self.relocated(*owner, *from, geometry.unit_at(page, number));
            }
            self.page_programmed(page);
        }
        owners.clear();
        self.owners = owners;
    }

    /// The pages among them that were copied within their plane.
    #[inline(never)]
    fn commit_copybacks(&mut self, moves: &Moves, owners: &[Lpn]) {
        let (per_page, geometry) = (self.geometry.units_per_page(), self.geometry);
        for (&(from, to), owners) in moves.copybacks.iter().zip(owners.chunks(per_page as usize)) {
            for (number, owner) in (0..per_page).zip(owners) {
                self.relocated(*owner, geometry.unit_at(from, number), geometry.unit_at(to, number));
            }
            self.page_programmed(to);
        }
    }

    /// Counts the programs of a collection for `cause`.
    fn count_moves(&mut self, moves: &Moves, cause: Cause) {
        let per_page = u64::from(self.geometry.units_per_page());
        let moved = u64::from(moves.count(self.geometry.units_per_page()));
        self.counters.padding_units += moves.targets.len() as u64 * per_page - moves.units.len() as u64;
        match cause {
            cause::WEAR => self.counters.wear_units += moved,
            _ => self.counters.gc_units += moved,
        }
    }

    /// A block that a collection for `cause` has emptied is erased.
    pub(super) fn reclaim(&mut self, block: BlockId, cause: Cause) {
        let plane = self.geometry.plane_of(block);
        self.count_block(cause);
        self.plane_worn(plane);
        self.collectors.of_mut(plane).without_victim();
        self.tables.free.put(&mut self.tables.blocks, block);
        self.update_ready(plane);
    }

    fn count_block(&mut self, cause: Cause) {
        match cause {
            cause::WEAR => self.counters.wear_blocks += 1,
            _ => self.counters.gc_blocks += 1,
        }
    }
}

impl PageFtl {
    /// Starts the collectors that are admitted, and resumes those that were woken.
    pub(super) fn start_collectors(&self) {
        if self.is_running() {
            self.start_admitted(&mut self.state.borrow_mut());
        }
    }

    /// The same, of an FTL that runs.
    #[inline]
    pub(super) fn start_admitted(&self, state: &mut State) {
        while let Some(plane) = state.next_collector() {
            self.collectors.start(plane);
        }
        state.collectors.woken().for_each(|plane| self.go_on[plane.0 as usize].notify());
    }

    /// Cleans blocks of a plane until it has enough space or no block would gain anything. After each block, planes that wait
    /// for the admission policy have their turn first.
    pub(super) async fn collect_plane(&self, plane: PlaneId) {
        let (mut fruitless, mut to_level) = (false, None);
        loop {
            let levelling = to_level.take().map(|cursor| (cursor, cause::WEAR));
            let Some((cursor, cause)) = levelling.or_else(|| self.next_block(plane, &mut fruitless)) else { break };
            // The only call: the compiler merges the work on a block with this loop, and each poll passes a call less.
            if !self.collect_block(plane, cursor, cause).await {
                break;
            }
            to_level = if cause == cause::GC { self.next_to_level(plane) } else { None };
            if to_level.is_none() && self.state.borrow().collectors.any_due() {
                break;
            }
        }
        let mut state = self.state.borrow_mut();
        state.programs.holdups.collecting(plane, false);
        state.collector_ended(plane, fruitless);
        drop(state);
        self.came_to_rest.notify();
        self.pump();
    }

    fn has_to_collect(&self, plane: PlaneId) -> bool {
        let state = self.state.borrow();
        let collector = state.collectors.of(plane);
        state.collectors.phase(plane) == Phase::Running
            && (collector.left_off.is_some()
                || !collector.retiring.is_empty()
                || state.has_to_refresh(plane)
                || state.is_low(plane))
    }

    /// The block that planting has left, or else one that has gone bad, or else the policy's choice.
    fn next_victim(&self, plane: PlaneId) -> Option<Cursor> {
        let mut state = self.state.borrow_mut();
        let left_off = state.collectors.of_mut(plane).left_off.take();
        left_off.or_else(|| {
            let retiring = state.collectors.of_mut(plane).retiring.pop();
            let victim = retiring.or_else(|| state.victim(plane))?;
            Some(state.begin(victim, self.config.gc.copyback, cause::GC))
        })
    }

    /// Waits until the host has used up the space that the collector has gained, there is a window for its next step,
    /// and it is admitted again. Returns whether the collector may continue with its block.
    async fn keep_pace(&self, plane: PlaneId, victim: BlockId) -> bool {
        loop {
            let fits = self.step_of(plane, victim).is_some();
            let (waits, others) = {
                let mut state = self.state.borrow_mut();
                match state.collectors.phase(plane) {
                    Phase::Running if fits && state.may_collect(plane) => return true,
                    // Another block may have its turn.
                    Phase::Running if state.is_of_closed_range(victim) => return false,
                    Phase::Running => state.collectors.set_ahead(plane),
                    Phase::Ahead | Phase::DueAgain => {}
                    _ => return false,
                }
                (self.go_on[plane.0 as usize].changed(), state.collectors.any_due())
            };
            if others {
                self.start_collectors();
            }
            waits.await;
        }
    }

    /// Whether a collector that is to take its next step has to wait first.
    fn is_to_wait(&self, plane: PlaneId, victim: BlockId, cause: Cause) -> bool {
        let state = self.state.borrow();
        let has_to_wait = || state.collectors.phase(plane) != Phase::Running || !state.may_collect(plane);
        match state.is_unlimited() {
            true => cause == cause::GC && has_to_wait(),
            false => has_to_wait() || self.step_of(plane, victim).is_none(),
        }
    }

    /// The block that a plane's collector empties next, with the cause. `fruitless` becomes true if no block would gain anything.
    fn next_block(&self, plane: PlaneId, fruitless: &mut bool) -> Option<(Cursor, Cause)> {
        if !self.has_to_collect(plane) {
            return None;
        }
        if let Some(cursor) = self.next_aged(plane) {
            return Some((cursor, cause::WEAR));
        }
        if !self.has_to_collect(plane) {
            return None;
        }
        let victim = self.next_victim(plane);
        *fruitless = victim.is_none();
        victim.map(|cursor| (cursor, cause::GC))
    }

    /// Static wear levelling: moves cold data off a block that has rarely been erased, so that the block is used again. The
    /// data goes to the most worn free block, and keeps that one from being erased.
    fn next_to_level(&self, plane: PlaneId) -> Option<Cursor> {
        let threshold = self.config.wear.static_threshold;
        if threshold == 0 {
            return None;
        }
        let mut state = self.state.borrow_mut();
        let block = state.tables.least_worn(plane, threshold)?;
        Some(state.begin(block, self.config.gc.copyback, cause::WEAR))
    }

    /// Moves the current data out of a block and erases it. Returns whether the plane's collector may continue.
    async fn collect_block(&self, plane: PlaneId, mut cursor: Cursor, cause: Cause) -> bool {
        let (gc, victim) = (&self.config.gc, cursor.victim);
        let who = self.config.priority.who(cause);
        let (mut seized, mut moves) = (None, self.first_moves(&cursor));
        loop {
            if !cursor.retiring && self.is_to_wait(plane, victim, cause) {
                drop(seized.take());
                if !self.keep_pace(plane, victim).await {
                    return self.leave(cursor);
                }
            }
            let mut holding = match seized.take() {
                Some(holding) => holding,
                None => self.seize(plane, who, self.time_of_step(plane, &cursor)).await,
            };
            let takes_no_time = self.background.takes_no_time();
            if takes_no_time {
                // Many planes are collected at one instant: what arrives meanwhile does not wait for all of them.
                self.sim.after_what_is_due().await;
            }
            // A restart after a power cut checks how far blocks are written: no pages are taken meanwhile.
            if !self.is_running() {
                return self.leave(cursor);
            }
            // The window may have ended meanwhile.
            let Some(most) = self.step_of(plane, victim).or_else(|| cursor.retiring.then_some(gc.batch)) else {
                drop(holding);
                continue;
            };
            let most = if takes_no_time { Some(most.unwrap_or(u32::MAX).min(AT_ONE_INSTANT)) } else { most };
            holding.flash.set_preemptible(self.may_preempt(plane));
            let before = cursor;
            let planned = self.state.borrow_mut().plan(&mut cursor, most, &mut moves);
            if !planned {
                self.state.borrow_mut().take_out(plane);
                return self.leave(cursor);
            }
            if moves.is_empty() {
                seized = Some(holding);
                break;
            }
            let after = holding.work.as_ref().map_or(Span::ZERO, |_| self.time_after(plane, victim, &moves));
            self.state.borrow_mut().step_begins(victim);
            if let Some(work) = &holding.work {
                work.moves(&moves, after);
            }
            if let Err(broken) = self.relocate(&mut holding, &mut moves, after).await {
                // Nothing has been committed: the batch is planned again.
                if !self.not_moved(&moves, broken) {
                    return self.leave(cursor);
                }
                cursor = before;
                continue;
            }
            self.state.borrow_mut().commit(&moves, cause, |unit| self.owner(unit, &moves));
            self.sim.note_work(moves.count(self.media.geometry().units_per_page()).into());
            if gc.batch.is_none() {
                seized = Some(holding);
            }
            if self.state.borrow_mut().moved(plane, &moves) {
                self.pump();
            }
        }

        // In a box: once a block, and not in the way of its moves.
        Box::pin(self.erase_block((plane, who), cursor, seized, cause)).await
    }

    /// Erases the block that has been emptied, with the resources that the collection still holds. Returns whether the plane's collector
    /// may continue.
    async fn erase_block<'a>(
        &'a self,
        (plane, who): (PlaneId, Who),
        cursor: Cursor,
        mut seized: Option<Seizure<'a>>,
        cause: Cause,
    ) -> bool {
        let victim = cursor.victim;
        let mut holding = loop {
            // Reads that looked the block up before the move must finish before the erase.
            if self.pins(victim) > 0 {
                drop(seized.take());
                while self.pins(victim) > 0 {
                    self.unpinned.changed().await;
                }
            }
            if !cursor.retiring && self.step_of(plane, victim).is_none() {
                drop(seized.take());
                if !self.keep_pace(plane, victim).await {
                    return self.leave(cursor);
                }
                continue;
            }
            let holding = match seized.take() {
                Some(holding) => holding,
                None => self.seize(plane, who, self.time_of_erase()).await,
            };
            if cursor.retiring || self.step_of(plane, victim).is_some() {
                break holding;
            }
        };
        self.state.borrow_mut().step_begins(victim);
        // Tables that were rebuilt meanwhile may have found the older of two copies.
        if self.state.borrow().tables.blocks.get(victim).valid > 0 {
            return self.leave(cursor);
        }
        holding.flash.set_preemptible(self.may_preempt(plane));
        holding.work.iter().for_each(|work| work.erases());
        let erased = match cursor.retiring {
            true => Err(MediaError::Failed),
            false => {
                self.state.borrow_mut().erase_begins();
                holding.flash.erase(victim).await
            }
        };
        drop(holding);
        if erased.is_ok() {
            self.state.borrow_mut().reclaim(victim, cause);
            self.scrub_later();
        }
        if !cursor.retiring {
            self.state.borrow_mut().erase_ended();
        }
        match erased {
            Ok(()) => {}
            Err(MediaError::PowerLost) => return self.leave(cursor),
            Err(MediaError::Uncorrectable | MediaError::Failed) => self.state.borrow_mut().retire(victim),
            Err(MediaError::Misuse(misuse)) => panic!("a bug of the page FTL: erase of {victim:?}: {misuse}"),
            Err(MediaError::Store) => {
                self.state.borrow_mut().damage.read_only = Some(ReadOnly::Store);
                return self.leave(cursor);
            }
            Err(MediaError::NoAnswer) => {
                self.state.borrow_mut().take_out(plane);
                return self.leave(cursor);
            }
        }
        self.pump();
        true
    }

    /// Leaves a block as it was. The collector ends.
    fn leave(&self, cursor: Cursor) -> bool {
        self.state.borrow_mut().leave(cursor.victim, cursor.retiring);
        self.pump();
        false
    }

    /// Moves have failed. Returns whether the plane stays in use.
    fn not_moved(&self, moves: &Moves, broken: Broken) -> bool {
        let mut state = self.state.borrow_mut();
        let goes_on = state.take_note(broken);
        state.abandon(moves, |block| self.media.pages_programmed(block));
        drop(state);
        self.check_read_only();
        goes_on
    }

    /// The logical unit whose data is at `unit`, as the collector has learned it: from its table, or from the out-of-band
    /// area that it has read.
    #[inline]
    fn owner(&self, unit: UnitId, moves: &Moves) -> Lpn {
        match self.config.gc.owner {
            OwnerSource::Table => Lpn(self.media.tag(unit)),
            OwnerSource::OutOfBand => moves.owner_read(unit),
        }
    }

    /// No moves yet. The page at which planting has left a block is in the controller.
    fn first_moves(&self, cursor: &Cursor) -> Moves {
        let (mut moves, geometry) = (Moves::default(), self.media.geometry());
        if let Some(page) = cursor.read {
            let units = (0..geometry.units_per_page()).map(|number| geometry.unit_at(page, number));
            moves.learn(units.map(|unit| (unit, self.media.tag(unit))));
        }
        moves
    }

    /// The bytes that cross the channel when pages are copied within their plane.
    fn crossing(&self) -> Crossing {
        let GcConfig { copyback_ecc, owner, .. } = self.config.gc;
        match owner {
            _ if copyback_ecc => Crossing::Page,
            OwnerSource::OutOfBand => Crossing::OutOfBand,
            OwnerSource::Table => Crossing::Nothing,
        }
    }

    /// Waits until the resources of the scheme are free: the controller, the plane, the channel. They will be held for
    /// about `time`.
    async fn seize(&self, plane: PlaneId, who: Who, time: Span) -> Seizure<'_> {
        let work = self.background.collection(plane, time).map(Box::new);
        let controller = match self.gate.is_used() {
            true => Box::pin(self.gate.close(who)).await,
            false => None,
        };
        let flash = self.media.seize_for(plane, self.config.gc.scheme.holding(), who, time).await;
        Seizure { flash, _controller: controller, work }
    }

    /// Whether the expected time of a step is of use: to reads, or to a host that is notified of operations.
    #[inline]
    fn tells_times(&self) -> bool {
        self.background.counts() || self.media.is_watched()
    }

    /// How long a collection holds a plane to erase its block; zero where that is of no use.
    #[inline]
    fn time_of_erase(&self) -> Span {
        if self.tells_times() { self.background.cleaning(0) } else { Span::ZERO }
    }

    /// How long a collection holds a plane for the next step: a batch, or the whole block; zero where that is of no use.
    #[inline]
    fn time_of_step(&self, plane: PlaneId, cursor: &Cursor) -> Span {
        if self.tells_times() { self.time_of_moves(plane, cursor) } else { Span::ZERO }
    }

    fn time_of_moves(&self, plane: PlaneId, cursor: &Cursor) -> Span {
        let victim = cursor.victim;
        let units = self.state.borrow().tables.blocks.get(victim).valid;
        let time = match self.config.gc.batch {
            None => self.background.cleaning(units),
            Some(_) if units == 0 => self.background.cleaning(0),
            Some(batch) => {
                let units = units.min(batch.saturating_mul(self.media.geometry().units_per_page()));
                let from = self.state.borrow().pages_to_read(cursor, units);
                self.background.moving_to((from, self.next_target(plane, cursor)), units)
            }
        };
        // The end of a window makes it release its resources.
        let left = self.state.borrow().time_for_step(plane, victim, self.sim.now());
        left.map_or(time, |left| time.min(left))
    }

    /// The number within its block of the target page of the next move.
    fn next_target(&self, plane: PlaneId, cursor: &Cursor) -> u32 {
        let state = self.state.borrow();
        state.tables.free.next_number(&state.tables.blocks, plane, cursor.stream)
    }

    /// How long it holds the plane after these moves, without a pause.
    fn time_after(&self, plane: PlaneId, victim: BlockId, moves: &Moves) -> Span {
        if self.config.gc.batch.is_some() {
            return Span::ZERO;
        }
        let (state, moved) = (self.state.borrow(), moves.count(self.media.geometry().units_per_page()));
        let time = self.background.cleaning(state.tables.blocks.get(victim).valid.saturating_sub(moved));
        let left = state.time_for_step(plane, victim, self.sim.now());
        left.map_or(time, |left| time.min(left.saturating_sub(self.background.moving(moved))))
    }

    /// Whether a collection of a plane lets urgent reads in now.
    fn may_preempt(&self, plane: PlaneId) -> bool {
        self.config.gc.preempt_above.is_some_and(|above| self.state.borrow().may_preempt(plane, above))
    }

    /// Carries moves out. The plane is held for `after` more.
    async fn relocate(&self, holding: &mut Seizure<'_>, moves: &mut Moves, after: Span) -> Result<(), Broken> {
        let seized = &mut holding.flash;
        let reads_owners = self.config.gc.owner == OwnerSource::OutOfBand;
        if reads_owners {
            seized.keep_tags();
        }
        if !moves.copybacks.is_empty() {
            let unreadable = seized.copyback(&moves.copybacks, self.crossing()).await?;
            moves.learn(seized.take_tags());
            self.lose(&unreadable, moves);
        }
        let is_remote = self.media.is_remote();
        if is_remote && Box::pin(self.copy_elsewhere(seized, moves)).await? {
            return Ok(());
        }
        let unreadable = seized.read(&moves.reads).await?;
        if let Some(work) = &holding.work {
            work.has_read(moves, after);
        }
        if reads_owners {
            moves.learn(seized.take_tags());
        }
        if !unreadable.is_empty() {
            self.lose(&unreadable, moves);
        }
        if is_remote {
            self.lose_unreadable(moves);
        }
        let ended = self.program_moves(seized, moves).await;
        if is_remote {
            self.release_sources(moves);
        }
        ended
    }

    /// Remote flash may copy by itself: returns whether it has. If not, it is notified which units are read.
    #[cold]
    async fn copy_elsewhere(&self, seized: &mut Seized<'_>, moves: &mut Moves) -> Result<bool, Broken> {
        let per_page = self.media.geometry().units_per_page() as usize;
        if !seized.can_copy_together() {
            self.want_pages(moves);
            return Ok(false);
        }
        seized.cross_areas(moves.reads.iter().map(|(page, _)| *page));
        moves.learn(seized.take_tags());
        for (page, units) in moves.targets.iter().zip(moves.units.chunks(per_page)) {
            seized.copy_together(units, *page).await?;
        }
        self.lose_unreadable(moves);
        Ok(true)
    }

    /// The data read from remote flash is abandoned.
    #[cold]
    fn release_sources(&self, moves: &Moves) {
        if let Some(unit) = moves.units.first() {
            let block = self.media.geometry().block_of(self.media.geometry().page_of(*unit));
            // The rest of the last page is moved by the next batch, which does not read it again.
            self.media.release(block, moves.reads.last().map(|(page, _)| *page));
        }
    }

    /// All current units of the pages will be read.
    fn want_pages(&self, moves: &Moves) {
        let (state, geometry) = (self.state.borrow(), self.media.geometry());
        let units = |page: PageId| (0..geometry.units_per_page()).map(move |number| geometry.unit_at(page, number));
        let wanted = moves.reads.iter().flat_map(|(page, _)| units(*page));
        self.media.want(wanted.filter(|unit| state.tables.blocks.is_valid(*unit)));
    }

    /// Programs the data read.
    async fn program_moves(&self, seized: &mut Seized<'_>, moves: &Moves) -> Result<(), Broken> {
        let word_line = self.state.borrow().programs.together.word_line as usize;
        let units = word_line * self.media.geometry().units_per_page() as usize;
        for (pages, units) in moves.targets.chunks(word_line).zip(moves.units.chunks(units)) {
            let image = self.image_of(units, pages.len());
            if self.media.take_read_failure() {
                let page = self.media.geometry().page_of(units[0]);
                return Err(Broken { error: MediaError::Uncorrectable, page });
            }
            seized.program_together(pages, &image).await?;
        }
        Ok(())
    }

    /// Remote flash fails to read units, where local flash fails to read pages. Marks such units of the moves as lost:
    /// those of pages copied within their plane, and those of other pages.
    #[cold]
    fn lose_unreadable(&self, moves: &Moves) {
        let geometry = self.media.geometry();
        let of_page = |(page, _): &(PageId, PageId)| {
            let page = *page;
            (0..geometry.units_per_page()).map(move |number| geometry.unit_at(page, number))
        };
        let units = moves.copybacks.iter().flat_map(of_page).chain(moves.units.iter().copied());
        let lost: Vec<UnitId> = units.filter(|unit| self.media.is_lost_elsewhere(*unit)).collect();
        self.state.borrow_mut().lose_units(&lost, |unit| self.owner(unit, moves));
    }

    fn lose(&self, unreadable: &[PageId], moves: &Moves) {
        let mut state = self.state.borrow_mut();
        unreadable.iter().for_each(|page| state.lose_page(*page, |unit| self.owner(unit, moves)));
    }

    /// The image of `pages` pages with units that were read, padded at the end.
    fn image_of(&self, units: &[UnitId], pages: usize) -> PageImage {
        let mut image = PageImage::default();
        self.media.copy_all_to(&mut image, units);
        image.pad(pages * self.media.geometry().units_per_page() as usize, NO_LPN);
        image
    }

    fn pins(&self, block: BlockId) -> u32 {
        self.state.borrow().tables.blocks.pins(block)
    }
}
