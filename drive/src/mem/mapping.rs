//! A part of a file that another process shares: a memory file, a file on a memory file system, or any other.
//!
//! The other process may write it at any time, so this code never holds references into it and copies bytes by raw
//! pointers. The other process may also truncate the file, and touching the lost pages of a mapping would kill this
//! process (SIGBUS). Only a file that is sealed against truncation is mapped. Any other is read and written by system
//! calls, which then return an error.
#![expect(
    unsafe_code,
    reason = "copies by raw pointers: other processes write the memory, so there can be no slices of it"
)]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};

/// Part of a shared file.
pub struct Mapping {
    backing: Backing,
    len: usize,
    writable: bool,
}

enum Backing {
    /// Sealed against shrinking: every page of the mapping stays.
    Mapped(MmapRaw),
    /// Reached by system calls, from this offset on.
    File(File, u64),
}

/// A new file in memory of `len` bytes of zeros, whose length never changes.
///
/// # Errors
/// When the system has no memory or no descriptor left.
pub fn memory_file(len: u64) -> io::Result<File> {
    let file = memfd_create("nandscape", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, len)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(file.into())
}

impl Mapping {
    /// The `len` bytes of `file` from `offset` on.
    ///
    /// # Errors
    /// When the file is shorter, or cannot be mapped.
    pub fn new(file: &File, offset: u64, len: usize, writable: bool) -> io::Result<Mapping> {
        let size = file.metadata()?.len();
        if offset.checked_add(len as u64).is_none_or(|end| end > size) {
            let problem = format!("{len} bytes at {offset} are beyond the file's {size} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        // Other file systems know no seals.
        let sealed = fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        let mut options = MmapOptions::new();
        options.offset(offset).len(len);
        let backing = match (sealed && len > 0, writable) {
            (true, true) => Backing::Mapped(options.map_raw(file)?),
            (true, false) => Backing::Mapped(options.map_raw_read_only(file)?),
            (false, _) => Backing::File(file.try_clone()?, offset),
        };
        Ok(Mapping { backing, len, writable })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Whether it is mapped; otherwise each access is a system call.
    pub fn is_mapped(&self) -> bool {
        matches!(self.backing, Backing::Mapped(_))
    }

    /// Copies out, from `start` on.
    ///
    /// # Errors
    /// When the range is not inside, or the file has lost it.
    pub fn read(&self, start: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.check(start, bytes.len())?;
        match &self.backing {
            Backing::Mapped(map) => {
                // SAFETY: `check` has found the range inside the mapping, whose pages stay as the file cannot shrink.
                // `bytes` is memory of this process alone, so the two do not overlap. Another process may write the
                // source meanwhile; bytes have no invalid values, and no reference to them is made.
                unsafe { map.as_ptr().add(start).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
                Ok(())
            }
            Backing::File(file, offset) => file.read_exact_at(bytes, offset + start as u64),
        }
    }

    /// Copies in, from `start` on.
    ///
    /// # Errors
    /// When the range is not inside, the mapping may not be written, or the file has lost it.
    pub fn write(&self, start: usize, bytes: &[u8]) -> io::Result<()> {
        self.check_writable(start, bytes.len())?;
        match &self.backing {
            Backing::Mapped(map) => {
                // SAFETY: as in `read`, with source and target exchanged; `check_writable` has found the pages writable.
                unsafe { map.as_mut_ptr().add(start).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                Ok(())
            }
            Backing::File(file, offset) => {
                self.check_file(file, *offset, start, bytes.len())?;
                file.write_all_at(bytes, offset + start as u64)
            }
        }
    }

    /// Reads the dword at `start`. Whatever the other process wrote before that dword is visible from now on.
    ///
    /// # Errors
    /// As for [`Mapping::read`], and when `start` is not a multiple of 4.
    pub fn load(&self, start: usize) -> io::Result<u32> {
        match self.dword(start)? {
            Some(dword) => Ok(u32::from_le(dword.load(Ordering::Acquire))),
            None => {
                let mut bytes = [0; 4];
                self.read(start, &mut bytes)?;
                fence(Ordering::Acquire);
                Ok(u32::from_le_bytes(bytes))
            }
        }
    }

    /// Writes the dword at `start`. A reader that sees it sees all earlier writes.
    ///
    /// # Errors
    /// As for [`Mapping::write`], and when `start` is no multiple of 4.
    pub fn store(&self, start: usize, value: u32) -> io::Result<()> {
        self.check_writable(start, 4)?;
        match self.dword(start)? {
            Some(dword) => dword.store(value.to_le(), Ordering::Release),
            None => {
                fence(Ordering::Release);
                self.write(start, &value.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// The dword at `start`; `None` if the file is not mapped.
    fn dword(&self, start: usize) -> io::Result<Option<&AtomicU32>> {
        self.check(start, 4)?;
        let Backing::Mapped(map) = &self.backing else { return Ok(None) };
        let pointer = map.as_mut_ptr().wrapping_add(start).cast::<u32>();
        if !pointer.is_aligned() {
            return Err(invalid(format!("a dword at {start} is not aligned")));
        }
        // SAFETY: inside the mapping, aligned, and mapped as long as `self` is. All accesses of this process to a dword
        // that is used so are atomic or copies by raw pointers. A mapping that is not writable is only loaded from.
        Ok(Some(unsafe { AtomicU32::from_ptr(pointer) }))
    }

    fn check(&self, start: usize, len: usize) -> io::Result<()> {
        match start.checked_add(len).is_some_and(|end| end <= self.len) {
            true => Ok(()),
            false => Err(invalid(format!("{len} bytes at {start} are beyond the {} bytes of a mapping", self.len))),
        }
    }

    fn check_writable(&self, start: usize, len: usize) -> io::Result<()> {
        self.check(start, len)?;
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// A write beyond the end would make a file longer that was cut short.
    fn check_file(&self, file: &File, offset: u64, start: usize, len: usize) -> io::Result<()> {
        match file.metadata()?.len() >= offset + (start + len) as u64 {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that can be cut short, and one that cannot.
    fn files(len: u64) -> [File; 2] {
        let plain: File = memfd_create("plain", MemfdFlags::CLOEXEC).unwrap().into();
        plain.set_len(len).unwrap();
        [plain, memory_file(len).unwrap()]
    }

    #[test]
    fn two_mappings_of_one_file_share_their_bytes() {
        for (file, mapped) in files(10_000).iter().zip([false, true]) {
            let (all, part) =
                (Mapping::new(file, 0, 10_000, true).unwrap(), Mapping::new(file, 5_000, 100, true).unwrap());
            assert_eq!((all.is_mapped(), part.is_mapped()), (mapped, mapped));
            part.write(1, &[1, 2, 3]).unwrap();
            let mut bytes = [9; 5];
            all.read(5_000, &mut bytes).unwrap();
            assert_eq!(bytes, [0, 1, 2, 3, 0]);
            all.store(5_004, 0x0403_0201).unwrap();
            assert_eq!(part.load(4).unwrap(), 0x0403_0201);
            part.read(4, &mut bytes).unwrap();
            assert_eq!(bytes[..4], [1, 2, 3, 4]);
        }
    }

    #[test]
    fn what_is_outside_or_not_to_be_written_is_refused() {
        for file in files(4_096) {
            assert!(Mapping::new(&file, 1, 4_096, true).is_err() && Mapping::new(&file, u64::MAX, 1, true).is_err());
            let (map, fixed) =
                (Mapping::new(&file, 0, 4_096, true).unwrap(), Mapping::new(&file, 0, 4_096, false).unwrap());
            assert!(map.read(4_090, &mut [0; 7]).is_err() && map.write(usize::MAX, &[0; 2]).is_err());
            assert!(map.load(4_094).is_err() && map.load(4_092).is_ok());
            assert!(fixed.write(0, &[1]).is_err() && fixed.store(0, 1).is_err());
            assert_eq!(fixed.load(0).unwrap(), 0);
        }
        let mapped = Mapping::new(&memory_file(64).unwrap(), 0, 64, true).unwrap();
        assert!(mapped.load(2).is_err() && mapped.store(2, 1).is_err());
    }

    #[test]
    fn a_file_that_is_cut_short_gives_errors() {
        let [file, sealed] = files(8_192);
        assert!(sealed.set_len(0).is_err(), "sealed");
        let map = Mapping::new(&file, 0, 8_192, true).unwrap();
        file.set_len(4_096).unwrap();
        assert!(map.read(4_000, &mut [0; 200]).is_err() && map.write(4_096, &[1]).is_err() && map.load(8_188).is_err());
        assert!(map.write(0, &[1]).is_ok());
        assert_eq!(file.metadata().unwrap().len(), 4_096, "nobody makes it longer again");
    }
}
