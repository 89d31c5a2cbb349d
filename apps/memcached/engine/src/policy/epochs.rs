//! Tokens for the drives of each group in turn: of pairs, for odd and for even ones (EPCH of Shin 5.4.2). An epoch ends when its writes have ended; what the drives do by
//! themselves afterwards disturbs reads.

use super::{Policy, Work, nothing};
use crate::drives::Member;

/// See the file.
pub struct Epochs;

/// Whether a drive of a group has a token: one in each epoch, in turn.
pub(super) fn alternates(epoch: u64, drive: usize, width: usize) -> bool {
    drive as u64 == epoch % width as u64
}

impl Policy for Epochs {
    fn name(&self) -> &'static str {
        "epochs"
    }

    fn has_token(&self, epoch: u64, drive: usize, width: usize) -> bool {
        alternates(epoch, drive, width)
    }

    fn keeps_reads_apart(&self) -> bool {
        true
    }

    fn before_writes<'a>(&'a self, _: &'a Member, _: u64) -> Work<'a> {
        nothing()
    }

    fn after_writes<'a>(&'a self, _: &'a Member) -> Work<'a> {
        nothing()
    }
}
