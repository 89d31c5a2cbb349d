//! Sectors that the host declares unreadable (Write Uncorrectable). They are kept with lost sectors: reads fail until they
//! are written or deallocated.

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::ftl::{MARKED, SPOIL_STEP, SPOIL_STEP_TIME};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Class, Who};

use super::PageFtl;

/// See [`RandomWrites::spoil`](nandscape_device_ftl_core::RandomWrites::spoil). It takes the firmware time of a deallocation,
/// because it also marks unit by unit, in steps.
pub(super) async fn spoil(ftl: &PageFtl, extent: Extent, breakdown: &mut Breakdown) {
    let unit = ftl.state.borrow().unit;
    let who = Who::new(cause::HOST_WRITE, Class::new(0));
    for step in extent.steps(SPOIL_STEP * unit.sectors()) {
        step.pieces(unit).for_each(|piece| ftl.state.borrow_mut().spoil(&piece));
        ftl.state.borrow_mut().snapshot_if_due();
        let is_last = step.end() == extent.end();
        if is_last {
            // A failure makes the drive read-only, which the caller checks.
            let _ = ftl.state.borrow().sync();
            ftl.check_read_only();
        }
        let units = u64::from(step.units(unit));
        ftl.sim.note_work(units / MARKED);
        let time = ftl.config.firmware.deallocate_unit * units;
        let time = if is_last { time } else { time.max(SPOIL_STEP_TIME) };
        ftl.deallocating.occupy(time, who, breakdown.waits(Stage::Queue)).await;
        breakdown.spend(Stage::Firmware, time);
    }
}
