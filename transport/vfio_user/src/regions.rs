//! The messages on regions: their descriptions, reads and writes.

use std::sync::atomic::Ordering;

use nandscape_wire_nvme::register;
use nandscape_wire_vfio_user::Errno;
use nandscape_wire_vfio_user::access::RegionAccess;
use nandscape_wire_vfio_user::device::{RegionInfo, SparseMap, region};
use zerocopy::IntoBytes as _;

use crate::channel::MAX_DATA;
use crate::config_space::{self, Effects};
use crate::layout::{DOORBELLS, PAGE};
use crate::listener::DoorbellMode;
use crate::session::{Reply, Session};

/// The contents at a place in a region.
enum Place {
    /// The controller's properties.
    Properties,
    /// Doorbells, from this offset among them.
    Doorbells(u64),
    /// The MSI-X table.
    Table,
    /// Pending bits, from this offset among them.
    Pending(u64),
    /// The configuration space.
    Config,
    /// Nothing.
    Nothing,
}

impl Session {
    fn region_bytes(&self, index: u32) -> u64 {
        match index {
            region::BAR0 => self.layout.bar0_bytes(),
            region::BAR4 => self.layout.bar4_bytes(),
            region::CONFIG => config_space::BYTES as u64,
            _ => 0,
        }
    }

    /// Describes a region. The doorbells of BAR0 can be mapped if the function offers that.
    pub(crate) fn region_info(&self, asked: &RegionInfo) -> Result<Reply, Errno> {
        const INFO: usize = size_of::<RegionInfo>();
        let (index, argsz) = (asked.index.get(), asked.argsz.get() as usize);
        if index >= region::COUNT || argsz < INFO {
            return Err(Errno::EINVAL);
        }
        let size = self.region_bytes(index);
        let mut info =
            RegionInfo { argsz: (INFO as u32).into(), index: index.into(), size: size.into(), ..RegionInfo::default() };
        if size == 0 {
            return Ok(Reply::of(info.as_bytes()));
        }
        let mut flags = RegionInfo::READ | RegionInfo::WRITE;
        if index != region::BAR0 || self.mode != DoorbellMode::Mapped {
            info.flags = flags.into();
            return Ok(Reply::of(info.as_bytes()));
        }
        let area = SparseMap {
            id: SparseMap::ID.into(),
            version: 1.into(),
            areas: 1.into(),
            offset: DOORBELLS.into(),
            size: self.layout.doorbell_bytes().into(),
            ..SparseMap::default()
        };
        let needed = INFO + size_of::<SparseMap>();
        flags |= RegionInfo::MMAP | RegionInfo::CAPS;
        (info.flags, info.argsz) = (flags.into(), (needed as u32).into());
        info.cap_offset = (INFO as u32).into();
        // A client whose buffer is too short repeats the request. QEMU always wants the offset.
        if argsz < needed {
            return Ok(Reply { descriptor: true, ..Reply::of(info.as_bytes()) });
        }
        Ok(Reply { descriptor: true, payload: [info.as_bytes(), area.as_bytes()].concat() })
    }

    /// The place of an access, which is inside of its region.
    fn place(&self, access: &RegionAccess) -> Result<Place, Errno> {
        let (offset, count) = (access.offset.get(), u64::from(access.count.get()));
        let bytes = self.region_bytes(access.region.get());
        if count > MAX_DATA as u64 || offset.checked_add(count).is_none_or(|end| end > bytes) {
            return Err(Errno::EINVAL);
        }
        let pending = self.layout.pending_bits();
        let within = |start: u64, len: u64| offset >= start && offset + count <= start + len;
        Ok(match access.region.get() {
            region::BAR0 if within(0, DOORBELLS) => Place::Properties,
            region::BAR0 if within(DOORBELLS, self.layout.doorbell_bytes()) => Place::Doorbells(offset - DOORBELLS),
            region::BAR4 if within(0, pending) => Place::Table,
            region::BAR4 if within(pending, PAGE) => Place::Pending(offset - pending),
            region::CONFIG => Place::Config,
            _ => Place::Nothing,
        })
    }

    /// Reads a region. Unused places read as zeros.
    pub(crate) fn read_region(&self, access: &RegionAccess) -> Result<Reply, Errno> {
        let (place, offset) = (self.place(access)?, access.offset.get() as usize);
        let mut data = vec![0; access.count.get() as usize];
        match place {
            Place::Properties => data = self.read_properties(offset, data.len())?,
            Place::Doorbells(at) => self.doorbells.read(at as usize, &mut data).map_err(|_| Errno::EIO)?,
            Place::Table => data = self.table[offset..offset + data.len()].to_vec(),
            Place::Pending(at) => {
                let pending = self.call(|device, _| device.interrupts.pending())?;
                let there = pending.get(at as usize..).unwrap_or_default();
                data.iter_mut().zip(there).for_each(|(to, from)| *to = *from);
            }
            Place::Config => self.config.read(offset, &mut data),
            Place::Nothing => {}
        }
        Ok(Reply::of(&[access.as_bytes(), &data].concat()))
    }

    /// Reads all dwords that overlap the range.
    fn read_properties(&self, offset: usize, len: usize) -> Result<Vec<u8>, Errno> {
        let first = offset / 4 * 4;
        let dwords: Vec<u32> = (first..offset + len).step_by(4).map(|at| at as u32).collect();
        let read = self.call(move |_, intake| {
            dwords.into_iter().flat_map(|at| intake.register(at).to_le_bytes()).collect::<Vec<u8>>()
        })?;
        Ok(read[offset - first..offset - first + len].to_vec())
    }

    /// Writes a region. Writes to unused places, or of an invalid size, are ignored, as by a device.
    pub(crate) fn write_region(&mut self, access: &RegionAccess, data: &[u8]) -> Result<Reply, Errno> {
        let (place, offset) = (self.place(access)?, access.offset.get() as usize);
        match place {
            Place::Properties => self.write_properties(offset, data)?,
            Place::Doorbells(at) => {
                dwords(at, data).try_for_each(|(at, value)| self.doorbells.store(at, value)).map_err(|_| Errno::EIO)?;
                self.rung.store(true, Ordering::Release);
                match self.mode {
                    // Answered once the reactor has looked: it has then requested the next doorbell.
                    DoorbellMode::Trapped => self.call(|_, _| ())?,
                    DoorbellMode::Shadow | DoorbellMode::Buffered | DoorbellMode::Mapped => self.handle.wake(),
                }
            }
            Place::Table => self.table[offset..offset + data.len()].copy_from_slice(data),
            Place::Config => {
                let effects = self.config.write(offset, data);
                self.apply(effects)?;
            }
            Place::Pending(_) | Place::Nothing => {}
        }
        Ok(Reply::of(access.as_bytes()))
    }

    /// Properties are written by dwords or pairs of dwords (PCIe Transport 1.1, 3.1.1).
    fn write_properties(&self, offset: usize, data: &[u8]) -> Result<(), Errno> {
        let writes: Vec<(usize, u32)> = dwords(offset as u64, data).collect();
        self.call(move |device, intake| {
            for (at, value) in writes {
                device.write_register(at as u32, value, intake);
            }
        })
    }

    fn apply(&mut self, effects: Effects) -> Result<(), Errno> {
        if effects.reset {
            self.reset_device()?;
        }
        match effects.bus_master {
            Some(allowed) => self.call(move |device, _| device.memory.set_bus_master(allowed)),
            None => Ok(()),
        }
    }

    /// A reset of the function, from a message or through the configuration space; returns when it has ended.
    pub(crate) fn reset(&mut self) -> Result<(), Errno> {
        self.config.reset();
        self.reset_device()
    }

    fn reset_device(&mut self) -> Result<(), Errno> {
        self.table.fill(0);
        let (tell, told) = std::sync::mpsc::channel();
        self.call(move |device, intake| {
            device.memory.set_bus_master(false);
            device.reset(tell, intake);
        })?;
        told.recv().map_err(|_| Errno::EIO)
    }
}

const _: () = assert!(register::CRTO < DOORBELLS as u32);

/// The dwords of a write of one or two of them, if it is aligned; nothing otherwise.
fn dwords(offset: u64, data: &[u8]) -> impl Iterator<Item = (usize, u32)> {
    let aligned = matches!(data.len(), 4 | 8) && offset.is_multiple_of(data.len() as u64);
    let words = if aligned { data.chunks_exact(4) } else { [].chunks_exact(4) };
    let value = |word: &[u8]| word.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
    (offset as usize..).step_by(4).zip(words.map(value).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_aligned_dwords_are_written() {
        let all = |offset, data: &[u8]| dwords(offset, data).collect::<Vec<_>>();
        assert_eq!(all(0x14, &[1, 2, 3, 4]), [(0x14, 0x0403_0201)]);
        assert_eq!(all(0x28, &[1, 0, 0, 0, 2, 0, 0, 0]), [(0x28, 1), (0x2c, 2)]);
        for (offset, len) in [(0x15, 4), (0x14, 8), (0x14, 2), (0x14, 0), (0x10, 12)] {
            assert_eq!(all(offset, &vec![1; len]), [], "{len} bytes at {offset:#x}");
        }
    }
}
