//! Tea2 (Li 3.2.2): as Tea1, but if too many chunks are busy, those with the shortest remaining time are resubmitted,
//! without the bit.

use nandscape_sim::Time;
use nandscape_wire_nvme::vendor::FAST_FAIL;
use smallvec::SmallVec;

use super::{Sends, TailPolicy, View};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct RemainingTime;

/// The busy ones, the shortest remaining time first.
pub(super) fn shortest_first(view: &View<'_>) -> SmallVec<[usize; 8]> {
    let mut busy = view.busy();
    busy.sort_by_key(|(member, remaining)| (*remaining, *member));
    busy.into_iter().map(|(member, _)| member).collect()
}

impl TailPolicy for RemainingTime {
    fn asks_first(&self) -> Option<u32> {
        Some(FAST_FAIL)
    }

    fn next(&self, view: &View<'_>, sends: &mut Sends) -> Option<Time> {
        view.ask_wanted(FAST_FAIL, sends);
        let busy = shortest_first(view);
        if !busy.is_empty() {
            view.evade(&busy, FAST_FAIL, 0, sends);
        }
        None
    }

    fn abandons(&self) -> bool {
        true
    }
}
