//! Reads of the host that avoid a plane: because it collects (GC-tolerant read, Li 3.3.3), because it is out of use, or
//! because the page could not be read.
//!
//! The other members of the stripe are read concurrently. Members that the same command reads are not read a second
//! time: a read of a full stripe takes the parity in addition, and nothing else.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::ftl::{Destination, ReadError, Unreadable};
use nandscape_device_ftl_core::policy::{PendingRead, Verdict};
use nandscape_device_ftl_core::reading::{PageRead, PageReads};
use nandscape_device_media::{Broken, MediaError, PageId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::executor::TaskId;

use super::super::PageFtl;
use super::super::state::State;
use super::members_of;
use super::rebuild::Rebuild;

/// A page that is reconstructed from the others of its stripe, and the pages of the same command that it needs.
pub struct StripeRead {
    lpn: Lpn,
    rebuild: Rebuild,
    /// Members that the command reads, a bit each.
    shared: u32,
    /// Of these, the members that have not been read yet.
    left: Cell<u32>,
    has_failed: Cell<bool>,
    waiting: Cell<Option<TaskId>>,
}

impl std::fmt::Debug for StripeRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StripeRead({:?})", self.lpn)
    }
}

impl PageFtl {
    /// The unit that a page is read for.
    fn unit_of(&self, read: &PageRead<StripeRead>) -> Lpn {
        Lpn(self.state.borrow().unit.unit_of(read.sector) as u32)
    }

    /// Decides which pages of a command are reconstructed from others.
    #[cold]
    pub(in super::super) fn go_round(&self, pages: &mut PageReads<StripeRead>) {
        let lpns: smallvec::SmallVec<[Lpn; 8]> = pages.iter().map(|read| self.unit_of(read)).collect();
        let state = &mut *self.state.borrow_mut();
        for index in 0..pages.len() {
            let (page, lpn) = (&pages[index], lpns[index]);
            if page.round.is_some() {
                continue;
            }
            if !page.is_absent && !self.is_kept_away(state, lpn) && !self.is_collected(state, page.page) {
                continue;
            }
            let Some((stripe, _)) = state.rain.as_deref().map(|rain| rain.layout.stripe_of(lpns[index])) else {
                return;
            };
            let Some(rebuild) = state.plan_rebuild(lpns[index]) else { continue };
            let is_sibling = |other: usize| {
                let (of, member) = self.stripe_of(state, lpns[other]);
                let is_here = rebuild.snapshot.units[member as usize].map(|unit| state.geometry.page_of(unit));
                of == stripe && other != index && is_here == Some(pages[other].page) && pages[other].round.is_none()
            };
            let siblings: smallvec::SmallVec<[usize; 8]> =
                (0..pages.len()).filter(|other| is_sibling(*other)).collect();
            let shared = siblings.iter().fold(0, |mask, other| mask | 1 << self.stripe_of(state, lpns[*other]).1);
            let shared = shared & rebuild.others;
            if !self.is_worth_it(state, &rebuild, &pages[index], lpns[index], shared) {
                state.let_go_of(&rebuild);
                continue;
            }
            let round = Rc::new(StripeRead {
                lpn: lpns[index],
                rebuild,
                shared,
                left: Cell::new(shared.count_ones()),
                has_failed: Cell::new(false),
                waiting: Cell::new(None),
            });
            siblings.iter().chain([&index]).for_each(|page| pages[*page].round = Some(round.clone()));
        }
    }

    fn stripe_of(&self, state: &State, lpn: Lpn) -> (u32, u32) {
        state.rain.as_deref().map_or((0, 0), |rain| rain.layout.stripe_of(lpn))
    }

    /// Reads a page, or reconstructs it from the others of its stripe.
    pub(in super::super) async fn sense_stripe<Caller, D: Destination>(
        &self,
        read: &PageRead<StripeRead>,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<u64, ReadError> {
        if let Some(round) = &read.round
            && round.lpn == self.unit_of(read)
        {
            match self.read_round(round, breakdown).await {
                Ok(()) => return Ok(self.deliver_rebuilt(read, &round.rebuild, to)),
                Err(error) => {
                    self.let_go_of(&round.rebuild);
                    if error == MediaError::PowerLost || read.is_absent {
                        self.state.borrow_mut().unpin_page(read.page);
                        self.unpinned.notify();
                        return Err(ReadError { sector: read.sector, why: Unreadable::Media(error) });
                    }
                }
            }
        }
        let counted = match self.gate.is_closed() {
            true => Some(self.pass_gate(breakdown).await),
            false => None,
        };
        let sensed = self.sense::<Caller>(read, to.is_urgent(), breakdown).await;
        drop(counted);
        if let Some(round) = &read.round
            && round.lpn != self.unit_of(read)
        {
            round.one_read(self, sensed.is_ok());
        }
        match sensed {
            Err(error @ (MediaError::Uncorrectable | MediaError::Failed | MediaError::NoAnswer)) => {
                self.read_instead(read, error, to, breakdown).await
            }
            sensed => self.page_sensed(read, sensed, to),
        }
    }

    /// A page could not be read: it is reconstructed from the others, and written again.
    async fn read_instead<D: Destination>(
        &self,
        read: &PageRead<StripeRead>,
        error: MediaError,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<u64, ReadError> {
        let lpn = self.unit_of(read);
        let planned = {
            let mut state = self.state.borrow_mut();
            state.take_note(Broken { error, page: read.page });
            state.plan_rebuild(lpn)
        };
        if let Some(rebuild) = planned {
            if self.read_others(&rebuild, 0, cause::HOST_READ, breakdown).await.is_ok() {
                // If it was moved or written meanwhile, the new copy is found, and the read page no longer counts.
                let is_there = rebuild.unit().map(|unit| self.media.geometry().page_of(unit)) == Some(read.page);
                if is_there && error != MediaError::NoAnswer {
                    self.repair(lpn, &rebuild);
                }
                return Ok(self.deliver_rebuilt(read, &rebuild, to));
            }
            self.let_go_of(&rebuild);
        }
        self.page_sensed(read, Err(error), to)
    }

    /// Reads the pages from which a page is reconstructed.
    async fn read_round(&self, round: &StripeRead, breakdown: &mut Breakdown) -> Result<(), MediaError> {
        let read = self.read_others(&round.rebuild, round.shared, cause::HOST_READ, breakdown).await;
        let began = self.sim.now();
        std::future::poll_fn(|_| {
            if round.left.get() == 0 {
                return Poll::Ready(());
            }
            round.waiting.set(Some(self.sim.current_task()));
            Poll::Pending
        })
        .await;
        // It has to wait for the pages of the command that it needs: this is the time of their reads.
        breakdown.spend(nandscape_drive::Stage::Array, self.sim.now() - began);
        read?;
        if round.has_failed.get() { Err(MediaError::Uncorrectable) } else { Ok(()) }
    }

    /// Copies the reconstructed data to the host, and releases the stripe.
    fn deliver_rebuilt<D: Destination>(&self, read: &PageRead<StripeRead>, rebuild: &Rebuild, to: &D) -> u64 {
        let data = self.rebuilt(rebuild);
        read.copies.iter().for_each(|copy| self.copy_unit(copy, data.as_deref(), to));
        let mut state = self.state.borrow_mut();
        state.let_go_of(rebuild);
        state.unpin_page(read.page);
        state.counters.rain.reconstructed_reads += 1;
        drop(state);
        self.unpinned.notify();
        u64::from(read.host_bytes)
    }
}

impl StripeRead {
    /// A page of the command that it needs has been read.
    fn one_read(&self, ftl: &PageFtl, is_ok: bool) {
        self.left.set(self.left.get() - 1);
        self.has_failed.set(self.has_failed.get() || !is_ok);
        if self.left.get() == 0
            && let Some(task) = self.waiting.take()
        {
            ftl.sim.wake(task);
        }
    }
}

impl PageFtl {
    /// Whether reads should avoid a unit's plane.
    fn is_kept_away(&self, state: &State, lpn: Lpn) -> bool {
        state.rain.as_deref().is_some_and(|rain| state.collectors.is_out_of_use(rain.layout.plane_of(lpn)))
    }

    /// Whether a collection delays a read, and reads may avoid collections.
    fn is_collected(&self, state: &State, page: PageId) -> bool {
        let plane = state.geometry.plane_of(state.geometry.block_of(page));
        self.read_policy.is_some() && state.collectors.is_running(plane)
    }

    /// Whether reading the others is better than waiting. One parity avoids one collection: if another collection
    /// delays the others, the read waits.
    fn is_worth_it(
        &self,
        state: &State,
        rebuild: &Rebuild,
        read: &PageRead<StripeRead>,
        lpn: Lpn,
        shared: u32,
    ) -> bool {
        if read.is_absent || self.is_kept_away(state, lpn) {
            return true;
        }
        let (Some(policy), plane_of) =
            (&self.read_policy, |page| state.geometry.plane_of(state.geometry.block_of(page)))
        else {
            return false;
        };
        let planes = members_of(rebuild.others).filter_map(|member| {
            let unit = rebuild.snapshot.units[member as usize]?;
            Some((member, plane_of(state.geometry.page_of(unit))))
        });
        let mut busy = 0;
        for (member, plane) in planes {
            if state.collectors.is_running(plane) {
                return false;
            }
            busy += u32::from(shared & 1 << member == 0 && self.media.is_channel_busy(plane));
        }
        let pending = PendingRead {
            remaining: self.background.remaining(plane_of(read.page)),
            alone: self.background.alone(read.flash_bytes),
            may_fail: false,
            busy_channels: Some(busy),
        };
        policy.verdict(&pending) == Verdict::Reconstruct
    }
}
