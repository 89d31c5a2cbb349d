//! A zone is spread over one group of every channel: zones share channels, and only some of them share dies.

use super::{Groups, ZoneMapping};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct PlaneGroup;

impl ZoneMapping for PlaneGroup {
    fn sets(&self, groups: Groups) -> u32 {
        groups.per_channel
    }

    fn groups(&self, groups: Groups, set: u32) -> Vec<u32> {
        (0..groups.channels).map(|channel| groups.number(channel, set)).collect()
    }
}
