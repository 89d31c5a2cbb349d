//! The rest of a file from an offset on, as a file: one file can hold several consecutive stores.

use std::io;
use std::sync::Arc;

use super::backing::Backing;

/// See the file.
pub(crate) struct Window {
    file: Arc<dyn Backing>,
    from: u64,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn Backing>, from: u64) -> Window {
        Window { file, from }
    }
}

impl Backing for Window {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        // The file may end before the window begins.
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.read_at(self.from + at, bytes)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(self.from + at, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        self.file.punch(self.from + at, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.len()?.saturating_sub(self.from))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(self.from + len)
    }

    fn has_name(&self) -> io::Result<bool> {
        self.file.has_name()
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        self.file.reserve(self.from + at, len)
    }
}
