//! The mapped parts of the client's memory: checks of new maps, and maps to remove. The reactor owns the maps
//! themselves.
//!
//! Memory without a descriptor (ROM, registers of devices, or all memory of a client that does not share it) is reached
//! by messages to the client.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;

use nandscape_drive::mem::Mapping;
use nandscape_wire_vfio_user::Errno;
use nandscape_wire_vfio_user::access::{DmaMap, DmaUnmap};
use rustix::fs::fstatfs;

/// The most maps at a time. A guest has some dozens.
pub(crate) const MAX_MAPS: usize = 1_024;
/// The most maps of files that can be cut short: each keeps a descriptor.
const MAX_FILES: usize = 64;
/// The kind of file system that memory files and POSIX shared memory are on (`<linux/magic.h>`).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// The maps of a client, by address.
#[derive(Default)]
pub(crate) struct Maps(BTreeMap<u64, Map>);

#[derive(Copy, Clone)]
struct Map {
    size: u64,
    backing: Backing,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Backing {
    Mapped,
    File,
    Remote,
}

/// The fault of a map, and the error number of the reply.
pub(crate) struct Refused(pub(crate) Errno, pub(crate) String);

fn refused<T>(errno: Errno, reason: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(errno, reason.into()))
}

impl Maps {
    /// Takes a map; `None` when it has no descriptor.
    ///
    /// # Errors
    /// [`Refused`] gives the reason.
    pub(crate) fn add(&mut self, map: &DmaMap, mut descriptors: Vec<OwnedFd>) -> Result<Option<Mapping>, Refused> {
        let (address, size) = (map.address.get(), map.size.get());
        self.check(address, size)?;
        if map.flags.get() & DmaMap::READ == 0 {
            return refused(Errno::EOPNOTSUPP, "memory that may only be written");
        }
        let mapping = match (descriptors.pop(), descriptors.is_empty()) {
            (None, _) => None,
            (Some(descriptor), true) => Some(self.open(map, descriptor.into())?),
            (Some(_), false) => return refused(Errno::EINVAL, "several descriptors for one map"),
        };
        let backing = match &mapping {
            None => Backing::Remote,
            Some(mapping) if mapping.is_mapped() => Backing::Mapped,
            Some(_) => Backing::File,
        };
        self.0.insert(address, Map { size, backing });
        Ok(mapping)
    }

    fn check(&self, address: u64, size: u64) -> Result<(), Refused> {
        // Its last byte is within the address space: see `Request::parse`.
        let last = address + (size - 1);
        let before = self.0.range(..=last).next_back();
        if before.is_some_and(|(start, map)| start + (map.size - 1) >= address) {
            return refused(Errno::EEXIST, "some of it is mapped");
        }
        match self.0.len() < MAX_MAPS {
            true => Ok(()),
            false => refused(Errno::ENOSPC, format!("there are {MAX_MAPS} maps")),
        }
    }

    fn open(&self, map: &DmaMap, file: File) -> Result<Mapping, Refused> {
        // Reads of other files may wait for disks, networks or processes, and the reactor with them.
        let is_memory = fstatfs(&file).is_ok_and(|found| found.f_type == TMPFS_MAGIC);
        if !is_memory {
            return refused(Errno::EINVAL, "not a memory file, nor a file on tmpfs");
        }
        let Ok(size) = usize::try_from(map.size.get()) else { return refused(Errno::EINVAL, "too large") };
        let writable = map.flags.get() & DmaMap::WRITE != 0;
        let mapping = match Mapping::new(&file, map.offset.get(), size, writable) {
            Ok(mapping) => mapping,
            Err(error) => return refused(Errno::EINVAL, error.to_string()),
        };
        let files = self.0.values().filter(|map| map.backing == Backing::File).count();
        match mapping.is_mapped() || files < MAX_FILES {
            true => Ok(mapping),
            false => refused(Errno::ENOSPC, format!("there are {MAX_FILES} maps of files that are not sealed")),
        }
    }

    /// Removes maps: all, or those within a range, which must not cut any. Returns address and size of each.
    ///
    /// # Errors
    /// [`Refused`] when the range contains no map, or only a part of one.
    pub(crate) fn remove(&mut self, unmap: &DmaUnmap) -> Result<Vec<(u64, u64)>, Refused> {
        let (address, size) = (unmap.address.get(), unmap.size.get());
        if unmap.flags.get() & DmaUnmap::ALL != 0 {
            return match (address, size) {
                (0, 0) => {
                    Ok(std::mem::take(&mut self.0).into_iter().map(|(address, map)| (address, map.size)).collect())
                }
                _ => refused(Errno::EINVAL, "everything has no address and no size"),
            };
        }
        let last = size.checked_sub(1).and_then(|rest| address.checked_add(rest));
        let Some(last) = last else { return refused(Errno::EINVAL, "the range") };
        let cuts = |(start, map): (&u64, &Map)| *start < address && start + (map.size - 1) >= address;
        let cut_before = self.0.range(..address).next_back().is_some_and(cuts);
        let inside: Vec<u64> = self.0.range(address..=last).map(|(start, _)| *start).collect();
        let cut_behind = inside.last().is_some_and(|start| start + (self.0[start].size - 1) > last);
        if cut_before || cut_behind {
            return refused(Errno::EINVAL, "a map would be cut");
        }
        if inside.is_empty() {
            return refused(Errno::ENOENT, "nothing is mapped there");
        }
        Ok(inside.into_iter().filter_map(|start| Some((start, self.0.remove(&start)?.size))).collect())
    }
}

#[cfg(test)]
mod tests {
    use nandscape_drive::mem::mapping::memory_file;

    use super::*;

    fn map(maps: &mut Maps, address: u64, size: u64, file: Option<File>) -> Result<bool, Errno> {
        let flags = (DmaMap::READ | DmaMap::WRITE).into();
        let map = DmaMap { flags, address: address.into(), size: size.into(), ..DmaMap::default() };
        let mapped = maps.add(&map, file.map(OwnedFd::from).into_iter().collect());
        mapped.map(|mapping| mapping.is_some()).map_err(|Refused(errno, _)| errno)
    }

    fn unmap(maps: &mut Maps, flags: u32, address: u64, size: u64) -> Result<Vec<(u64, u64)>, Errno> {
        let unmap = DmaUnmap { flags: flags.into(), address: address.into(), size: size.into(), ..DmaUnmap::default() };
        maps.remove(&unmap).map_err(|Refused(errno, _)| errno)
    }

    #[test]
    fn maps_do_not_overlap_and_are_not_cut() {
        let mut maps = Maps::default();
        let file = || memory_file(0x3000).ok();
        assert_eq!(map(&mut maps, 0x1000, 0x3000, file()), Ok(true));
        assert_eq!(map(&mut maps, 0x5000, 0x1000, None), Ok(false));
        for (address, size) in [(0x1000, 0x3000), (0, 0x1001), (0x3fff, 1), (0, u64::MAX), (0x5fff, 0x10)] {
            assert_eq!(map(&mut maps, address, size, None), Err(Errno::EEXIST), "{address:#x}");
        }
        assert_eq!(map(&mut maps, 0x4000, 0x1000, file()), Ok(true));
        for (address, size) in [(0x2000, 0x1000), (0, 0x2000), (0x2000, 0x10000), (0, 0)] {
            assert_eq!(unmap(&mut maps, 0, address, size), Err(Errno::EINVAL), "{address:#x}");
        }
        assert_eq!(unmap(&mut maps, 0, 0x8000, 0x1000), Err(Errno::ENOENT));
        assert_eq!(unmap(&mut maps, 0, 0x1000, 0x3000), Ok(vec![(0x1000, 0x3000)]));
        assert_eq!(unmap(&mut maps, 0, 0x4000, 0x2000), Ok(vec![(0x4000, 0x1000), (0x5000, 0x1000)]));
        assert_eq!(map(&mut maps, u64::MAX - 0xfff, 0x1000, file()), Ok(true));
        assert_eq!(unmap(&mut maps, DmaUnmap::ALL, 1, 0), Err(Errno::EINVAL));
        assert_eq!(unmap(&mut maps, DmaUnmap::ALL, 0, 0), Ok(vec![(u64::MAX - 0xfff, 0x1000)]));
        assert_eq!(unmap(&mut maps, DmaUnmap::ALL, 0, 0), Ok(vec![]));
    }

    #[test]
    fn only_memory_is_mapped_and_only_so_much() {
        let mut maps = Maps::default();
        assert_eq!(map(&mut maps, 0, 0x4000, memory_file(0x3000).ok()), Err(Errno::EINVAL), "beyond its end");
        assert_eq!(map(&mut maps, 0, u64::MAX, memory_file(0x3000).ok()), Err(Errno::EINVAL));
        assert_eq!(map(&mut maps, 0, 0x1000, File::open("/dev/zero").ok()), Err(Errno::EINVAL));
        assert_eq!(map(&mut maps, 0, 0x1000, File::open("/proc/self/maps").ok()), Err(Errno::EINVAL));
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(map(&mut maps, 0, 0x1000, Some(OwnedFd::from(socket).into())), Err(Errno::EINVAL));
        for number in 0..MAX_MAPS as u64 {
            assert_eq!(map(&mut maps, number, 1, None), Ok(false));
        }
        assert_eq!(map(&mut maps, 1 << 40, 1, None), Err(Errno::ENOSPC));
    }

    #[test]
    fn files_that_can_be_cut_short_keep_descriptors_and_are_few() {
        let mut maps = Maps::default();
        let plain = || {
            let file = File::from(rustix::fs::memfd_create("plain", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
            file.set_len(64).unwrap();
            Some(file)
        };
        for number in 0..MAX_FILES as u64 {
            assert_eq!(map(&mut maps, number * 64, 64, plain()), Ok(true));
        }
        assert_eq!(map(&mut maps, 1 << 40, 64, plain()), Err(Errno::ENOSPC));
        assert_eq!(map(&mut maps, 1 << 40, 64, memory_file(64).ok()), Ok(true));
    }
}
