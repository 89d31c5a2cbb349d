//! Handles by which hosts place data.

use super::RandomWrites;
use crate::placement::{PlacementEvent, PlacementReport};

/// An FTL that writes the data of each handle to separate blocks.
pub trait Placement<W: RandomWrites> {
    /// The handles.
    fn report(&self) -> PlacementReport;

    /// Calls `notify` when the drive itself changes handles or their data.
    fn on_event(&self, notify: Box<dyn Fn(PlacementEvent)>);

    /// Places the data of a reservation by a handle, which is below the number of handles.
    fn place(&self, reservation: &mut W::Reservation<'_>, handle: u8);

    /// Switches a handle to an empty reclaim unit.
    fn change_reclaim_unit(&self, handle: u8);
}
