//! Rebuilds of members on spares, and scrubs. Both run stripe by stripe, with its lock held, and give way to host
//! commands. After each stripe they wait as long as the rate requires, and for a limited time for the commands under
//! way. Their sub-I/Os have the idle class until a command waits for the lock.

use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_sim::Span;
use nandscape_wire_nvme::Status;

use crate::array::{Array, Core};
use crate::flight::Sent;
use crate::geometry::Reach;
use crate::journal::RETRY;
use crate::level::Role;
use crate::member::is_interrupted;
use crate::news::News;
use crate::parity::{p_of, q_of, recover};
use crate::serve::BACKGROUND;
use crate::write::{SubWrite, SubWrites};

/// The result of a scrub.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ScrubReport {
    /// Stripes checked.
    pub stripes: u64,
    /// Stripes left out, as a member was missing.
    pub skipped: u64,
    /// Of those, with parity or copies that differ from the data; they were repaired.
    pub mismatches: u64,
    /// Of those, stripes that could not be read as a whole; the missing parts were reconstructed and written again.
    pub unreadable: u64,
}

impl Array {
    /// Checks every stripe: parity that does not fit the data, and copies that differ from the first, are written
    /// again. Stripes with a member missing are left out.
    pub async fn scrub(&self) -> ScrubReport {
        let (core, mut report) = (self.core().clone(), ScrubReport::default());
        if core.level.tolerates() == 0 {
            return report;
        }
        for stripe in 0..core.geometry.stripes {
            if core.missing(stripe) == 0 {
                while core.missing(stripe) == 0 && core.scrub_stripe(stripe, &mut report).await.is_err() {
                    core.sim.sleep(RETRY).await;
                }
                core.give_way().await;
            }
            // A stripe during which a member was lost was not checked either.
            report.skipped = stripe + 1 - report.stripes;
            core.scrubbed.set(report);
        }
        report
    }

    /// Begins a scrub, unless one is under way; whether it did.
    pub fn start_scrub(self: &Rc<Self>) -> bool {
        let core = self.core();
        if core.is_scrubbing.replace(true) {
            return false;
        }
        core.scrubbed.set(ScrubReport::default());
        let array = self.clone();
        core.sim.spawn(async move {
            let report = array.scrub().await;
            array.core().is_scrubbing.set(false);
            array.core().tell(News::Scrubbed(report));
        });
        true
    }

    /// The result of the last scrub so far, and whether it is under way.
    pub fn scrubbed(&self) -> (ScrubReport, bool) {
        (self.core().scrubbed.get(), self.core().is_scrubbing.get())
    }

    /// Whether no data is lost if a member fails now.
    pub fn can_lose(&self, member: usize) -> bool {
        member < self.core().level.members() && !self.core().loses(self.core().incomplete() | 1 << member)
    }

    /// Takes a member out of service, as if it had failed.
    pub fn fail_member(&self, member: usize) {
        if member < self.core().level.members() {
            self.core().fail(member);
        }
    }

    /// The member that is being rebuilt, and the share that is done.
    pub fn rebuilding(&self) -> Option<(usize, f64)> {
        let stripes = self.core().geometry.stripes as f64;
        self.core().rebuilding.get().map(|(member, next)| (member, next as f64 / stripes))
    }

    /// Makes a drive a spare again, by its number among those the array was made of. It is used when a member is
    /// missing; its content is not trusted. Returns whether it became a spare.
    pub fn add_spare(&self, drive: usize) -> bool {
        let core = self.core();
        let failed = core.failed.get();
        let in_use =
            core.drive_of.borrow().iter().enumerate().any(|(member, of)| *of == drive && failed & 1 << member == 0);
        let can_be = drive < core.paths.len() && !in_use && !core.spares.borrow().contains(&drive);
        if can_be {
            core.spares.borrow_mut().push(drive);
            core.start_rebuild();
        }
        can_be
    }
}

impl Core {
    pub(crate) fn whole_chunk(&self) -> Reach {
        Reach { start: 0, blocks: self.geometry.chunk_blocks }
    }

    /// Rebuilds a member that has failed on a spare, unless another is being rebuilt.
    pub(crate) fn start_rebuild(self: &Rc<Self>) {
        let failed = self.failed.get();
        if failed == 0 || self.rebuilding.get().is_some() || self.is_lost.get() || self.spares.borrow().is_empty() {
            return;
        }
        let (member, spare) = (failed.trailing_zeros() as usize, self.spares.borrow_mut().remove(0));
        self.drive_of.borrow_mut()[member] = spare;
        self.rebuilding.set(Some((member, 0)));
        self.failed.set(failed & !(1 << member));
        self.tell(News::Rebuilding { member, drive: spare });
        self.start_windows_of(member);
        self.start_recording();
        let core = self.clone();
        let spare = self.sent(member);
        self.sim.spawn(async move { core.rebuild(spare).await });
    }

    async fn rebuild(self: Rc<Self>, spare: Sent) {
        // A crash meanwhile leaves a drive that holds data: its record marks it as this array's, and as no member yet.
        self.until_recorded().await;
        for stripe in 0..self.geometry.stripes {
            let guard = self.locks.exclusive(stripe).await;
            while self.is_at(spare, stripe) && !self.rebuild_stripe(spare.member, stripe).await {
                self.sim.sleep(RETRY).await;
            }
            if !self.is_at(spare, stripe) {
                return;
            }
            self.rebuilding.set(Some((spare.member, stripe + 1)));
            drop(guard);
            self.give_way().await;
        }
        // The record of members marks the spare as whole.
        let (paths, end) = (self.paths.clone(), self.geometry.stripes);
        while self.info.volatile_cache && self.is_at(spare, end) && self.flush(&paths, BACKGROUND).await.is_err() {
            self.sim.sleep(RETRY).await;
        }
        if !self.is_at(spare, end) {
            return;
        }
        // Stripes that could not be made consistent without the member now can be.
        if self.locks.next_torn(0).is_some() {
            self.start_resync();
        }
        // Until the others' records mark it as whole, a crash with the loss of another member finds this one missing.
        self.rebuilt.set(Some(spare));
        self.start_recording();
        self.until_recorded().await;
        if self.is_at(spare, end) {
            self.rebuilt.set(None);
            self.rebuilding.set(None);
            self.tell(News::Rebuilt { member: spare.member, drive: spare.drive });
            self.start_rebuild();
        }
    }

    /// Whether this spare, and not one after it, has the stripes before this one.
    fn is_at(&self, spare: Sent, stripe: u64) -> bool {
        self.rebuilding.get() == Some((spare.member, stripe)) && self.sent(spare.member) == spare && !self.is_lost.get()
    }

    /// Writes a member's chunk of a stripe, which is locked; returns whether no power cut occurred.
    async fn rebuild_stripe(self: &Rc<Self>, member: usize, stripe: u64) -> bool {
        let mem = match self.chunk_of(stripe, member).await {
            Ok(mem) => mem,
            Err(status) if is_interrupted(status) => return false,
            Err(_) => return self.rebuild_lost(member, stripe).await,
        };
        let write = SubWrite { member, reach: self.whole_chunk(), mem: Some(mem), is_rebuild: true };
        let (writes, paths) = (SubWrites::from_iter([write]), self.paths.clone());
        match self.carry_out(&paths, stripe, &writes, 0, self.background(stripe)).await {
            Ok(_) => self.stats.borrow_mut().rebuilt += 1,
            Err(status) => return !is_interrupted(status),
        }
        true
    }

    /// A chunk that cannot be reconstructed stays lost, and its reads must fail; returns whether no power cut
    /// occurred.
    async fn rebuild_lost(self: &Rc<Self>, member: usize, stripe: u64) -> bool {
        if let Err(status) = self.condemn_torn(stripe).await
            && is_interrupted(status)
        {
            return false;
        }
        match self.condemn(stripe, 1 << member, self.whole_chunk()).await {
            Ok(()) => true,
            Err(status) if is_interrupted(status) => false,
            // Reads would return the spare's content: the array continues without it.
            Err(_) => {
                self.fail(member);
                true
            }
        }
    }

    /// The expected content of a member's chunk, from the others.
    async fn chunk_of(self: &Rc<Self>, stripe: u64, member: usize) -> Result<HostMem, Status> {
        let (paths, reach, data) = (self.paths.clone(), self.whole_chunk(), self.level.data());
        let (wanted, place): (Vec<usize>, usize) = match self.level.role(stripe, member) {
            Role::Data(index) => (vec![index], index),
            Role::P => ((0..data).collect(), data),
            Role::Q => ((0..data).collect(), data + 1),
        };
        let mut columns = self.load(&paths, (stripe, reach), &wanted, 1 << member, self.background(stripe)).await?;
        if !self.info.keeps_data {
            return Ok(HostMem::none());
        }
        let chunk =
            columns.chunks[place].take().unwrap_or_else(|| self.parity_of(&columns.chunks[..data], place - data));
        Ok(HostMem::from_bytes(&chunk))
    }

    fn parity_of(&self, data: &[Option<Vec<u8>>], check: usize) -> Vec<u8> {
        let mut sum = vec![0; self.geometry.bytes(self.geometry.chunk_blocks)];
        let all = data.iter().flatten().map(Vec::as_slice);
        if check == 0 {
            p_of(all, &mut sum)
        } else {
            q_of(all, &mut sum)
        }
        sum
    }

    /// Makes a stripe consistent, from its data, on the members that have it; unreadable chunks are reconstructed
    /// from the others and rewritten.
    ///
    /// # Errors
    /// A power cut interrupted it: it must be repeated.
    pub(crate) async fn scrub_stripe(self: &Rc<Self>, stripe: u64, report: &mut ScrubReport) -> Result<(), Status> {
        let _guard = self.locks.exclusive(stripe).await;
        let (paths, reach) = (self.paths.clone(), self.whole_chunk());
        let mut found = Vec::new();
        let missing = self.missing(stripe);
        for member in 0..self.level.members() {
            found.push(match missing & 1 << member {
                0 => {
                    self.read_one(&paths, stripe, member, reach, self.background(stripe)).await?.map(|mem| mem.to_vec())
                }
                _ => None,
            });
        }
        let unread = found.iter().enumerate().filter(|(_, bytes)| bytes.is_none());
        let unread = unread.fold(0, |all, (member, _)| all | 1 << member);
        let unreadable = unread & !missing;
        // A member that has failed meanwhile needs a rebuild. If some of the data is missing, parity is useless, but
        // copies are not. In a torn stripe, unreadable data cannot be reconstructed.
        let is_lost = self.locks.is_torn(stripe) && self.lacks_data_of(stripe, unread);
        let can_tell = !is_lost && !self.lacks_data_of(stripe, missing);
        let is_as_before = self.missing(stripe) == missing;
        let right = if can_tell && is_as_before { self.right(stripe, &found, unread) } else { None };
        let mut writes = SubWrites::new();
        if let Some(right) = &right {
            for (member, (right, found)) in right.iter().zip(&found).enumerate() {
                if missing & 1 << member == 0 && found.as_ref() != Some(right) {
                    let mem = if self.info.keeps_data { HostMem::from_bytes(right) } else { HostMem::none() };
                    writes.push(SubWrite { member, reach, mem: Some(mem), is_rebuild: false });
                }
            }
        }
        let written = match writes.is_empty() {
            true => Ok(()),
            false => self.carry_out(&paths, stripe, &writes, 0, self.background(stripe)).await.map(drop),
        };
        if written.is_err_and(is_interrupted) {
            return Err(Status::ABORTED_POWER_LOSS);
        }
        if right.is_some() && written.is_ok() {
            self.locks.mend(stripe);
        } else if is_lost && is_as_before {
            match self.condemn(stripe, self.checks_there(stripe), reach).await {
                Ok(()) => self.locks.mend(stripe),
                Err(status) if is_interrupted(status) => return Err(Status::ABORTED_POWER_LOSS),
                // It stays torn, and marked.
                Err(_) => {}
            }
        }
        report.stripes += 1;
        report.unreadable += u64::from(unreadable != 0);
        report.mismatches += u64::from(writes.iter().any(|write| unreadable & 1 << write.member == 0));
        if right.is_some() {
            self.stats.borrow_mut().repairs += u64::from(unreadable.count_ones());
        }
        Ok(())
    }

    /// The right content of each member of a stripe with unreadable members; `None` if it cannot be determined.
    fn right(&self, stripe: u64, found: &[Option<Vec<u8>>], unreadable: u32) -> Option<Vec<Vec<u8>>> {
        let (data, checks) = (self.level.data(), self.level.checks());
        if self.loses(unreadable) {
            return None;
        }
        if !self.info.keeps_data {
            return Some(vec![Vec::new(); found.len()]);
        }
        let mut chunks: Vec<Option<Vec<u8>>> = vec![None; data + checks];
        for (member, bytes) in found.iter().enumerate() {
            let place = self.place_of(stripe, member);
            chunks[place] = chunks[place].take().or_else(|| bytes.clone());
        }
        if chunks[..data].iter().any(Option::is_none) && !recover(data, &mut chunks) {
            return None;
        }
        let of = |member: usize| match self.level.role(stripe, member) {
            Role::Data(index) => chunks[index].clone(),
            Role::P => Some(self.parity_of(&chunks[..data], 0)),
            Role::Q => Some(self.parity_of(&chunks[..data], 1)),
        };
        (0..found.len()).map(of).collect()
    }

    /// A member's place among the data of a stripe and its parities.
    pub(crate) fn place_of(&self, stripe: u64, member: usize) -> usize {
        match self.level.role(stripe, member) {
            Role::Data(index) => index,
            Role::P => self.level.data(),
            Role::Q => self.level.data() + 1,
        }
    }

    /// The attributes of a background sub-I/O to a locked stripe: the idle class, or none while another waits for the lock, such as a
    /// host's write.
    pub(crate) fn background(&self, stripe: u64) -> u32 {
        if self.locks.is_awaited(stripe) { 0 } else { BACKGROUND }
    }

    /// Lets commands of hosts run first, for a time that keeps the rate.
    async fn give_way(&self) {
        let bytes = self.geometry.bytes(self.geometry.chunk_blocks) as u64;
        let pause = match self.config.rebuild_rate {
            0 => Span::ZERO,
            rate => Span::from_ns(bytes * 1_000_000_000 / rate),
        };
        let until = self.sim.now() + pause;
        self.sim.sleep_until(until).await;
        // Twice the pause for a host that is never at rest.
        if self.in_work.get() > 0 {
            self.sim.sleep(pause).await;
        }
    }
}
