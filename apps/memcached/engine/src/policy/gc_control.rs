//! Epochs, with garbage collection at the engine's command (+GCCTRL of Shin 5.4.2): before its writes a drive collects as many blocks as
//! they will take, and reads return to it once nothing internal runs.
//!
//! Table 5.1 makes `run_gc` asynchronous, so free blocks are asked for until there are enough or the drive has stopped. The low watermark
//! leaves what the drive needs for itself; Shin gives no figures for either watermark.

use nandscape_host_control::{Control, Error};
use nandscape_sim::{Sim, Span};

use super::epochs::alternates;
use super::{Need, PATIENCE, Policy, Work, again};
use crate::drives::Member;

/// See the file.
pub struct GcControl;

/// The longest run of a collection; a run that reaches the high watermark ends before.
const RUN: Span = Span::from_ms(1_000);
/// Between two questions whether a run or a preemption has ended.
const ASK_AGAIN: Span = Span::from_us(50);
/// The part of the blocks that stays free for the drive itself: 64 is a 64th.
const RESERVE: u32 = 64;

impl Policy for GcControl {
    fn name(&self) -> &'static str {
        "gc_control"
    }

    fn has_token(&self, epoch: u64, drive: usize, width: usize) -> bool {
        alternates(epoch, drive, width)
    }

    fn keeps_reads_apart(&self) -> bool {
        true
    }

    fn needs(&self) -> Need {
        Need::Orders
    }

    fn before_writes<'a>(&'a self, member: &'a Member, bytes: u64) -> Work<'a> {
        Box::pin(async move {
            let Some(control) = member.control() else { return Ok(()) };
            let sim = member.sim();
            again(member.waits(), async || collect(sim, control, bytes).await)
                .await
                .map_err(|error| member.failed(error))
        })
    }

    fn after_writes<'a>(&'a self, member: &'a Member) -> Work<'a> {
        Box::pin(async move {
            let Some(control) = member.control() else { return Ok(()) };
            let sim = member.sim();
            let is_ready = again(member.waits(), async || become_ready(sim, control).await).await;
            let is_ready = is_ready.map_err(|error| member.failed(error))?;
            if is_ready { Ok(()) } else { Err(member.is_not_ready(PATIENCE)) }
        })
    }
}

/// Has the drive free as many blocks as the writes take, and waits.
async fn collect(sim: &Sim, control: &Control, bytes: u64) -> Result<(), Error> {
    let space = control.space().await?;
    let low = (space.blocks / RESERVE).max(1);
    let coming = u32::try_from(bytes.div_ceil(space.block_bytes.max(1))).unwrap_or(u32::MAX);
    // A block that is open in each of the places where the drive writes at once is not free, and is not counted.
    let high = low.saturating_mul(2).saturating_add(coming).min(space.blocks);
    control.set_watermarks(low, high).await?;
    if space.free >= high || !control.run(RUN).await?.is_accepted {
        return Ok(());
    }
    let until = sim.now() + RUN;
    while sim.now() < until {
        sim.sleep(ASK_AGAIN).await;
        let space = control.space().await?;
        if space.free >= high || !space.is_collecting {
            break;
        }
    }
    Ok(())
}

/// Waits until reads meet no internal work. Whether they do: a drive that has stopped frees no more blocks and never is ready.
async fn become_ready(sim: &Sim, control: &Control) -> Result<bool, Error> {
    let (mut until, mut most) = (sim.now() + PATIENCE, 0);
    loop {
        let ready = control.is_ready_for_read().await?;
        if ready.is_ready {
            return Ok(true);
        }
        if ready.free > most {
            (until, most) = (sim.now() + PATIENCE, ready.free);
        } else if sim.now() >= until {
            return Ok(false);
        }
        sim.sleep(ASK_AGAIN).await;
    }
}
