//! The inside of a drive, for display: its dies and channels by name, their busy times, and the wear of its blocks.
//!
//! Left out: single operations, which are in the event trace ([`crate::watch`]).

use std::collections::BTreeMap;

use nandscape_sim::account::CAUSES;

/// Busy nanoseconds by cause, since the drive began.
pub type Busy = [u64; CAUSES];

/// The parts of a drive. It never changes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Layout {
    /// The dies by name, in the order of all figures of dies.
    pub dies: Vec<String>,
    /// Arrays of each die that work independently.
    pub arrays: Vec<u32>,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// The channels by name.
    pub channels: Vec<String>,
    /// The place of each track of the event trace, by the track's number.
    pub lanes: BTreeMap<usize, Lane>,
}

/// The place of a track.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Lane {
    /// The array of a plane, counted over all dies.
    Plane(u32),
    /// A channel.
    Channel(u32),
}

/// How busy the parts of a drive were, and how worn its blocks are.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Inside {
    /// Of the arrays of each die, added up.
    pub dies: Vec<Busy>,
    /// Of each channel.
    pub channels: Vec<Busy>,
    /// Where requested: it visits each block.
    pub wear: Option<Wear>,
}

/// The wear of a drive's blocks.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Wear {
    /// By die.
    pub dies: Vec<DieWear>,
    /// Blocks of a group: neighbours on a die. The last group of a die may be smaller.
    pub blocks_per_group: u32,
}

/// The wear of the blocks of a die. Bad blocks are left out of all but their count.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DieWear {
    /// Erases of the most worn block of each group; `None` where all are bad.
    pub groups: Vec<Option<u32>>,
    /// Erases of the least worn block.
    pub least: u32,
    /// Erases of the most worn block.
    pub most: u32,
    /// Erases of all.
    pub sum: u64,
    /// The number of good blocks.
    pub good: u32,
    /// Blocks that are bad, from the factory or retired.
    pub bad: u32,
}

impl DieWear {
    /// From the erases of a die's blocks, `None` for each that is bad.
    pub fn of(erases: impl Iterator<Item = Option<u32>>, blocks_per_group: u32) -> DieWear {
        let mut die = DieWear { least: u32::MAX, ..DieWear::default() };
        for (number, erases) in erases.enumerate() {
            if number.is_multiple_of(blocks_per_group as usize) {
                die.groups.push(None);
            }
            let Some(erases) = erases else {
                die.bad += 1;
                continue;
            };
            let group = die.groups.last_mut().expect("a group has begun");
            *group = (*group).max(Some(erases));
            die.least = die.least.min(erases);
            die.most = die.most.max(erases);
            die.sum += u64::from(erases);
            die.good += 1;
        }
        die.least = die.least.min(die.most);
        die
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_blocks_are_counted_and_stand_for_no_wear() {
        let die = DieWear::of([Some(3), None, None, None, Some(9)].into_iter(), 2);
        assert_eq!(die.groups, [Some(3), None, Some(9)]);
        assert_eq!((die.least, die.most, die.sum, die.good, die.bad), (3, 9, 12, 2, 3));
        assert_eq!(DieWear::of([None].into_iter(), 2).least, 0);
    }
}
