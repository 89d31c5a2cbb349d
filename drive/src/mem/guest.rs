//! The memory of a guest: regions of its address space, each a part of a file that the guest's process shares.
//! Regions are mapped and unmapped at any time; accesses outside of them fail.
//!
//! A region without a file is remote: only the guest's process can reach it, by request (see [`Dma::ask`]).
//!
//! Left out: the requests, which the transport sends.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::dma::{Access, Dma, DmaFault};
use super::mapping::Mapping;

/// A guest's address space.
#[derive(Default)]
pub struct GuestMemory {
    /// By their first address; they do not overlap.
    regions: RefCell<BTreeMap<u64, Mapping>>,
    /// Regions without a file, by their first address. They overlap neither each other nor `regions`.
    remote: RefCell<BTreeMap<u64, Remote>>,
}

/// A region without a file.
#[derive(Copy, Clone, Debug)]
struct Remote {
    len: u64,
    is_writable: bool,
}

/// Why a region cannot be mapped or unmapped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RegionError {
    /// It is empty, or reaches beyond the end of the address space.
    Range,
    /// Part of it is mapped already.
    Overlaps,
    /// No region has this address and length.
    Unknown,
}

impl GuestMemory {
    /// An empty address space.
    pub fn new() -> GuestMemory {
        GuestMemory::default()
    }

    /// Puts a mapping at `address`.
    ///
    /// # Errors
    /// [`RegionError`] when it is empty, too long, or overlaps another.
    pub fn map(&self, address: u64, mapping: Mapping) -> Result<(), RegionError> {
        self.check_free(address, mapping.len() as u64)?;
        self.regions.borrow_mut().insert(address, mapping);
        Ok(())
    }

    /// Puts a region without a file at `address`.
    ///
    /// # Errors
    /// As for [`GuestMemory::map`].
    pub fn map_remote(&self, address: u64, len: u64, is_writable: bool) -> Result<(), RegionError> {
        self.check_free(address, len)?;
        self.remote.borrow_mut().insert(address, Remote { len, is_writable });
        Ok(())
    }

    /// Whether a region can be put somewhere.
    fn check_free(&self, address: u64, len: u64) -> Result<(), RegionError> {
        let last = len.checked_sub(1).and_then(|rest| address.checked_add(rest)).ok_or(RegionError::Range)?;
        let (regions, remote) = (self.regions.borrow(), self.remote.borrow());
        let mapped = regions.range(..=last).next_back().map(|(start, mapping)| start + (mapping.len() as u64 - 1));
        let known = remote.range(..=last).next_back().map(|(start, region)| start + (region.len - 1));
        match [mapped, known].into_iter().flatten().any(|end| end >= address) {
            true => Err(RegionError::Overlaps),
            false => Ok(()),
        }
    }

    /// Unmaps a region. It is not reached afterwards.
    ///
    /// # Errors
    /// [`RegionError::Unknown`] when the region does not exist.
    pub fn unmap(&self, address: u64, len: u64) -> Result<(), RegionError> {
        let (mut regions, mut remote) = (self.regions.borrow_mut(), self.remote.borrow_mut());
        if regions.get(&address).is_some_and(|mapping| mapping.len() as u64 == len) {
            regions.remove(&address);
            return Ok(());
        }
        let known = remote.get(&address).is_some_and(|region| region.len == len);
        known.then(|| remote.remove(&address)).map(drop).ok_or(RegionError::Unknown)
    }

    /// Unmaps all regions.
    pub fn unmap_all(&self) {
        self.regions.borrow_mut().clear();
        self.remote.borrow_mut().clear();
    }

    /// Reads a dword at once, before everything that is read after it: see [`Mapping::load`].
    ///
    /// # Errors
    /// [`DmaFault`] when it cannot be reached, or `address` is no multiple of 4.
    pub fn load(&self, address: u64) -> Result<u32, DmaFault> {
        let mut value = 0;
        self.pieces(address, 4, |mapping, at, _, len| {
            value = if len == 4 { mapping.load(at)? } else { return Err(std::io::ErrorKind::InvalidInput.into()) };
            Ok(())
        })?;
        Ok(value)
    }

    /// Calls `each(region, offset in it, bytes before, length)` for the pieces of a range.
    fn pieces(
        &self,
        address: u64,
        len: usize,
        mut each: impl FnMut(&Mapping, usize, usize, usize) -> std::io::Result<()>,
    ) -> Result<(), DmaFault> {
        let fault = DmaFault::at(address);
        let regions = self.regions.borrow();
        let mut done = 0;
        while done < len {
            let at = address.checked_add(done as u64).ok_or(fault)?;
            let (start, mapping) = regions.range(..=at).next_back().ok_or(fault)?;
            let offset = at - start;
            let left = (mapping.len() as u64).checked_sub(offset).filter(|left| *left > 0).ok_or(fault)?;
            let piece = left.min((len - done) as u64) as usize;
            each(mapping, offset as usize, done, piece).map_err(|_| fault)?;
            done += piece;
        }
        Ok(())
    }

    /// The fault of an access outside of regions with files: remote if the guest's process can carry it out.
    #[cold]
    fn fault(&self, address: u64, len: usize, access: Access) -> DmaFault {
        let (regions, remote) = (self.regions.borrow(), self.remote.borrow());
        let (mut done, mut is_remote) = (0, false);
        while done < len as u64 {
            let Some(at) = address.checked_add(done) else { return DmaFault::at(address) };
            let mapping =
                regions.range(..=at).next_back().filter(|(start, mapping)| at - *start < mapping.len() as u64);
            let region = remote.range(..=at).next_back().filter(|(start, region)| at - *start < region.len);
            let (end, is_writable) = match (mapping, region) {
                (Some((start, mapping)), _) => (start + (mapping.len() as u64 - 1), mapping.is_writable()),
                (None, Some((start, region))) => (start + (region.len - 1), region.is_writable),
                (None, None) => return DmaFault::at(address),
            };
            if access == Access::Write && !is_writable {
                return DmaFault::at(address);
            }
            is_remote |= mapping.is_none();
            done += end - at + 1;
        }
        DmaFault { address, is_remote }
    }
}

impl Dma for GuestMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DmaFault> {
        self.pieces(address, bytes.len(), |mapping, at, done, len| mapping.read(at, &mut bytes[done..done + len]))
            .map_err(|_| self.fault(address, bytes.len(), Access::Read))
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.pieces(address, bytes.len(), |mapping, at, done, len| mapping.write(at, &bytes[done..done + len]))
            .map_err(|_| self.fault(address, bytes.len(), Access::Write))
    }

    fn store(&self, address: u64, value: u32) -> Result<(), DmaFault> {
        let whole = |len: usize| if len == 4 { Ok(()) } else { Err(std::io::ErrorKind::InvalidInput.into()) };
        self.pieces(address, 4, |mapping, at, _, len| whole(len).and_then(|()| mapping.store(at, value)))
    }

    fn check(&self, address: u64, len: usize, access: Access) -> Result<(), DmaFault> {
        self.pieces(address, len, |mapping, _, _, _| match access == Access::Read || mapping.is_writable() {
            true => Ok(()),
            false => Err(std::io::ErrorKind::PermissionDenied.into()),
        })
        .map_err(|_| self.fault(address, len, access))
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapping::memory_file;
    use super::*;
    use proptest::prelude::*;

    fn mapping(len: usize) -> Mapping {
        Mapping::new(&memory_file(len as u64).unwrap(), 0, len, true).unwrap()
    }

    #[derive(Clone, Debug)]
    enum Step {
        Map(u64, usize),
        Unmap(u64, usize),
        Write(u64, Vec<u8>),
        Read(u64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = || (0u64..24).prop_map(|at| at * 8);
        let bytes = prop::collection::vec(any::<u8>(), 0..60);
        prop_oneof![
            (at(), 0usize..6).prop_map(|(at, len)| Step::Map(at, len * 8)),
            (at(), 0usize..6).prop_map(|(at, len)| Step::Unmap(at, len * 8)),
            (0u64..200, bytes).prop_map(|(at, bytes)| Step::Write(at, bytes)),
            (0u64..200, 0usize..60).prop_map(|(at, len)| Step::Read(at, len)),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_flat_memory_with_holes(steps in prop::collection::vec(step(), 1..60)) {
            let guest = GuestMemory::new();
            let mut flat: Vec<Option<u8>> = vec![None; 300];
            let mut regions: Vec<(u64, usize)> = Vec::new();
            for step in steps {
                match step {
                    Step::Map(at, len) => {
                        let range = at as usize..at as usize + len;
                        let free = len > 0 && flat[range.clone()].iter().all(Option::is_none);
                        prop_assert_eq!(guest.map(at, mapping(len)).is_ok(), free);
                        if free {
                            flat[range].fill(Some(0));
                            regions.push((at, len));
                        }
                    }
                    Step::Unmap(at, len) => {
                        let known = regions.iter().position(|region| *region == (at, len));
                        prop_assert_eq!(guest.unmap(at, len as u64).is_ok(), known.is_some());
                        if let Some(known) = known {
                            regions.remove(known);
                            flat[at as usize..at as usize + len].fill(None);
                        }
                    }
                    Step::Write(at, bytes) => {
                        let range = at as usize..at as usize + bytes.len();
                        let there = flat[range.clone()].iter().all(Option::is_some);
                        prop_assert_eq!(guest.check(at, bytes.len(), Access::Write).is_ok(), there);
                        if there {
                            prop_assert!(guest.write(at, &bytes).is_ok());
                            flat[range].iter_mut().zip(&bytes).for_each(|(flat, byte)| *flat = Some(*byte));
                        }
                    }
                    Step::Read(at, len) => {
                        let mut bytes = vec![0; len];
                        let right: Option<Vec<u8>> = flat[at as usize..at as usize + len].iter().copied().collect();
                        let read = guest.read(at, &mut bytes).ok().map(|()| bytes);
                        prop_assert_eq!(read, right);
                    }
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_address_space_are_ends() {
        let guest = GuestMemory::new();
        assert_eq!(guest.map(u64::MAX - 6, mapping(8)), Err(RegionError::Range));
        assert_eq!(guest.map(u64::MAX - 7, mapping(8)), Ok(()));
        assert!(guest.write(u64::MAX - 7, &[1; 8]).is_ok());
        assert_eq!(guest.read(u64::MAX - 3, &mut [0; 8]), Err(DmaFault::at(u64::MAX - 3)));
        assert!(guest.store(u64::MAX - 7, 5).is_ok() && guest.store(u64::MAX - 6, 5).is_err());
        assert_eq!(guest.load(u64::MAX - 7), Ok(5));
        assert!(guest.load(u64::MAX - 6).is_err() && guest.load(u64::MAX - 2).is_err());
        guest.unmap_all();
        assert!(guest.read(u64::MAX, &mut [0]).is_err() && guest.read(u64::MAX, &mut []).is_ok());
    }

    #[test]
    fn what_only_the_guest_reaches_is_told_from_what_nobody_does() {
        let guest = GuestMemory::new();
        guest.map(0, mapping(64)).unwrap();
        guest.map_remote(64, 64, true).unwrap();
        guest.map_remote(128, 64, false).unwrap();
        assert_eq!(guest.map_remote(60, 8, true), Err(RegionError::Overlaps));
        assert_eq!(guest.map(120, mapping(16)), Err(RegionError::Overlaps));
        assert_eq!(guest.read(70, &mut [0; 8]), Err(DmaFault::remote(70)));
        assert_eq!(guest.read(60, &mut [0; 132]), Err(DmaFault::remote(60)), "partly");
        assert_eq!(guest.read(60, &mut [0; 133]), Err(DmaFault::at(60)), "beyond the end");
        assert_eq!(guest.write(100, &[0; 64]), Err(DmaFault::at(100)), "not to be written");
        assert_eq!(guest.check(100, 64, Access::Read), Err(DmaFault::remote(100)));
        assert_eq!((guest.unmap(64, 64), guest.unmap(64, 64)), (Ok(()), Err(RegionError::Unknown)));
        assert_eq!(guest.read(70, &mut [0; 8]), Err(DmaFault::at(70)));
    }

    #[test]
    fn a_region_that_may_not_be_written_can_be_read() {
        let guest = GuestMemory::new();
        guest.map(64, Mapping::new(&memory_file(64).unwrap(), 0, 64, false).unwrap()).unwrap();
        assert!(guest.read(64, &mut [0; 64]).is_ok() && guest.check(64, 64, Access::Read).is_ok());
        assert!(guest.write(64, &[0]).is_err() && guest.store(64, 0).is_err());
        assert!(guest.check(64, 1, Access::Write).is_err());
    }
}
