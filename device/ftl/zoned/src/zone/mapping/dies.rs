//! A zone is spread over few groups, as in drives with many small zones. The bandwidth of a zone is that of its groups,
//! and zones on other groups do not disturb it.

use super::{Groups, Superblock, ZoneMapping};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Dies {
    /// Groups of a zone, a divisor of all.
    pub width: u32,
}

impl ZoneMapping for Dies {
    fn sets(&self, groups: Groups) -> u32 {
        groups.count() / self.width
    }

    /// Neighbouring channels first.
    fn groups(&self, groups: Groups, set: u32) -> Vec<u32> {
        let (all, width) = (Superblock.groups(groups, 0), self.width as usize);
        all[set as usize * width..][..width].to_vec()
    }
}
