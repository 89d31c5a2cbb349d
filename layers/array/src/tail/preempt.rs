//! The rival of remaining time: as Tea1, but if too many chunks are busy, they are resubmitted with the flag that
//! makes the member postpone its collection (Li 5.7).

use nandscape_sim::Time;
use nandscape_wire_nvme::vendor::{FAST_FAIL, PREEMPT};

use super::remaining_time::shortest_first;
use super::{Sends, TailPolicy, View};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Preempt;

impl TailPolicy for Preempt {
    fn asks_first(&self) -> Option<u32> {
        Some(FAST_FAIL)
    }

    fn next(&self, view: &View<'_>, sends: &mut Sends) -> Option<Time> {
        view.ask_wanted(FAST_FAIL, sends);
        let busy = shortest_first(view);
        if !busy.is_empty() {
            view.evade(&busy, FAST_FAIL, PREEMPT, sends);
        }
        None
    }

    fn abandons(&self) -> bool {
        true
    }
}
