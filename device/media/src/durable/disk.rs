//! Reads and writes in the file. The first write that fails ends all writing: later writes could refer to missing data.
//!
//! Damage that is found is also noted here, a sentence each, for `nandscape fsck`.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::sync::Arc;

use super::backing::Backing;
use super::layout::{Layout, Region};
use crate::fault::MediaError;

/// A file that is in use.
pub(crate) struct Disk {
    backing: Arc<dyn Backing>,
    pub(crate) layout: Layout,
    /// Whether acknowledged data must outlast the host's power.
    syncs: bool,
    /// Whether something was written since the last sync.
    is_dirty: Cell<bool>,
    failure: OnceCell<String>,
    damage: RefCell<Vec<String>>,
}

/// Maximum of damage reports kept: an unrelated file would fill memory with them.
const SENTENCES: usize = 1_000;

impl Disk {
    pub(crate) fn new(backing: Arc<dyn Backing>, layout: Layout, syncs: bool) -> Disk {
        let is_dirty = Cell::new(true);
        Disk { backing, layout, syncs, is_dirty, failure: OnceCell::new(), damage: RefCell::default() }
    }

    /// Why nothing can be written any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Notes that something is damaged.
    pub(crate) fn note_damage(&self, what: String) {
        let mut damage = self.damage.borrow_mut();
        if damage.len() < SENTENCES && !damage.contains(&what) {
            damage.push(what);
        }
    }

    /// Damage found so far.
    pub(crate) fn damage(&self) -> Vec<String> {
        self.damage.borrow().clone()
    }

    /// Writes the same bytes to two regions, at the same offset. A kill may leave only the first.
    ///
    /// # Errors
    /// As [`Disk::write`].
    pub(crate) fn write_twice(&self, regions: [Region; 2], at: u64, bytes: &[u8]) -> Result<(), MediaError> {
        regions.iter().try_for_each(|region| self.write(region.at + at, bytes))
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

    /// Makes everything written so far safe from a loss of the host's power, if required.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn sync(&self) -> Result<(), MediaError> {
        if !self.syncs || !self.is_dirty.replace(false) {
            return Ok(());
        }
        self.check_whole()?;
        self.attempt(|backing| backing.sync())
    }

    /// Checks that the file has its length and a name: another process may have truncated or removed it, without failing
    /// writes.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn check_whole(&self) -> Result<(), MediaError> {
        let expected = self.layout.len();
        self.attempt(|backing| {
            let found = backing.len()?;
            if found < expected {
                let problem = format!("another process has cut it short: {found} bytes of {expected} are there");
                return Err(io::Error::other(problem));
            }
            match backing.has_name()? {
                true => Ok(()),
                false => Err(io::Error::other("another process has removed it, or replaced it with another file")),
            }
        })
    }

    /// Checks that the file still has its written content. Another process may have truncated the file, and later
    /// writes may have made it as long as before.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn check_holds(&self, at: u64, written: &[u8]) -> Result<(), MediaError> {
        self.attempt(|backing| {
            let mut found = vec![0; written.len()];
            backing.read_at(at, &mut found)?;
            match found == written {
                true => Ok(()),
                false => Err(io::Error::other(format!("another process has changed it: at byte {at}"))),
            }
        })
    }

    /// Punches a hole, which returns room to the system.
    pub(crate) fn punch(&self, at: u64, len: u64) -> Result<(), MediaError> {
        self.is_dirty.set(true);
        self.attempt(|backing| backing.punch(at, len))
    }

    fn attempt(&self, act: impl FnOnce(&dyn Backing) -> io::Result<()>) -> Result<(), MediaError> {
        if self.failure.get().is_some() {
            return Err(MediaError::Store);
        }
        act(&*self.backing).map_err(|error| {
            // It is empty before the first failure.
            let _ = self.failure.set(error.to_string());
            MediaError::Store
        })
    }
}
