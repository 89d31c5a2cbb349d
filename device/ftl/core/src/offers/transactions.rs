//! Extents that are written together: after a power cut all of them are present, or none.

use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_sim::Wait;

use super::{Later, RandomWrites};
use crate::address::Extent;
use crate::ftl::{Milestone, Settling};

/// An FTL with transactions.
pub trait Transactions<W: RandomWrites> {
    /// The most units that the extents of one transaction may touch, counted for each extent.
    fn most_units(&self) -> u32;

    /// As [`RandomWrites::reserve`], for the extents of a transaction together.
    fn reserve<'a, 'w>(&'a self, extents: &'w [Extent], waited: &'w mut Wait) -> Later<'w, W::Reservation<'a>>
    where
        'a: 'w;

    /// As [`RandomWrites::accept`], for the extents of a transaction, whose data follows each other. Where they overlap, the later
    /// one counts.
    fn accept(
        &self,
        extents: &[Extent],
        data: Option<&HostMem>,
        reservation: W::Reservation<'_>,
        watch: Option<Milestone>,
    ) -> Option<Rc<Settling>>;

    /// Waits until reads of an extent see all that was accepted for it. Transactions that wait for their Commit are not
    /// seen before that.
    fn settle<'a>(&'a self, extent: Extent) -> Later<'a, ()>;
}
