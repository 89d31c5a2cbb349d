//! The streams of this FTL: data that is written to blocks of its own.

use crate::component::{NextBlock, Stream, StreamRule};
use crate::parts::COLLECTOR_RESERVE;

/// Data as the host wrote it. It leaves the last free blocks of a plane to the others.
pub(super) const HOST: Stream = Stream(0);
/// Data that a collector has moved, which is colder.
pub(super) const COLLECTED: Stream = Stream(1);
/// Data that static wear levelling has moved, which is the coldest: it goes to the most worn blocks, which it keeps from
/// being erased for long.
pub(super) const LEVELLED: Stream = Stream(2);

/// How each stream takes free blocks, by its number.
pub(super) const RULES: [StreamRule; 3] = [
    StreamRule { leaves: COLLECTOR_RESERVE, next: NextBlock::InOrder },
    StreamRule { leaves: 0, next: NextBlock::InOrder },
    StreamRule { leaves: 0, next: NextBlock::MostWorn },
];
