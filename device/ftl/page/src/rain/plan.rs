//! The reads before a stripe is written: the pages from which its new parity follows.
//!
//! The parity changes by the difference of its data, so the old data and the old parity determine it (read, modify, write).
//! Or it is recomputed from all data: then the units that are not written are read. Slots that lack sectors need their old
//! units in any case. The variant with fewer reads is chosen.
//!
//! A unit that cannot be read, or whose plane collects while reads avoid such planes, is reconstructed from all others
//! of the stripe. In Li 3.3.5 the old page of a collecting plane is reconstructed in this way, with the old parity,
//! because the new parity does not include the old data.

use super::Snapshot;

/// The reads before a write of a stripe. All members are a bit each.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ReadPlan {
    /// Members to read.
    pub(super) read: u32,
    /// The member that is reconstructed from all others.
    pub(super) derived: u32,
    /// Members that can be neither read nor reconstructed.
    pub(super) lost: u32,
    /// Whether the parity is made of all data, and not of its old value.
    pub(super) is_anew: bool,
}

/// The properties of a stripe's write on which the reads depend.
#[derive(Copy, Clone, Debug)]
pub(super) struct Wanted {
    /// Members that are written.
    pub(super) written: u32,
    /// Written members whose slots lack sectors.
    pub(super) partial: u32,
    pub(super) parity: u32,
    /// Members that cannot be read.
    pub(super) bad: u32,
    /// Members that reads avoid if they can.
    pub(super) slow: u32,
    /// Whether all members are rewritten elsewhere.
    pub(super) is_moving: bool,
}

/// The cost of a read of a slow member, and of a lost member, in reads.
const SLOW: u32 = 100;
const LOST: u32 = 10_000;

/// The cheapest reads.
pub(super) fn plan(snapshot: &Snapshot, wanted: &Wanted) -> ReadPlan {
    let parity = 1 << wanted.parity;
    let data = snapshot.all & !parity;
    let anew = (data & !wanted.written) | wanted.partial;
    let anew = way(snapshot, wanted, anew, true);
    let modified = way(snapshot, wanted, wanted.written | parity, false);
    let (cost, plan) = if wanted.is_moving || anew.0 <= modified.0 { anew } else { modified };
    debug_assert!(cost < u32::MAX && (cost < LOST || plan.lost != 0));
    plan
}

/// The reads that determine what `needed` members hold, and their cost.
fn way(snapshot: &Snapshot, wanted: &Wanted, needed: u32, is_anew: bool) -> (u32, ReadPlan) {
    let (zeros, bad) = (snapshot.zeros, wanted.bad | snapshot.absent);
    let (needed, others) = (needed & !zeros, snapshot.all & !zeros);
    let cost = |read: u32| read.count_ones() + SLOW * (read & wanted.slow).count_ones();
    // The old parity alone does not determine the new one.
    let is_possible = is_anew || needed & bad == 0;
    let direct = ReadPlan { read: needed & !bad, derived: 0, lost: needed & bad, is_anew };
    let mut best =
        if is_possible { (cost(direct.read) + LOST * direct.lost.count_ones(), direct) } else { (u32::MAX, direct) };
    // Any one of them may be left out, if the others can all be read.
    for left_out in super::members_of(needed & (bad | wanted.slow)).map(|member| 1 << member) {
        let read = others & !left_out;
        if read & bad == 0 && cost(read) < best.0 {
            best = (cost(read), ReadPlan { read, derived: left_out, lost: 0, is_anew });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(zeros: u32, absent: u32) -> Snapshot {
        Snapshot { all: 0b1_1111, zeros, absent, ..Snapshot::default() }
    }

    fn wanted(written: u32) -> Wanted {
        Wanted { written, partial: 0, parity: 4, bad: 0, slow: 0, is_moving: false }
    }

    fn reads(snapshot: &Snapshot, wanted: &Wanted) -> (u32, u32, u32) {
        let ReadPlan { read, derived, lost, .. } = plan(snapshot, wanted);
        (read, derived, lost)
    }

    #[test]
    fn the_way_with_fewer_reads_is_taken() {
        let whole = snapshot(0, 0);
        assert_eq!(plan(&whole, &wanted(0b1111)), ReadPlan { read: 0, derived: 0, lost: 0, is_anew: true });
        assert_eq!(plan(&whole, &wanted(0b0001)).read, 0b1_0001);
        assert_eq!(plan(&whole, &wanted(0b0111)).read, 0b0_1000);
        // Units that were never written need not be read.
        assert_eq!(plan(&snapshot(0b1_1111, 0), &wanted(0b0001)).read, 0);
        // A slot that lacks sectors needs its old unit.
        assert_eq!(reads(&whole, &Wanted { partial: 0b0001, ..wanted(0b1111) }), (1, 0, 0));
        assert_eq!(plan(&whole, &Wanted { is_moving: true, ..wanted(0b0001) }).read, 0b0_1110);
    }

    /// Li 3.3.5: 7' and 8' are written while the plane of 6 collects. The old 7, 8 and parity determine 6, and with it
    /// the new parity.
    #[test]
    fn a_collecting_plane_is_gone_round() {
        let stripe = Snapshot { all: 0b1111, ..Snapshot::default() };
        let seven_and_eight = Wanted { parity: 3, ..wanted(0b110) };
        assert_eq!(reads(&stripe, &seven_and_eight), (0b001, 0, 0));
        assert_eq!(reads(&stripe, &Wanted { slow: 0b001, ..seven_and_eight }), (0b1110, 0b001, 0));
        // If 7' lacks sectors and its plane collects, the old 7 is reconstructed from all others.
        let partial = Wanted { slow: 0b010, partial: 0b010, ..seven_and_eight };
        assert_eq!(reads(&stripe, &partial), (0b1101, 0b010, 0));
        // Of two at once, one must be waited for.
        assert_eq!(reads(&stripe, &Wanted { slow: 0b011, ..partial }), (0b1110, 0b001, 0));
    }

    #[test]
    fn what_cannot_be_read_is_found_or_gone_round_or_lost() {
        let whole = snapshot(0, 0);
        assert_eq!(reads(&whole, &Wanted { bad: 0b0001, ..wanted(0b0001) }), (0b0_1110, 0, 0));
        assert_eq!(reads(&whole, &Wanted { bad: 0b0010, ..wanted(0b0001) }), (0b1_0001, 0, 0));
        assert_eq!(reads(&snapshot(0, 0b0010), &Wanted { is_moving: true, ..wanted(0b0001) }), (0b1_1101, 0b0010, 0));
        let two = Wanted { bad: 0b0110, ..wanted(0b0001) };
        assert_eq!(reads(&whole, &two), (0b1_0001, 0, 0));
        assert_eq!(reads(&whole, &Wanted { bad: 0b1_0010, ..two }), (0b0_1100, 0, 0b0010));
    }
}
