//! P5-MAP (OX table 5.6): from logical units to where their data is.
//!
//! A table answers at once: with a location, or with a [`Miss`] that says what must be read from flash first. The FTL
//! reads it, hands it to [`Mapping::loaded`], and asks again.

use std::convert::Infallible;

use nandscape_device_media::PageId;

use crate::address::Lpn;

/// Maps logical units.
pub trait Mapping {
    /// A part of the table that is not in memory; `Infallible` for a table that always is, which then costs nothing to
    /// ask.
    type Miss: Miss;

    /// What the table holds of a unit: where its data is, at least.
    type Value: Copy;

    /// READ.
    ///
    /// # Errors
    /// The part that must be loaded first.
    fn lookup(&self, lpn: Lpn) -> Result<Self::Value, Self::Miss>;

    /// A unit will soon be looked up.
    fn prefetch(&self, lpn: Lpn);

    /// UPSERT: moves a unit, and returns where it was.
    ///
    /// # Errors
    /// The part that must be loaded first.
    fn upsert(&mut self, lpn: Lpn, to: Self::Value) -> Result<Self::Value, Self::Miss>;

    /// A missing part was read from flash. It stays in memory at least until the next one is loaded.
    fn loaded(&mut self, miss: Self::Miss, bytes: &[u8]);

    /// Number of logical units.
    fn units(&self) -> u32;
}

/// A part of a table that must be read from flash.
pub trait Miss: Copy {
    /// The page that holds it.
    fn page(&self) -> PageId;

    /// Its length in bytes.
    fn bytes(&self) -> u32;
}

impl Miss for Infallible {
    fn page(&self) -> PageId {
        match *self {}
    }

    fn bytes(&self) -> u32 {
        match *self {}
    }
}
