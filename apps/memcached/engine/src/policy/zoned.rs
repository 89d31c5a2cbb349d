//! Epochs on drives with zones (ZNS): a segment is written in order into a zone, or into its part of one, and a zone is reset when its first
//! segment is to be written again. So the drive collects nothing, and erases while it has its token: a reset ends when the zone is erased.
//!
//! What is in the write buffer when the token ends is programmed while the drive is read: nothing reports when that has ended.

use super::epochs::alternates;
use super::{Need, Policy, Work, nothing};
use crate::drives::Member;

/// See the file.
pub struct Zoned;

impl Policy for Zoned {
    fn name(&self) -> &'static str {
        "zoned"
    }

    fn has_token(&self, epoch: u64, drive: usize, width: usize) -> bool {
        alternates(epoch, drive, width)
    }

    fn keeps_reads_apart(&self) -> bool {
        true
    }

    fn needs(&self) -> Need {
        Need::Zones
    }

    fn before_segment<'a>(&'a self, member: &'a Member, start: u64, _: u64) -> Work<'a> {
        Box::pin(member.begin_zone(start))
    }

    fn before_writes<'a>(&'a self, _: &'a Member, _: u64) -> Work<'a> {
        nothing()
    }

    fn after_writes<'a>(&'a self, _: &'a Member) -> Work<'a> {
        nothing()
    }
}
