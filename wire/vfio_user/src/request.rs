//! A client's message, parsed. Sizes and flags are checked here; numbers of regions and interrupts are checked where
//! the device is known.

use zerocopy::FromBytes;

use crate::access::{DmaMap, DmaUnmap, RegionAccess};
use crate::device::{DeviceInfo, InterruptInfo, InterruptSet, RegionInfo};
use crate::header::{Command, Errno};
use crate::version::{Capabilities, Version};

/// A client's request.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Request<'a> {
    /// Agree on a version.
    Version(Version, Capabilities),
    /// Map memory.
    DmaMap(DmaMap),
    /// Unmap memory.
    DmaUnmap(DmaUnmap),
    /// The description of the device.
    DeviceInfo(DeviceInfo),
    /// The description of a region.
    RegionInfo(RegionInfo),
    /// What interrupts of a kind there are.
    InterruptInfo(InterruptInfo),
    /// Set interrupts up, mask or trigger them.
    SetInterrupts(InterruptSet, SetData<'a>, Action),
    /// Read a region.
    Read(RegionAccess),
    /// Write a region.
    Write(RegionAccess, &'a [u8]),
    /// Reset the device.
    Reset,
}

/// Which interrupts of a range an action is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SetData<'a> {
    /// All.
    All,
    /// Those whose byte is not zero: one byte each.
    Some(&'a [u8]),
    /// Descriptors to connect, or none.
    Descriptors,
}

/// The action on interrupts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Mask them.
    Mask,
    /// Unmask them.
    Unmask,
    /// Trigger them, or connect them with descriptors.
    Trigger,
}

/// Why a message is not understood.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejected {
    /// The number of the command is not known.
    #[error("command {0} is not known")]
    Unknown(u16),
    /// The command is known and not supported.
    #[error("command {0} is not supported")]
    Unsupported(u16),
    /// The message is shorter or longer than its command requires.
    #[error("command {command} has {bytes} bytes after its header, and needs {needed}")]
    Size {
        /// The number of the command.
        command: u16,
        /// Bytes received.
        bytes: usize,
        /// Bytes that it has or begins with.
        needed: usize,
    },
    /// A field has a value that is not allowed.
    #[error("command {command}: {field} is not valid")]
    Field {
        /// The number of the command.
        command: u16,
        /// Which field.
        field: &'static str,
    },
}

impl Rejected {
    /// The error number of the reply.
    pub fn errno(self) -> Errno {
        match self {
            Rejected::Unknown(_) => Errno::ENOSYS,
            Rejected::Unsupported(_) => Errno::EOPNOTSUPP,
            Rejected::Size { .. } | Rejected::Field { .. } => Errno::EINVAL,
        }
    }
}

impl<'a> Request<'a> {
    /// Parses what follows the header of a command.
    ///
    /// # Errors
    /// [`Rejected`] names the fault.
    pub fn parse(command: u16, payload: &'a [u8]) -> Result<Request<'a>, Rejected> {
        let body = Body { command, payload };
        match Command(command) {
            Command::VERSION => body.version(),
            Command::DMA_MAP => body.map(),
            Command::DMA_UNMAP => body.unmap(),
            Command::DEVICE_GET_INFO => body.whole().map(Request::DeviceInfo),
            Command::DEVICE_GET_REGION_INFO => body.whole().map(Request::RegionInfo),
            Command::DEVICE_GET_IRQ_INFO => body.whole().map(Request::InterruptInfo),
            Command::DEVICE_SET_IRQS => body.interrupts(),
            Command::REGION_READ => body.whole().map(Request::Read),
            Command::REGION_WRITE => body.write(),
            Command::DEVICE_RESET => body.nothing().map(|()| Request::Reset),
            Command::DEVICE_GET_REGION_IO_FDS | Command::DIRTY_PAGES | Command::REGION_WRITE_MULTI => {
                Err(Rejected::Unsupported(command))
            }
            // These two go the other way.
            Command::DMA_READ | Command::DMA_WRITE => Err(Rejected::Unsupported(command)),
            Command(command) => Err(Rejected::Unknown(command)),
        }
    }
}

/// A payload of a command.
#[derive(Copy, Clone)]
struct Body<'a> {
    command: u16,
    payload: &'a [u8],
}

impl<'a> Body<'a> {
    fn version(self) -> Result<Request<'a>, Rejected> {
        let (version, data) = self.start::<Version>()?;
        let capabilities = Capabilities::parse(data).ok_or(self.field("the version data"))?;
        Ok(Request::Version(version, capabilities))
    }

    fn map(self) -> Result<Request<'a>, Rejected> {
        let map: DmaMap = self.whole()?;
        let known = DmaMap::READ | DmaMap::WRITE;
        if map.flags.get() & !known != 0 || map.flags.get() == 0 {
            return Err(self.field("flags"));
        }
        // A map may end at the end of the address space.
        let last = map.size.get().checked_sub(1).and_then(|rest| map.address.get().checked_add(rest));
        let end = map.offset.get().checked_add(map.size.get());
        match last.is_some() && end.is_some() {
            true => Ok(Request::DmaMap(map)),
            false => Err(self.field("the range")),
        }
    }

    fn unmap(self) -> Result<Request<'a>, Rejected> {
        // A request for dirty pages has more behind it.
        let (unmap, rest) = self.start::<DmaUnmap>()?;
        match unmap.flags.get() {
            0 | DmaUnmap::ALL if !rest.is_empty() => Err(self.size(size_of::<DmaUnmap>())),
            0 | DmaUnmap::ALL => Ok(Request::DmaUnmap(unmap)),
            DmaUnmap::DIRTY => Err(Rejected::Unsupported(self.command)),
            _ => Err(self.field("flags")),
        }
    }

    fn interrupts(self) -> Result<Request<'a>, Rejected> {
        let (set, rest) = self.start::<InterruptSet>()?;
        let (flags, count) = (set.flags.get(), set.count.get() as usize);
        let data = match flags & InterruptSet::DATA {
            InterruptSet::DATA_NONE => SetData::All,
            InterruptSet::DATA_BOOL => SetData::Some(rest),
            InterruptSet::DATA_EVENTFD => SetData::Descriptors,
            _ => return Err(self.field("flags")),
        };
        let action = match flags & !InterruptSet::DATA {
            InterruptSet::ACTION_MASK => Action::Mask,
            InterruptSet::ACTION_UNMASK => Action::Unmask,
            InterruptSet::ACTION_TRIGGER => Action::Trigger,
            _ => return Err(self.field("flags")),
        };
        let needed = if matches!(data, SetData::Some(_)) { count } else { 0 };
        match rest.len() == needed {
            true => Ok(Request::SetInterrupts(set, data, action)),
            false => Err(self.size(size_of::<InterruptSet>().saturating_add(needed))),
        }
    }

    fn write(self) -> Result<Request<'a>, Rejected> {
        let (access, data) = self.start::<RegionAccess>()?;
        let count = access.count.get() as usize;
        match data.len() == count {
            true => Ok(Request::Write(access, data)),
            false => Err(self.size(size_of::<RegionAccess>().saturating_add(count))),
        }
    }

    /// A structure, and nothing after it.
    fn whole<T: FromBytes>(self) -> Result<T, Rejected> {
        T::read_from_bytes(self.payload).map_err(|_| self.size(size_of::<T>()))
    }

    /// A structure, and what follows it.
    fn start<T: FromBytes>(self) -> Result<(T, &'a [u8]), Rejected> {
        T::read_from_prefix(self.payload).map_err(|_| self.size(size_of::<T>()))
    }

    fn nothing(self) -> Result<(), Rejected> {
        if self.payload.is_empty() { Ok(()) } else { Err(self.size(0)) }
    }

    fn size(self, needed: usize) -> Rejected {
        Rejected::Size { command: self.command, bytes: self.payload.len(), needed }
    }

    fn field(self, field: &'static str) -> Rejected {
        Rejected::Field { command: self.command, field }
    }
}
