//! Members that fail, commands that a power cut interrupts, and chunks that cannot be read.

use std::rc::Rc;

use crate::array::Core;
use crate::flight::Sent;
use crate::geometry::Reach;
use crate::level::Role;
use crate::news::News;
use crate::write::{SubWrite, SubWrites};

impl Core {
    /// The drive that a member is now.
    pub(crate) fn sent(&self, member: usize) -> Sent {
        Sent { member, drive: self.drive_of.borrow()[member] }
    }

    /// A command has found a drive to be unusable. Late answers of a replaced drive do not count against its successor.
    pub(crate) fn fail_drive(self: &Rc<Self>, sent: Sent) {
        if self.sent(sent.member) == sent {
            self.fail(sent.member);
        }
    }

    /// A member is unusable: the array continues without it, and rebuilds it on a spare if it has one.
    pub(crate) fn fail(self: &Rc<Self>, member: usize) {
        let bit = 1 << member;
        if self.failed.get() & bit != 0 {
            return;
        }
        self.failed.set(self.failed.get() | bit);
        self.journal.iter().for_each(|journal| journal.is_settled.set(false));
        if self.rebuilding.get().is_some_and(|(rebuilt, _)| rebuilt == member) {
            self.rebuilding.set(None);
            self.rebuilt.set(None);
        }
        self.tell(News::Failed { member, drive: self.sent(member).drive });
        if self.loses(self.incomplete()) && !self.is_lost.replace(true) {
            self.tell(News::Lost);
        }
        self.start_recording();
        if self.locks.next_torn(0).is_some() {
            self.start_resync();
        }
        self.start_rebuild();
    }

    /// Whether data is lost without these members.
    pub(crate) fn loses(&self, missing: u32) -> bool {
        let level = &*self.level;
        if level.checks() > 0 {
            return missing.count_ones() as usize > level.checks();
        }
        let is_gone = |index: usize| (0..level.copies()).all(|copy| missing & 1 << level.member(0, index, copy) != 0);
        (0..level.data()).any(is_gone)
    }

    /// Rewrites an unreadable chunk, from the others.
    pub(crate) fn start_repair(self: &Rc<Self>, stripe: u64, member: usize, reach: Reach) {
        let core = self.clone();
        self.sim.spawn(async move { core.repair(stripe, member, reach).await });
    }

    async fn repair(self: Rc<Self>, stripe: u64, member: usize, reach: Reach) {
        let _guard = self.locks.exclusive(stripe).await;
        if self.missing(stripe) & 1 << member != 0 {
            return;
        }
        let mem = match self.level.role(stripe, member) {
            Role::Data(index) => {
                let paths = self.paths.clone();
                let loaded = self.load(&paths, (stripe, reach), &[index], 1 << member, self.background(stripe)).await;
                let Ok(columns) = loaded else { return };
                columns.chunks[index]
                    .as_deref()
                    .map_or_else(nandscape_drive::HostMem::none, nandscape_drive::HostMem::from_bytes)
            }
            // Parity that cannot be read is calculated again by a scrub, from all of the data.
            _ => return,
        };
        let writes: SubWrites = SubWrites::from_iter([SubWrite { member, reach, mem: Some(mem), is_rebuild: false }]);
        let paths = self.paths.clone();
        if self.carry_out(&paths, stripe, &writes, 0, self.background(stripe)).await.is_ok() {
            self.stats.borrow_mut().repairs += 1;
        }
    }
}
