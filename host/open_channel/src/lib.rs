//! A library for hosts of open-channel drives: the geometry, reports of chunks, and commands on addresses.
//!
//! An [`OpenChannel`] uses any two [`Drive`](nandscape_drive::Drive)s: one for admin commands, one for the rest.
//!
//! | means | commands |
//! |---|---|
//! | [`Means::Vector`] | the vector commands; the lists of addresses are in memory that the drive reaches: in this process |
//! | [`Means::Rows`] | Read, Write, Copy and Dataset Management, one for each row of addresses: over every transport |
//!
//! | file | what |
//! |---|---|
//! | `geometry` | the geometry, places and addresses of version 2.0, and those of version 1.2, which name planes |
//! | `drive` | opening a drive, its logs, and commands on addresses |
//! | `mark` | a mark that hosts of a drive set to find one another |
//! | `rows` | contiguous addresses |
//! | `order` | the order in which the commands of a die are sent to the drive |
//! | `turns` | the commands of each die in the drive, and the commands that wait in the host |
//!
//! Left out: layers above it, such as an FTL; Linux' ioctls.

mod drive;
mod geometry;
mod mark;
mod order;
mod rows;
mod turns;

pub use drive::{ChunkInfo, Error, Means, OpenChannel};
pub use geometry::{Geometry, PageAddress, Place};
pub use order::{DieFifo, DieLoad, DieOrder, DieUse, OneWrite};
