//! Units that are reconstructed from the others of their stripe, all at the state of one moment.

use std::rc::Rc;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_media::{MediaError, UnitId};
use nandscape_drive::Breakdown;
use nandscape_sim::Cause;

use super::super::PageFtl;
use super::super::state::State;
use super::{Snapshot, members_of, parity};

/// A unit to reconstruct, and the state of its stripe when that was decided.
pub(super) struct Rebuild {
    pub(super) snapshot: Snapshot,
    /// The member to reconstruct.
    pub(super) member: u32,
    /// The others that are on flash, or held in the buffer, a bit each.
    pub(super) others: u32,
}

impl Rebuild {
    /// The place of the unit, if it has one.
    pub(super) fn unit(&self) -> Option<UnitId> {
        self.snapshot.units[self.member as usize]
    }
}

impl State {
    /// Whether a unit can be reconstructed from the others, and how. Its stripe is pinned until [`State::let_go_of`].
    pub(super) fn plan_rebuild(&mut self, lpn: Lpn) -> Option<Rebuild> {
        let (stripe, member) = self.rain.as_deref()?.layout.stripe_of(lpn);
        let snapshot = self.look_at_stripe(stripe);
        let others = snapshot.all & !(1 << member);
        if snapshot.absent & others != 0 {
            self.let_go(&snapshot);
            return None;
        }
        let others = others & !snapshot.zeros;
        Some(Rebuild { snapshot, member, others })
    }

    pub(super) fn let_go_of(&mut self, rebuild: &Rebuild) {
        self.let_go(&rebuild.snapshot);
    }
}

impl PageFtl {
    /// Reads the other members, except those that the command reads already, a bit each.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub(super) async fn read_others(
        &self,
        rebuild: &Rebuild,
        except: u32,
        cause: Cause,
        breakdown: &mut Breakdown,
    ) -> Result<(), MediaError> {
        let geometry = self.media.geometry();
        let page = |member: u32| rebuild.snapshot.units[member as usize].map(|unit| geometry.page_of(unit));
        let pages = members_of(rebuild.others & !except).filter_map(|member| Some((member, page(member)?)));
        let read = rebuild.others & !except & !rebuild.snapshot.held;
        if read == 0 {
            return Ok(());
        }
        self.state.borrow_mut().counters.rain.extra_reads += u64::from(read.count_ones());
        match self.read_extras(pages, cause, breakdown).await? {
            0 => Ok(()),
            _ => Err(MediaError::Uncorrectable),
        }
    }

    /// The content of the unit, once the others have been read; `None` where the drive keeps no data.
    pub(super) fn rebuilt(&self, rebuild: &Rebuild) -> Option<Rc<[u8]>> {
        self.media.keeps_data().then(|| self.sum(&rebuild.snapshot, rebuild.others).into())
    }

    /// The parity of some members.
    pub(super) fn sum(&self, snapshot: &Snapshot, members: u32) -> Vec<u8> {
        let mut sum = vec![0; self.media.geometry().unit_size() as usize];
        if let Some(data) = snapshot.held_data.as_deref().filter(|_| members & snapshot.held != 0) {
            parity::add(&mut sum, data);
        }
        for unit in members_of(members).filter_map(|member| snapshot.units[member as usize]) {
            if let Some(data) = self.media.data(unit) {
                parity::add(&mut sum, &data);
            }
        }
        sum
    }

    pub(super) fn let_go_of(&self, rebuild: &Rebuild) {
        self.state.borrow_mut().let_go_of(rebuild);
        self.unpinned.notify();
    }
}
