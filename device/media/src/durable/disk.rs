//! Reads and writes in the file. The first write that fails ends all writing: what is written after it could refer to what is
//! missing.

use std::cell::{Cell, OnceCell};
use std::io;
use std::sync::Arc;

use super::backing::Backing;
use super::layout::Layout;
use crate::fault::MediaError;

/// A file that is in use.
pub(crate) struct Disk {
    backing: Arc<dyn Backing>,
    pub(crate) layout: Layout,
    /// Whether what is acknowledged has to outlast the host's power.
    syncs: bool,
    /// Whether something was written since the last sync.
    is_dirty: Cell<bool>,
    failure: OnceCell<String>,
}

impl Disk {
    pub(crate) fn new(backing: Arc<dyn Backing>, layout: Layout, syncs: bool) -> Disk {
        Disk { backing, layout, syncs, is_dirty: Cell::new(true), failure: OnceCell::new() }
    }

    /// Why nothing can be written any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.backing.read_at(at, bytes)
    }

    /// # Errors
    /// [`MediaError::Store`], from the first failure on.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), MediaError> {
        self.is_dirty.set(true);
        self.attempt(|backing| backing.write_at(at, bytes))
    }

    /// Makes everything written so far safe from a loss of the host's power, where that is wanted.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn sync(&self) -> Result<(), MediaError> {
        match self.syncs && self.is_dirty.replace(false) {
            true => self.attempt(|backing| backing.sync()),
            false => Ok(()),
        }
    }

    /// Gives room back.
    pub(crate) fn punch(&self, at: u64, len: u64) -> Result<(), MediaError> {
        self.is_dirty.set(true);
        self.attempt(|backing| backing.punch(at, len))
    }

    fn attempt(&self, act: impl FnOnce(&dyn Backing) -> io::Result<()>) -> Result<(), MediaError> {
        if self.failure.get().is_some() {
            return Err(MediaError::Store);
        }
        act(&*self.backing).map_err(|error| {
            // It is empty: nothing has failed before.
            let _ = self.failure.set(error.to_string());
            MediaError::Store
        })
    }
}
