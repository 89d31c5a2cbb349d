//! The streams of OX-Block: data in separate blocks (OX 6.1.3). The thesis keeps fragments of tables with the host's
//! data. Here they have separate blocks, so that a checkpoint can be written when there is no room for data.

use nandscape_device_ftl_core::component::{NextBlock, Stream, StreamRule};
use nandscape_device_media::Geometry;

use crate::parts::StreamLine;

/// Data as the host wrote it.
pub(super) const HOT: Stream = Stream(0);
/// Data that a collector has moved.
pub(super) const COLD: Stream = Stream(1);
/// The log.
pub(super) const LOG: Stream = Stream(2);
/// Fragments of tables.
pub(super) const META: Stream = Stream(3);

/// The number of streams.
pub(super) const STREAMS: usize = 4;

/// Free blocks of a plane that the host's data leaves to others.
pub(super) const HOT_LEAVES: u32 = 3;
/// Free blocks of a plane that collectors leave to the log and the tables.
const COLD_LEAVES: u32 = 1;
/// Blocks of the log's line.
pub(super) const LOG_WIDTH: u32 = 3;

/// Free lines that data of the host and data that a collector has moved leave, where lines are as wide as the drive.
pub(super) const LEAVES_OF_LINES: [u32; 2] = [2, 0];

/// How each stream takes free blocks and how wide its line is, by its number.
pub(super) fn lines(geometry: &Geometry) -> [StreamLine; STREAMS] {
    let line = |leaves, width| StreamLine { rule: StreamRule { leaves, next: NextBlock::InOrder }, width };
    let (planes, channels) = (geometry.planes(), geometry.channels());
    [line(HOT_LEAVES, planes), line(COLD_LEAVES, planes), line(0, LOG_WIDTH), line(0, channels)]
}
