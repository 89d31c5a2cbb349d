//! Sectors that the host declares unreadable (Write Uncorrectable). They are kept with those whose data was lost: reads
//! fail until they are written or deallocated.

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Class, Who};

use super::PageFtl;
use crate::address::Extent;

/// See [`Ftl::spoil`](crate::Ftl::spoil). Firmware takes the time of a deallocation, since it marks unit by unit, too.
pub(super) async fn spoil(ftl: &PageFtl, extent: Extent, breakdown: &mut Breakdown) {
    let unit = ftl.state.borrow().unit;
    extent.pieces(unit).for_each(|piece| ftl.state.borrow_mut().spoil(&piece));
    ftl.state.borrow_mut().snapshot_if_due();
    // A failure makes the drive read-only, and its caller asks for that.
    let _ = ftl.state.borrow().sync();
    ftl.check_read_only();
    let time = ftl.config.firmware.deallocate_unit * u64::from(extent.units(unit));
    let who = Who::new(cause::HOST_WRITE, Class::new(0));
    ftl.deallocating.occupy(time, who, breakdown.waits(Stage::Queue)).await;
    breakdown.spend(Stage::Firmware, time);
}
