//! The steps that operations share: command cycles and transfers on a channel, time of an array, and their trace.

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::trace::{Event, Track};
use nandscape_sim::{Span, Time, Who};

use crate::geometry::PlaneId;
use crate::lun::Register;
use crate::media::{Media, Tracks};

/// A step of the array.
#[derive(Copy, Clone)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) time: Span,
    pub(crate) detail: u32,
    /// The time to suspend it; `None` if it cannot be suspended.
    pub(crate) suspend: Option<Span>,
}

impl Media {
    /// Whether the command and address cycles of a command that moves no data take time.
    #[inline]
    pub(crate) fn has_command_cycles(&self) -> bool {
        !self.timing.features.command.is_zero()
    }

    /// The command and address cycles.
    pub(crate) async fn command(&self, channel: usize, who: Who, breakdown: &mut Breakdown) {
        self.transfer(channel, self.timing.features.command, who, breakdown).await;
    }

    pub(crate) async fn transfer(&self, channel: usize, time: Span, who: Who, breakdown: &mut Breakdown) {
        self.channels[channel].occupy(time, who, breakdown.waits(Stage::ChannelWait)).await;
        self.transferred(channel, time, who, breakdown);
    }

    #[inline]
    pub(crate) fn transferred(&self, channel: usize, time: Span, who: Who, breakdown: &mut Breakdown) {
        breakdown.spend(Stage::Transfer, time);
        self.trace_transfer(channel, time, who);
    }

    /// Keeps the array busy with a step, which is suspended for urgent reads if it can be.
    pub(crate) async fn array(
        &self,
        register: &mut Register<'_>,
        plane: PlaneId,
        step: Step,
        breakdown: &mut Breakdown,
    ) {
        let Step { name, time, detail, suspend } = step;
        match suspend {
            None => {
                register.array(time, breakdown).await;
                self.trace_array(plane, name, time, detail);
            }
            Some(cost) => {
                let terms = self.timing.features.suspend.terms(cost);
                let part = |time, is_suspended| {
                    self.trace_array(plane, name, time, detail);
                    if is_suspended {
                        self.contents.borrow_mut().count_suspension(name);
                    }
                };
                Box::pin(register.array_suspendable(time, terms, breakdown, part)).await;
            }
        }
    }

    /// Continues a step of the array for the time that a rule of the fault plan adds. For the operation, and for those that
    /// wait for the LUN, it is a wait behind the fault.
    pub(crate) async fn delay(
        &self,
        register: &mut Register<'_>,
        plane: PlaneId,
        step: Step,
        breakdown: &mut Breakdown,
    ) {
        let (owner, mut delayed) = (register.charge_to(cause::FAULT), Breakdown::new());
        self.array(register, plane, step, &mut delayed).await;
        register.charge_to(owner);
        breakdown.add_behind(cause::FAULT, &delayed);
    }

    /// Channel time of a command that moves a page.
    #[inline]
    pub(crate) fn whole_page(&self) -> Span {
        self.whole_page
    }

    /// Traces an array operation of `time` in a plane.
    pub(crate) fn trace_array(&self, plane: PlaneId, name: &'static str, time: Span, detail: u32) {
        self.trace(|tracks| tracks.planes[plane.0 as usize], name, time, u64::from(detail));
    }

    /// Traces a transfer of `time` on a channel.
    pub(crate) fn trace_transfer(&self, channel: usize, time: Span, who: Who) {
        self.trace(|tracks| tracks.channels[channel], "transfer", time, who.cause.index() as u64);
    }

    #[inline]
    fn trace(&self, track: impl FnOnce(&Tracks) -> Track, name: &'static str, time: Span, detail: u64) {
        self.sim.trace_event(|end| {
            let start = Time::from_ns(end.ns() - time.ns());
            Event { track: track(&self.tracks), name, start, end, detail }
        });
    }
}
