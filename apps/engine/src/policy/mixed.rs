//! Reads and writes at all drives at any time: the fair baseline (MIX of Shin 5.4.2, on RAID-1+0).

use super::{Policy, Work, nothing};
use crate::drives::Member;

/// See the file.
pub struct Mixed;

impl Policy for Mixed {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn has_token(&self, _: u64, _: usize) -> bool {
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
