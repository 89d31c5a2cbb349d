//! Metadata next to the data of sectors.

use std::rc::Rc;

use nandscape_drive::HostMem;

use super::RandomWrites;
use crate::address::Extent;
use crate::ftl::{Milestone, Settling};

/// An FTL that keeps [`METADATA`](crate::address::METADATA) bytes with each sector.
pub trait Metadata<W: RandomWrites> {
    /// Like [`RandomWrites::accept`], with the metadata of each sector of the extent.
    fn accept(
        &self,
        extent: Extent,
        data: Option<&HostMem>,
        metadata: &HostMem,
        reservation: W::Reservation<'_>,
        watch: Option<Milestone>,
    ) -> Option<Rc<Settling>>;
}
