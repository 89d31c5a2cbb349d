//! Reads that wait behind reads that themselves wait for a collection. The breakdown of a command charges a wait to the operation
//! directly in front. A read keeps its register while it waits for a channel that a collection holds, so the reads behind it wait
//! for the collection, too.
//!
//! The waits of a read are placed by its stages, backwards from its completion. Left out: reads of several mapping units, which may
//! be at several planes; reads through a host, whose time after the drive is not known; waits in the queue. The times are therefore
//! the least.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use nandscape_drive::breakdown::cause::{GC, HOST_READ};
use nandscape_drive::{Breakdown, Stage};
use nandscape_host_path::LAYER as HOST;
use nandscape_sim::{Span, Time};

/// The most recent reads of each LUN that are kept.
const READS: usize = 64;

/// The waits of recent reads for channels that collections held.
#[derive(Default)]
pub(super) struct Blocked {
    /// By LUN: from when until when a read waited for its channel, and how much of that behind collections.
    waits: BTreeMap<u32, VecDeque<(Range<u64>, u64)>>,
}

impl Blocked {
    /// Whether a read waited for a channel that a collection held.
    pub(super) fn is_blocked(breakdown: &Breakdown) -> bool {
        !breakdown.waited(Stage::ChannelWait, GC).is_zero()
    }

    /// A read of a LUN has completed.
    pub(super) fn note(&mut self, lun: u32, breakdown: &Breakdown, completed: Time) {
        let Some([_, channel]) = waits(breakdown, completed).filter(|_| Blocked::is_blocked(breakdown)) else { return };
        let of = self.waits.entry(lun).or_default();
        if of.len() == READS {
            of.pop_front();
        }
        of.push_back((channel, breakdown.waited(Stage::ChannelWait, GC).ns()));
    }

    /// For how long a read of a LUN has waited behind reads while those waited for a collection.
    pub(super) fn behind(&self, lun: u32, breakdown: &Breakdown, completed: Time) -> Span {
        let stages = [Stage::DieWait, Stage::ChannelWait];
        let behind_reads: u64 = stages.iter().map(|stage| breakdown.waited(*stage, HOST_READ).ns()).sum();
        let (Some(ahead), Some(own)) = (self.waits.get(&lun), waits(breakdown, completed)) else { return Span::ZERO };
        let of_read = |(wait, gc): &(Range<u64>, u64)| {
            let both: u64 = own.iter().map(|own| shared(own, wait)).sum();
            // The read ahead has waited behind other operations as well.
            (u128::from(both) * u128::from(*gc) / u128::from((wait.end - wait.start).max(1))) as u64
        };
        Span::from_ns(ahead.iter().map(of_read).sum::<u64>().min(behind_reads))
    }
}

/// When a read waited for its die and for its channel. `None` if a host took part of its time.
fn waits(breakdown: &Breakdown, completed: Time) -> Option<[Range<u64>; 2]> {
    if breakdown.causes().any(|(layer, ..)| layer == HOST) {
        return None;
    }
    let ns = |stage| breakdown.stage(stage).ns();
    let sent = completed.ns().saturating_sub(ns(Stage::Transfer) + ns(Stage::Ecc) + ns(Stage::Link));
    let channel = sent.saturating_sub(ns(Stage::ChannelWait))..sent;
    let sensed_from = channel.start.saturating_sub(ns(Stage::Array));
    Some([sensed_from.saturating_sub(ns(Stage::DieWait))..sensed_from, channel])
}

fn shared(one: &Range<u64>, other: &Range<u64>) -> u64 {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read that waited for its die behind a read, then for its channel behind a collection and a read, and was sent in 10 us.
    fn read(die: u64, array: u64, gc: u64, behind_read: u64) -> Breakdown {
        let mut breakdown = Breakdown::new();
        breakdown.waits(Stage::DieWait).add(HOST_READ, Span::from_us(die));
        breakdown.spend(Stage::Array, Span::from_us(array));
        breakdown.waits(Stage::ChannelWait).add(GC, Span::from_us(gc));
        breakdown.waits(Stage::ChannelWait).add(HOST_READ, Span::from_us(behind_read));
        breakdown.spend(Stage::Transfer, Span::from_us(10));
        breakdown
    }

    #[test]
    fn the_wait_of_the_read_ahead_counts_as_far_as_both_wait() {
        let at = |us: u64| Time::from_ns(us * 1_000);
        let mut blocked = Blocked::default();
        // Sensed until 50, waits for the channel until 1,050, for a collection; sent until 1,060.
        blocked.note(0, &read(0, 50, 1_000, 0), at(1_060));
        // Waits for the die from 550 to 1,060: half of the other's wait, and its transfer.
        let behind = read(510, 50, 0, 0);
        assert_eq!(blocked.behind(0, &behind, at(1_120)), Span::from_us(500));
        assert_eq!(blocked.behind(1, &behind, at(1_120)), Span::ZERO, "another LUN");
        assert_eq!(blocked.behind(0, &behind, at(2_000)), Span::ZERO, "later");
        // Of a wait of 1,000 us a quarter is behind the collection, and so is a quarter of what is shared.
        blocked.note(2, &read(0, 50, 250, 750), at(1_060));
        assert_eq!(blocked.behind(2, &behind, at(1_120)), Span::from_us(125));
    }

    #[test]
    fn reads_without_such_waits_are_not_kept() {
        let mut blocked = Blocked::default();
        blocked.note(0, &read(5, 50, 0, 700), Time::from_ns(1_000_000));
        assert!(blocked.waits.is_empty());
    }
}
