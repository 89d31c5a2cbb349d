//! A device's report of itself, its regions and its interrupts, and the actions on interrupts: the structures of
//! `<linux/vfio.h>`.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The device (`vfio_device_info`).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DeviceInfo {
    /// In a request, how long the reply may be without its header; in the reply, how long it is.
    pub argsz: U32,
    /// [`DeviceInfo::RESET`] and the like.
    pub flags: U32,
    /// Regions, of which the first nine are those of [`region`].
    pub regions: U32,
    /// Kinds of interrupts.
    pub interrupts: U32,
}

const _: () = assert!(size_of::<DeviceInfo>() == 16);

impl DeviceInfo {
    /// The device can be reset.
    pub const RESET: u32 = 1 << 0;
    /// It is a PCI device.
    pub const PCI: u32 = 1 << 1;
}

/// Numbers of the regions of a PCI device.
pub mod region {
    /// The first base address register; the others follow.
    pub const BAR0: u32 = 0;
    /// The fifth base address register.
    pub const BAR4: u32 = 4;
    /// The configuration space.
    pub const CONFIG: u32 = 7;
    /// Regions of a PCI device: six base address registers, the ROM, the configuration space, VGA.
    pub const COUNT: u32 = 9;
}

/// A region (`vfio_region_info`).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RegionInfo {
    /// In a request, how long the reply may be without its header; in the reply, how long it would have to be.
    pub argsz: U32,
    /// [`RegionInfo::READ`] and the like.
    pub flags: U32,
    /// Which region.
    pub index: U32,
    /// Offset of the first capability, if there is any.
    pub cap_offset: U32,
    /// Bytes; none for a region that does not exist.
    pub size: U64,
    /// The beginning of the region in the file to be mapped.
    pub offset: U64,
}

const _: () = assert!(size_of::<RegionInfo>() == 32);

impl RegionInfo {
    /// It can be read.
    pub const READ: u32 = 1 << 0;
    /// It can be written.
    pub const WRITE: u32 = 1 << 1;
    /// The message carries a descriptor, and a part of the region can be mapped.
    pub const MMAP: u32 = 1 << 2;
    /// Capabilities follow.
    pub const CAPS: u32 = 1 << 3;
}

/// The capability of a region of which one part can be mapped (`vfio_region_info_cap_sparse_mmap` with one area).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SparseMap {
    /// [`SparseMap::ID`].
    pub id: U16,
    /// 1.
    pub version: U16,
    /// Offset of the next capability: none.
    pub next: U32,
    /// Areas: 1.
    pub areas: U32,
    /// Reserved.
    pub reserved: U32,
    /// The beginning of the area in the region.
    pub offset: U64,
    /// Its bytes.
    pub size: U64,
}

const _: () = assert!(size_of::<SparseMap>() == 32);

impl SparseMap {
    /// The identifier of the capability.
    pub const ID: u16 = 1;
}

/// Numbers of the kinds of interrupts of a PCI device.
pub mod interrupt {
    /// MSI-X.
    pub const MSIX: u32 = 2;
    /// Kinds: the interrupt pin, MSI, MSI-X, errors, requests to give the device back.
    pub const COUNT: u32 = 5;
}

/// The interrupts of a kind (`vfio_irq_info`).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct InterruptInfo {
    /// As in [`DeviceInfo`].
    pub argsz: U32,
    /// [`InterruptInfo::EVENTFD`] and the like.
    pub flags: U32,
    /// Which kind.
    pub index: U32,
    /// How many there are of it.
    pub count: U32,
}

const _: () = assert!(size_of::<InterruptInfo>() == 16);

impl InterruptInfo {
    /// They can be signalled by event descriptors.
    pub const EVENTFD: u32 = 1 << 0;
    /// They can be masked by messages.
    pub const MASKABLE: u32 = 1 << 1;
}

/// An action on interrupts (`vfio_irq_set`); data may follow.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct InterruptSet {
    /// Bytes with the data that follows.
    pub argsz: U32,
    /// One of the `DATA_` bits, and one of the `ACTION_` bits.
    pub flags: U32,
    /// Which kind of interrupts.
    pub index: U32,
    /// The first of them.
    pub start: U32,
    /// How many.
    pub count: U32,
}

const _: () = assert!(size_of::<InterruptSet>() == 20);

impl InterruptSet {
    /// Do it for all of them.
    pub const DATA_NONE: u32 = 1 << 0;
    /// Do it for those whose byte in the data is not zero.
    pub const DATA_BOOL: u32 = 1 << 1;
    /// Connect them with the message's descriptors; without any, disconnect them.
    pub const DATA_EVENTFD: u32 = 1 << 2;
    /// All of these.
    pub const DATA: u32 = 0b111;
    /// Mask.
    pub const ACTION_MASK: u32 = 1 << 3;
    /// Unmask.
    pub const ACTION_UNMASK: u32 = 1 << 4;
    /// Trigger, or connect with event descriptors.
    pub const ACTION_TRIGGER: u32 = 1 << 5;
    /// All of these.
    pub const ACTION: u32 = 0b111 << 3;
}
