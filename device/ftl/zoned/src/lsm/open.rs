//! A run begins.

use super::LsmFtl;
use super::table::RunError;

impl LsmFtl {
    /// Begins a run of a level. Returns its place.
    ///
    /// # Errors
    /// If the level does not exist, or no place is left.
    pub fn open_run(&self, level: u8) -> Result<u32, RunError> {
        self.table.borrow_mut().open(level)
    }
}
