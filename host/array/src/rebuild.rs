//! Rebuilds of members on spares, and scrubs. Both go stripe by stripe, with its lock held, and give way to commands of hosts: after
//! each stripe they wait as long as the rate says, and for the commands in work, but not for ever.

use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_sim::Span;
use nandscape_wire_nvme::Status;

use crate::array::{Array, Core};
use crate::geometry::Reach;
use crate::level::Role;
use crate::parity::{p_of, q_of};
use crate::write::{SubWrite, SubWrites};

/// What a scrub has found.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ScrubReport {
    /// Stripes looked at.
    pub stripes: u64,
    /// Of those, with parity or copies that differ from the data; they were repaired.
    pub mismatches: u64,
    /// Of those, that could not be read as a whole.
    pub unreadable: u64,
}

impl Array {
    /// Looks at every stripe: parity that does not fit the data, and copies that differ from the first, are written again. Stripes
    /// with a member missing are left out.
    pub async fn scrub(&self) -> ScrubReport {
        let (core, mut report) = (self.core().clone(), ScrubReport::default());
        for stripe in 0..core.geometry.stripes {
            if core.missing(stripe) == 0 && core.level.tolerates() > 0 {
                core.scrub_stripe(stripe, &mut report).await;
                core.give_way().await;
            }
        }
        report
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

    /// Makes a drive a spare again, by its number among those the array was made of. It is used where a member is missing: what it
    /// holds is not trusted.
    pub fn add_spare(&self, drive: usize) {
        let core = self.core();
        let failed = core.failed.get();
        let in_use =
            core.drive_of.borrow().iter().enumerate().any(|(member, of)| *of == drive && failed & 1 << member == 0);
        if drive < core.paths.len() && !in_use && !core.spares.borrow().contains(&drive) {
            core.spares.borrow_mut().push(drive);
            core.start_rebuild();
        }
    }
}

impl Core {
    fn whole_chunk(&self) -> Reach {
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
        let core = self.clone();
        self.sim.spawn(async move { core.rebuild(member).await });
    }

    async fn rebuild(self: Rc<Self>, member: usize) {
        for stripe in 0..self.geometry.stripes {
            let guard = self.locks.exclusive(stripe).await;
            if self.rebuilding.get() != Some((member, stripe)) {
                return;
            }
            // A stripe that cannot be read stays lost: reads of it say so.
            if let Ok(mem) = self.chunk_of(stripe, member).await
                && self.rebuilding.get() == Some((member, stripe))
            {
                let write = SubWrite { member, reach: self.whole_chunk(), mem: Some(mem), is_rebuild: true };
                let writes = SubWrites::from_iter([write]);
                let paths = self.paths.clone();
                if self.carry_out(&paths, stripe, &writes, 0, 0).await.is_err() {
                    self.fail(member);
                    return;
                }
                self.stats.borrow_mut().rebuilt += 1;
            }
            if self.rebuilding.get() == Some((member, stripe)) {
                self.rebuilding.set(Some((member, stripe + 1)));
            } else {
                return;
            }
            drop(guard);
            self.give_way().await;
        }
        self.rebuilding.set(None);
        self.start_recording();
        self.start_rebuild();
    }

    /// What a member should hold of a stripe, from the others.
    async fn chunk_of(self: &Rc<Self>, stripe: u64, member: usize) -> Result<HostMem, Status> {
        let (paths, reach, data) = (self.paths.clone(), self.whole_chunk(), self.level.data());
        let (wanted, place): (Vec<usize>, usize) = match self.level.role(stripe, member) {
            Role::Data(index) => (vec![index], index),
            Role::P => ((0..data).collect(), data),
            Role::Q => ((0..data).collect(), data + 1),
        };
        let mut columns = self.load(&paths, (stripe, reach), &wanted, 1 << member, 0).await?;
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

    pub(crate) async fn scrub_stripe(self: &Rc<Self>, stripe: u64, report: &mut ScrubReport) {
        let _guard = self.locks.exclusive(stripe).await;
        let (paths, reach) = (self.paths.clone(), self.whole_chunk());
        report.stripes += 1;
        let mut found = Vec::new();
        for member in 0..self.level.members() {
            match self.read_one(&paths, stripe, member, reach).await {
                Some(mem) => found.push(mem.to_vec()),
                None => {
                    report.unreadable += 1;
                    return;
                }
            }
        }
        if !self.info.keeps_data {
            return;
        }
        let data: Vec<Option<Vec<u8>>> =
            (0..self.level.data()).map(|index| Some(found[self.level.member(stripe, index, 0)].clone())).collect();
        let right = |member: usize| match self.level.role(stripe, member) {
            Role::Data(index) => data[index].clone().unwrap_or_default(),
            Role::P => self.parity_of(&data, 0),
            Role::Q => self.parity_of(&data, 1),
        };
        let mut writes = SubWrites::new();
        for (member, found) in found.iter().enumerate() {
            let right = right(member);
            if right != *found {
                writes.push(SubWrite { member, reach, mem: Some(HostMem::from_bytes(&right)), is_rebuild: false });
            }
        }
        if !writes.is_empty() {
            report.mismatches += 1;
            // What fails is seen by the next scrub.
            let _ = self.carry_out(&paths, stripe, &writes, 0, 0).await;
        }
    }

    /// Lets commands of hosts go first, for a time that keeps the rate.
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
