//! RAID-10: a stripe over pairs of members, with the same data on both of a pair.

use super::{Level, Role};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Raid10 {
    /// Members: an even number, four or more.
    pub members: usize,
}

impl Level for Raid10 {
    fn members(&self) -> usize {
        self.members
    }

    fn data(&self) -> usize {
        self.members / 2
    }

    fn copies(&self) -> usize {
        2
    }

    fn role(&self, _: u64, member: usize) -> Role {
        Role::Data(member / 2)
    }

    fn member(&self, _: u64, index: usize, copy: usize) -> usize {
        2 * index + copy
    }
}
