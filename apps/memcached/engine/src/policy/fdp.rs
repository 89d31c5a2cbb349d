//! Epochs on drives with Flexible Data Placement (NVMe Base 8.1.10): the log has a reclaim unit handle for itself, a segment begins a
//! reclaim unit if it does not fit in the rest of the last one, and its blocks are deallocated before it is written again. So a reclaim
//! unit loses nearly all its data at once, and the drive has little or nothing to move. The rest is what the drive has programmed: data
//! in its write buffer may lie in the next unit.
//!
//! The drive still erases reclaim units, and programs what it has buffered, when it likes: nothing keeps that from drives that are read.

use nandscape_host_control::Placement;

use super::epochs::alternates;
use super::{Need, Policy, Work, again, nothing};
use crate::drives::Member;

/// See the file.
pub struct Fdp;

/// The handle of the log. Handle 0 is that of writes without a directive.
const LOG: u16 = 1;

impl Policy for Fdp {
    fn name(&self) -> &'static str {
        "fdp"
    }

    fn has_token(&self, epoch: u64, drive: usize, width: usize) -> bool {
        alternates(epoch, drive, width)
    }

    fn keeps_reads_apart(&self) -> bool {
        true
    }

    fn needs(&self) -> Need {
        Need::Placement(LOG + 1)
    }

    fn handle(&self) -> Option<u16> {
        Some(LOG)
    }

    fn before_segment<'a>(&'a self, member: &'a Member, start: u64, bytes: u64) -> Work<'a> {
        Box::pin(async move {
            member.deallocate(start, bytes).await?;
            let Some(placement) = member.placement() else { return Ok(()) };
            let place = async || begin(placement, bytes).await;
            again(member.waits(), place).await.map_err(|error| member.failed(error))
        })
    }

    fn before_writes<'a>(&'a self, _: &'a Member, _: u64) -> Work<'a> {
        nothing()
    }

    fn after_writes<'a>(&'a self, _: &'a Member) -> Work<'a> {
        nothing()
    }
}

/// Has a segment lie in one reclaim unit: begins one if the segment does not fit the rest of the present one. A unit that is smaller than a
/// segment has room for none, and is filled to its end.
async fn begin(placement: &Placement, bytes: u64) -> Result<(), nandscape_host_control::Error> {
    let left = placement.left(LOG).await?.unwrap_or(0);
    if left > 0 && left < bytes {
        placement.begin_unit(LOG).await?;
    }
    Ok(())
}
