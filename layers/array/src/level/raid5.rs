//! RAID-5, left-symmetric, as Linux lays it out by default: parity moves one member to the left with each stripe, and data
//! begins behind it.

use super::{Level, Role};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Raid5 {
    /// Members, three or more.
    pub members: usize,
}

impl Raid5 {
    fn parity(&self, stripe: u64) -> usize {
        self.members - 1 - (stripe % self.members as u64) as usize
    }
}

impl Level for Raid5 {
    fn members(&self) -> usize {
        self.members
    }

    fn data(&self) -> usize {
        self.members - 1
    }

    fn checks(&self) -> usize {
        1
    }

    fn role(&self, stripe: u64, member: usize) -> Role {
        match (member + self.members - self.parity(stripe)) % self.members {
            0 => Role::P,
            behind => Role::Data(behind - 1),
        }
    }

    fn member(&self, stripe: u64, index: usize, _: usize) -> usize {
        (self.parity(stripe) + 1 + index) % self.members
    }

    fn check_member(&self, stripe: u64, check: usize) -> Option<usize> {
        (check == 0).then(|| self.parity(stripe))
    }
}
