//! Reads and writes of regions, and maps of the client's memory.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A read or write of a region (`VFIO_USER_REGION_READ`, `VFIO_USER_REGION_WRITE`). The data follows in a write, and in
/// the reply to a read.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RegionAccess {
    /// The first byte in the region.
    pub offset: U64,
    /// Which region.
    pub region: U32,
    /// How many bytes.
    pub count: U32,
}

const _: () = assert!(size_of::<RegionAccess>() == 16);

/// Memory of the client that the device may reach from now on (`VFIO_USER_DMA_MAP`).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DmaMap {
    /// Bytes of this structure.
    pub argsz: U32,
    /// [`DmaMap::READ`] and [`DmaMap::WRITE`].
    pub flags: U32,
    /// The beginning of the memory in the file of the message's descriptor.
    pub offset: U64,
    /// Its first address.
    pub address: U64,
    /// Its bytes.
    pub size: U64,
}

const _: () = assert!(size_of::<DmaMap>() == 32);

impl DmaMap {
    /// The device may read it.
    pub const READ: u32 = 1 << 0;
    /// The device may write it.
    pub const WRITE: u32 = 1 << 1;
}

/// A transfer that the server requests from the client (`VFIO_USER_DMA_READ`, `VFIO_USER_DMA_WRITE`). The data
/// follows, in a write and in the reply to a read.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DmaAccess {
    /// The first address.
    pub address: U64,
    /// How many bytes.
    pub count: U64,
}

const _: () = assert!(size_of::<DmaAccess>() == 16);

/// Memory that the device may reach no more (`VFIO_USER_DMA_UNMAP`).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DmaUnmap {
    /// How long the reply may be without its header.
    pub argsz: U32,
    /// [`DmaUnmap::ALL`] and the like.
    pub flags: U32,
    /// The first address.
    pub address: U64,
    /// How many bytes.
    pub size: U64,
}

const _: () = assert!(size_of::<DmaUnmap>() == 24);

impl DmaUnmap {
    /// The reply must list the pages that were written.
    pub const DIRTY: u32 = 1 << 0;
    /// Everything, with address and size of zero.
    pub const ALL: u32 = 1 << 1;
}
