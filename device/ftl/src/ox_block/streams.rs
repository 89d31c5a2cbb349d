//! The streams of OX-Block: what is written to blocks of its own (OX 6.1.3). The thesis keeps fragments of tables with the
//! host's data; here they have blocks of their own, so that a checkpoint can be written when there is no room for data.

use crate::component::{NextBlock, Stream, StreamRule};

/// Data as the host wrote it.
pub(super) const HOT: Stream = Stream(0);
/// Data that a collector has moved.
pub(super) const COLD: Stream = Stream(1);
/// The log.
pub(super) const LOG: Stream = Stream(2);
/// Fragments of tables.
pub(super) const META: Stream = Stream(3);

/// Free blocks of a plane that the host's data leaves to others.
pub(super) const HOT_LEAVES: u32 = 3;
/// Free blocks of a plane that collectors leave to the log and the tables.
const COLD_LEAVES: u32 = 1;

/// How each stream takes free blocks, by its number.
pub(super) const RULES: [StreamRule; 4] = [
    StreamRule { leaves: HOT_LEAVES, next: NextBlock::InOrder },
    StreamRule { leaves: COLD_LEAVES, next: NextBlock::InOrder },
    StreamRule { leaves: 0, next: NextBlock::InOrder },
    StreamRule { leaves: 0, next: NextBlock::InOrder },
];
