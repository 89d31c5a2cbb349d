//! Starting again after a power cut. The table of zones and the write buffer were saved. Open zones are closed.
//! Interrupted programs are repeated in other blocks, and interrupted erases are repeated.

use super::ZoneFtl;

/// Blocks that are checked in one step.
const STEP: u32 = 1_024;

impl ZoneFtl {
    pub(super) async fn start_again(&self) {
        let (cuts, blocks) = (self.media.power_cuts(), self.media.geometry().blocks());
        for first in (0..blocks).step_by(STEP as usize) {
            self.sim.sleep(self.config.check_block * u64::from(STEP.min(blocks - first))).await;
            if self.media.power_cuts() != cuts {
                return;
            }
        }
        self.restarted_after.set(cuts);
        let stale = {
            let mut state = self.state.borrow_mut();
            state.table.close_all();
            state.blocks.stale()
        };
        self.start_erases(&stale);
        (0..self.config.zones).for_each(|zone| self.pump(zone));
    }
}
