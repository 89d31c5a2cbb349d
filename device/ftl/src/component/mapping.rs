//! P5-MAP (OX table 5.6): from logical units to where their data is.

use crate::address::{Location, Lpn};

/// Maps logical units.
pub trait Mapping {
    /// What must be loaded before a unit can be looked up; `Infallible` for a table that is all in memory, which then
    /// costs nothing to ask.
    type Miss;

    /// READ.
    ///
    /// # Errors
    /// What must be loaded first.
    fn lookup(&self, lpn: Lpn) -> Result<Location, Self::Miss>;

    /// A unit will soon be looked up.
    fn prefetch(&self, lpn: Lpn);

    /// UPSERT: moves a unit, and returns where it was.
    ///
    /// # Errors
    /// What must be loaded first.
    fn upsert(&mut self, lpn: Lpn, to: Location) -> Result<Location, Self::Miss>;

    /// Number of logical units.
    fn units(&self) -> u32;
}
