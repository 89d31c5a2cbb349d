//! Reads and writes at all drives at any time (MIX of Shin 5.4.2): on RAID-0, the thesis' baseline, or on RAID-1+0, the fair one.

use super::{Policy, Work, nothing};
use crate::drives::Member;

/// See the file.
pub struct Mixed {
    replicas: usize,
}

impl Mixed {
    /// On RAID-1+0.
    pub const MIRRORED: Mixed = Mixed { replicas: 2 };
    /// On RAID-0.
    pub const STRIPED: Mixed = Mixed { replicas: 1 };
}

impl Policy for Mixed {
    fn name(&self) -> &'static str {
        if self.replicas == 1 { "raid0" } else { "mixed" }
    }

    fn replicas(&self) -> usize {
        self.replicas
    }

    fn has_token(&self, _: u64, _: usize, _: usize) -> bool {
        true
    }

    fn keeps_reads_apart(&self) -> bool {
        false
    }

    fn before_writes<'a>(&'a self, _: &'a Member, _: u64) -> Work<'a> {
        nothing()
    }

    fn after_writes<'a>(&'a self, _: &'a Member) -> Work<'a> {
        nothing()
    }
}
