//! Which part of the drive a zone is spread over: one trait, one file a policy.
//!
//! A group is what one program command reaches: the planes of a die with multi-plane commands, otherwise a plane. A policy
//! divides the groups into sets of equal size; the zones take the sets in turn.

mod dies;
mod plane_group;
mod superblock;

pub use dies::Dies;
pub use plane_group::PlaneGroup;
pub use superblock::Superblock;

/// The groups of a drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Groups {
    /// Channels.
    pub channels: u32,
    /// Groups of each channel.
    pub per_channel: u32,
}

impl Groups {
    /// All of them.
    pub const fn count(self) -> u32 {
        self.channels * self.per_channel
    }

    /// The number of a group: those of a channel follow each other.
    pub const fn number(self, channel: u32, within: u32) -> u32 {
        channel * self.per_channel + within
    }
}

/// A mapping of zones to groups.
pub trait ZoneMapping {
    /// Sets of groups. All have the same size, and each group is in one set.
    fn sets(&self, groups: Groups) -> u32;

    /// The groups of a set, in the order in which a zone's data is spread over them.
    fn groups(&self, groups: Groups, set: u32) -> Vec<u32>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_is_in_one_set_and_sets_are_of_one_size() {
        let policies: [Box<dyn ZoneMapping>; 4] =
            [Box::new(Superblock), Box::new(PlaneGroup), Box::new(Dies { width: 1 }), Box::new(Dies { width: 4 })];
        for (channels, per_channel) in [(1, 4), (2, 2), (8, 4), (8, 8)] {
            let groups = Groups { channels, per_channel };
            for policy in &policies {
                let sets: Vec<Vec<u32>> = (0..policy.sets(groups)).map(|set| policy.groups(groups, set)).collect();
                assert!(sets.iter().all(|set| set.len() == sets[0].len()), "{sets:?}");
                let mut all = sets.concat();
                all.sort_unstable();
                assert_eq!(all, (0..groups.count()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn neighbours_in_a_zone_are_on_different_channels() {
        let groups = Groups { channels: 4, per_channel: 2 };
        assert_eq!(Superblock.groups(groups, 0), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert_eq!(PlaneGroup.groups(groups, 1), [1, 3, 5, 7]);
        assert_eq!(Dies { width: 2 }.groups(groups, 1), [4, 6]);
    }
}
