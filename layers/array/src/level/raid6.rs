//! RAID-6, left-symmetric, as Linux lays it out by default: P moves one member to the left with each stripe, Q is behind it,
//! and data begins behind Q.

use super::{Level, Role};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Raid6 {
    /// Members, four or more.
    pub members: usize,
}

impl Raid6 {
    fn parity(&self, stripe: u64) -> usize {
        self.members - 1 - (stripe % self.members as u64) as usize
    }
}

impl Level for Raid6 {
    fn members(&self) -> usize {
        self.members
    }

    fn data(&self) -> usize {
        self.members - 2
    }

    fn checks(&self) -> usize {
        2
    }

    fn role(&self, stripe: u64, member: usize) -> Role {
        match (member + self.members - self.parity(stripe)) % self.members {
            0 => Role::P,
            1 => Role::Q,
            behind => Role::Data(behind - 2),
        }
    }

    fn member(&self, stripe: u64, index: usize, _: usize) -> usize {
        (self.parity(stripe) + 2 + index) % self.members
    }

    fn check_member(&self, stripe: u64, check: usize) -> Option<usize> {
        (check < 2).then(|| (self.parity(stripe) + check) % self.members)
    }
}
