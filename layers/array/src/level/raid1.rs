//! RAID-1: the same data on each member.

use super::{Level, Role};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Raid1 {
    /// Members, two or more.
    pub members: usize,
}

impl Level for Raid1 {
    fn members(&self) -> usize {
        self.members
    }

    fn data(&self) -> usize {
        1
    }

    fn copies(&self) -> usize {
        self.members
    }

    fn role(&self, _: u64, _: usize) -> Role {
        Role::Data(0)
    }

    fn member(&self, _: u64, _: usize, copy: usize) -> usize {
        copy
    }
}
