//! The whole mapping table in memory: four bytes a unit.

use std::convert::Infallible;
use std::io;

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_ftl_core::component::Mapping;
use nandscape_sim::table::Table;

/// Mapping as one flat table.
pub struct FlatMap {
    table: Table,
}

impl FlatMap {
    /// `units` unmapped units.
    ///
    /// # Errors
    /// When the system does not give the memory.
    pub fn new(units: u32) -> io::Result<FlatMap> {
        Ok(FlatMap { table: Table::new(units as usize)? })
    }

    /// A map with the table of another one.
    pub fn of_table(table: Table) -> FlatMap {
        FlatMap { table }
    }

    /// Its table, with an entry for each unit as [`Location::to_raw`] gives it.
    pub fn into_table(self) -> Table {
        self.table
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.table.len() * size_of::<u32>()
    }

    /// Takes over entries from `first` on, as [`Location::to_raw`] gives them, each in four bytes, the lowest first.
    pub fn load(&mut self, first: u32, bytes: &[u8]) {
        self.table.load(first, bytes);
    }
}

impl Mapping for FlatMap {
    type Miss = Infallible;
    type Value = Location;

    #[inline]
    fn lookup(&self, lpn: Lpn) -> Result<Location, Infallible> {
        Ok(Location::from_raw(self.table.get(lpn.0)))
    }

    #[inline]
    fn prefetch(&self, lpn: Lpn) {
        self.table.prefetch(lpn.0);
    }

    #[inline]
    fn upsert(&mut self, lpn: Lpn, to: Location) -> Result<Location, Infallible> {
        let old = self.table.get(lpn.0);
        self.table.set(lpn.0, to.to_raw());
        Ok(Location::from_raw(old))
    }

    fn loaded(&mut self, miss: Infallible, _: &[u8]) {
        match miss {}
    }

    fn units(&self) -> u32 {
        self.table.len() as u32
    }
}
