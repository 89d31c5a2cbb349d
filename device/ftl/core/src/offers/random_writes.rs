//! Sectors that hosts write in any order, as on a block device. Zones, runs and chunks have no random writes.

use std::future::Future;
use std::rc::Rc;

use nandscape_device_media::MediaError;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::Wait;

use crate::address::Extent;
use crate::ftl::{Ftl, Milestone, Settling};

/// Room set aside in the write buffer of an FTL.
pub type Reserved<'a, F> = <<F as Ftl>::RandomWrites as RandomWrites>::Reservation<'a>;

/// An FTL whose sectors are written in any order.
pub trait RandomWrites: 'static {
    /// Room set aside by [`RandomWrites::reserve`]; given back when dropped.
    type Reservation<'a>
    where
        Self: 'a;

    /// Waits for room for an extent, or until the drive is read-only; the time is added to `waited`.
    fn reserve(&self, extent: Extent, waited: &mut Wait) -> impl Future<Output = Self::Reservation<'_>>;

    /// Takes a write; `None` writes zeros. With `watch`, the result notifies when the write has reached that stage.
    fn accept(
        &self,
        extent: Extent,
        data: Option<&HostMem>,
        reservation: Self::Reservation<'_>,
        watch: Option<Milestone>,
    ) -> Option<Rc<Settling>>;

    /// Deallocates the whole units in an extent: they read as zeros from now on.
    ///
    /// # Errors
    /// When a part of the map could not be loaded. Units before that part are deallocated.
    fn deallocate(&self, extent: Extent, breakdown: &mut Breakdown) -> impl Future<Output = Result<(), MediaError>>;

    /// Makes the sectors of an extent unreadable, step by step: when the future ends, all reads fail with
    /// [`Unreadable::Lost`](crate::Unreadable::Lost) until the sectors are written or deallocated. The future takes the
    /// time of firmware.
    fn spoil(&self, extent: Extent, breakdown: &mut Breakdown) -> impl Future<Output = ()>;
}

/// For an FTL without random writes: this type has no value.
pub enum NoRandomWrites {}

impl RandomWrites for NoRandomWrites {
    type Reservation<'a> = NoRandomWrites;

    async fn reserve(&self, _: Extent, _: &mut Wait) -> NoRandomWrites {
        match *self {}
    }

    fn accept(&self, _: Extent, _: Option<&HostMem>, _: NoRandomWrites, _: Option<Milestone>) -> Option<Rc<Settling>> {
        match *self {}
    }

    async fn deallocate(&self, _: Extent, _: &mut Breakdown) -> Result<(), MediaError> {
        match *self {}
    }

    async fn spoil(&self, _: Extent, _: &mut Breakdown) {
        match *self {}
    }
}
