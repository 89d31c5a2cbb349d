//! RAID-0: a data chunk on each member, no redundancy.

use super::{Level, Role};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Raid0 {
    /// Members, one or more.
    pub members: usize,
}

impl Level for Raid0 {
    fn members(&self) -> usize {
        self.members
    }

    fn data(&self) -> usize {
        self.members
    }

    fn role(&self, _: u64, member: usize) -> Role {
        Role::Data(member)
    }

    fn member(&self, _: u64, index: usize, _: usize) -> usize {
        index
    }
}
