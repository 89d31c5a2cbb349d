//! Chunks whose content is lost: Write Uncorrectable (NVM 3.2.7) on their members makes every read of them fail,
//! whoever opens the array later. If parity of a stripe may not fit its data, it is made uncorrectable as soon as
//! some of the data is missing, so that nothing is reconstructed from it. A new write of such blocks heals them.
//!
//! Left out: drives without that command. There, chunks to condemn stay torn, and their region stays marked.

use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_wire_nvme::{IoOpcode, Status};

use crate::array::Core;
use crate::flight::Flight;
use crate::geometry::Reach;
use crate::level::Role;
use crate::member::Answer;

impl Core {
    /// Makes a part of the chunks of some members uncorrectable. The stripe is locked exclusively.
    ///
    /// # Errors
    /// A power cut interrupted it, or a member rejects the command.
    pub(crate) async fn condemn(self: &Rc<Self>, stripe: u64, members: u32, reach: Reach) -> Result<(), Status> {
        let count = || self.stats.borrow_mut().condemned += u64::from(members.count_ones());
        if !self.info.keeps_data || members == 0 {
            count();
            return Ok(());
        }
        let mut flight = Flight::new(&self.sim, &self.issuer);
        self.locks.writes_begin(stripe, members);
        for member in (0..self.level.members()).filter(|member| members & 1 << member != 0) {
            let sent = self.sent(member);
            let entry = self.sub_command(IoOpcode::WRITE_UNCORRECTABLE, sent, (stripe, reach));
            let mut stats = self.stats.borrow_mut();
            stats.writes += 1;
            stats.members[member].writes += 1;
            drop(stats);
            flight.send(sent, self.drive(&self.paths, member), entry, HostMem::none());
        }
        let mut failure = None;
        while !flight.is_empty() {
            let Some((sent, ended)) = flight.next(None).await else { continue };
            match (Answer::of(&ended), ended.status.meaning()) {
                (Answer::Success, _) => self.locks.is_in_place(stripe, sent.member),
                (Answer::Interrupted, status) | (_, status @ Status::INVALID_OPCODE) => failure = Some(status),
                _ => self.fail_drive(sent),
            }
        }
        if let Some(status) = failure {
            return Err(status);
        }
        count();
        let paths = self.paths.clone();
        if self.info.volatile_cache { self.flush(&paths, 0).await.map(drop) } else { Ok(()) }
    }

    /// In a stripe that may be inconsistent and lacks some of its data, the parity is condemned: reads of the missing
    /// data fail.
    ///
    /// # Errors
    /// As of [`Core::condemn`].
    pub(crate) async fn condemn_torn(self: &Rc<Self>, stripe: u64) -> Result<(), Status> {
        if self.locks.is_torn(stripe) && self.level.checks() > 0 && self.lacks_data(stripe) {
            self.condemn(stripe, self.checks_there(stripe), self.whole_chunk()).await?;
            self.locks.mend(stripe);
        }
        Ok(())
    }

    /// The present members that have parity of a stripe, a bit each.
    pub(crate) fn checks_there(&self, stripe: u64) -> u32 {
        let missing = self.missing(stripe);
        let checks = (0..self.level.checks()).filter_map(|check| self.level.check_member(stripe, check));
        checks.fold(0, |all, member| all | 1 << member) & !missing
    }

    /// Whether data of a stripe is on a member that is missing.
    fn lacks_data(&self, stripe: u64) -> bool {
        self.lacks_data_of(stripe, self.missing(stripe))
    }

    /// Whether data of a stripe with parity is on some members.
    pub(crate) fn lacks_data_of(&self, stripe: u64, members: u32) -> bool {
        let is_data = |member: &usize| matches!(self.level.role(stripe, *member), Role::Data(_));
        self.level.checks() > 0 && (0..self.level.members()).filter(is_data).any(|member| members & 1 << member != 0)
    }
}
