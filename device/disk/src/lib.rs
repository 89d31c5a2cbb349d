//! A magnetic disk as a [`Drive`](nandscape_drive::Drive): the drive behind the block layer of MittNoop and MittCFQ (Li 3.1.6).
//!
//! | file | what |
//! |---|---|
//! | `spec` | the data sheet of a disk |
//! | `mechanics` | positions of arm and platters, and the time of a command |
//! | `data` | the contents |
//! | `disk` | the drive: commands one at a time, in order of arrival |
//! | `shingled` | a disk whose tracks overlap: a media cache, and bands that are cleaned |
//!
//! A disk has one arm, so it serves one command at a time. The platters turn all the time: the wait of a command for
//! its first sector depends on its arrival. A host that does not see the platters cannot know it.
//!
//! Left out: reordering by the disk (NCQ), the cache for reads and for writes, zones with more sectors on outer tracks, replaced sectors,
//! the time of the host's link, and failures. A disk has no Copy and no Write Uncorrectable. A deallocation changes
//! nothing.
#![forbid(unsafe_code)]

mod data;
mod disk;
mod mechanics;
mod shingled;
mod spec;

pub use disk::{Counters, Disk};
pub use shingled::{Cleanings, Shingled, ShingledSpec};
pub use spec::{DiskSpec, Seek, SpecError};
