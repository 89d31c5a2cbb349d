//! The streams of this FTL: data that is written to separate blocks.
//!
//! Without placement there are three. With it, each further reclaim unit handle has a stream for the data that hosts
//! write, and under persistent isolation one for the data that collectors move out of its blocks. Data of two handles
//! therefore never enters one block.

use nandscape_device_ftl_core::component::{NextBlock, Stream, StreamRule};
use nandscape_device_ftl_core::parts::COLLECTOR_RESERVE;
use nandscape_device_ftl_core::placement::{Isolation, PlacementConfig};

use super::WearConfig;

/// Data as written by the host, by the first handle if the drive has handles. It leaves the last free blocks of a plane to
/// the others.
pub(super) const HOST: Stream = Stream(0);
/// Data that a collector has moved, which is colder.
pub(super) const COLLECTED: Stream = Stream(1);
/// Data that static wear levelling has moved, which is the coldest: it is written to the most worn blocks, which it
/// keeps from being erased for long.
pub(super) const LEVELLED: Stream = Stream(2);

/// The first stream of further handles.
const FURTHER: u8 = 3;

/// How each stream takes free blocks, by its number.
const RULES: [StreamRule; 3] = [
    StreamRule { leaves: COLLECTOR_RESERVE, next: NextBlock::InOrder },
    StreamRule { leaves: 0, next: NextBlock::InOrder },
    StreamRule { leaves: 0, next: NextBlock::MostWorn },
];

/// The rules of the streams that are written, each with an open block on every plane.
pub(super) fn rules(wear: &WearConfig, placement: &PlacementConfig) -> Vec<StreamRule> {
    let further = usize::from(placement.handles.saturating_sub(1));
    if further == 0 {
        return if wear.static_threshold == 0 { RULES[..2].to_vec() } else { RULES.to_vec() };
    }
    let collected = if placement.isolation == Isolation::Persistent { further } else { 0 };
    let hosts = std::iter::repeat_n(RULES[0], further);
    RULES.into_iter().chain(hosts).chain(std::iter::repeat_n(RULES[1], collected)).collect()
}

/// The stream of the data that hosts write by a handle.
pub(super) fn of_handle(handle: u8) -> Stream {
    match handle {
        0 => HOST,
        further => Stream(FURTHER + further - 1),
    }
}

/// The stream of data moved out of the blocks of a handle.
pub(super) fn collected_of(placement: &PlacementConfig, handle: u8) -> Stream {
    match placement.isolation {
        Isolation::Persistent if (1..placement.handles).contains(&handle) => {
            Stream(FURTHER + placement.handles - 1 + handle - 1)
        }
        _ => COLLECTED,
    }
}

/// The handle whose data the blocks of a stream hold; `None` where it is of several.
pub(super) fn handle_of(placement: &PlacementConfig, stream: Stream) -> Option<u8> {
    let further = placement.handles.saturating_sub(1);
    match stream.0 {
        0 => Some(0),
        1 => (placement.isolation == Isolation::Persistent).then_some(0),
        2 => None,
        number if number - FURTHER < further => Some(number - FURTHER + 1),
        number => Some(number - FURTHER - further + 1),
    }
}
