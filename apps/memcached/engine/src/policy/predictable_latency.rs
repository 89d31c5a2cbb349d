//! Epochs on drives with Predictable Latency Mode (NVMe Base 8.1.18): a drive with a token is in the non-deterministic window, in which it
//! collects; a drive that is read is in the deterministic one, without background work.
//!
//! The host chooses when a drive may collect, and not how much: the drive reports how long its work takes at least after little and after
//! much use, and the policy leaves it a time between the two, by what was written. A drive that ended its deterministic window by itself gets
//! the longer time. There is no answer to whether the work has ended. What is under way when the window ends runs to its end, so the drive
//! keeps its token for the shorter time before it is read.

use std::cell::Cell;

use nandscape_host_control::{PredictableLatency as Mode, Window};
use nandscape_sim::{Span, Time};

use super::epochs::alternates;
use super::{Need, Policy, Work, again};
use crate::drives::Member;

/// See the file.
pub struct PredictableLatency;

/// The windows of a drive.
pub(crate) struct Windows {
    mode: Mode,
    /// When the last non-deterministic window began.
    begun: Cell<Time>,
    /// Bytes that are written in it.
    bytes: Cell<u64>,
    /// Whether the policy has begun a deterministic window since.
    is_deterministic: Cell<bool>,
    /// Whether the drive has ended the last one by itself, and how many it has.
    has_lapsed: Cell<bool>,
    lapses: Cell<u64>,
}

impl Windows {
    pub(crate) fn new(mode: Mode) -> Windows {
        let [is_deterministic, has_lapsed] = [const { Cell::new(false) }; 2];
        let [bytes, lapses] = [const { Cell::new(0) }; 2];
        Windows { mode, begun: Cell::new(Time::ZERO), bytes, is_deterministic, has_lapsed, lapses }
    }

    /// Deterministic windows that the drive has ended by itself.
    pub(crate) fn lapses(&self) -> u64 {
        self.lapses.get()
    }
}

impl Policy for PredictableLatency {
    fn name(&self) -> &'static str {
        "predictable_latency"
    }

    fn has_token(&self, epoch: u64, drive: usize, width: usize) -> bool {
        alternates(epoch, drive, width)
    }

    fn keeps_reads_apart(&self) -> bool {
        true
    }

    fn needs(&self) -> Need {
        Need::Windows
    }

    fn before_writes<'a>(&'a self, member: &'a Member, bytes: u64) -> Work<'a> {
        Box::pin(async move {
            let Some(windows) = member.windows() else { return Ok(()) };
            let sim = member.sim();
            let begin = async || {
                let window = windows.mode.window().await?;
                windows.mode.select(Window::NonDeterministic).await?;
                Ok(window)
            };
            let window = again(member.waits(), begin).await.map_err(|error| member.failed(error))?;
            let has_lapsed = windows.is_deterministic.replace(false) && window == Some(Window::NonDeterministic);
            windows.has_lapsed.set(has_lapsed);
            windows.lapses.set(windows.lapses.get() + u64::from(has_lapsed));
            windows.begun.set(sim.now());
            windows.bytes.set(bytes);
            Ok(())
        })
    }

    fn after_writes<'a>(&'a self, member: &'a Member) -> Work<'a> {
        Box::pin(async move {
            let Some(windows) = member.windows() else { return Ok(()) };
            let (sim, failed) = (member.sim(), |error| member.failed(error));
            let times = again(member.waits(), async || windows.mode.times().await).await.map_err(failed)?;
            let typical = times.writes_typical.saturating_mul(member.unit_bytes());
            let used = if windows.has_lapsed.get() { typical } else { windows.bytes.get() };
            sim.sleep_until(windows.begun.get() + work(times.work, used, typical)).await;
            again(member.waits(), async || windows.mode.select(Window::Deterministic).await).await.map_err(failed)?;
            windows.is_deterministic.set(true);
            sim.sleep(times.work[0]).await;
            Ok(())
        })
    }
}

/// The time that a drive needs for its work after `used` bytes of `typical` ones were written.
fn work([least, most]: [Span; 2], used: u64, typical: u64) -> Span {
    let more = u128::from(most.ns().saturating_sub(least.ns()));
    let share = more * u128::from(used.min(typical)) / u128::from(typical.max(1));
    least + Span::from_ns(share as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_has_time_for_its_work_by_what_was_written() {
        let times = [Span::from_ms(10), Span::from_ms(50)];
        let of = |used| work(times, used, 100).ns() / 1_000_000;
        assert_eq!([0, 25, 100, 1_000].map(of), [10, 20, 50, 50]);
        assert_eq!(work(times, 5, 0), times[0], "a drive that names no writes");
    }
}
