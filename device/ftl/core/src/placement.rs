//! Placement of data by the host: reclaim unit handles (Base 3.2.4, Flexible Data Placement), as an FTL has them. Streams
//! are handles too: the FTL knows no difference.
//!
//! Left out: more than one reclaim group. The controller interprets the placement fields of a command.

/// How an FTL separates the data of hosts.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct PlacementConfig {
    /// Reclaim unit handles; 0 is no placement.
    pub handles: u8,
    /// The target of data that the drive moves.
    pub isolation: Isolation,
    /// How hosts name the handles.
    pub interface: Interface,
}

/// How hosts name handles in commands.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Interface {
    /// Flexible Data Placement: each by its placement identifier.
    #[default]
    Handles,
    /// The Streams directive (Base 8.1.8.3): each handle beyond the first is a stream resource.
    Streams,
    /// Not at all: each handle is a range of the logical blocks, so that ranges may be collected at different times.
    Ranges,
}

/// The resources that ranges of the logical blocks own.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum RangesOwn {
    /// Blocks: a collection of one range keeps reads of all from its plane.
    #[default]
    Blocks,
    /// Planes, and all blocks of these.
    Planes,
}

impl RangesOwn {
    /// All, with their names.
    pub const ALL: [(&str, RangesOwn); 2] = [("blocks", RangesOwn::Blocks), ("planes", RangesOwn::Planes)];
}

/// Whether data of different handles may share blocks after the drive has moved it (RUHT, Base 5.1.12.1.28).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Isolation {
    /// Initially isolated: it may.
    #[default]
    Initial,
    /// Persistently isolated: it does not. A start from a file alone forgets whose data full blocks hold.
    Persistent,
}

impl Isolation {
    /// All, with their names.
    pub const ALL: [(&str, Isolation); 2] = [("initial", Isolation::Initial), ("persistent", Isolation::Persistent)];
}

/// The drive's own changes to data of a handle, or to the handle (FDP Events, controller events).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PlacementEvent {
    /// Data of an initially isolated handle was moved to another reclaim unit.
    Moved {
        /// The handle.
        handle: u8,
        /// Bytes of the data.
        bytes: u64,
    },
    /// A handle continues in another block of a plane without a host's request: a program has failed in the previous
    /// one, or a collection has taken it.
    Left {
        /// The handle.
        handle: u8,
    },
}

/// An FTL's report of its handles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacementReport {
    /// The target of moved data.
    pub isolation: Isolation,
    /// How hosts name the handles.
    pub interface: Interface,
    /// Bytes of a reclaim unit: a block on each plane.
    pub unit_bytes: u64,
    /// Bytes of a page, the least that is programmed at once.
    pub page_bytes: u32,
    /// Bytes of media that were programmed: data, moved data, and padding.
    pub media_written: u64,
    /// Bytes of media that were erased.
    pub media_erased: u64,
    /// Bytes that were moved out of blocks with data of several handles.
    pub mixed_moved: u64,
    /// Bytes that were moved out of blocks of one handle, and that preconditioning has written: no handle counts them.
    pub planted_moved: u64,
    /// By handle.
    pub handles: Vec<HandleReport>,
}

/// An FTL's report of one handle. Bytes are counted since the creation of the drive.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct HandleReport {
    /// Bytes that hosts have written.
    pub host_written: u64,
    /// Bytes of them that were programmed: data overwritten in the write buffer is not.
    pub programmed: u64,
    /// Bytes that collections have moved out of its blocks.
    pub moved: u64,
    /// Bytes that may still be written to its reclaim unit.
    pub left: u64,
    /// Whether a host has ever written by it.
    pub is_used: bool,
}

impl HandleReport {
    /// Write amplification: bytes programmed and moved, for each byte programmed.
    pub fn write_amplification(&self) -> f64 {
        if self.programmed == 0 { 1.0 } else { (self.programmed + self.moved) as f64 / self.programmed as f64 }
    }
}
