//! Every zone is spread over the whole drive: one zone has the full bandwidth, and all zones share all dies.

use super::{Groups, ZoneMapping};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Superblock;

impl ZoneMapping for Superblock {
    fn sets(&self, _: Groups) -> u32 {
        1
    }

    fn groups(&self, groups: Groups, _: u32) -> Vec<u32> {
        let within = 0..groups.per_channel;
        within.flat_map(|within| (0..groups.channels).map(move |channel| groups.number(channel, within))).collect()
    }
}
