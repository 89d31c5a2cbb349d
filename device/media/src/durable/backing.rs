//! The file operations that the store needs. Reads of unwritten places return zeros, as holes do; reads beyond the end
//! fail.

use std::fs::File;
use std::io;

/// A file, or a stand-in for one.
pub trait Backing: Send + Sync {
    /// Reads at an offset.
    ///
    /// # Errors
    /// When the file ends before, or cannot be read.
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes at an offset.
    ///
    /// # Errors
    /// If it could not be written as a whole, as on a full disk.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits until everything written is safe from a loss of power.
    ///
    /// # Errors
    /// When some of it may not be.
    fn sync(&self) -> io::Result<()>;

    /// Returns the room of a range to the system, if possible: afterwards it reads as zeros, or as before.
    ///
    /// # Errors
    /// When the system cannot.
    fn punch(&self, at: u64, len: u64) -> io::Result<()>;

    /// Its length in bytes.
    ///
    /// # Errors
    /// When the system returns an error.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no bytes.
    ///
    /// # Errors
    /// When the system returns an error.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Makes it longer, by a hole.
    ///
    /// # Errors
    /// When the file system has no files as long.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Whether another process can open it, now or later: a removed file is lost when it is closed.
    ///
    /// # Errors
    /// When the system returns an error.
    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Reserves room for a later write of at least one byte, if the system can.
    ///
    /// # Errors
    /// If there is no room, or no byte.
    fn reserve(&self, _at: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

impl Backing for File {
    #[cfg(unix)]
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, bytes, at)
    }

    #[cfg(unix)]
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, at)
    }

    #[cfg(not(unix))]
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(not(unix))]
    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(self, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len) {
            // A file system without holes keeps the old data.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            result => Ok(result?),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    #[cfg(unix)]
    fn has_name(&self) -> io::Result<bool> {
        Ok(std::os::unix::fs::MetadataExt::nlink(&self.metadata()?) > 0)
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(self, FallocateFlags::KEEP_SIZE, at, len) {
            // Writes then report a full disk.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            result => Ok(result?),
        }
    }
}
